import { AsyncLocalStorage } from 'node:async_hooks'
import { randomBytes } from 'node:crypto'
import {
  context, metrics, ROOT_CONTEXT, trace, type Attributes, type AttributeValue, type Context, type ContextManager, type Exception, type Link, type Meter, type MeterProvider, type Span, type SpanContext,
  type SpanOptions, type SpanStatus, type TimeInput, type Tracer, type TracerProvider,
} from '@opentelemetry/api'
import { onTestFinished } from 'vitest'
import { collector } from './collector.ts'

/** An SDK, as small as one can be: it registers with the real API and exports OTLP as JSON over HTTP. */
export async function registerSdk() {
  const received = await collector()
  const exporter = new Exporter()
  trace.setGlobalTracerProvider(exporter)
  metrics.setGlobalMeterProvider(exporter)
  context.setGlobalContextManager(new Contexts())
  const unregister = () => {
    trace.disable()
    metrics.disable()
    context.disable()
  }
  onTestFinished(async () => {
    unregister()
    await received.close()
  })
  return { ...received, unregister, exporter, flush: () => exporter.flush(received.url), tracer: trace.getTracer('test') }
}

/** Which spans are open, told to an async stack as a program with an SDK has it. */
class Contexts implements ContextManager {
  readonly #storage = new AsyncLocalStorage<Context>()

  active(): Context {
    return this.#storage.getStore() ?? ROOT_CONTEXT
  }

  with<A extends unknown[], F extends (...args: A) => ReturnType<F>>(given: Context, work: F, thisArg?: ThisParameterType<F>, ...args: A): ReturnType<F> {
    return this.#storage.run(given, () => work.apply(thisArg, args))
  }

  bind<T>(_: Context, target: T): T {
    return target
  }

  enable(): this {
    return this
  }

  disable(): this {
    return this
  }
}

class Exporter implements TracerProvider, MeterProvider {
  readonly ended: RecordingSpan[] = []
  readonly open = new Set<RecordingSpan>()
  readonly #points: Array<{ name: string; unit: string; value: number; attributes: Attributes }> = []

  getTracer(): Tracer {
    const startSpan = (name: string, options: SpanOptions = {}, given: Context = context.active()) => {
      const parent = options.root ? undefined : trace.getSpanContext(given)
      const span = new RecordingSpan(name, options, parent, () => {
        this.open.delete(span)
        this.ended.push(span)
      })
      this.open.add(span)
      return span
    }
    const startActiveSpan = (name: string, ...rest: unknown[]) => {
      const span = startSpan(name)
      return context.with(trace.setSpan(context.active(), span), rest.at(-1) as (span: Span) => unknown, undefined, span)
    }
    return { startSpan, startActiveSpan: startActiveSpan as Tracer['startActiveSpan'] }
  }

  getMeter(): Meter {
    const instrument = (name: string, { unit = '' }: { unit?: string } = {}) => {
      const keep = (value: number, attributes: Attributes = {}) => void this.#points.push({ name, unit, value, attributes })
      return { record: keep, add: keep }
    }
    return { createHistogram: instrument, createCounter: instrument } as unknown as Meter
  }

  async flush(url: string): Promise<void> {
    const spans = this.ended.splice(0).map((span) => span.wire())
    await post(`${url}/v1/traces`, { resourceSpans: [{ resource: { attributes: [] }, scopeSpans: [{ scope: { name: 'test' }, spans }] }] })
    const data = this.#points.splice(0).map(({ name, unit, value, attributes }) => ({ name, unit, gauge: { dataPoints: [{ asDouble: value, attributes: keyValues(attributes) }] } }))
    await post(`${url}/v1/metrics`, { resourceMetrics: [{ resource: { attributes: [] }, scopeMetrics: [{ scope: { name: 'test' }, metrics: data }] }] })
  }
}

async function post(url: string, body: unknown): Promise<void> {
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(await response.text())
}

const nanos = () => BigInt(Math.round((performance.timeOrigin + performance.now()) * 1_000)) * 1_000n

class RecordingSpan implements Span {
  readonly #context: SpanContext
  readonly #name: string
  readonly #kind: number
  readonly #parent: SpanContext | undefined
  readonly #ended: () => void
  readonly #start = nanos()
  readonly #attributes: Attributes
  readonly #links: Link[]
  readonly #events: Array<{ name: string; timeUnixNano: string; attributes: ReturnType<typeof keyValues> }> = []
  #status: SpanStatus = { code: 0 }
  #end: bigint | undefined

  constructor(name: string, { kind = 0, attributes = {}, links = [] }: SpanOptions, parent: SpanContext | undefined, ended: () => void) {
    this.#name = name
    this.#kind = kind
    this.#attributes = { ...attributes }
    this.#links = [...links]
    this.#parent = parent
    this.#ended = ended
    this.#context = { traceId: parent?.traceId ?? randomBytes(16).toString('hex'), spanId: randomBytes(8).toString('hex'), traceFlags: 1 }
  }

  spanContext(): SpanContext {
    return this.#context
  }

  isRecording(): boolean {
    return this.#end === undefined
  }

  setAttribute(key: string, value: AttributeValue): this {
    return this.setAttributes({ [key]: value })
  }

  setAttributes(attributes: Attributes): this {
    if (this.#end === undefined) Object.assign(this.#attributes, attributes)
    return this
  }

  addEvent(name: string, attributes: Attributes = {}): this {
    if (this.#end === undefined) this.#events.push({ name, timeUnixNano: String(nanos()), attributes: keyValues(attributes) })
    return this
  }

  addLink(link: Link): this {
    if (this.#end === undefined) this.#links.push(link)
    return this
  }

  addLinks(links: Link[]): this {
    for (const link of links) this.addLink(link)
    return this
  }

  setStatus(status: SpanStatus): this {
    if (this.#end === undefined) this.#status = status
    return this
  }

  updateName(): this {
    return this
  }

  recordException(exception: Exception, _?: TimeInput): void {
    this.addEvent('exception', { 'exception.message': String(exception) })
  }

  end(): void {
    if (this.#end !== undefined) throw new Error(`span '${this.#name}' ended twice`)
    this.#end = nanos()
    this.#ended()
  }

  wire() {
    return {
      ...this.#context,
      ...(this.#parent ? { parentSpanId: this.#parent.spanId } : {}),
      name: this.#name,
      kind: this.#kind + 1,
      startTimeUnixNano: String(this.#start),
      endTimeUnixNano: String(this.#end),
      attributes: keyValues(this.#attributes),
      events: this.#events,
      links: this.#links.map(({ context: { traceId, spanId }, attributes = {} }) => ({ traceId, spanId, attributes: keyValues(attributes) })),
      status: this.#status,
    }
  }
}

function keyValues(attributes: Attributes) {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: anyValue(value) }))
}

function anyValue(value: unknown): object {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value === 'number') return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value }
  if (Array.isArray(value)) return { arrayValue: { values: value.map(anyValue) } }
  return {}
}
