import type { MailboxRow, RowQuery, RunPage, RunRow, ThreadQuery, ThreadRow } from '../contract/threads.ts'
import type { MessageRow } from '../../message/row.ts'
import type { SignalState } from '../../machine.ts'
import { mailboxRow, messageRow, rowsOfMail, runRow, threadRow } from '../core/decode.ts'
import type { RowRecord } from '../core/records.ts'
import type { Shelf } from './shelf.ts'

export function listSignals(shelf: Shelf, options: { states?: SignalState[]; limit?: number; after?: number }): MailboxRow[] {
  const wanted = [...shelf.mail.values()].filter(
    (mail) => mail.ord > (options.after ?? 0) && (!options.states || options.states.includes(mail.state)),
  )
  const page = wanted.toSorted((a, b) => a.ord - b.ord).slice(0, options.limit)
  const rows = { row: (_: unknown, id: string) => shelf.row(id) }
  return page.map((mail) => mailboxRow(shelf.thread, mail, rowsOfMail(rows, shelf.thread, mail)))
}

export function listRows(shelf: Shelf, query: RowQuery): { rows: MessageRow[]; more: boolean } {
  const messageIds = query.messageIds && new Set(query.messageIds)
  const matches = (row: RowRecord) =>
    (query.before === undefined || row.seq < query.before) &&
    (query.after === undefined || row.seq > query.after) &&
    (query.from === undefined || row.createdAt >= query.from.getTime()) &&
    (query.to === undefined || row.createdAt <= query.to.getTime()) &&
    (messageIds === undefined || messageIds.has(row.messageId)) &&
    (query.context === true || row.role !== 'context')
  const all = shelf.rows.filter(matches)
  const page = query.after === undefined ? all.slice(Math.max(0, all.length - query.limit)) : all.slice(0, query.limit)
  return { rows: page.map((row) => messageRow(shelf.thread, row)), more: page.length < all.length }
}

export function listRuns(shelves: Iterable<Shelf>, filter: RunPage): RunRow[] {
  const runs = [...shelves].flatMap((shelf) => [...shelf.runs.values()].map(({ begun, run }) => ({ begun, run: runRow(shelf.thread, run) })))
  const waits = filter.status?.length === 1 && filter.status[0] === 'suspended'
  const at = ({ startedAt, suspendedAt = 0 }: RunRow) => (waits ? suspendedAt : startedAt)
  const wanted = runs.filter(
    ({ run }) =>
      (filter.threadId === undefined || run.threadId === filter.threadId) &&
      (filter.resourceId === undefined || run.resourceId === filter.resourceId) &&
      (filter.agentId === undefined || run.agentId === filter.agentId) &&
      (filter.status === undefined || filter.status.includes(run.status)) &&
      (filter.from === undefined || at(run) >= filter.from) &&
      (filter.to === undefined || at(run) <= filter.to),
  )
  const offset = filter.offset ?? 0
  const newest = wanted.toSorted((a, b) => b.begun - a.begun)
  return newest.slice(offset, offset + (filter.limit ?? wanted.length)).map(({ run }) => run)
}

export function listThreads(shelves: Iterable<Shelf>, query: ThreadQuery): { threads: ThreadRow[]; more: boolean; total?: number } {
  const { field, direction } = query.orderBy ?? { field: 'updatedAt', direction: 'DESC' }
  const sign = direction === 'ASC' ? 1 : -1
  const compare = (a: { at: number; id: string }, b: { at: number; id: string }) =>
    sign * (a.at - b.at || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0))
  const wanted = [...shelves]
    .map((shelf) => ({ at: shelf.thread[field], id: shelf.thread.id, row: threadRow(shelf.thread, [...shelf.lanes.values()]) }))
    .filter(({ row }) => matchesThread(row, query))
    .toSorted(compare)
  const rest = query.after === undefined ? wanted : wanted.filter((thread) => compare(thread, query.after ?? thread) > 0)
  const offset = query.offset ?? 0
  const page = rest.slice(offset, offset + query.limit)
  return {
    threads: page.map(({ row }) => row),
    more: offset + page.length < rest.length,
    ...(query.total && { total: wanted.length }),
  }
}

function matchesThread(thread: ThreadRow, query: ThreadQuery): boolean {
  if (query.resourceId !== undefined && thread.resourceId !== query.resourceId) return false
  if (query.status && !query.status.includes(thread.status)) return false
  if (query.cloneOf !== undefined && (thread.metadata.clone as { sourceThreadId?: unknown } | undefined)?.sourceThreadId !== query.cloneOf) return false
  if (query.parentId !== undefined && (thread.parentId ?? null) !== query.parentId) return false
  return Object.entries(query.metadata ?? {}).every(([key, value]) => (thread.metadata[key] ?? null) === value)
}
