import { HeedError, isHeedError } from '../errors.ts'
import type { Scope } from '../store/contract.ts'
import { suspendedRun } from './deciding.ts'
import type { LiveThread } from './live.ts'
import type { ThreadRuntime } from './runtime.ts'
import { settleWaiting } from './settling.ts'
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
  const live = runtime.hold(threadId)
  try {
    const thread = await runtime.store.getThread(scope)
    if (thread) {
      live.resourceId = thread.resourceId
      live.join(thread.epoch, runtime.clock.now())
      if (thread.status === 'suspended') live.runId ??= thread.runId
    }
    return subscription(runtime, scope, live, startOf(live, after, options.snapshot ?? false))
  } catch (error) {
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
  return { position: live.runStart }
}

function subscription(runtime: ThreadRuntime, scope: Scope, live: LiveThread, from: ReaderStart): AgentThreadSubscription {
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
    activeRunId: () => (live.foreignTo(scope.resourceId) ? null : (live.runId ?? null)),
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

/**
 * Aborts the run that is active here, or the one that is suspended. False when there is neither as far as is known here; a suspended run
 * of another process is looked for and ended all the same.
 */
export function abortThread(runtime: ThreadRuntime, scope: Scope, options: { clearPendingSignals?: boolean; expectedRunId?: string }): boolean {
  const { clearPendingSignals = false, expectedRunId } = options
  const live = runtime.liveOf(scope.threadId)
  if (live?.foreignTo(scope.resourceId)) throw forbidden(scope.threadId)
  const host = runtime.hostOf(scope.threadId)
  if (host?.expecting) {
    if (expectedRunId !== undefined && host.runId !== expectedRunId) return false
    return host.abort({ reason: new HeedError('aborted', 'The run was aborted.'), clearPending: clearPendingSignals, resourceId: scope.resourceId })
  }
  const known = live?.runId
  if (known !== undefined && expectedRunId !== undefined && expectedRunId !== known) return false
  endSuspended(runtime, scope, known ?? expectedRunId, clearPendingSignals).catch((error: unknown) => {
    if (isHeedError(error) && (error.code === 'thread_forbidden' || error.code === 'closed')) return
    runtime.logger.error('a suspended run could not be aborted', { threadId: scope.threadId, error: String(error) })
  })
  return known !== undefined
}

/** Ends a suspended run, tells the watchers, and lets what waited behind it go on. False when none is suspended, or not this one. */
export async function endSuspended(runtime: ThreadRuntime, scope: Scope, expectedRunId: string | undefined, clearPending: boolean): Promise<boolean> {
  await runtime.open()
  const runId = expectedRunId ?? (await suspendedRun(runtime, scope))?.runId
  if (runId === undefined) return false
  const waiting = (await runtime.store.getRun(scope, runId))?.suspended ?? []
  const { ended, more, epoch, parents } = await runtime.store.endSuspended(scope, runId, { clearPending })
  if (!ended) return false
  if (clearPending) runtime.expectations.dropOptions(scope.threadId)
  runtime.speak(scope.threadId, (live) => {
    live.enter(epoch)
    live.publish({ type: 'abort', runId, from: 'AGENT', payload: {} })
    live.endRun(false)
  })
  runtime.expectations.takeOptions(runId)
  for (const call of runtime.expectations.takeFollowers(runId)) call.reject(new HeedError('aborted', `The run ${runId} was aborted.`))
  // What agents below it wait for is nobody's question any more.
  for (const { child } of waiting) if (child) await endSuspended(runtime, { threadId: child.threadId }, child.runId, clearPending).catch(unlessGone)
  for (const threadId of [...parents, ...(more ? [scope.threadId] : [])]) await runtime.wake(threadId)
  await settleWaiting(runtime, scope.threadId)
  return true
}

/** A thread that was deleted, or is kept in another store, has nothing to end here. */
function unlessGone(error: unknown): void {
  if (!isHeedError(error) || error.code !== 'thread_not_found') throw error
}

function forbidden(threadId: string): HeedError {
  return new HeedError('thread_forbidden', `Thread ${threadId} belongs to another resource. Use a thread of this resource, or another id.`, { details: { threadId } })
}
