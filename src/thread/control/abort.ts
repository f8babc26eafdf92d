import { HeedError, isHeedError } from '../../base/errors.ts'
import type { Scope, SuspendedEnd, ThreadRow } from '../../store/contract/threads.ts'
import { suspendedRun } from './resume.ts'
import type { AbortAnswer } from '../cluster/peers.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'
import { resolveLocalWaiters } from '../send/outcomes.ts'

export interface AbortOptions {
  /** Also cancel what waits on the thread. */
  clearPendingSignals?: boolean
  /** Abort this run and no other. */
  expectedRunId?: string
}

/** How long the process that runs a thread is waited for before it is asked again, and how often it is asked. */
const answerMs = 1_000
const mostAsked = 30

/**
 * Aborts what is active on a thread, wherever it runs, and says truly whether that was so: `aborted` when its runner took the abort, or
 * when the run was suspended and is over. A runner that doesn't answer is asked again until its lease has expired; then the thread is
 * taken over and the run aborted here. A run that nobody can go on with, since its process went and its agent is not known here, is ended
 * in its rows. Only the run that the first look finds is meant, and where the store is open that look is taken before this returns: a
 * run that begins later is left alone.
 */
export async function abortRun(runtime: ThreadRuntime, scope: Scope, options: AbortOptions): Promise<AbortAnswer> {
  const { clearPendingSignals: clearPending = false } = options
  let { expectedRunId } = options
  if (!runtime.isOpen || runtime.closing) await runtime.open()
  for (let asked = 0; asked < mostAsked; asked++) {
    const thread = await runtime.store.getThread(scope)
    if (!thread || thread.status === 'idle' || thread.runId === undefined) return { aborted: false }
    const { runId, owner } = thread
    expectedRunId ??= runId
    if (runId !== expectedRunId) return { aborted: false, runId }
    if (thread.status === 'suspended') {
      if (await endSuspended(runtime, scope, runId, clearPending)) return { aborted: true, runId }
      continue
    }
    const host = runtime.hostOf(thread.id)
    if (host) {
      const aborted = host.abort({ reason: new HeedError('aborted', 'The run was aborted.'), clearPending, resourceId: scope.resourceId, runId })
      return { aborted, runId }
    }
    if (owner !== undefined && owner !== runtime.owner) {
      if (runtime.peers.disconnected) throw unreachable(thread.id)
      const answer = await runtime.peers.abort(owner, { threadId: thread.id, runId, clearPending }, answerMs)
      if (runtime.closing) throw new HeedError('closed', 'This Heed was closed. Ask the process that runs now.')
      if (answer?.aborted) return { aborted: true, runId }
      // It ended meanwhile, or was never there: the next look tells.
      if (answer) continue
    }
    if (!(await runtime.wake(thread.id)) && (await endAbandoned(runtime, thread, clearPending))) return { aborted: true, runId }
  }
  throw new HeedError('store_failed', `The process that runs thread ${scope.threadId} neither answers nor ends. Try again.`, { retryable: true, details: { threadId: scope.threadId } })
}

function unreachable(threadId: string): HeedError {
  return new HeedError('bus_failed', `Thread ${threadId} runs in another process, which can't be reached: the folder beside the database can't be written. Make it writable, or abort where it runs.`, {
    retryable: true, details: { threadId },
  })
}

/** Ends a run whose agent nobody here knows and whose process is gone, and lets what waited behind it go on. False when it is not so. */
async function endAbandoned(runtime: ThreadRuntime, thread: ThreadRow, clearPending: boolean): Promise<boolean> {
  const { id: threadId, runId = '', owner, epoch, resourceId } = thread
  const run = await runtime.store.getRun({ threadId }, runId)
  if (run?.status !== 'running' || runtime.knows(run.agentId)) return false
  // A lease of ours that nothing runs on: an earlier attempt to end it broke off.
  const again = owner === runtime.owner ? { threadId, owner, epoch } : undefined
  const claimed = await runtime.store.claim(threadId, runtime.owner, undefined, again)
  if (!claimed) return false
  const { fence } = claimed
  if (!claimed.takenOver) {
    runtime.run(fence, resourceId)
    return false
  }
  const { more, left } = await announced(runtime, threadId, () => runtime.store.commitStep(fence, { runId, step: run.step, rows: [], end: { status: 'aborted', ...(clearPending ? { clearPending } : {}) } }), () =>
    sayAborted(runtime, threadId, runId, fence.epoch, clearPending))
  if (more) runtime.run(fence, resourceId)
  else if (left) runtime.peers.mail(threadId)
  await resolveLocalWaiters(runtime, threadId)
  return true
}

/** Ends a run and tells of it, after what was kept on the thread before. */
function announced<End>({ pendingEchoes }: ThreadRuntime, threadId: string, end: () => Promise<End>, tell: (ended: End) => void): Promise<End> {
  return pendingEchoes.ended.during(threadId, async () => {
    const ended = await end()
    await pendingEchoes.kept.flushed(threadId)
    tell(ended)
    return ended
  })
}

/** A run that nobody was at work on is over: those who watch it, follow it or waited behind it are told. */
function sayAborted(runtime: ThreadRuntime, threadId: string, runId: string, epoch: number, cleared: boolean, denied: SuspendedEnd['denied'] = []): void {
  if (cleared) {
    runtime.waiters.dropOptions(threadId)
    runtime.peers.settled(threadId)
  }
  runtime.publish(threadId, (live) => {
    live.begin(epoch)
    // What displays may see of their arguments was shown when they began to wait.
    for (const call of denied) live.publish({ type: 'tool-output-denied', runId, from: 'AGENT', payload: { ...call, args: null } })
    live.publish({ type: 'abort', runId, from: 'AGENT', payload: {} })
    live.endRun(false)
  })
  runtime.waiters.takeOptions(runId)
  for (const call of runtime.waiters.takeFollowers(runId)) call.reject(new HeedError('aborted', `The run ${runId} was aborted.`))
}

/** Ends a suspended run, tells the watchers, and lets what waited behind it go on. False when none is suspended, or not this one. */
async function endSuspended(runtime: ThreadRuntime, scope: Scope, expectedRunId: string | undefined, clearPending: boolean): Promise<boolean> {
  await runtime.open()
  const runId = expectedRunId ?? (await suspendedRun(runtime, scope))?.runId
  if (runId === undefined) return false
  const waiting = (await runtime.store.getRun(scope, runId))?.suspended ?? []
  const { ended, more, parents } = await announced(runtime, scope.threadId, () => runtime.store.endSuspended(scope, runId, { clearPending }), (end) => {
    if (end.ended) sayAborted(runtime, scope.threadId, runId, end.epoch, clearPending, end.denied)
  })
  if (!ended) return false
  // What agents below it wait for is nobody's question any more.
  for (const { child } of waiting) if (child) await endSuspended(runtime, { threadId: child.threadId }, child.runId, clearPending).catch(unlessGone)
  for (const threadId of [...parents, ...(more ? [scope.threadId] : [])]) if (!(await runtime.wake(threadId))) runtime.peers.mail(threadId)
  await resolveLocalWaiters(runtime, scope.threadId)
  return true
}

/** A thread that was deleted, or is kept in another store, has nothing to end here. */
function unlessGone(error: unknown): void {
  if (!isHeedError(error) || error.code !== 'thread_not_found') throw error
}
