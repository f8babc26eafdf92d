import { describe, isHeedError } from '../errors.ts'
import { redactText } from '../redact.ts'
import { root, withSpan, type Attributes, type Context, type Histogram, type Link, type Span, type SpanContext, type SpanKind } from './open-telemetry.ts'
import { present, type Telemetry } from './telemetry.ts'

export interface Begin {
  name: string
  kind?: SpanKind
  attributes: Attributes
  /** Where it belongs: what it was begun by, or nothing. */
  parent: Context | undefined
  links?: Link[]
}

/** Something that takes its time: a span, and what belongs below it. It ends once; what comes later is dropped. */
export class Operation {
  readonly telemetry: Telemetry
  readonly context: Context
  readonly #span: Span | undefined
  readonly #began = performance.now()
  #errorType: string | undefined
  #over = false

  constructor(telemetry: Telemetry, { name, kind = 0, attributes, parent = root, links = [] }: Begin) {
    this.telemetry = telemetry
    this.#span = telemetry.tracer?.startSpan(name, { kind, attributes: present(attributes), ...(links.length > 0 ? { links } : {}) }, parent)
    this.context = this.#span ? withSpan(parent, this.#span) : parent
  }

  get spanContext(): SpanContext | undefined {
    return this.#span?.spanContext()
  }

  /** Seconds since it began. */
  get elapsed(): number {
    return (performance.now() - this.#began) / 1_000
  }

  within<T>(work: () => T): T {
    return this.telemetry.within(this.context, work)
  }

  set(attributes: Attributes): void {
    this.#span?.setAttributes(present(attributes))
  }

  event(name: string, attributes: Attributes = {}): void {
    this.#span?.addEvent(name, present(attributes))
  }

  link(links: readonly Link[]): void {
    for (const link of links) this.#span?.addLink?.(link)
  }

  /** It failed. Neither secrets nor a stack are written down. */
  fail(error: unknown): void {
    this.#errorType = errorType(error)
    const message = redactText(describe(error)).slice(0, 1_000)
    this.set({ 'error.type': this.#errorType })
    this.event('exception', { 'exception.type': this.#errorType, 'exception.message': message })
    this.#span?.setStatus({ code: 2, message })
  }

  end(duration?: Histogram, measured: Attributes = {}): void {
    if (this.#over) return
    this.#over = true
    duration?.record(this.elapsed, present({ ...measured, 'error.type': this.#errorType }))
    this.#span?.end()
  }
}

/** What kind of failure it was, of few kinds: a code, or the name of the error. */
export function errorType(error: unknown): string {
  if (isHeedError(error)) return error.code
  return error instanceof Error && error.name !== '' ? error.name : '_OTHER'
}
