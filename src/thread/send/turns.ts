import { HeedError } from '../../base/errors.ts'
import type { MessageRow } from '../../message/row.ts'
import type { Chunk } from '../../message/chunk.ts'
import type { AgentExecutionOptions } from '../../run/options.ts'
import type { RunResult } from '../../run/output/run-result.ts'
import type { Accepted, Send } from '../../store/contract/threads.ts'
import { activeContext } from '../../tracing/telemetry.ts'
import type { Runnable } from '../runtime/runnable.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'
import { resolveMemoryOptions, storedOptions } from './stored-options.ts'

export interface ThreadCall {
  threadId: string
  resourceId: string
  thread?: Send['thread']
  runId: string
  rows: MessageRow[]
  /** Ids of theirs that the caller gave. */
  given: readonly string[]
  options: AgentExecutionOptions
  emit(chunk: Chunk): void
}

/**
 * `generate()` and `stream()` on a thread: a turn of its own behind whatever is active, under the same lease as every other run.
 * Resolves when the call is stored, with the promise of its result.
 */
export async function callOnThread(runtime: ThreadRuntime, agent: Runnable, call: ThreadCall): Promise<{ result: Promise<RunResult> }> {
  const { threadId, resourceId, runId, rows } = call
  runtime.register(agent)
  call.options.abortSignal?.throwIfAborted()
  const options = await resolveMemoryOptions(agent, call.options)
  if (options.runId !== undefined) await checkRunId(runtime, options.runId, threadId)
  const id = runtime.newId()
  const { promise: result, resolve, reject } = Promise.withResolvers<RunResult>()
  result.catch(() => {})
  runtime.waiters.call(threadId, id, { options, from: activeContext(), emit: call.emit, resolve, reject })
  try {
    const turn = await turnSend(runtime, agent, { threadId, resourceId, id, runId, rows }, options)
    const { owner } = await runtime.sends.accept({ ...turn, ...(call.given.length > 0 ? { given: call.given } : {}), boundTo: runtime.owner, ...(call.thread ? { thread: call.thread } : {}), refuseSuspended: true })
    if (owner !== runtime.owner) runtime.waiters.awaitElsewhere(threadId, id)
    // Its runner went: whoever can takes the thread up.
    if (owner === undefined && !(await runtime.wake(threadId))) runtime.peers.mail(threadId)
  } catch (error) {
    runtime.waiters.takeCall(threadId, id)
    throw error
  }
  runtime.keepAlive.begin()
  result.finally(() => runtime.keepAlive.end()).catch(() => {})
  cancelOnAbort(runtime, { threadId, resourceId, id, reject, result }, options.abortSignal)
  return { result }
}

/** Runs are addressed by their id alone: one that the caller chose must not be another thread's. */
async function checkRunId(runtime: ThreadRuntime, runId: string, threadId: string): Promise<void> {
  await runtime.open()
  const other = runtime.active.get(runId) ?? (await runtime.store.findRun(runId))
  if (!other || other.threadId === threadId) return
  throw new HeedError('invalid_argument', `The run id '${runId}' is taken by another thread. Leave runId out, or choose one that nobody has.`, { details: { field: 'runId' } })
}

interface Queued {
  threadId: string
  resourceId: string
  id: string
  reject(error: unknown): void
  result: Promise<RunResult>
}

/** A call that is aborted before its turn came leaves the queue. Once it runs, the run follows the signal itself. */
function cancelOnAbort(runtime: ThreadRuntime, queued: Queued, signal: AbortSignal | undefined): void {
  if (!signal) return
  const { threadId, resourceId, id } = queued
  const onAbort = () => {
    runtime.store.cancelSignals({ threadId, resourceId }, [id]).then(
      (cancelled) => {
        if (cancelled.length === 0) return
        runtime.waiters.takeCall(threadId, id)
        queued.reject(new HeedError('aborted', 'The call was aborted before its turn came.', { cause: signal.reason }))
      },
      (error: unknown) => {
        if (!runtime.closing) runtime.logger.error('an aborted call could not be taken out of the queue', { threadId, error: String(error) })
      },
    )
  }
  if (signal.aborted) return onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  queued.result.finally(() => signal.removeEventListener('abort', onAbort)).catch(() => {})
}

/** A turn that is known by its id: asked again, it is the same one. */
export interface Question extends Pick<Send, 'thread' | 'askedBy' | 'given' | 'refuseSuspended'> {
  threadId: string
  resourceId: string
  /** Of the signal. */
  id: string
  /** Of the run that answers it. */
  runId: string
  rows: MessageRow[]
  options: AgentExecutionOptions
}

/**
 * Asks, unless that was done before: then the first run is the one, whether it is over, waits, or has to be taken up. No process
 * owns the question. When this one goes, whoever takes the thread up answers it.
 */
export async function enqueueTurn(runtime: ThreadRuntime, agent: Runnable, question: Question): Promise<Accepted> {
  const { threadId, resourceId, id, runId, rows, given, thread, askedBy, refuseSuspended } = question
  runtime.register(agent)
  const options = await resolveMemoryOptions(agent, question.options)
  const turn = await turnSend(runtime, agent, { threadId, resourceId, id, runId, rows }, options)
  runtime.waiters.keepOptions(runId, options)
  // From here on it may be stored: a process that goes waits until its sender knows.
  runtime.sends.inFlight.begin()
  try {
    const accepted = await runtime.sends.accept({ ...turn, ...(given?.length ? { given } : {}), ...(thread ? { thread } : {}), ...(askedBy ? { askedBy } : {}), ...(refuseSuspended ? { refuseSuspended } : {}) })
    const isElsewhere = accepted.duplicate ? !runtime.hostOf(threadId) : accepted.owner === undefined
    if (isElsewhere && !(await runtime.wake(threadId)) && !accepted.duplicate) runtime.peers.mail(threadId)
    return accepted
  } finally {
    runtime.sends.inFlight.end()
  }
}

/** A send that is a turn of its own behind whatever is active, and is run here where it wakes the thread. */
export async function turnSend(
  runtime: ThreadRuntime, agent: Runnable, what: Pick<Send, 'threadId' | 'resourceId' | 'id' | 'rows' | 'runId'>, options: AgentExecutionOptions,
): Promise<Send> {
  const stored = await storedOptions(agent, options)
  return {
    ...what,
    agentId: agent.id,
    mode: 'queue',
    ifActive: { behavior: 'deliver' },
    ifIdle: { behavior: 'wake' },
    claim: { owner: runtime.owner },
    ...(stored ? { options: stored } : {}),
    now: runtime.clock.now(),
  }
}
