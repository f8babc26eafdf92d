import { isHeedError } from '../../base/errors.ts'
import { createdSignal, rowToSignal } from '../../signals/conversions.ts'
import type { CreatedAgentSignal } from '../../signals/signal.ts'
import type { MailboxRow, Scope, ThreadStore } from '../../store/contract/threads.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'
import { cancelledCall } from './outcomes.ts'

/** A pending signal. */
export interface QueuedSignal {
  id: string
  /** `enter`: it enters the active run at its next boundary. `turn`: it starts a run of its own after that. */
  kind: 'enter' | 'turn'
  agentId: string
  /** The run that it will start or enter. */
  runId?: string
  acceptedAt: Date
  /** Absent for a `generate()` or `stream()`. */
  signal?: CreatedAgentSignal
}

/** The pending signals of a thread in their order: first those that enter the active run, then the queue. */
export async function listQueued(runtime: ThreadRuntime, scope: Scope): Promise<QueuedSignal[]> {
  await runtime.open()
  return (await unlessMissing(pendingRows(runtime.store, scope), [])).map(toQueuedSignal)
}

export async function pendingRows(store: ThreadStore, scope: Scope): Promise<MailboxRow[]> {
  const pending = await store.listSignals(scope, { states: ['pending'] })
  return [...pending.filter((row) => row.kind === 'enter'), ...pending.filter((row) => row.kind === 'turn')]
}

/** Cancels signals that are still pending. Returns the ids of those that it cancelled. */
export async function cancelQueued(runtime: ThreadRuntime, scope: Scope, ids: readonly string[]): Promise<string[]> {
  await runtime.open()
  const cancelled = await unlessMissing(runtime.store.cancelSignals(scope, ids), [])
  for (const id of cancelled) {
    runtime.waiters.resolveOutcome(scope.threadId, id, { action: 'discarded', reason: 'cancelled' })
    runtime.waiters.takeCall(scope.threadId, id)?.reject(cancelledCall())
  }
  if (cancelled.length > 0) runtime.peers.announceOutcomes(scope.threadId)
  return cancelled
}

export async function reorderQueued(runtime: ThreadRuntime, scope: Scope, ids: readonly string[]): Promise<string[]> {
  await runtime.open()
  return unlessMissing(runtime.store.reorderSignals(scope, ids), [])
}

function toQueuedSignal({ id, kind, agentId, runId, acceptedAt, rows }: MailboxRow): QueuedSignal {
  const [row] = rows
  return {
    id,
    kind,
    agentId,
    ...(runId === undefined ? {} : { runId }),
    acceptedAt: new Date(acceptedAt),
    ...(row?.role === 'signal' ? { signal: createdSignal(rowToSignal(row)) } : {}),
  }
}

/** The result of a read; `fallback` where the thread does not exist yet. */
export async function unlessMissing<Found, Fallback>(finding: Promise<Found>, fallback: Fallback): Promise<Found | Fallback> {
  try {
    return await finding
  } catch (error) {
    if (isHeedError(error) && error.code === 'thread_not_found') return fallback
    throw error
  }
}
