import type { MessagePlace, MessageStart, MessageStartQuery } from '../contract/messages.ts'
import { startsMessage } from '../core/starts.ts'
import type { Shelf } from './shelf.ts'

export function listMessageStarts(shelf: Shelf, query: MessageStartQuery): { starts: MessageStart[]; more: boolean } {
  const all = shelf.rows.filter(
    (row) =>
      startsMessage(row) &&
      (query.before === undefined || row.seq < query.before) &&
      (query.after === undefined || row.seq > query.after) &&
      (query.from === undefined || row.createdAt >= query.from.getTime()) &&
      (query.to === undefined || row.createdAt <= query.to.getTime()),
  )
  const ordered = query.after === undefined ? all.toReversed() : all
  const starts = ordered.slice(0, query.limit).map(({ seq, messageId, createdAt }) => ({ seq, messageId, createdAt: new Date(createdAt) }))
  return { starts, more: ordered.length > starts.length }
}

export function findMessages(shelves: Iterable<Shelf>, messageIds: readonly string[], resourceId?: string): MessagePlace[] {
  return [...shelves].flatMap(({ thread, rows }) => {
    if (resourceId !== undefined && thread.resourceId !== resourceId) return []
    const there = new Set(rows.flatMap((row) => (row.role === 'context' ? [] : row.messageId)))
    return [...new Set(messageIds)].filter((id) => there.has(id)).map((messageId) => ({ messageId, threadId: thread.id, resourceId: thread.resourceId }))
  })
}
