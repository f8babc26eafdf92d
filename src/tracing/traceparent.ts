import type { JSONObject } from '../base/json.ts'
import type { MessageRow } from '../message/row.ts'
import type { TracingOptions } from './options.ts'
import { spanOf, telemetryFor, withSpan, type Link, type Span, type SpanContext } from './telemetry.ts'

/** The metadata key of the span that sent a row, in the format of W3C Trace Context. */
const key = 'traceparent'

function formatTraceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${(traceFlags & 0xff).toString(16).padStart(2, '0')}`
}

const format = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** The span of a `traceparent`; undefined for an invalid one. Later versions of the format may append fields. */
function parseTraceparent(traceparent: unknown): SpanContext | undefined {
  const match = typeof traceparent === 'string' ? format.exec(traceparent) : null
  const [, version = '', traceId = '', spanId = '', flags = '', appended] = match ?? []
  if (!match || version === 'ff' || (version === '00' && appended !== undefined)) return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
}

/** The row with the span that sent it. The mailbox stores it with the row, so that the process that runs the thread can link to it. */
export function withTraceparent(row: MessageRow, context: SpanContext): MessageRow {
  const metadata: JSONObject = { ...row.content.metadata, [key]: formatTraceparent(context) }
  return { ...row, content: { ...row.content, metadata } }
}

/** Links to the spans that sent these rows. */
export function linksOf(rows: readonly MessageRow[]): Link[] {
  return rows.flatMap(({ id, content }) => {
    const context = parseTraceparent(content.metadata?.[key])
    return context ? [{ context, attributes: { 'heed.signal.id': id } }] : []
  })
}

/**
 * Handles a request below the span of its `traceparent` header. A span that is already active, as with an SDK that instruments the
 * server, stays the parent.
 */
export function withRequestSpan<T>(options: TracingOptions | false | undefined, traceparent: () => string | null, work: () => T): T {
  const telemetry = telemetryFor(options)
  const active = telemetry?.active()
  const remote = telemetry && active && !spanOf(active) ? parseTraceparent(traceparent()) : undefined
  return telemetry && active && remote ? telemetry.within(withSpan(active, new RemoteSpan(remote)), work) : work()
}

/** A span of another process: a parent that records nothing. */
class RemoteSpan implements Span {
  readonly #context: SpanContext

  constructor(context: SpanContext) {
    this.#context = context
  }

  spanContext(): SpanContext {
    return this.#context
  }

  isRecording(): boolean {
    return false
  }

  setAttribute(): this {
    return this
  }

  setAttributes(): this {
    return this
  }

  addEvent(): this {
    return this
  }

  addLink(): this {
    return this
  }

  addLinks(): this {
    return this
  }

  setStatus(): this {
    return this
  }

  updateName(): this {
    return this
  }

  recordException(): void {}

  end(): void {}
}
