import { HeedError, isHeedError } from '../../base/errors.ts'
import type { MailboxRow, ThreadRow } from '../../store/contract/threads.ts'
import { declineAll } from '../control/resume.ts'
import type { SignalOutcome } from './receipt.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'
import { refusedOutcome } from '../runtime/drained-signals.ts'

type Settled = Pick<MailboxRow, 'state' | 'reason' | 'runId'> & { route: string; step?: number | undefined }

/**
 * What became of a signal, as the store tells it; nothing while it waits, or while processors may still refuse what a run took. `read`: they have
 * let it pass. What was refused after a model had read it did enter.
 */
export async function outcomeOfMail(runtime: ThreadRuntime, mail: MailboxRow, read = false): Promise<SignalOutcome | undefined> {
  if (mail.state === 'taken' && !read && (await mayBeUnread(runtime, mail))) return undefined
  if (mail.state !== 'rejected' || mail.runId === undefined) return outcomeOfRow(mail)
  const run = await runtime.store.getRun(mail, mail.runId)
  if (run && run.error?.unread !== true) return outcomeOfRow({ ...mail, state: 'consumed' })
  const { message = mail.reason, processorId } = run?.error ?? {}
  return { ...refusedOutcome({ reason: String(message ?? ''), processorId: typeof processorId === 'string' ? processorId : undefined }), runId: mail.runId }
}

/** The run that took it says when it is read. Where it is elsewhere and no bell tells, what it has stored does. */
async function mayBeUnread(runtime: ThreadRuntime, mail: MailboxRow): Promise<boolean> {
  const { threadId, id, agentId, runId, step = 0 } = mail
  const host = runtime.hostOf(threadId)
  if (host) return host.withholds(id)
  if (runId === undefined || !runtime.knows(agentId) || !runtime.agent(agentId).canRefuse) return false
  const run = await runtime.store.getRun(mail, runId)
  return run?.status === 'running' && run.step <= step && run.started.length === 0
}

/** The same, of a row alone. */
export function outcomeOfRow({ state, route, runId, step, reason }: Settled): SignalOutcome | undefined {
  const about = { ...(runId === undefined ? {} : { runId }), ...(step === undefined ? {} : { step }) }
  switch (state) {
    case 'pending':
      return undefined
    case 'cancelled':
      return { action: 'discarded', reason: 'cancelled' }
    case 'rejected':
      return { action: 'rejected', ...about, ...(reason === undefined ? {} : { reason }) }
    default:
      if (route === 'persist') return { action: 'persisted' }
      return { action: step === 0 ? 'woke' : 'delivered', ...about }
  }
}

/**
 * Nobody runs the thread here any more: whatever is still waited for is settled by what the store says. What the store doesn't
 * know is on its way there and will be told its own outcome.
 */
export async function resolveLocalWaiters(runtime: ThreadRuntime, threadId: string): Promise<void> {
  const { signals, calls } = runtime.waiters.waitingOn(threadId)
  await settle(runtime, threadId, signals, calls)
}

/** The same for what other processes were waited for, and for nothing else: the rest may be on its way to the store. */
export async function resolveRemoteWaiters(runtime: ThreadRuntime, threadId: string, read = false): Promise<void> {
  const elsewhere = (id: string) => runtime.waiters.awaitsElsewhere(threadId, id)
  const { signals, calls } = runtime.waiters.waitingOn(threadId)
  await settle(runtime, threadId, signals.filter(elsewhere), calls.filter(elsewhere), read)
}

async function settle(runtime: ThreadRuntime, threadId: string, signals: readonly string[], calls: readonly string[], read = false): Promise<void> {
  for (const id of signals) {
    const found = await whereabouts(runtime, threadId, id)
    if (!found) continue
    const { mail, thread } = found
    // It came while the run was about to wait: what it would have cut is declined.
    if (isSuspended(found) && mail?.route === 'interrupt') await declineAll(runtime, runtime.agent(mail.agentId), { threadId })
    else {
      const outcome = mail && thread ? ((await outcomeOfMail(runtime, mail, read)) ?? outcomeOfPending(thread, mail)) : gone
      if (outcome) runtime.waiters.settle(threadId, id, outcome)
      else if (thread?.owner !== runtime.owner) runtime.waiters.awaitElsewhere(threadId, id)
    }
  }
  for (const id of calls) {
    const found = await whereabouts(runtime, threadId, id)
    if (!found) continue
    if (found.mail?.state === 'pending' && !isSuspended(found)) {
      runtime.waiters.awaitElsewhere(threadId, id)
      continue
    }
    if (isSuspended(found) && (await runtime.store.cancelSignals({ threadId }, [id])).length === 0) continue
    runtime.waiters.takeCall(threadId, id)?.reject(isSuspended(found) ? suspended(threadId) : cancelled())
  }
}

const gone: SignalOutcome = { action: 'discarded', reason: 'deleted' }

interface Whereabouts {
  mail: MailboxRow | null
  thread: ThreadRow | null
}

/** The thread is looked at after the signal: one that was pending then and is taken since was settled by the run that took it. */
async function whereabouts(runtime: ThreadRuntime, threadId: string, id: string): Promise<Whereabouts | undefined> {
  try {
    const mail = await runtime.store.getSignal({ threadId }, id)
    return mail ? { mail, thread: await runtime.store.getThread({ threadId }) } : undefined
  } catch (error) {
    if (isHeedError(error) && error.code === 'thread_not_found') return { mail: null, thread: null }
    throw error
  }
}

function isSuspended({ mail, thread }: Whereabouts): boolean {
  return mail?.state === 'pending' && thread?.status === 'suspended'
}

/** Undefined where a run is still going to take it, here or elsewhere. */
function outcomeOfPending(thread: ThreadRow, { runId }: MailboxRow): SignalOutcome | undefined {
  const about = runId === undefined ? {} : { runId }
  if (thread.status === 'suspended') return { action: 'queued', reason: 'suspended', ...about }
  return thread.status === 'running' ? undefined : { action: 'queued', ...about }
}

/** For a `generate()` or `stream()` that will not get its turn. */
export function cancelled(): HeedError {
  return new HeedError('aborted', 'The call was taken out of the queue before its turn came.')
}

function suspended(threadId: string): HeedError {
  return new HeedError('thread_suspended', `Thread ${threadId} waits for a decision about a tool call. Approve or decline it first, or send a message, which waits.`, {
    details: { threadId },
  })
}
