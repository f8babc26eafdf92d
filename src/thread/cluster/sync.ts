import type { MessageRow } from '../../message/row.ts'
import type { ThreadRow } from '../../store/contract/threads.ts'
import { parseCursor } from '../watch/retained-chunks.ts'
import type { LiveThread } from '../watch/live.ts'
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
    // Later events of its runner come after this.
    runtime.peers.tear(id)
    live.join(epoch - 1, runtime.clock.now())
    return false
  }
  // Little has happened since the cursor: the process that ran the thread last may have it.
  const asks = after !== undefined && !runsHere(runtime, thread) && parseCursor(after).epoch === epoch && live.epoch < epoch
  if (asks) await runtime.peers.follow(id, undefined, after)
  // A run that is about to begin here counts its epoch itself.
  live.join(status === 'running' && owner === runtime.owner ? epoch - 1 : epoch, runtime.clock.now())
  if (status === 'suspended') live.runId ??= thread.runId
  return true
}

/**
 * Whether more happened on a thread than was heard here, where nobody is known to be at work: `rows` have it, and what is heard of it later
 * would be told again.
 */
export function storeIsAhead(runtime: ThreadRuntime, live: LiveThread, thread: ThreadRow, rows: readonly MessageRow[]): boolean {
  if (runsHere(runtime, thread) || (thread.status === 'running' && thread.owner === runtime.owner)) return false
  const { committedSeq } = live
  return thread.epoch > live.epoch || thread.status === 'running' || (committedSeq > 0 && rows.some(({ runId, seq = 0 }) => runId !== undefined && seq > committedSeq))
}

/** Goes on from what the store has: its runner is asked; where nobody runs it, all that was said so far counts as told by snapshots. */
export async function catchUp(runtime: ThreadRuntime, live: LiveThread, thread: ThreadRow): Promise<void> {
  if (thread.status === 'running') await syncWithRunner(runtime, live, thread)
  else live.endEpoch(thread.epoch, thread.status === 'suspended', runtime.clock.now())
}

/** Whether this process runs the thread, as far as the store knows: one that slept may not have noticed yet that another took it. */
function runsHere(runtime: ThreadRuntime, { id, epoch }: ThreadRow): boolean {
  const host = runtime.hostOf(id)
  return host !== undefined && host.fence.epoch >= epoch
}
