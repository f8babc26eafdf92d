import { HeedError, isHeedError } from '../../base/errors.ts'
import type { Scope } from '../../store/contract/threads.ts'
import { abortRun, type AbortOptions } from '../control/abort.ts'
import { formatCursor, parseCursor } from './ring.ts'
import type { LiveThread } from './live.ts'
import { syncWithRunner } from '../cluster/sync.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'
import { snapshotReader } from './snapshot.ts'
import { ThreadReader, type AgentThreadSubscription, type ReaderStart } from './subscription.ts'

export interface SubscribeOptions {
  threadId: string
  resourceId?: string
  /** The cursor of the last chunk that was seen: exactly what came after it follows, or a snapshot that says so. */
  after?: string
  /** Begin with a snapshot, then the live edge. */
  snapshot?: boolean
}

/** Watches a thread, one that doesn't exist yet included. Without `after`: the active run from its start, else the live edge. */
export async function subscribe(runtime: ThreadRuntime, options: SubscribeOptions): Promise<AgentThreadSubscription> {
  const { threadId, resourceId, after } = options
  if (typeof threadId !== 'string' || threadId === '') throw new HeedError('invalid_argument', 'subscribeToThread needs a threadId.', { details: { field: 'threadId' } })
  const scope: Scope = { threadId, ...(resourceId === undefined ? {} : { resourceId }) }
  await runtime.open()
  if (after !== undefined) parseCursor(after)
  const live = runtime.hold(threadId)
  await runtime.peers.watch(live)
  try {
    const thread = await runtime.store.getThread(scope)
    if (thread) live.resourceId = thread.resourceId
    const told = thread ? await syncWithRunner(runtime, live, thread, after) : true
    const start: ReaderStart = told ? startOf(live, after, options.snapshot ?? false) : { position: live.end, snapshot: 'expired' }
    return subscription(runtime, scope, live, start, after ?? cursorOf(live, start))
  } catch (error) {
    runtime.peers.unwatch(threadId)
    runtime.letGo(threadId)
    throw error
  }
}

function startOf(live: LiveThread, after: string | undefined, snapshot: boolean): ReaderStart {
  if (after !== undefined) {
    const position = live.after(after)
    return position === undefined ? { position: live.end, snapshot: 'expired' } : { position }
  }
  if (snapshot) return { position: live.end, snapshot: 'requested' }
  const position = live.runStart
  return position === undefined ? { position: live.end, snapshot: 'expired' } : { position }
}

/** Where nothing is kept of the beginning, whoever comes back is told by a snapshot. */
function cursorOf(live: LiveThread, { position, snapshot }: ReaderStart): string | undefined {
  if (snapshot === 'requested') return undefined
  return snapshot ? formatCursor({ epoch: 0, index: 0 }) : live.cursorBefore(position)
}

function subscription(runtime: ThreadRuntime, scope: Scope, live: LiveThread, from: ReaderStart, cursor: string | undefined): AgentThreadSubscription {
  const readers = new Set<ThreadReader>()
  const start = { ...from, generation: live.generation, ...(scope.resourceId === undefined ? {} : { resourceId: scope.resourceId }) }
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
    cursor,
    activeRunId: () => (live.foreignTo(scope.resourceId) ? null : (live.runId ?? null)),
    abort: ({ clearPendingSignals = false } = {}) => abortThread(runtime, scope, { clearPendingSignals }),
    unsubscribe() {
      if (!open) return
      open = false
      for (const reader of readers) reader.close()
      live.notify()
      runtime.peers.unwatch(scope.threadId)
      runtime.letGo(scope.threadId)
    },
  }
}

/**
 * Aborts what is active on a thread. True when that is known here; otherwise it is looked for, and aborted all the same where it is found.
 * What begins later is left alone.
 * `abortRun` says what came of it.
 */
export function abortThread(runtime: ThreadRuntime, scope: Scope, options: AbortOptions): boolean {
  const { clearPendingSignals = false, expectedRunId } = options
  const live = runtime.liveOf(scope.threadId)
  if (live?.foreignTo(scope.resourceId)) throw forbidden(scope.threadId)
  const host = runtime.hostOf(scope.threadId)
  if (host?.expecting) {
    if (expectedRunId !== undefined && host.runId !== expectedRunId) return false
    return host.abort({ reason: new HeedError('aborted', 'The run was aborted.'), clearPending: clearPendingSignals, resourceId: scope.resourceId, runId: expectedRunId })
  }
  const known = live?.runId
  if (known !== undefined && expectedRunId !== undefined && expectedRunId !== known) return false
  const expected = expectedRunId ?? known
  abortRun(runtime, scope, { clearPendingSignals, ...(expected === undefined ? {} : { expectedRunId: expected }) }).catch((error: unknown) => {
    if (isHeedError(error) && (error.code === 'thread_forbidden' || error.code === 'closed')) return
    if (!runtime.closing) runtime.logger.error('a run could not be aborted', { threadId: scope.threadId, error: String(error) })
  })
  return known !== undefined
}

function forbidden(threadId: string): HeedError {
  return new HeedError('thread_forbidden', `Thread ${threadId} belongs to another resource. Use a thread of this resource, or another id.`, { details: { threadId } })
}
