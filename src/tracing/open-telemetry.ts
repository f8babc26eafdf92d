/**
 * The part of OpenTelemetry's API that Heed uses. A registered SDK is found under a well-known symbol, without an import, so that tracing
 * costs nothing where no SDK is registered.
 */
const apiKey = Symbol.for('opentelemetry.js.api.1')
const spanKey = Symbol.for('OpenTelemetry Context Key SPAN')

export type AttributeValue = string | number | boolean | string[] | number[]
export type Attributes = Record<string, AttributeValue | undefined>

export interface SpanContext {
  traceId: string
  spanId: string
  traceFlags: number
  isRemote?: boolean
}

export interface Span {
  spanContext(): SpanContext
  isRecording(): boolean
  setAttributes(attributes: Attributes): unknown
  addEvent(name: string, attributes?: Attributes): unknown
  /** Since 1.9. */
  addLink?(link: Link): unknown
  setStatus(status: { code: 0 | 1 | 2; message?: string }): unknown
  end(): void
}

export interface Link {
  context: SpanContext
  attributes?: Attributes
}

/** 0: internal; 1: server; 2: client; 3: producer; 4: consumer. */
export type SpanKind = 0 | 1 | 2 | 3 | 4

/** The implicit context of a call, with the active span. */
export interface Context {
  getValue(key: symbol): unknown
  setValue(key: symbol, value: unknown): Context
  deleteValue(key: symbol): Context
}

export interface Tracer {
  startSpan(name: string, options: { kind: SpanKind; attributes: Attributes; links?: Link[] }, context: Context): Span
}

export interface Histogram {
  record(value: number, attributes?: Attributes): void
}

export interface Counter {
  add(value: number, attributes?: Attributes): void
}

interface InstrumentOptions {
  description: string
  unit: string
  advice?: { explicitBucketBoundaries: number[] }
}

export interface Meter {
  createHistogram(name: string, options: InstrumentOptions): Histogram
  createCounter(name: string, options: InstrumentOptions): Counter
}

/** The registered parts of an SDK. Each may be absent. */
export interface OpenTelemetry {
  trace?: { getTracer(name: string): Tracer }
  metrics?: { getMeter(name: string): Meter }
  context?: { active(): Context; with<T>(context: Context, work: () => T): T }
}

/** The SDK of this process; undefined where none is registered. */
export function openTelemetry(): OpenTelemetry | undefined {
  const api = (globalThis as Record<symbol, OpenTelemetry | undefined>)[apiKey]
  return api?.trace || api?.metrics ? api : undefined
}

class ContextValues implements Context {
  readonly #values: ReadonlyMap<symbol, unknown>

  constructor(values: ReadonlyMap<symbol, unknown> = new Map()) {
    this.#values = values
  }

  getValue(key: symbol): unknown {
    return this.#values.get(key)
  }

  setValue(key: symbol, value: unknown): Context {
    return new ContextValues(new Map(this.#values).set(key, value))
  }

  deleteValue(key: symbol): Context {
    const values = new Map(this.#values)
    values.delete(key)
    return new ContextValues(values)
  }
}

/** A context without a span. */
export const rootContext: Context = new ContextValues()

export function withSpan(context: Context, span: Span): Context {
  return context.setValue(spanKey, span)
}

export function spanOf(context: Context): Span | undefined {
  return context.getValue(spanKey) as Span | undefined
}
