import { isHeedError } from '../../base/errors.ts'
import { createdSignal, rowToSignal } from '../../signals/conversions.ts'
import type { CreatedAgentSignal } from '../../signals/signal.ts'
import type { MailboxRow, Scope, ThreadStore } from '../../store/contract/threads.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'
import { cancelled as cancelledCall } from './outcomes.ts'

/** Something that waits for its turn. */
export interface QueuedSignal {
  id: string
  agentId: string
  /** The run it will start; or the one it will enter. */
  runId?: string
  acceptedAt: Date
  /** Absent for a `generate()` or `stream()` that waits. */
  signal?: CreatedAgentSignal
}

/** What waits on a thread, in its order: first what enters the active run, then the queue. */
export async function listQueued(runtime: ThreadRuntime, scope: Scope): Promise<QueuedSignal[]> {
  await runtime.open()
  return (await unlessNew(waitingRows(runtime.store, scope), [])).map(queued)
}

export async function waitingRows(store: ThreadStore, scope: Scope): Promise<MailboxRow[]> {
  const pending = await store.listSignals(scope, { states: ['pending'] })
  return [...pending.filter((row) => row.kind === 'enter'), ...pending.filter((row) => row.kind === 'turn')]
}

/** Takes signals out that were not taken yet; answers which. */
export async function cancelQueued(runtime: ThreadRuntime, scope: Scope, ids: readonly string[]): Promise<string[]> {
  await runtime.open()
  const cancelled = await unlessNew(runtime.store.cancelSignals(scope, ids), [])
  for (const id of cancelled) {
    runtime.waiters.settle(scope.threadId, id, { action: 'discarded', reason: 'cancelled' })
    runtime.waiters.takeCall(scope.threadId, id)?.reject(cancelledCall())
  }
  if (cancelled.length > 0) runtime.peers.settled(scope.threadId)
  return cancelled
}

export async function reorderQueued(runtime: ThreadRuntime, scope: Scope, ids: readonly string[]): Promise<string[]> {
  await runtime.open()
  return unlessNew(runtime.store.reorderSignals(scope, ids), [])
}

function queued({ id, agentId, runId, acceptedAt, rows }: MailboxRow): QueuedSignal {
  const [row] = rows
  return {
    id,
    agentId,
    ...(runId === undefined ? {} : { runId }),
    acceptedAt: new Date(acceptedAt),
    ...(row?.role === 'signal' ? { signal: createdSignal(rowToSignal(row)) } : {}),
  }
}

/** What is found on a thread; on one that nothing was sent to yet, nothing. */
export async function unlessNew<Found, Nothing>(finding: Promise<Found>, nothing: Nothing): Promise<Found | Nothing> {
  try {
    return await finding
  } catch (error) {
    if (isHeedError(error) && error.code === 'thread_not_found') return nothing
    throw error
  }
}
