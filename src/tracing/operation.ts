import { describe, isHeedError } from '../base/errors.ts'
import { redactText } from '../base/redact.ts'
import {
  definedAttributes, rootContext, withSpan, type Attributes, type Context, type Histogram, type Link, type Span, type SpanContext,
  type SpanKind, type Telemetry,
} from './telemetry.ts'
import { recordsErrors, type TracingOptions } from './options.ts'

interface OperationStart {
  name: string
  kind?: SpanKind
  attributes: Attributes
  /** Without one, the span is the root of a trace. */
  parent: Context | undefined
  links?: Link[]
  options: TracingOptions
}

const maxMessageLength = 1_000

/** A span and the context for the spans below it. It ends once; later calls of `end` are ignored. */
export class Operation {
  readonly telemetry: Telemetry
  readonly context: Context
  readonly #span: Span | undefined
  readonly #recordsErrors: boolean
  readonly #startedAt = performance.now()
  #errorType: string | undefined
  #ended = false

  constructor(telemetry: Telemetry, { name, kind = 0, attributes, parent = rootContext, links = [], options }: OperationStart) {
    this.#recordsErrors = recordsErrors(options)
    this.telemetry = telemetry
    const spanOptions = { kind, attributes: definedAttributes(attributes), ...(links.length > 0 ? { links } : {}) }
    this.#span = telemetry.tracer?.startSpan(name, spanOptions, parent)
    this.context = this.#span ? withSpan(parent, this.#span) : parent
  }

  get spanContext(): SpanContext | undefined {
    return this.#span?.spanContext()
  }

  /** Seconds since the start. */
  get elapsed(): number {
    return (performance.now() - this.#startedAt) / 1_000
  }

  within<T>(work: () => T): T {
    return this.telemetry.within(this.context, work)
  }

  set(attributes: Attributes): void {
    this.#span?.setAttributes(definedAttributes(attributes))
  }

  event(name: string, attributes: Attributes = {}): void {
    this.#span?.addEvent(name, definedAttributes(attributes))
  }

  link(links: readonly Link[]): void {
    for (const link of links) this.#span?.addLink?.(link)
  }

  /** Records a failure: its type, and its message where inputs and outputs are recorded. Secrets and stacks are never recorded. */
  fail(error: unknown, type = errorType(error)): void {
    this.#errorType = type
    const message = this.#recordsErrors ? redactText(describe(error), maxMessageLength) : undefined
    const code = errorCode(error)
    this.set({ 'error.type': type, 'heed.error.code': code })
    this.event('exception', { 'exception.type': type, 'exception.message': message })
    this.#span?.setStatus({ code: 2, message: message ?? (code === undefined ? type : `${type} ${code}`) })
  }

  end(duration?: Histogram, measured: Attributes = {}): void {
    if (this.#ended) return
    this.#ended = true
    duration?.record(this.elapsed, definedAttributes({ ...measured, 'error.type': this.#errorType }))
    this.#span?.end()
  }
}

/** The type of a failure, with few distinct values: the code or the name of the error. */
export function errorType(error: unknown): string {
  if (isHeedError(error)) return error.code
  return error instanceof Error && isWord(error.name) ? error.name : '_OTHER'
}

/** The code of the system or of a library, such as `ECONNREFUSED`. */
function errorCode(error: unknown): string | undefined {
  const { code } = error instanceof Error && !isHeedError(error) ? (error as { code?: unknown }) : {}
  return isWord(code) ? code : undefined
}

/** Names and codes don't quote a conversation, but a program may use a sentence as the name of an error. */
function isWord(value: unknown): value is string {
  return typeof value === 'string' && /^[\w.-]{1,64}$/.test(value)
}
