import { HeedError, isHeedError } from '../../base/errors.ts'
import type { MailboxRow, ThreadRow } from '../../store/contract/threads.ts'
import { declineAll } from '../control/resume.ts'
import type { SignalOutcome } from './receipt.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'
import { actionOf, rejectedOutcome, unreadOutcome } from '../runtime/drained-signals.ts'

type OutcomeRow = Pick<MailboxRow, 'state' | 'reason' | 'runId'> & { route: string; step?: number | undefined }

/**
 * The outcome of a stored signal; undefined while it is pending, or while processors may still reject it. `read`: processors have passed
 * it. A signal that was rejected after a model had read it counts as delivered.
 */
export async function outcomeOfMail(runtime: ThreadRuntime, mail: MailboxRow, read = false): Promise<SignalOutcome | undefined> {
  if (mail.state === 'taken' && !read && (await mayBeUnconfirmed(runtime, mail))) return undefined
  if (mail.state !== 'rejected' || mail.runId === undefined) return outcomeOfRow(mail)
  const run = await runtime.store.getRun(mail, mail.runId)
  if (run && run.error?.unread !== true) {
    const { reason: _, ...accepted } = mail
    return outcomeOfRow({ ...accepted, state: 'consumed' })
  }
  const { message = mail.reason, processorId } = run?.error ?? {}
  return {
    ...rejectedOutcome({ reason: String(message ?? ''), processorId: typeof processorId === 'string' ? processorId : undefined }),
    runId: mail.runId,
  }
}

/**
 * Whether processors of the run may still reject a drained signal. The host knows; where another process runs the thread, the stored run
 * shows whether it has called a model.
 */
async function mayBeUnconfirmed(runtime: ThreadRuntime, mail: MailboxRow): Promise<boolean> {
  const { threadId, id, agentId, runId, step = 0 } = mail
  const host = runtime.hostOf(threadId)
  if (host) return host.isUnconfirmed(id)
  if (runId === undefined || !runtime.hasAgent(agentId) || !runtime.agent(agentId).canRejectInput) return false
  const run = await runtime.store.getRun(mail, runId)
  return run?.status === 'running' && run.step <= step && run.started.length === 0
}

/** The outcome by the columns of the row alone. */
export function outcomeOfRow({ state, route, runId, step, reason }: OutcomeRow): SignalOutcome | undefined {
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
      // The code of the error: the run failed before a model read it.
      if (reason !== undefined) return { ...unreadOutcome(reason), ...(runId === undefined ? {} : { runId }) }
      return { action: actionOf(route, step), ...about }
  }
}

/**
 * Resolves the waiters of a thread that no longer runs in this process, by what the store has. Signals that the store does not have yet are
 * on their way there and resolve by the answer to their send. `lost`: why the store has no accepted signal any more, where its thread was
 * not deleted.
 */
export async function resolveLocalWaiters(runtime: ThreadRuntime, threadId: string, lost?: HeedError): Promise<void> {
  const { signals, calls } = runtime.waiters.acceptedOn(threadId)
  await resolveWaiters(runtime, threadId, signals, calls, { lost })
}

/** The same for waiters whose signals another process resolves. Other signals may still be on their way to the store. */
export async function resolveRemoteWaiters(runtime: ThreadRuntime, threadId: string, read = false): Promise<void> {
  const elsewhere = (id: string) => runtime.waiters.awaitsRemote(threadId, id)
  const { signals, calls } = runtime.waiters.acceptedOn(threadId)
  await resolveWaiters(runtime, threadId, signals.filter(elsewhere), calls.filter(elsewhere), { read })
}

async function resolveWaiters(
  runtime: ThreadRuntime, threadId: string, signals: readonly string[], calls: readonly string[],
  { read = false, lost }: { read?: boolean; lost?: HeedError | undefined },
): Promise<void> {
  const gone: SignalOutcome = lost ? { action: 'rejected', reason: lost.message, code: lost.code } : deletedOutcome
  for (const id of signals) {
    const found = await readSignal(runtime, threadId, id)
    const { mail, thread } = found
    // The interrupt arrived while the run was being suspended: the suspended calls are declined.
    if (waitsForDecision(found) && mail?.route === 'interrupt') await declineAll(runtime, runtime.agent(mail.agentId), { threadId })
    else {
      const outcome = mail && thread ? ((await outcomeOfMail(runtime, mail, read)) ?? outcomeOfPending(thread, mail)) : gone
      if (outcome) runtime.waiters.resolveOutcome(threadId, id, outcome)
      else if (thread?.owner !== runtime.owner) runtime.waiters.awaitRemote(threadId, id)
    }
  }
  for (const id of calls) {
    const found = await readSignal(runtime, threadId, id)
    if (found.mail?.state === 'pending' && !waitsForDecision(found)) {
      runtime.waiters.awaitRemote(threadId, id)
      continue
    }
    if (waitsForDecision(found) && (await runtime.store.cancelSignals({ threadId }, [id])).length === 0) continue
    runtime.waiters.takeCall(threadId, id)?.reject(waitsForDecision(found) ? suspendedThread(threadId) : (lost ?? cancelledCall()))
  }
}

const deletedOutcome: SignalOutcome = { action: 'discarded', reason: 'deleted' }

interface StoredSignal {
  mail: MailboxRow | null
  thread: ThreadRow | null
}

/** Reads the thread after the signal: where a pending signal was drained in between, the draining run resolved it. */
async function readSignal(runtime: ThreadRuntime, threadId: string, id: string): Promise<StoredSignal> {
  try {
    const mail = await runtime.store.getSignal({ threadId }, id)
    // An accepted signal that the store does not have was deleted with its thread, and the thread was created again.
    return { mail, thread: mail && (await runtime.store.getThread({ threadId })) }
  } catch (error) {
    if (isHeedError(error) && error.code === 'thread_not_found') return { mail: null, thread: null }
    throw error
  }
}

function waitsForDecision({ mail, thread }: StoredSignal): boolean {
  return mail?.state === 'pending' && thread?.status === 'suspended'
}

/** Undefined where a run will drain the signal, in this process or in another. */
function outcomeOfPending(thread: ThreadRow, { runId }: MailboxRow): SignalOutcome | undefined {
  const about = runId === undefined ? {} : { runId }
  if (thread.status === 'suspended') return { action: 'queued', reason: 'suspended', ...about }
  return thread.status === 'running' ? undefined : { action: 'queued', ...about }
}

/** The error of a `generate()` or `stream()` whose signal was cancelled. */
export function cancelledCall(): HeedError {
  return new HeedError('aborted', 'The call was cancelled before its run began.')
}

function suspendedThread(threadId: string): HeedError {
  return new HeedError(
    'thread_suspended',
    `Thread ${threadId} waits for a decision about a tool call. Approve or decline it first, or send a message, which stays pending.`,
    {
      details: { threadId },
    },
  )
}
