import { HeedError } from '../../base/errors.ts'
import { nextRun, nextSignalState, type SignalEvent } from '../../machine.ts'
import { forgetLaneSignals } from './lanes.ts'
import type { MailRecord, ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

/** What of the waiting rows a process may run: what is bound to none or to it, of the agents it has. */
export function runnable(pending: readonly MailRecord[], owner: string, agentIds?: readonly string[]): MailRecord[] {
  const found: MailRecord[] = []
  for (const mail of pending) {
    const mine = mail.boundTo === null || mail.boundTo === owner
    if (mine && (!agentIds || agentIds.includes(mail.agentId))) found.push(mail)
  }
  return found
}

/**
 * The rows that start the next run, and its id. Once a run was promised, that is the one: what was sent to enter it enters it, and
 * a queued row that woke the thread isn't overtaken by what came after it.
 */
export function startingRows(waiting: readonly MailRecord[], promised: string | null): { runId: string; rows: MailRecord[] } | undefined {
  const first = waiting.find((mail) => mail.startRunId === promised)
  const rows = first ? waiting.filter((mail) => mail === first || (mail.kind === 'enter' && mail.agentId === first.agentId)) : nextRun(waiting)
  const runId = first?.startRunId ?? rows[0]?.startRunId
  return runId === undefined ? undefined : { runId, rows }
}

/** Moves a signal on. An event that its state doesn't allow is a fault of ours, not of the caller. */
export function shift(mail: MailRecord, event: SignalEvent): void {
  const next = nextSignalState(mail.state, event)
  if (!next) throw new HeedError('store_failed', `Signal ${mail.id} is ${mail.state}: it can't ${event}.`)
  mail.state = next
}

export function cancelMail(tables: ThreadTables, thread: ThreadRecord, mail: MailRecord, reason: string): void {
  shift(mail, 'cancel')
  mail.reason = reason
  tables.putMail(thread, mail)
  forgetLaneSignals(tables, thread, [mail.id])
}
