import type { Scope } from '../contract/threads.ts'
import { scopedThread } from './guard.ts'
import type { ThreadTables } from './tables.ts'
import { cancelMail } from './waiting.ts'

export function cancelSignals(tables: ThreadTables, scope: Scope, ids: readonly string[]): string[] {
  const thread = scopedThread(tables, scope)
  const wanted = new Set(ids)
  const pending = tables.pending(thread)
  const waiting = pending.filter((mail) => wanted.has(mail.id))
  for (const mail of waiting) cancelMail(tables, thread, mail, 'It was cancelled before a run took it.')
  if (thread.dueAt !== null && thread.status === 'idle' && waiting.length === pending.length) {
    thread.dueAt = null
    tables.putThread(thread)
  }
  return waiting.map((mail) => mail.id)
}

/** The named ones come first, then the rest as they were. Only rows that get a run of their own have an order to change. */
export function reorderSignals(tables: ThreadTables, scope: Scope, ids: readonly string[]): string[] {
  const thread = scopedThread(tables, scope)
  const queued = tables.pending(thread).filter((mail) => mail.kind === 'turn')
  const places = queued.map((mail) => mail.ord)
  const rank = new Map([...new Set(ids)].map((id, index) => [id, index]))
  const order = queued
    .toSorted((a, b) => (rank.get(a.id) ?? rank.size) - (rank.get(b.id) ?? rank.size) || a.ord - b.ord)
    .map((mail, index) => ({ ...mail, ord: places[index] ?? mail.ord }))
  tables.reorderMail(thread, order)
  return order.map((mail) => mail.id)
}
