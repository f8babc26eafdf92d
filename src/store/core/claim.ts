import { HeedError } from '../../base/errors.ts'
import type { Claimed, Fence, Scope } from '../contract/threads.ts'
import { grantLease, isAlive, releaseLease, reserveRun, scopedThread, transitionThread } from './lease.ts'
import { cancelMail, runnable, startingMail } from './mailbox.ts'
import type { MailRecord, RunRecord, ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

export function claimThread(
  tables: ThreadTables, threadId: string, owner: string, agentIds?: readonly string[], again?: Fence,
): Claimed | null {
  const thread = tables.thread(threadId)
  if (!thread || thread.status === 'suspended') return null
  const mine = again !== undefined && thread.owner === again.owner && thread.epoch === again.epoch
  if (thread.owner !== null && !mine && isAlive(tables, thread.owner)) return null
  if (thread.begun === 1 && thread.agentId !== null) return takeOver(tables, thread, thread.agentId, owner, agentIds)

  const pending = cancelAbandoned(tables, thread, owner)
  const start = startingMail(runnable(pending, owner, agentIds), thread.runId)
  const agentId = start?.mail[0]?.agentId
  if (!start || agentId === undefined) {
    const isReleased = thread.status === 'idle' && thread.dueAt === null && pending.length === 0
    if (!isReleased) {
      releaseLease(tables, thread, pending.length > 0)
      tables.putThread(thread)
    }
    return null
  }
  const fence = grantLease(thread, thread.status === 'idle' ? 'wake' : 'take-over', owner)
  reserveRun(thread, start.runId, agentId)
  tables.putThread(thread)
  return { fence, agentId, takenOver: false }
}

function takeOver(
  tables: ThreadTables, thread: ThreadRecord, agentId: string, owner: string, agentIds: readonly string[] | undefined,
): Claimed | null {
  if (agentIds && !agentIds.includes(agentId)) return null
  const fence = grantLease(thread, 'take-over', owner)
  tables.putThread(thread)
  return { fence, agentId, takenOver: true }
}

/** Cancels the pending signals that are bound to a process that is gone, as their callers are too. Returns the others. */
function cancelAbandoned(tables: ThreadTables, thread: ThreadRecord, owner: string): MailRecord[] {
  return tables.pending(thread).filter((mail) => {
    if (mail.boundTo === null || mail.boundTo === owner || isAlive(tables, mail.boundTo)) return true
    cancelMail(tables, thread, mail, 'The process of its caller is gone.')
    return false
  })
}

export function resign(tables: ThreadTables, owner: string): void {
  tables.handOver(owner)
  tables.cancelBound(owner, 'The process of its caller ended before its run began.')
  tables.removeProcess(owner)
}

export function retryParked(
  tables: ThreadTables, scope: Scope, runId: string, options: { owner?: string; removed?: readonly string[] },
): { agentId: string; fence?: Fence } {
  const thread = scopedThread(tables, scope)
  const run = tables.run(thread, runId)
  if (run?.status !== 'parked') throw notRetryable(thread, runId, 'it is not parked')
  if (thread.status !== 'idle') throw notRetryable(thread, runId, 'the thread is active; retry when it is idle')
  if (hasLaterRun(tables, thread, run)) {
    throw notRetryable(thread, runId, 'later runs have written to the thread; send its input again instead')
  }

  for (const id of options.removed ?? []) tables.removeMessage(thread, id)
  run.status = 'running'
  // Not the first attempt: tool calls that had started count as interrupted.
  run.attempts = 1
  run.endedAt = null
  run.error = null
  run.sealSeq = thread.nextSeq
  const fence = options.owner === undefined ? undefined : grantLease(thread, 'wake', options.owner)
  if (!fence) {
    transitionThread(thread, 'wake')
    thread.dueAt = tables.now()
  }
  thread.runId = run.runId
  thread.agentId = run.agentId
  thread.begun = 1
  tables.putRun(thread, run)
  tables.putThread(thread)
  return { agentId: run.agentId, ...(fence && { fence }) }
}

function hasLaterRun(tables: ThreadTables, thread: ThreadRecord, { runId, firstSeq }: RunRecord): boolean {
  return tables.rowsFrom(thread, firstSeq).some((row) => row.runId !== null && row.runId !== runId)
}

function notRetryable({ id }: ThreadRecord, runId: string, why: string): HeedError {
  return new HeedError('run_not_parked', `Run ${runId} of thread ${id} can't be retried: ${why}.`, { details: { threadId: id, runId } })
}
