import { joinRows } from '../../message/join.ts'
import type { Message } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import { transcriptOf, withheldPayload } from '../../message/content.ts'
import type { Chunk } from '../../message/chunk.ts'
import { TAIL_SEQ } from '../../store/contract/thread.ts'
import type { Scope, SuspendedCall, ThreadRow } from '../../store/contract/threads.ts'
import { suspendedRun } from '../control/resume.ts'
import type { LiveThread } from './live.ts'
import type { ThreadStatus } from '../../machine.ts'
import { catchUp, storeIsAhead } from '../cluster/sync.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'

/** What is needed to go on from here without what came before. In the stream as a `data-thread-snapshot` chunk. */
export interface ThreadSnapshot {
  threadId: string
  status: ThreadStatus
  runId: string | null
  /** The newest messages, oldest first. What the present step said so far follows as chunks. */
  messages: Message[]
  /** The thread has older ones. */
  hasOlder: boolean
  /** Calls that wait for a decision. */
  suspended: SuspendedCall[]
  /**
   * `requested`: asked for. `behind`: the watcher was too slow, or its process did not hear in time what another said. `expired`: the
   * cursor is older than what is kept. `resumed`: the run was taken up again, and what it had not stored is said anew.
   */
  reason: 'requested' | 'behind' | 'expired' | 'resumed'
}

export interface ReadSnapshot {
  snapshot: ThreadSnapshot
  /** Of the snapshot's chunk: whoever returns with it gets the present step and all that follows. */
  cursor: string
  /** Where the live chunks go on. */
  position: number
  /** The present step so far. */
  step: Chunk[]
}

/** `seen`: up to where the watcher has read. */
export type SnapshotReader = (live: LiveThread, reason: ThreadSnapshot['reason'], seen: number) => Promise<ReadSnapshot>

/** How many rows a snapshot is made of at most. */
const snapshotRows = 100

/**
 * History up to where the live chunks begin. The two together are the whole; a signal may be in both, as its row and as the echo that
 * follows, and is known by its id.
 */
export function snapshotReader(runtime: ThreadRuntime, scope: Scope): SnapshotReader {
  return async (live, reason, seen) => {
    for (let asked = false; ;) {
      const { position, cursor, runId, seq, step, runs } = live.mark(seen)
      const thread = await runtime.store.getThread(scope)
      const bound = seq === undefined ? {} : { before: seq + 1 }
      const newest = thread ? await runtime.store.listRows(scope, { limit: snapshotRows, ...bound }) : { rows: [], more: false }
      const rows = wholeMessages(newest)
      // Looked at after the rows: what happened since can't be in them.
      const now: ThreadRow | null = thread && seq === undefined && !asked ? await runtime.store.getThread(scope) : null
      if (now && storeIsAhead(runtime, live, now, rows)) {
        const told = runtime.pendingEchoes.kept.flushed(scope.threadId) ?? runtime.pendingEchoes.ended.flushed(scope.threadId)
        if (told) {
          await told
          continue
        }
        asked = now.status === 'running'
        await catchUp(runtime, live, now)
        continue
      }
      const beside = thread && seq !== undefined ? await besideRun(runtime, scope, seq) : []
      const waiting = thread?.status === 'suspended' ? await suspendedRun(runtime, scope) : null
      // Nobody was at work, so there was no bound to read up to: if a run began meanwhile, look again.
      if (seq === undefined && live.mark().runs !== runs) continue
      const messages = joinRows([...rows, ...beside])
      const snapshot: ThreadSnapshot = {
        threadId: scope.threadId,
        status: waiting ? 'suspended' : seq === undefined ? (thread?.status ?? 'idle') : 'running',
        runId: runId ?? thread?.runId ?? null,
        messages: transcriptOf(messages),
        hasOlder: newest.more,
        suspended: waiting ? shownCalls(waiting.suspended, messages) : [],
        reason,
      }
      return { snapshot, cursor, position, step }
    }
  }
}

/** Without the end of a message that began before these rows, unless there is nothing else. */
function wholeMessages({ rows, more }: { rows: MessageRow[]; more: boolean }): MessageRow[] {
  const [first] = rows
  if (!more || (first?.role !== 'assistant' && first?.role !== 'tool')) return rows
  const next = rows.findIndex(({ messageId }) => messageId !== first.messageId)
  return next === -1 ? rows : rows.slice(next)
}

/**
 * What was persisted beside the run: it comes after it in history, and was shown when it came. The run may end meanwhile, in the store or
 * only for this process, and then it has its place after what the run said: whoever looks there last misses nothing.
 */
async function besideRun({ store }: ThreadRuntime, scope: Scope, seq: number): Promise<MessageRow[]> {
  const waiting = (await store.listRows(scope, { after: TAIL_SEQ - 1, limit: snapshotRows })).rows
  const placed = (await store.listRows(scope, { after: seq, limit: snapshotRows })).rows
  const known = new Set(waiting.map(({ id }) => id))
  return [...placed.filter(({ id, runId, seq: at = 0 }) => runId === undefined && at < TAIL_SEQ && !known.has(id)), ...waiting]
}

/** What a suspended run waits for, as displays may see it. */
export async function shownWaits(runtime: ThreadRuntime, scope: Scope, calls: readonly SuspendedCall[]): Promise<SuspendedCall[]> {
  return shownCalls(calls, joinRows(wholeMessages(await runtime.store.listRows(scope, { limit: snapshotRows }))))
}

/** What is waited for, as displays may see it. Rules on a tool's input speak for the call; what it suspended with is then withheld. */
function shownCalls(calls: readonly SuspendedCall[], messages: readonly Message[]): SuspendedCall[] {
  const parts = messages.flatMap((message) => message.content.parts)
  return calls.filter((call) => !call.decision).map((call) => {
    const part = parts.find((other) => other.type === 'tool-invocation' && other.toolInvocation.toolCallId === call.toolCallId)
    const transcript = part?.type === 'tool-invocation' ? part.toolInvocation.transcript : undefined
    if (!transcript) return call
    return { ...call, args: transcript.args ?? call.args, ...(call.payload === undefined ? {} : { payload: withheldPayload }) }
  })
}
