import { HeedError } from '../../base/errors.ts'
import { nextSignalState, startingSignals, type SignalEvent } from '../../machine.ts'
import type { MailboxRow, MeantThread, Scope } from '../contract/threads.ts'
import { removeLaneSignals } from './lanes.ts'
import { scopedThread } from './lease.ts'
import { appendToRun } from './messages.ts'
import { encodeMailboxRows, encodeRowIds, mailboxRow, prepareRows, rowsOfMail } from './records.ts'
import type { MailRecord, PreparedRow, RunRecord, ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

/** The pending signals that a process may run: bound to no process or to this one, and sent to one of its agents. */
export function runnable(pending: readonly MailRecord[], owner: string, agentIds?: readonly string[]): MailRecord[] {
  const found: MailRecord[] = []
  for (const mail of pending) {
    const mine = mail.boundTo === null || mail.boundTo === owner
    if (mine && (!agentIds || agentIds.includes(mail.agentId))) found.push(mail)
  }
  return found
}

/**
 * The signals that start the next run, and its id. A run id that is reserved on the thread wins: signals that were routed into that run
 * enter it, and a queued signal that woke the thread is not overtaken by later ones.
 */
export function startingMail(waiting: readonly MailRecord[], reserved: string | null): { runId: string; mail: MailRecord[] } | undefined {
  const first = waiting.find((mail) => mail.startRunId === reserved)
  const starting = first
    ? waiting.filter((mail) => mail === first || (mail.kind === 'enter' && mail.agentId === first.agentId))
    : startingSignals(waiting)
  const runId = first?.startRunId ?? starting[0]?.startRunId
  return runId === undefined ? undefined : { runId, mail: starting }
}

type AcceptedMail = Pick<
  MailRecord, 'ord' | 'id' | 'agentId' | 'route' | 'kind' | 'startRunId' | 'options' | 'boundTo' | 'acceptedAt'
>

/** A signal as it is accepted. */
export function pendingMail({ ord, id, agentId, route, kind, startRunId, options, boundTo, acceptedAt }: AcceptedMail): MailRecord {
  return {
    ord, id, agentId, route, kind, state: 'pending', runId: null, startRunId, step: null, rows: '[]', options, boundTo, reason: null,
    acceptedAt, drainedAt: null, drainedBy: null, epoch: null, settledAt: null,
  }
}

/** Changes the state of a signal. An event that the state does not allow is a bug of Heed, not of the caller. */
export function transitionSignal(mail: MailRecord, event: SignalEvent): void {
  const next = nextSignalState(mail.state, event)
  if (!next) throw new HeedError('store_failed', `Signal ${mail.id} is ${mail.state}; the event '${event}' is not possible.`)
  mail.state = next
}

/** Takes pending signals into history, in order. Their rows get their `seq` here, not at acceptance, so they follow what the run wrote. */
export function takeMail(
  tables: ThreadTables, thread: ThreadRecord, pending: readonly MailRecord[], run: { runId: string; step: number },
): MailboxRow[] {
  const now = tables.now()
  return pending.map((mail) => {
    const rows = appendToRun(tables, thread, takePrepared(mail, run) ?? prepareRows(rowsOfMail(tables, thread, mail), run))
    transitionSignal(mail, 'take')
    mail.runId = run.runId
    mail.step = run.step
    mail.drainedAt = now
    mail.drainedBy = thread.owner
    mail.epoch = thread.epoch
    mail.rows = encodeRowIds(rows)
    tables.putMail(thread, mail)
    return mailboxRow(thread, mail, rows)
  })
}

/** The prepared rows of a signal, with the run that takes them. They are removed from the record. */
function takePrepared(mail: MailRecord, { runId, step }: { runId: string; step: number }): PreparedRow[] | undefined {
  const rows = mail.prepared?.rows
  mail.prepared = undefined
  return rows?.map(({ row, stored: { id, messageId, role, type, content, createdAt } }) => (
    { row, stored: { id, messageId, role, type, runId, step, content, createdAt } }
  ))
}

/** The value of the column `rows`. */
export function mailRowsColumn(mail: MailRecord): string {
  return mail.prepared ? encodeMailboxRows(mail.prepared.rows) : mail.rows
}

/** Gives the signals that a run took their final state. The caller puts the run. */
export function finishTaken(
  tables: ThreadTables, thread: ThreadRecord, run: RunRecord, state: 'consumed' | 'rejected', reason: string | null,
): void {
  tables.finishTaken(thread, run.taken, state, reason)
  run.taken = null
}

/** The signals that are pending after a run. With `clear` it cancels them, and none is left. */
export function pendingAfterRun(tables: ThreadTables, thread: ThreadRecord, clear: boolean): MailRecord[] {
  const pending = tables.pending(thread)
  if (!clear) return pending
  for (const mail of pending) cancelMail(tables, thread, mail, 'The active run was ended with clearPending, which cancels pending signals.')
  return []
}

export function cancelMail(tables: ThreadTables, thread: ThreadRecord, mail: MailRecord, reason: string): void {
  transitionSignal(mail, 'cancel')
  mail.reason = reason
  mail.settledAt = tables.now()
  tables.putMail(thread, mail)
  removeLaneSignals(tables, thread, [mail.id])
}

export function cancelSignals(tables: ThreadTables, scope: Scope, ids: readonly string[], { epoch, since }: MeantThread = {}): string[] {
  tables.lock?.([scope.threadId])
  const thread = scopedThread(tables, scope)
  if ((epoch !== undefined && thread.epoch !== epoch) || (since !== undefined && tables.life(thread) > since)) return []
  const wanted = new Set(ids)
  const pending = tables.pending(thread)
  const cancelled = pending.filter((mail) => wanted.has(mail.id))
  for (const mail of cancelled) cancelMail(tables, thread, mail, 'It was cancelled before a run took it.')
  if (thread.dueAt !== null && thread.status === 'idle' && cancelled.length === pending.length) {
    thread.dueAt = null
    tables.putThread(thread)
  }
  return cancelled.map((mail) => mail.id)
}

/** Puts the named signals first and keeps the order of the others. Only queued signals have an order that can change. */
export function reorderSignals(tables: ThreadTables, scope: Scope, ids: readonly string[]): string[] {
  tables.lock?.([scope.threadId])
  const thread = scopedThread(tables, scope)
  const queued = tables.pending(thread).filter((mail) => mail.kind === 'turn')
  const ords = queued.map((mail) => mail.ord)
  const rank = new Map([...new Set(ids)].map((id, index) => [id, index]))
  const order = queued
    .toSorted((a, b) => (rank.get(a.id) ?? rank.size) - (rank.get(b.id) ?? rank.size) || a.ord - b.ord)
    .map((mail, index) => ({ ...mail, ord: ords[index] ?? mail.ord }))
  tables.reorderMail(thread, order)
  return order.map((mail) => mail.id)
}

/** The first and the last `ord` of an unbroken range. */
type OrdRange = readonly [from: number, to: number]

/** The `ord`s of signals as a run stores them: `3-5,9`. Ranges keep the column short when a run takes many signals at once. */
export function encodeOrdRanges(mail: ReadonlyArray<{ ord: number }>): string | null {
  const [first] = mail
  if (!first) return null
  if (mail.length === 1) return `${first.ord}`
  const ords = mail.map(({ ord }) => ord).sort((a, b) => a - b)
  const ranges: Array<[number, number]> = []
  for (const ord of ords) {
    const last = ranges.at(-1)
    if (last && ord === last[1] + 1) last[1] = ord
    else ranges.push([ord, ord])
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join()
}

export function decodeOrdRanges(ords: string | null): OrdRange[] {
  if (ords === null) return []
  const only = Number(ords)
  if (!Number.isNaN(only)) return [[only, only]]
  return ords.split(',').map((range) => {
    const [from, to = from] = range.split('-')
    return [Number(from), Number(to)]
  })
}
