import { HeedError } from '../../base/errors.ts'
import type { ThreadHost } from './host.ts'
import type { LiveThread } from '../stream/live.ts'
import type { ThreadRuntime } from './runtime.ts'

/**
 * A thread ends when it is deleted, pruned, or replaced by that of a backup. The store gives a later thread with its id higher epochs: what
 * this process has of lower epochs is of the earlier thread. Its runs end, its chunks are dropped, and its callers get what the store has.
 */

/** Threads ended through this process; without ids, all of them. Peers receive a message; those that miss it find out by their fences. */
export function announceEnded(runtime: ThreadRuntime, threadIds?: readonly string[]): void {
  if (runtime.closing) return
  runtime.peers.announceEnded(threadIds)
  endThreads(runtime, threadIds).catch((error: unknown) => {
    if (!runtime.isClosedBy(error)) runtime.logger.error('runs of deleted threads could not be ended', { error: String(error) })
  })
}

/** Ends what this process has of earlier threads with these ids, by default of all. */
export async function endThreads(runtime: ThreadRuntime, threadIds?: readonly string[]): Promise<void> {
  const known = new Set(runtime.knownThreadIds())
  for (const threadId of threadIds?.filter((id) => known.has(id)) ?? known) {
    const life = await runtime.store.lifeOf(threadId)
    if (runtime.closing) return
    endThread(runtime, threadId, life)
  }
}

/** The thread in the store begins with the epoch `life`: ends what this process has of earlier ones with its id. */
function endThread(runtime: ThreadRuntime, threadId: string, life: number): void {
  runtime.endHostsBefore(threadId, life)
  runtime.liveOf(threadId)?.beginLife(life)
  runtime.resolveWaiters(threadId)
}

/**
 * What the store has begins with the epoch `life`. Ends what this process has of earlier threads with it, also a host that did not begin
 * yet. Where it has nothing of them, the live thread only learns which events of other processes are of an earlier one.
 */
export function endFormer(runtime: ThreadRuntime, live: LiveThread, life: number): void {
  const { fence } = runtime.hostOf(live.threadId) ?? {}
  if ((live.epoch > 0 && live.epoch < life) || (fence && fence.epoch < life)) endThread(runtime, live.threadId, life)
  else live.life = Math.max(live.life, life)
}

/** Ends a host whose thread has ended, where no message said so. Returns whether it did. */
export async function endIfFormer(runtime: ThreadRuntime, { fence: { threadId, epoch } }: ThreadHost): Promise<boolean> {
  if ((await runtime.store.lifeOf(threadId)) <= epoch) return false
  await endThreads(runtime, [threadId])
  return true
}

/** The reason with which the runs of an ended thread are aborted. */
export function threadDeleted(threadId: string): HeedError {
  return new HeedError('thread_deleted', `Thread ${threadId} was deleted or replaced by that of a backup: its run ends.`, {
    details: { threadId },
  })
}

/** The error of a run whose process closes. */
export function closed(): HeedError {
  return new HeedError('closed', 'This Heed was closed. The thread continues in the next process that opens its storage.')
}
