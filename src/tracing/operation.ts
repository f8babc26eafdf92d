import { describe, isHeedError } from '../base/errors.ts'
import { redactText } from '../base/redact.ts'
import { root, withSpan, type Attributes, type Context, type Histogram, type Link, type Span, type SpanContext, type SpanKind } from './open-telemetry.ts'
import { recordsErrors, type TracingOptions } from './options.ts'
import { present, type Telemetry } from './telemetry.ts'

export interface Begin {
  name: string
  kind?: SpanKind
  attributes: Attributes
  /** Where it belongs: what it was begun by, or nothing. */
  parent: Context | undefined
  links?: Link[]
  options: TracingOptions
}

const longestWords = 1_000

/** Something that takes its time: a span, and what belongs below it. It ends once; what comes later is dropped. */
export class Operation {
  readonly telemetry: Telemetry
  readonly context: Context
  readonly #span: Span | undefined
  readonly #recordsErrors: boolean
  readonly #began = performance.now()
  #errorType: string | undefined
  #over = false

  constructor(telemetry: Telemetry, { name, kind = 0, attributes, parent = root, links = [], options }: Begin) {
    this.#recordsErrors = recordsErrors(options)
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

  /** It failed. What kind of failure that was is written down; in words only where what was said is. Neither secrets nor a stack are. */
  fail(error: unknown, type = errorType(error)): void {
    this.#errorType = type
    const words = this.#recordsErrors ? redactText(describe(error), longestWords) : undefined
    const code = errorCode(error)
    this.set({ 'error.type': type, 'heed.error.code': code })
    this.event('exception', { 'exception.type': type, 'exception.message': words })
    this.#span?.setStatus({ code: 2, message: words ?? (code === undefined ? type : `${type} ${code}`) })
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
  return error instanceof Error && isWord(error.name) ? error.name : '_OTHER'
}

/** What the system or a library calls it, such as `ECONNREFUSED`. */
function errorCode(error: unknown): string | undefined {
  const { code } = error instanceof Error && !isHeedError(error) ? (error as { code?: unknown }) : {}
  return isWord(code) ? code : undefined
}

/** Names and codes say nothing of what was said; a program may yet put a sentence there. */
function isWord(value: unknown): value is string {
  return typeof value === 'string' && /^[\w.-]{1,64}$/.test(value)
}
