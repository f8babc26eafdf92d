import { HeedError, isHeedError } from '../errors.ts'
import type { MailboxRow, ThreadRow } from '../store/contract.ts'
import { declineAll } from './deciding.ts'
import type { SignalOutcome } from './receipt.ts'
import type { ThreadRuntime } from './runtime.ts'

/** What became of a signal, as its row tells it; nothing while it waits. */
export function outcomeOfRow({ state, route, runId, step, reason }: MailboxRow): SignalOutcome | undefined {
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
export async function settleWaiting(runtime: ThreadRuntime, threadId: string): Promise<void> {
  const { signals, calls } = runtime.expectations.waitingOn(threadId)
  if (signals.length === 0 && calls.length === 0) return
  const scope = { threadId }
  const thread = await runtime.store.getThread(scope)
  for (const id of signals) {
    const mail = thread && (await signalOf(runtime, threadId, id))
    if (!mail && thread) continue
    // It came while the run was about to wait: what it would have cut is declined.
    if (mail?.route === 'interrupt' && mail.state === 'pending' && thread?.status === 'suspended') {
      await declineAll(runtime, runtime.agent(mail.agentId), scope)
      continue
    }
    const outcome = mail ? (outcomeOfRow(mail) ?? outcomeOfPending(runtime, thread, mail)) : gone
    if (outcome) runtime.expectations.settle(threadId, id, outcome)
  }
  for (const id of calls) {
    const mail = thread && (await signalOf(runtime, threadId, id))
    if (!mail && thread) continue
    if (mail?.state === 'pending' && thread?.status !== 'suspended') continue
    if (mail?.state === 'pending') await runtime.store.cancelSignals(scope, [id])
    runtime.expectations.takeCall(threadId, id)?.reject(mail?.state === 'pending' ? suspended(threadId) : cancelled())
  }
}

const gone: SignalOutcome = { action: 'discarded', reason: 'deleted' }

/** Undefined where a run here is still going to take it. */
function outcomeOfPending(runtime: ThreadRuntime, thread: ThreadRow, { runId }: MailboxRow): SignalOutcome | undefined {
  const about = runId === undefined ? {} : { runId }
  if (thread.status === 'suspended') return { action: 'queued', reason: 'suspended', ...about }
  return thread.owner === runtime.owner ? undefined : { action: 'queued', ...about }
}

async function signalOf(runtime: ThreadRuntime, threadId: string, id: string): Promise<MailboxRow | null> {
  try {
    return await runtime.store.getSignal({ threadId }, id)
  } catch (error) {
    if (isHeedError(error) && error.code === 'thread_not_found') return null
    throw error
  }
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
