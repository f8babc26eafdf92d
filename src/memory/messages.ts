import type { Message } from '../message/message.ts'
import { joinRows } from '../message/join.ts'
import type { MessageRow } from '../message/row.ts'
import type { Scope, ThreadStore } from '../store/contract/threads.ts'
import type { MessageStart } from '../store/contract/messages.ts'

/** A message and where it begins. */
export interface Placed {
  message: Message
  seq: number
}

export interface Span {
  /** From which end of the thread. */
  from: 'newest' | 'oldest'
  skip?: number
  limit: number
  /** Only beyond this place, seen from that end. */
  beyond?: number
  start?: Date
  end?: Date
}

/** Rows, or starts of messages, that are read at once: the event loop goes on in between. */
const atOnce = 1_000

/** Where the wanted messages begin, in the order of the thread, and whether there are more beyond them. */
export async function startsIn(store: ThreadStore, scope: Scope, span: Span): Promise<{ starts: MessageStart[]; more: boolean }> {
  const backwards = span.from === 'newest'
  const times = { ...(span.start && { from: span.start }), ...(span.end && { to: span.end }) }
  const found: MessageStart[] = []
  let skip = span.skip ?? 0
  let beyond = span.beyond ?? (backwards ? undefined : -1)
  let more = false
  for (let left = skip + span.limit; left > 0; left = skip + span.limit - found.length) {
    const limit = Math.min(atOnce, left)
    const page = await store.listMessageStarts(scope, { ...times, limit, ...(beyond !== undefined && (backwards ? { before: beyond } : { after: beyond })) })
    found.push(...page.starts.slice(skip))
    skip = Math.max(0, skip - page.starts.length)
    beyond = page.starts.at(-1)?.seq ?? beyond
    more = page.more
    if (!more) break
  }
  return { starts: backwards ? found.toReversed() : found, more }
}

/** The messages that begin at these places, which are in the order of the thread; of the rows that are wanted. Best when they are neighbours. */
export async function messagesAt(store: ThreadStore, scope: Scope, starts: readonly MessageStart[], wanted?: (row: MessageRow) => boolean): Promise<Placed[]> {
  const [first] = starts
  const last = starts.at(-1)
  if (!first || !last) return []
  const { starts: [next] } = await store.listMessageStarts(scope, { after: last.seq, limit: 1 })
  const rows = await rowsBetween(store, scope, first.seq - 1, next?.seq)
  const places = new Map(starts.map(({ messageId, seq }) => [messageId, seq]))
  return joinRows(wanted ? rows.filter(wanted) : rows).flatMap((message) => {
    const seq = places.get(message.id)
    return seq === undefined ? [] : { message, seq }
  })
}

/** The whole thread, oldest first. */
export async function allMessages(store: ThreadStore, scope: Scope): Promise<Placed[]> {
  const rows = await rowsBetween(store, scope, -1, undefined)
  const places = new Map(rows.toReversed().map(({ messageId, seq = 0 }) => [messageId, seq]))
  return joinRows(rows).map((message) => ({ message, seq: places.get(message.id) ?? 0 }))
}

async function rowsBetween(store: ThreadStore, scope: Scope, after: number, before: number | undefined): Promise<MessageRow[]> {
  const rows: MessageRow[] = []
  for (let from = after, more = true; more; from = rows.at(-1)?.seq ?? from) {
    const page = await store.listRows(scope, { after: from, limit: atOnce, ...(before !== undefined && { before }) })
    for (const row of page.rows) rows.push(row)
    more = page.more && page.rows.length > 0
  }
  return rows
}

/** Where a message begins, if the thread has it. */
export async function placeOfMessage(store: ThreadStore, scope: Scope, id: string): Promise<MessageStart | undefined> {
  const { rows: [row] } = await store.listRows(scope, { messageIds: [id], after: -1, limit: 1 })
  return row && { seq: row.seq ?? 0, messageId: id, createdAt: row.createdAt }
}

/** How many messages there are, counted a page at a time. */
export async function countMessages(store: ThreadStore, scope: Scope, times: Pick<Span, 'start' | 'end'>): Promise<number> {
  const { starts } = await startsIn(store, scope, { from: 'oldest', limit: Number.MAX_SAFE_INTEGER, ...times })
  return starts.length
}
