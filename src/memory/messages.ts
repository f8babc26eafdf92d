import type { Message } from '../message/message.ts'
import { joinRows } from '../message/join.ts'
import type { MessageRow } from '../message/row.ts'
import type { Scope, ThreadStore } from '../store/contract/threads.ts'
import type { MessageStart } from '../store/contract/messages.ts'

/** A message and the `seq` of its first row. */
export interface PositionedMessage {
  message: Message
  seq: number
}

export interface Span {
  /** The end of the thread to start from. */
  from: 'newest' | 'oldest'
  skip?: number
  limit: number
  /** Only messages beyond this `seq`, seen from that end. */
  beyond?: number
  start?: Date
  end?: Date
}

/** The rows, or starts of messages, that one call reads; the event loop runs in between. */
const readAtOnce = 1_000

/** The starts of the messages in a span, in the order of the thread, and whether there are more beyond them. */
export async function readStarts(store: ThreadStore, scope: Scope, span: Span): Promise<{ starts: MessageStart[]; more: boolean }> {
  const backwards = span.from === 'newest'
  const times = { ...(span.start && { from: span.start }), ...(span.end && { to: span.end }) }
  const found: MessageStart[] = []
  let skip = span.skip ?? 0
  let beyond = span.beyond ?? (backwards ? undefined : -1)
  let more = false
  for (let left = skip + span.limit; left > 0; left = skip + span.limit - found.length) {
    const limit = Math.min(readAtOnce, left)
    const page = await store.listMessageStarts(scope, {
      ...times,
      limit,
      ...(beyond !== undefined && (backwards ? { before: beyond } : { after: beyond })),
    })
    found.push(...page.starts.slice(skip))
    skip = Math.max(0, skip - page.starts.length)
    beyond = page.starts.at(-1)?.seq ?? beyond
    more = page.more
    if (!more) break
  }
  return { starts: backwards ? found.toReversed() : found, more }
}

/** The messages with these starts, which are in the order of the thread; `wanted` selects their rows. Reads all rows in between too. */
export async function messagesAt(
  store: ThreadStore,
  scope: Scope,
  starts: readonly MessageStart[],
  wanted?: (row: MessageRow) => boolean,
): Promise<PositionedMessage[]> {
  const [first] = starts
  const last = starts.at(-1)
  if (!first || !last) return []
  const {
    starts: [next],
  } = await store.listMessageStarts(scope, { after: last.seq, limit: 1 })
  const rows = await rowsBetween(store, scope, first.seq - 1, next?.seq)
  const positions = new Map(starts.map(({ messageId, seq }) => [messageId, seq]))
  return joinRows(wanted ? rows.filter(wanted) : rows).flatMap((message) => {
    const seq = positions.get(message.id)
    return seq === undefined ? [] : { message, seq }
  })
}

/** The whole thread, oldest first. */
export async function allMessages(store: ThreadStore, scope: Scope): Promise<PositionedMessage[]> {
  const rows = await rowsBetween(store, scope, -1, undefined)
  const positions = new Map(rows.toReversed().map(({ messageId, seq = 0 }) => [messageId, seq]))
  return joinRows(rows).map((message) => ({ message, seq: positions.get(message.id) ?? 0 }))
}

async function rowsBetween(store: ThreadStore, scope: Scope, after: number, before: number | undefined): Promise<MessageRow[]> {
  const rows: MessageRow[] = []
  for (let from = after, more = true; more; from = rows.at(-1)?.seq ?? from) {
    const page = await store.listRows(scope, { after: from, limit: readAtOnce, ...(before !== undefined && { before }) })
    for (const row of page.rows) rows.push(row)
    more = page.more && page.rows.length > 0
  }
  return rows
}

/** The start of a message; undefined when the thread does not contain it. */
export async function findStart(store: ThreadStore, scope: Scope, id: string): Promise<MessageStart | undefined> {
  const { rows: [row] } = await store.listRows(scope, { messageIds: [id], after: -1, limit: 1 })
  return row && { seq: row.seq ?? 0, messageId: id, createdAt: row.createdAt }
}

/** The number of messages in a span of time. */
export async function countMessages(store: ThreadStore, scope: Scope, times: Pick<Span, 'start' | 'end'>): Promise<number> {
  const { starts } = await readStarts(store, scope, { from: 'oldest', limit: Number.MAX_SAFE_INTEGER, ...times })
  return starts.length
}
