import type { Fence, Send, StepCommit, Window } from '../contract/threads.ts'
import type { RowRecord, ThreadRecord } from '../core/records.ts'
import type { RecentRows } from './recent.ts'
import { sql } from './sql.ts'
import type { Statements } from './statements.ts'

/*
 * What transactions will read of the threads that they lock. On a database that is reached over a network, these reads are sent with the
 * lock; one that is not foreseen costs one more round trip.
 */

/** Of more threads nothing is read ahead. */
const maxForeseen = 8

/** The threads that a transaction has locked. */
export class ThreadLocks {
  readonly #statements: Statements
  readonly #ids = new Set<string>()

  constructor(statements: Statements) {
    this.#statements = statements
  }

  has(id: string): boolean {
    return this.#ids.has(id)
  }

  /** Returns those that were not locked before. */
  add(threadIds: readonly string[], below: boolean): string[] {
    const ids = [...new Set(threadIds)].filter((id) => !this.#ids.has(id))
    if (ids.length === 0) return ids
    this.#statements.lockThreads?.(below ? { ids, below: ids.slice(0, 1) } : { ids })
    for (const id of ids) this.#ids.add(id)
    if (ids.length <= maxForeseen) for (const id of ids) foreseeThread(this.#statements, id)
    return ids
  }

  forget(): void {
    if (this.#ids.size > 0) this.#ids.clear()
  }
}

/** What most transactions read of a thread. */
function foreseeThread(statements: Statements, id: string): void {
  for (const text of [sql.thread, sql.pending, sql.activeRun, sql.epochFloor]) statements.foresee?.(id, text)
}

export function foreseeSend(statements: Statements, { threadId, id, given, claim, agentId }: Send): void {
  statements.foresee?.(threadId, sql.mail, id)
  for (const callerId of given ?? []) statements.foresee?.(threadId, sql.row, callerId)
  const window = claim?.begin?.get(agentId)
  if (window) statements.foresee?.(threadId, sql.lastRows, windowReach(window))
}

export function foreseeCommit(statements: Statements, { threadId }: Fence, { rows }: StepCommit): void {
  const messages = new Set(rows.flatMap(({ role, messageId }) => (role === 'assistant' ? messageId : [])))
  for (const messageId of messages) statements.foresee?.(threadId, sql.hasMessage, messageId)
  statements.foresee?.(threadId, sql.title)
}

/** How many counted messages a window reaches back at most: those that it has, and the turn that it may begin in. */
function windowReach(window: Exclude<Window, false>): number {
  return 2 * Math.max(window.low, window.high) + 2
}

/** Keeps the rows of the window as they are before the run adds its own, and as many as any window of this size may begin with. */
export function readWindowRows(statements: Statements, kept: RecentRows, thread: ThreadRecord, window: Window): void {
  if (window === false) return kept.keep(thread.key, thread.nextSeq, [])
  // It never had a row.
  if (thread.nextSeq === 1) return kept.keep(thread.key, 0, [])
  const messages = windowReach(window)
  const rows = statements.all<RowRecord>(sql.lastRows, thread.key, messages)
  const counted = rows.reduce((sum, row) => sum + (row.counted === 1 ? 1 : 0), 0)
  kept.keep(thread.key, counted > messages ? (rows[0]?.seq ?? 0) : 0, rows)
}
