import { sleep } from '../../base/clock.ts'
import { HeedError, isHeedError } from '../../base/errors.ts'
import type { ChildCall, Chunk } from '../../message/chunk.ts'
import type { MessageRow } from '../../message/row.ts'
import type { MeantThread, Scope, SuspendedEnd, ThreadRow, ThreadStore } from '../../store/contract/threads.ts'
import { continueThread, suspendedRun } from './resume.ts'
import type { AbortAnswer } from '../cluster/peers.ts'
import { endOpenCalls } from '../runtime/early-abort.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'
import { resolveLocalWaiters } from '../send/outcomes.ts'

/** What an abort also does, and which run it expects. */
export interface AbortOptions {
  /** Also cancel the pending signals of the thread. */
  clearPendingSignals?: boolean
  /** Abort this run only. */
  expectedRunId?: string
}

/** How long to wait for the answer of the process that runs the thread, and how often to ask it. */
const answerMs = 1_000
const maxRequests = 30

/**
 * Aborts the active run of a thread in whichever process it runs. Resolves when that run has ended; `aborted` is what the commit that ended
 * it stored: a run may end by itself before the abort reaches it. A runner that does not answer is asked again until its lease expires;
 * then this process claims the thread and aborts the run. A run whose process is gone and whose agent is not registered here is ended in
 * its rows. The first read determines which run is meant, and where the store is open that read starts before this returns: a run that
 * begins later is not aborted.
 */
export async function abortRun(runtime: ThreadRuntime, scope: Scope, options: AbortOptions): Promise<AbortAnswer> {
  try {
    return await new AbortRequest(runtime, scope, options).perform()
  } catch (error) {
    // The thread was deleted meanwhile, and its run with it.
    ignoreMissingThread(error)
    return { aborted: false }
  }
}

/** One call of `abortRun`: it reads the thread, aborts its run where that is, and reads again until the run has ended. */
class AbortRequest {
  readonly #runtime: ThreadRuntime
  readonly #scope: Scope
  readonly #clearPending: boolean
  #expectedRunId: string | undefined
  /** The runner has the abort, and the run has not ended yet. */
  #accepted = false
  /** The epoch of the thread that is meant: of a later one with its id, nothing is cancelled. */
  #since: number | undefined
  /** The last signal that was pending when the abort was called, by its `ord`: a runner that clears late must not cancel later ones. */
  #clearUpTo: number | undefined

  constructor(runtime: ThreadRuntime, scope: Scope, { expectedRunId, clearPendingSignals = false }: AbortOptions) {
    this.#runtime = runtime
    this.#scope = scope
    this.#clearPending = clearPendingSignals
    this.#expectedRunId = expectedRunId
  }

  async perform(): Promise<AbortAnswer> {
    const [runtime, { threadId }] = [this.#runtime, this.#scope]
    if (!runtime.isOpen || runtime.closing) await runtime.open()
    const { closed } = runtime.waiters
    for (let requests = 0; requests < maxRequests; requests++) {
      const thread = await runtime.store.getThread(this.#scope)
      closed.throwIfAborted()
      const answer = (await this.#answerOf(thread, requests > 0)) ?? (thread && (await this.#endRun(thread, requests, closed)))
      if (answer) return answer
    }
    throw new HeedError(
      'store_failed',
      this.#accepted
        ? `The run of thread ${threadId} was aborted and has not ended yet. Try again.`
        : `The process that runs thread ${threadId} does not answer, and its lease does not expire. Try again.`,
      { retryable: true, details: { threadId } },
    )
  }

  /** The answer to the caller where the run that is meant has ended, or there is none. */
  async #answerOf(thread: ThreadRow | null, again: boolean): Promise<AbortAnswer | undefined> {
    const expected = this.#expectedRunId
    this.#since ??= thread?.epoch
    if (expected !== undefined && again && thread && (thread.status === 'idle' || thread.runId !== expected)) {
      return this.#over(expected, (await statusOf(this.#runtime, this.#scope, expected)) === 'aborted')
    }
    if (!thread) return { aborted: false }
    const { runId, status } = thread
    if (status === 'idle' || runId === undefined) return this.#over(undefined, false)
    this.#expectedRunId ??= runId
    if (runId === this.#expectedRunId) return undefined
    const known = (await statusOf(this.#runtime, this.#scope, this.#expectedRunId)) !== undefined
    return known ? this.#over(runId, false) : { aborted: false, runId }
  }

  /** The run is over. Where its end did not have the abort, or has not cleared yet what is pending, that is done here. */
  async #over(runId: string | undefined, aborted: boolean): Promise<AbortAnswer> {
    const [runtime, scope] = [this.#runtime, this.#scope]
    const cancelled = this.#clearPending && (await cancelPending(runtime, scope, { since: this.#since }))
    if (cancelled) await resolveLocalWaiters(runtime, scope.threadId)
    return { aborted, ...(runId === undefined ? {} : { runId }) }
  }

  /** Ends the run here, or asks the process that runs it. Without an answer the next read shows whether it has ended. */
  async #endRun(thread: ThreadRow, requests: number, closed: AbortSignal): Promise<AbortAnswer | undefined> {
    const [runtime, scope, clearPending] = [this.#runtime, this.#scope, this.#clearPending]
    const { id, owner, runId } = thread
    if (runId === undefined) return undefined
    if (thread.status === 'suspended') {
      return (await endSuspended(runtime, scope, runId, clearPending)) ? { aborted: true, runId } : undefined
    }
    if (clearPending) this.#clearUpTo ??= await lastPending(runtime, scope)
    const host = runtime.hostOf(id)
    if (host) {
      const reason = new HeedError('aborted', 'The run was aborted.')
      host.abort({ reason, clearPending, clearUpTo: this.#clearUpTo, resourceId: scope.resourceId, runId })
      await within(runtime, host.runEnded)
      return undefined
    }
    const pause = () => sleep(runtime.clock, Math.min(answerMs, 5 * 2 ** requests), closed)
    // The run ends, has ended, or moved.
    if (owner !== undefined && owner !== runtime.owner && (await this.#askOwner(owner, id, runId))) {
      await pause()
      return undefined
    }
    if (!(await runtime.wake(id)) && (await endAbandoned(runtime, thread, clearPending))) return { aborted: true, runId }
    // The thread is about to be claimed again here, after its host failed.
    if (owner === runtime.owner && !runtime.hostOf(id)) await pause()
    return undefined
  }

  /** Returns whether the process that has the lease answered. */
  async #askOwner(owner: string, threadId: string, runId: string): Promise<boolean> {
    const runtime = this.#runtime
    if (runtime.peers.disconnected) throw unreachable(threadId)
    const request = { threadId, runId, clearPending: this.#clearPending, clearUpTo: this.#clearUpTo }
    const answer = await runtime.peers.abort(owner, request, answerMs)
    if (runtime.closing) throw new HeedError('closed', 'This Heed was closed. Ask the process that runs now.')
    this.#accepted ||= answer?.aborted === true
    return answer !== undefined
  }
}

/**
 * Aborts the active run of a thread. True when this process knows the run; otherwise the store is read, and the run found there is aborted
 * in the background. A run that begins later is not aborted. `abortRun` returns the result.
 */
export function abortThread(runtime: ThreadRuntime, scope: Scope, options: AbortOptions): boolean {
  const { clearPendingSignals = false, expectedRunId } = options
  const live = runtime.liveOf(scope.threadId)
  if (live?.belongsToOther(scope.resourceId)) throw forbidden(scope.threadId)
  const host = runtime.hostOf(scope.threadId)
  if (host?.hasWork) {
    // Without an id the host is about to begin or continue a run: it compares the ids then.
    if (expectedRunId !== undefined && host.runId !== undefined && host.runId !== expectedRunId) return false
    return host.abort({
      reason: new HeedError('aborted', 'The run was aborted.'),
      clearPending: clearPendingSignals,
      resourceId: scope.resourceId,
      runId: expectedRunId,
    })
  }
  const known = live?.runId
  if (known !== undefined && expectedRunId !== undefined && expectedRunId !== known) return false
  const expected = expectedRunId ?? known
  abortRun(runtime, scope, { clearPendingSignals, ...(expected === undefined ? {} : { expectedRunId: expected }) }).catch(
    (error: unknown) => {
      if (isHeedError(error) && (error.code === 'thread_forbidden' || error.code === 'closed')) return
      if (!runtime.closing) runtime.logger.error('a run could not be aborted', { threadId: scope.threadId, error: String(error) })
    },
  )
  return known !== undefined
}

function forbidden(threadId: string): HeedError {
  return new HeedError(
    'thread_forbidden',
    `Thread ${threadId} belongs to another resource. Use a thread of this resource, or another id.`,
    { details: { threadId } },
  )
}

/** What the commit that ended the run stored; undefined where the thread has no such run. */
async function statusOf(runtime: ThreadRuntime, scope: Scope, runId: string): Promise<string | undefined> {
  return (await runtime.store.getRun(scope, runId))?.status
}

/** Cancels what is pending on the thread that is meant, up to an `ord`. The transaction that cancels decides whether it is that thread. */
export async function cancelPending(
  { store, waiters, peers }: ThreadRuntime, scope: Scope, meant: MeantThread, upTo = Infinity,
): Promise<boolean> {
  const pending = await store.listSignals(scope, { states: ['pending'] })
  const ids = pending.flatMap(({ id, ord }) => (ord <= upTo ? [id] : []))
  const cancelled = ids.length === 0 ? [] : await store.cancelSignals(scope, ids, meant)
  if (cancelled.length === 0) return false
  waiters.dropOptions(scope.threadId, cancelled)
  peers.announceOutcomes(scope.threadId)
  return true
}

/** The `ord` of the last pending signal; 0 where none is pending. */
async function lastPending({ store }: ThreadRuntime, scope: Scope): Promise<number> {
  return (await store.listSignals(scope, { states: ['pending'] })).at(-1)?.ord ?? 0
}

/** Awaits an event, but no longer than an answer may take or this process is open. */
async function within(runtime: ThreadRuntime, event: Promise<void>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const { closed } = runtime.waiters
  const timer = runtime.clock.after(answerMs, resolve)
  const onClose = () => resolve()
  closed.addEventListener('abort', onClose, { once: true })
  await Promise.race([event, promise])
  closed.removeEventListener('abort', onClose)
  timer.cancel()
}

function unreachable(threadId: string): HeedError {
  return new HeedError(
    'bus_failed',
    `Thread ${threadId} runs in another process, which can't be reached: the folder beside the database can't be written. ` +
      'Make it writable, or abort where it runs.',
    {
      retryable: true, details: { threadId },
    },
  )
}

/**
 * Ends a run whose process is gone and whose agent is not registered here, and runs the signals queued behind it. False when the run is not
 * of this kind.
 */
async function endAbandoned(runtime: ThreadRuntime, thread: ThreadRow, clearPending: boolean): Promise<boolean> {
  const { store, clock } = runtime
  const { id: threadId, runId = '', owner, epoch, resourceId } = thread
  const found = await store.getRun({ threadId }, runId)
  if (found?.status !== 'running' || runtime.hasAgent(found.agentId)) return false
  // A lease of this process without a host: an earlier attempt to end the run failed.
  const again = owner === runtime.owner ? { threadId, owner, epoch } : undefined
  const claimed = await store.claim(threadId, runtime.owner, undefined, again)
  if (!claimed) return false
  const { fence } = claimed
  // Another run is next, as where the thread was replaced by that of a backup before it was claimed.
  if (!claimed.takenOver || (await runtime.store.getThread({ threadId }))?.runId !== runId) {
    runtime.run(fence, resourceId)
    return false
  }
  // Its process may have stored more until the lease was claimed.
  const run = (await store.getRun({ threadId }, runId)) ?? found
  const open = await endOpenCalls(store, run, await lastRows(store, threadId), clock.now())
  const end = { status: 'aborted' as const, ...(clearPending ? { clearPending } : {}) }
  const { more, left } = await endAndPublish(
    runtime,
    [threadId],
    () => store.commitStep(fence, { runId, step: run.step, rows: open.rows, end }),
    () => [{ threadId, runId, epoch: fence.epoch, results: open.chunks }],
    clearPending,
  )
  for (const child of open.children) abortThread(runtime, { threadId: child.threadId }, { expectedRunId: child.runId })
  if (more) runtime.run(fence, resourceId)
  else if (left) runtime.peers.requestRunner(threadId)
  await resolveLocalWaiters(runtime, threadId)
  return true
}

/** How many rows of history are read at once. */
const page = 100

/** The newest rows of a thread, from the last message of an agent on. */
async function lastRows(store: ThreadStore, threadId: string): Promise<MessageRow[]> {
  let all: MessageRow[] = []
  for (;;) {
    const before = all[0]?.seq
    const { rows } = await store.listRows({ threadId }, { limit: page, ...(before === undefined ? {} : { before }) })
    all = [...rows, ...all]
    if (rows.length < page || rows.some(({ role }) => role === 'assistant')) return all
  }
}

/** A run without a host that has ended. `results`: what displays receive of its open calls. */
interface EndedRun {
  threadId: string
  runId: string
  epoch: number
  results: readonly Chunk[]
}

/**
 * Ends runs on these threads and publishes that, on each after the echoes of signals that were persisted before, and before those that were
 * persisted later.
 */
function endAndPublish<End>(
  runtime: ThreadRuntime, threadIds: readonly string[], end: () => Promise<End>, ended: (end: End) => EndedRun[], cleared: boolean,
): Promise<End> {
  const { persisted, ended: ending } = runtime.pendingEchoes
  const work = async () => {
    const result = await end()
    for (const run of ended(result)) {
      await persisted.flushed(run.threadId)
      ending.publishHeld(run.threadId, run.epoch)
      publishAbort(runtime, run, cleared)
    }
    return result
  }
  return threadIds.reduceRight<() => Promise<End>>((inner, threadId) => () => ending.during(threadId, inner), work)()
}

/** Publishes the end of a run without a host, and rejects its followers. */
function publishAbort(runtime: ThreadRuntime, { threadId, runId, epoch, results }: EndedRun, cleared: boolean): void {
  if (cleared) {
    runtime.waiters.dropOptions(threadId)
    runtime.peers.announceOutcomes(threadId)
  }
  runtime.publish(threadId, epoch, (live) => {
    if (epoch < live.life) return
    live.beginEpoch(epoch)
    for (const chunk of results) live.publish(chunk)
    live.publish({ type: 'abort', runId, from: 'AGENT', payload: {} })
    live.endRun(false)
  })
  runtime.waiters.takeRetainedOptions(runId)
  for (const call of runtime.waiters.takeFollowers(runId)) call.reject(new HeedError('aborted', `The run ${runId} was aborted.`))
}

/** A suspended run that the store ended. The visible arguments of its calls were published when they were suspended. */
function endedRun(threadId: string, runId: string, { epoch, denied }: Pick<SuspendedEnd, 'epoch' | 'denied'>): EndedRun {
  return {
    threadId, runId, epoch,
    results: denied.map((call) => ({ type: 'tool-output-denied', runId, from: 'AGENT', payload: { ...call, args: null } })),
  }
}

/** Ends a suspended run, publishes that, and runs the signals queued behind it. False when no run, or another one, is suspended. */
async function endSuspended(
  runtime: ThreadRuntime, scope: Scope, expectedRunId: string | undefined, clearPending: boolean,
): Promise<boolean> {
  await runtime.open()
  const runId = expectedRunId ?? (await suspendedRun(runtime, scope))?.runId
  if (runId === undefined) return false
  const called = await calledBy(runtime.store, scope, runId)
  const { ended, more, parents, children = [] } = await endAndPublish(
    runtime,
    [scope.threadId, ...called.map(({ threadId }) => threadId)],
    () => runtime.store.endSuspended(scope, runId, { clearPending }),
    (end) => {
      const below = end.children?.map((child) => endedRun(child.threadId, child.runId, child)) ?? []
      return end.ended ? [endedRun(scope.threadId, runId, end), ...below] : []
    },
    clearPending,
  )
  if (!ended) return false
  // Runs that it had called and that continue, because they were decided, are aborted where they run.
  for (const child of called) {
    if (children.some(({ threadId, runId: other }) => threadId === child.threadId && other === child.runId)) continue
    const options = { expectedRunId: child.runId, clearPendingSignals: clearPending }
    await abortRun(runtime, { threadId: child.threadId }, options).catch(ignoreMissingThread)
  }
  const due = children.flatMap((child) => (child.more ? [child.threadId] : []))
  for (const threadId of [...parents, ...due, ...(more ? [scope.threadId] : [])]) await continueThread(runtime, threadId)
  await resolveLocalWaiters(runtime, scope.threadId)
  return true
}

/** The runs of agents that a suspended run has called, and theirs. */
async function calledBy(store: ThreadStore, scope: Scope, runId: string): Promise<ChildCall[]> {
  const calls = (await store.getRun(scope, runId))?.suspended ?? []
  const children = calls.flatMap(({ child }) => child ?? [])
  const below = await Promise.all(children.map(({ threadId, runId: called }) => {
    return calledBy(store, { threadId }, called).catch((error: unknown) => {
      ignoreMissingThread(error)
      return []
    })
  }))
  return [...children, ...below.flat()]
}

/** A thread that was deleted, or is in another store, has no run to end here. */
function ignoreMissingThread(error: unknown): void {
  if (!isHeedError(error) || error.code !== 'thread_not_found') throw error
}
