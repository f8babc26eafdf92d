import { joinRows } from '../message/join.ts'
import { HeedError } from '../errors.ts'
import type { Chunk } from '../run/chunk.ts'
import type { RowQuery, Scope } from '../store/contract.ts'
import { suspendedRun } from './deciding.ts'
import type { LiveThread } from './live.ts'
import type { ThreadRuntime } from './runtime.ts'
import { ThreadReader, type AgentThreadSubscription, type SnapshotReader, type ThreadSnapshot } from './subscription.ts'

export interface SubscribeOptions {
  threadId: string
  resourceId?: string
  /** The cursor of the last chunk that was seen: exactly what came after it follows, or a snapshot that says so. */
  after?: string
  /** Begin with a snapshot, then the live edge. */
  snapshot?: boolean
}

/** How many messages a snapshot holds at most. */
const snapshotRows = 100

/** Watches a thread, one that doesn't exist yet included. Without `after`: the active run from its start, else the live edge. */
export async function subscribe(runtime: ThreadRuntime, options: SubscribeOptions): Promise<AgentThreadSubscription> {
  const { threadId, resourceId, after } = options
  if (typeof threadId !== 'string' || threadId === '') throw new HeedError('invalid_argument', 'subscribeToThread needs a threadId.', { details: { field: 'threadId' } })
  const scope: Scope = { threadId, ...(resourceId === undefined ? {} : { resourceId }) }
  await runtime.open()
  const live = runtime.hold(threadId)
  try {
    const thread = await runtime.store.getThread(scope)
    if (thread) {
      live.enter(thread.epoch)
      if (thread.status === 'suspended') live.runId ??= thread.runId
    }
    const start = startOf(live, after, options.snapshot ?? false)
    return subscription(runtime, scope, live, start)
  } catch (error) {
    runtime.letGo(threadId)
    throw error
  }
}

type Start = { position: number; snapshot?: ThreadSnapshot['reason'] }

function startOf(live: LiveThread, after: string | undefined, snapshot: boolean): Start {
  if (after !== undefined) {
    const position = live.after(after)
    return position === undefined ? { position: live.end, snapshot: 'expired' } : { position }
  }
  if (snapshot) return { position: live.end, snapshot: 'requested' }
  return { position: live.runStart }
}

function subscription(runtime: ThreadRuntime, scope: Scope, live: LiveThread, start: Start): AgentThreadSubscription {
  const readers = new Set<ThreadReader>()
  let open = true
  return {
    stream: {
      [Symbol.asyncIterator]: () => {
        const reader: ThreadReader = new ThreadReader(live, start, snapshotReader(runtime, scope), () => readers.delete(reader))
        if (open) readers.add(reader)
        else reader.close()
        return reader
      },
    },
    activeRunId: () => live.runId ?? null,
    abort: ({ clearPendingSignals = false } = {}) => abortThread(runtime, scope, { clearPendingSignals }),
    unsubscribe() {
      if (!open) return
      open = false
      for (const reader of readers) reader.close()
      live.ring()
      runtime.letGo(scope.threadId)
    },
  }
}

/** Aborts the run that is active here, or the one that is suspended. False when there is neither. */
export function abortThread(runtime: ThreadRuntime, scope: Scope, options: { clearPendingSignals?: boolean; expectedRunId?: string }): boolean {
  const { clearPendingSignals = false, expectedRunId } = options
  const host = runtime.hostOf(scope.threadId)
  if (host) {
    if (expectedRunId !== undefined && host.runId !== expectedRunId) return false
    return host.abort(new HeedError('aborted', 'The run was aborted.'), clearPendingSignals)
  }
  const runId = runtime.liveOf(scope.threadId)?.runId
  if (runId === undefined || (expectedRunId !== undefined && expectedRunId !== runId)) return false
  endSuspended(runtime, scope, runId, clearPendingSignals).catch((error: unknown) =>
    runtime.logger.error('a suspended run could not be aborted', { threadId: scope.threadId, error: String(error) }))
  return true
}

/** Ends a suspended run, tells the watchers, and lets what waited behind it go on. */
export async function endSuspended(runtime: ThreadRuntime, scope: Scope, runId: string, clearPending: boolean): Promise<boolean> {
  const { ended, more } = await runtime.store.endSuspended(scope, runId, { clearPending })
  if (!ended) return false
  if (clearPending) runtime.cleared(scope.threadId)
  const live = runtime.liveOf(scope.threadId)
  live?.publish({ type: 'abort', runId, from: 'AGENT', payload: {} })
  live?.endRun()
  if (more) await runtime.wake(scope.threadId)
  return true
}

/** History up to where the live chunks begin, so that the two together are the whole and nothing is in both. */
function snapshotReader(runtime: ThreadRuntime, scope: Scope): SnapshotReader {
  return async (live, reason) => {
    for (;;) {
      const { end: position, cursor, seq, runId } = live
      const step: Chunk[] = runId === undefined ? [] : live.step()
      const query: RowQuery = { limit: snapshotRows, ...(runId !== undefined && seq !== undefined ? { before: seq + 1 } : {}) }
      const thread = await runtime.store.getThread(scope)
      const { rows } = thread ? await runtime.store.listRows(scope, query) : { rows: [] }
      const run = thread?.status === 'suspended' ? await suspendedRun(runtime, scope) : null
      // An idle thread has no bound to read up to: if it woke meanwhile, look again.
      if (runId === undefined && live.end !== position) continue
      const snapshot: ThreadSnapshot = {
        threadId: scope.threadId,
        status: thread?.status ?? 'idle',
        runId: runId ?? null,
        messages: joinRows(rows),
        suspended: run?.suspended ?? [],
        reason,
      }
      return { snapshot, cursor, position, step }
    }
  }
}
