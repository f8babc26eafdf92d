import type { TracingOptions } from './options.ts'

/**
 * The part of OpenTelemetry's API that Heed uses. A registered SDK is found under a well-known symbol, without an import, so that tracing
 * costs nothing where no SDK is registered.
 */
const apiKey = Symbol.for('opentelemetry.js.api.1')
const spanKey = Symbol.for('OpenTelemetry Context Key SPAN')

type AttributeValue = string | number | boolean | string[] | number[]
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

interface Tracer {
  startSpan(name: string, options: { kind: SpanKind; attributes: Attributes; links?: Link[] }, context: Context): Span
}

export interface Histogram {
  record(value: number, attributes?: Attributes): void
}

interface Counter {
  add(value: number, attributes?: Attributes): void
}

interface InstrumentOptions {
  description: string
  unit: string
  advice?: { explicitBucketBoundaries: number[] }
}

interface Meter {
  createHistogram(name: string, options: InstrumentOptions): Histogram
  createCounter(name: string, options: InstrumentOptions): Counter
}

/** The registered parts of an SDK. Each may be absent. */
interface OpenTelemetry {
  trace?: { getTracer(name: string): Tracer }
  metrics?: { getMeter(name: string): Meter }
  context?: { active(): Context; with<T>(context: Context, work: () => T): T }
}

/** The SDK of this process; undefined where none is registered. */
function openTelemetry(): OpenTelemetry | undefined {
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

const scope = 'heed'
const secondBuckets = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
const tokenBuckets = [1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864]

/** The tracer and the instruments of the registered SDK. */
export class Telemetry {
  readonly #api: OpenTelemetry
  readonly #registered: Pick<OpenTelemetry, 'trace' | 'metrics'>
  readonly tracer: Tracer | undefined
  readonly tokenUsage: Histogram | undefined
  readonly operationDuration: Histogram | undefined
  readonly agentDuration: Histogram | undefined
  readonly toolDuration: Histogram | undefined
  readonly signalsAccepted: Counter | undefined
  readonly mailboxDepth: Histogram | undefined
  readonly voiceResponse: Histogram | undefined

  constructor(api: OpenTelemetry) {
    this.#api = api
    this.#registered = { ...api }
    this.tracer = api.trace?.getTracer(scope)
    const meter = api.metrics?.getMeter(scope)
    this.tokenUsage = meter?.createHistogram('gen_ai.client.token.usage', {
      description: 'Number of input and output tokens used.', unit: '{token}', advice: { explicitBucketBoundaries: tokenBuckets },
    })
    this.operationDuration = duration(meter, 'gen_ai.client.operation.duration', 'GenAI operation duration.')
    this.agentDuration = duration(meter, 'gen_ai.invoke_agent.duration', 'Duration of a run of an agent.')
    this.toolDuration = duration(meter, 'gen_ai.execute_tool.duration', 'Duration of a call of a tool.')
    this.voiceResponse = duration(meter, 'heed.voice.response.duration', 'Time from the end of a turn to the first sound of the answer.')
    this.signalsAccepted = meter?.createCounter('heed.signals.accepted', {
      description: 'Signals that threads accepted.', unit: '{signal}',
    })
    this.mailboxDepth = meter?.createHistogram('heed.mailbox.depth', {
      description: 'Signals that a run drained at once: at its start, or at a step boundary.',
      unit: '{signal}',
      advice: { explicitBucketBoundaries: [0, 1, 2, 4, 8, 16, 32, 64, 128] },
    })
  }

  isOf(api: OpenTelemetry): boolean {
    return this.#api === api && this.#registered.trace === api.trace && this.#registered.metrics === api.metrics
  }

  /** The context of the caller. */
  active(): Context {
    return this.#api.context?.active() ?? rootContext
  }

  within<T>(context: Context, work: () => T): T {
    return this.#api.context ? this.#api.context.with(context, work) : work()
  }
}

function duration(meter: Meter | undefined, name: string, description: string): Histogram | undefined {
  return meter?.createHistogram(name, { description, unit: 's', advice: { explicitBucketBoundaries: secondBuckets } })
}

let current: Telemetry | undefined

/** The telemetry of the registered SDK; undefined without one, and where the options turn tracing off. */
export function telemetryFor(options: TracingOptions | false | undefined): Telemetry | undefined {
  return options === false ? undefined : currentTelemetry()
}

function currentTelemetry(): Telemetry | undefined {
  const api = openTelemetry()
  if (!api) return undefined
  if (!current?.isOf(api)) current = new Telemetry(api)
  return current
}

/** The context of the caller, for a run that starts later. Undefined unless an SDK is registered. */
export function activeContext(): Context | undefined {
  return currentTelemetry()?.active()
}

/** The attributes without undefined values. */
export function definedAttributes(attributes: Attributes): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined))
}
