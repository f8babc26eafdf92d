import { isHeedError } from '../../base/errors.ts'
import { joinRows } from '../../message/join.ts'
import type { Message } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import { transcriptOf, withheldPayload } from '../../message/content.ts'
import type { Chunk } from '../../message/chunk.ts'
import { TAIL_SEQ } from '../../store/contract/thread-row.ts'
import type { Scope, SuspendedCall, ThreadRow } from '../../store/contract/threads.ts'
import { suspendedRun } from '../control/resume.ts'
import type { LiveThread } from './live.ts'
import type { ThreadStatus } from '../../machine.ts'
import { catchUp, storeIsAhead } from '../cluster/sync.ts'
import { endFormer } from '../runtime/ended-threads.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'

/** The state of a thread from which a subscriber continues without the chunks before. In the stream as a `data-thread-snapshot` chunk. */
export interface ThreadSnapshot {
  threadId: string
  status: ThreadStatus
  runId: string | null
  /** The newest messages, oldest first. The present step follows as chunks. */
  messages: Message[]
  /** The thread has older messages. */
  hasOlder: boolean
  /** Calls that need a decision. */
  suspended: SuspendedCall[]
  /**
   * `requested`: by the subscriber. `behind`: the subscriber was too slow, or events of another process were missed. `expired`: the cursor
   * is older than the retained chunks. `resumed`: the run was resumed, and its uncommitted step is published again. `replaced`: the thread
   * was deleted or restored from a backup; what was received before is not part of it.
   */
  reason: 'requested' | 'behind' | 'expired' | 'resumed' | 'replaced'
}

interface ReadSnapshot {
  snapshot: ThreadSnapshot
  /** The cursor of the snapshot's chunk: a subscriber that returns with it gets the present step and what follows. */
  cursor: string
  /** The position of the first live chunk after the snapshot, and the generation that it is of. */
  position: number
  generation: number
  /** The chunks of the present step. */
  step: Chunk[]
  /** The first epoch of the thread that it is of. */
  life: number
  /** The ids of the signals among the messages. */
  signals: ReadonlySet<string>
}

export type SnapshotReader = (live: LiveThread, reason: ThreadSnapshot['reason'], reader: ReaderPosition) => Promise<ReadSnapshot>

interface ReaderPosition {
  /** The position up to which the subscriber has read. */
  seen: number
  /** The first epoch of the thread that it has read. */
  life: number
}

/** How many rows a snapshot is made of at most. */
const snapshotRows = 100

/** How often the runner of a thread is asked for a state that is up to the rows: it may commit faster than its answers arrive. */
const maxAsked = 5

/** Reads history up to where the live chunks begin. A signal may be in both, as its row and as its echo; its id identifies it. */
export function snapshotReader(runtime: ThreadRuntime, scope: Scope): SnapshotReader {
  return async (live, reason, reader) => {
    for (const attempts: SnapshotRequest['attempts'] = { asked: 0 }; ;) {
      const read = await readSnapshot(runtime, scope, { live, reason, reader, attempts }).catch(ignoreDeleted)
      if (read) return read
    }
  }
}

/** The thread was deleted between two reads. */
function ignoreDeleted(error: unknown): undefined {
  if (!isHeedError(error) || error.code !== 'thread_not_found') throw error
}

interface SnapshotRequest {
  live: LiveThread
  reason: ThreadSnapshot['reason']
  reader: ReaderPosition
  /** How often a runner was asked for its state, and the epoch of the one that did not answer. */
  attempts: { asked: number; unanswered?: number }
}

/** Undefined where the state changed between the reads: they are repeated. */
async function readSnapshot(
  runtime: ThreadRuntime, scope: Scope, { live, reason, reader, attempts }: SnapshotRequest,
): Promise<ReadSnapshot | undefined> {
  const { store } = runtime
  const life = await store.lifeOf(scope.threadId)
  // No message announced that the thread was deleted or replaced: the position here is of the earlier one.
  endFormer(runtime, live, life)
  const { position, cursor, runId, seq, coming, step, runs, generation } = live.currentPosition(reader.seen)
  const thread = await store.getThread(scope)
  const last = seq ?? coming
  const bound = last === undefined ? {} : { before: last + 1 }
  const newest = thread ? await store.listRows(scope, { limit: snapshotRows, ...bound }) : { rows: [], more: false }
  const rows = wholeMessages(newest)
  // Read after the rows, so that later changes are not in them.
  const now: ThreadRow | null = thread && seq === undefined ? await store.getThread(scope) : null
  const mayAsk = coming === undefined && attempts.asked < maxAsked && attempts.unanswered !== now?.epoch
  if (now && mayAsk && storeIsAhead(runtime, live, now, rows)) {
    const published = runtime.pendingEchoes.persisted.flushed(scope.threadId) ?? runtime.pendingEchoes.ended.flushed(scope.threadId)
    if (published) {
      await published
      return undefined
    }
    if (now.epoch > live.epoch && (await store.lifeOf(scope.threadId)) !== life) return undefined
    attempts.asked++
    if (!(await catchUp(runtime, live, now))) attempts.unanswered = now.epoch
    return undefined
  }
  const beside = thread && last !== undefined ? await persistedBesideRun(runtime, scope, last) : []
  const waiting = thread?.status === 'suspended' ? await suspendedRun(runtime, scope) : null
  // The rows may be of different threads with this id.
  if ((await store.lifeOf(scope.threadId)) !== life) return undefined
  // No run was active, so that the rows had no upper bound: if a run began meanwhile, read again.
  if (seq === undefined && live.currentPosition().runs !== runs) return undefined
  const messages = joinRows([...rows, ...beside])
  const snapshot: ThreadSnapshot = {
    threadId: scope.threadId,
    status: waiting ? 'suspended' : seq === undefined ? (thread?.status ?? 'idle') : 'running',
    runId: runId ?? thread?.runId ?? null,
    messages: transcriptOf(messages),
    hasOlder: newest.more,
    suspended: waiting ? withVisibleArguments(waiting.suspended, messages) : [],
    // Its events may have come before the message that the thread of before was deleted.
    reason: life > reader.life && reason !== 'requested' ? 'replaced' : reason,
  }
  const signals = new Set(snapshot.messages.flatMap(({ id, role }) => (role === 'signal' ? [id] : [])))
  live.onSnapshot(cursor, signals)
  return { snapshot, cursor, position, generation, step, life, signals }
}

/** Omits the end of a message that began before these rows, unless they contain nothing else. */
function wholeMessages({ rows, more }: { rows: MessageRow[]; more: boolean }): MessageRow[] {
  const [first] = rows
  if (!more || (first?.role !== 'assistant' && first?.role !== 'tool')) return rows
  const next = rows.findIndex(({ messageId }) => messageId !== first.messageId)
  return next === -1 ? rows : rows.slice(next)
}

/**
 * Signals that were persisted during the run: they follow it in history, and their echoes were published already. When the run ends
 * meanwhile, they get a place after its rows: that place is read last, so that none is missed.
 */
async function persistedBesideRun({ store }: ThreadRuntime, scope: Scope, seq: number): Promise<MessageRow[]> {
  const waiting = (await store.listRows(scope, { after: TAIL_SEQ - 1, limit: snapshotRows })).rows
  const placed = (await store.listRows(scope, { after: seq, limit: snapshotRows })).rows
  const known = new Set(waiting.map(({ id }) => id))
  return [...placed.filter(({ id, runId, seq: at = 0 }) => runId === undefined && at < TAIL_SEQ && !known.has(id)), ...waiting]
}

/** The undecided calls of a suspended run, with the arguments that displays may show. */
export async function visibleSuspendedCalls(
  runtime: ThreadRuntime, scope: Scope, calls: readonly SuspendedCall[],
): Promise<SuspendedCall[]> {
  return withVisibleArguments(calls, joinRows(wholeMessages(await runtime.store.listRows(scope, { limit: snapshotRows }))))
}

/**
 * The undecided calls, with the arguments that displays may show. Where the input of a tool is transformed for displays, its suspend
 * payload is withheld.
 */
function withVisibleArguments(calls: readonly SuspendedCall[], messages: readonly Message[]): SuspendedCall[] {
  const parts = messages.flatMap((message) => message.content.parts)
  return calls.filter((call) => !call.decision).map((call) => {
    const part = parts.find((other) => other.type === 'tool-invocation' && other.toolInvocation.toolCallId === call.toolCallId)
    const transcript = part?.type === 'tool-invocation' ? part.toolInvocation.transcript : undefined
    if (!transcript) return call
    const args = transcript.args ?? call.args
    const request = call.request && !call.child ? { request: { ...call.request, args } } : {}
    return { ...call, args, ...request, ...(call.payload === undefined ? {} : { payload: withheldPayload }) }
  })
}
