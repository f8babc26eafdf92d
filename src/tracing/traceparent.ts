import type { JSONObject } from '../base/json.ts'
import type { MessageRow } from '../message/row.ts'
import type { Link, SpanContext } from './open-telemetry.ts'

/** Where a row keeps which span sent it, in the form of W3C Trace Context. */
const key = 'traceparent'

export function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${(traceFlags & 0xff).toString(16).padStart(2, '0')}`
}

/** The span that is named; nothing where none is. Later versions of the form may say more behind it. */
export function contextOf(traceparent: unknown): SpanContext | undefined {
  const found = typeof traceparent === 'string' ? /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(traceparent) : null
  const [, version = '', traceId = '', spanId = '', flags = '', more] = found ?? []
  if (!found || version === 'ff' || (version === '00' && more !== undefined) || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
}

/** A row that knows which span sent it. It goes with the row through the mailbox, into whichever process runs it. */
export function sentBy(row: MessageRow, context: SpanContext): MessageRow {
  const metadata: JSONObject = { ...row.content.metadata, [key]: traceparentOf(context) }
  return { ...row, content: { ...row.content, metadata } }
}

/** Links to the spans that sent these rows. */
export function linksOf(rows: readonly MessageRow[]): Link[] {
  return rows.flatMap(({ id, content }) => {
    const context = contextOf(content.metadata?.[key])
    return context ? [{ context, attributes: { 'heed.signal.id': id } }] : []
  })
}
