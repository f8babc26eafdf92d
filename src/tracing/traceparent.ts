import type { JSONObject } from '../base/json.ts'
import type { MessageRow } from '../message/row.ts'
import type { Link, SpanContext } from './open-telemetry.ts'

/** The metadata key of the span that sent a row, in the format of W3C Trace Context. */
const key = 'traceparent'

function formatTraceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${(traceFlags & 0xff).toString(16).padStart(2, '0')}`
}

const format = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** The span of a `traceparent`; undefined for an invalid one. Later versions of the format may append fields. */
export function parseTraceparent(traceparent: unknown): SpanContext | undefined {
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
