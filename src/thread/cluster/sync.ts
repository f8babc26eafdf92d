import type { MessageRow } from '../../message/row.ts'
import type { ThreadRow } from '../../store/contract/threads.ts'
import { parseCursor } from '../stream/retained-chunks.ts'
import type { LiveThread } from '../stream/live.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'

/** Brings the live state here up to that of the runner. False when the runner doesn't answer. */
export async function syncWithRunner(runtime: ThreadRuntime, live: LiveThread, thread: ThreadRow, after?: string): Promise<boolean> {
  const { id, status, owner, epoch } = thread
  const elsewhere = status === 'running' && owner !== undefined && owner !== runtime.owner && !runsHere(runtime, thread)
  if (elsewhere && (live.epoch < epoch || !live.running)) {
    const before = live.epoch
    if (await runtime.peers.follow(id, owner, after)) return true
    // The thread came to this process meanwhile, or its next runner sent events.
    if (live.epoch > Math.max(before, epoch)) return true
    // Later events of the runner do not follow from the ones received.
    runtime.peers.markGap(id)
    live.joinEpoch(epoch - 1, runtime.clock.now())
    return false
  }
  // The cursor is of the last epoch: the process that ran the thread may retain the chunks after it.
  const asks = after !== undefined && !runsHere(runtime, thread) && parseCursor(after).epoch === epoch && live.epoch < epoch
  if (asks) await runtime.peers.follow(id, undefined, after)
  // A run that is about to begin here sets the epoch itself.
  live.joinEpoch(status === 'running' && owner === runtime.owner ? epoch - 1 : epoch, runtime.clock.now())
  if (status === 'suspended') live.runId ??= thread.runId
  return true
}

/**
 * Whether the store is ahead of the events received here, on a thread that is idle as far as this process knows: `rows` contain the
 * difference, and its events may still arrive.
 */
export function storeIsAhead(runtime: ThreadRuntime, live: LiveThread, thread: ThreadRow, rows: readonly MessageRow[]): boolean {
  if (runsHere(runtime, thread) || (thread.status === 'running' && thread.owner === runtime.owner)) return false
  const { committedSeq } = live
  return (
    thread.epoch > live.epoch ||
    thread.status === 'running' ||
    // The run that was expected has ended.
    live.expectsRun ||
    (committedSeq > 0 && rows.some(({ runId, seq = 0 }) => runId !== undefined && seq > committedSeq))
  )
}

/**
 * Continues from the state of the store: by the runner's state, or, without a runner, by ending the epoch, so that subscribers start from
 * snapshots. False when the runner doesn't answer.
 */
export async function catchUp(runtime: ThreadRuntime, live: LiveThread, thread: ThreadRow): Promise<boolean> {
  if (thread.status === 'running') return syncWithRunner(runtime, live, thread)
  live.endEpoch(thread.epoch, thread.status === 'suspended', runtime.clock.now())
  return true
}

/**
 * Whether this process runs the thread in the epoch of the store. A process that was paused may not know yet that another has claimed the
 * thread.
 */
function runsHere(runtime: ThreadRuntime, { id, epoch }: ThreadRow): boolean {
  const host = runtime.hostOf(id)
  return host !== undefined && host.fence.epoch >= epoch
}
