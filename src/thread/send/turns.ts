import { HeedError } from '../../base/errors.ts'
import { untilAborted } from '../../base/promises.ts'
import type { MessageRow } from '../../message/row.ts'
import type { Chunk } from '../../message/chunk.ts'
import type { AgentExecutionOptions } from '../../run/options.ts'
import type { RunResult } from '../../run/output/run-result.ts'
import { activeCall } from '../../run/tools/active-call.ts'
import { threadsAbove } from '../../store/contract/thread-row.ts'
import type { Accepted, Send } from '../../store/contract/threads.ts'
import { activeContext } from '../../tracing/telemetry.ts'
import { closed } from '../runtime/ended-threads.ts'
import type { Runnable } from '../runtime/runnable.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'
import { resolveMemoryOptions, storedOptions } from './stored-options.ts'

interface ThreadCall {
  threadId: string
  resourceId: string
  thread?: Send['thread']
  runId: string
  rows: MessageRow[]
  /** The ids of the rows that are caller ids. */
  given: readonly string[]
  options: AgentExecutionOptions
  emit(chunk: Chunk): void
}

/**
 * `generate()` and `stream()` on a thread: a queued run of its own, under the same lease as every other run. Resolves with the promise of
 * the result when the call is stored.
 */
export async function callOnThread(runtime: ThreadRuntime, agent: Runnable, call: ThreadCall): Promise<{ result: Promise<RunResult> }> {
  const { threadId, resourceId, runId, rows } = call
  runtime.register(agent)
  checkAwaitable(runtime, threadId)
  // A call belongs to this process, which begins no further run.
  if (runtime.draining) throw closed()
  const { abortSignal } = call.options
  if (abortSignal?.aborted) throw abortedBefore(abortSignal)
  const options = await unlessAborted(resolveMemoryOptions(agent, call.options), abortSignal)
  if (options.runId !== undefined) await checkRunId(runtime, options.runId, threadId)
  const id = runtime.newId()
  const { promise: result, resolve, reject } = Promise.withResolvers<RunResult>()
  result.catch(() => {})
  runtime.waiters.addCall(threadId, id, { options, from: activeContext(), emit: call.emit, resolve, reject })
  try {
    const turn = turnSend(runtime, agent, { threadId, resourceId, id, runId, rows }, options)
    const { owner } = await runtime.sends.accept({
      ...turn,
      ...(call.given.length > 0 ? { given: call.given } : {}),
      boundTo: runtime.owner,
      ...(call.thread ? { thread: call.thread } : {}),
      ...(options.runId === undefined ? {} : { givenRunId: true }),
      refuseSuspended: true,
    })
    runtime.waiters.markCallAccepted(threadId, id)
    if (activeCall()) runtime.runSlots.letThrough(threadId)
    if (owner !== runtime.owner) runtime.waiters.awaitRemote(threadId, id)
    // The runner is gone: this process claims the thread, or asks the peers to.
    if (owner === undefined && !(await runtime.wake(threadId))) runtime.peers.requestRunner(threadId)
  } catch (error) {
    runtime.waiters.takeCall(threadId, id)
    throw error
  }
  runtime.keepAlive.begin()
  result.finally(() => runtime.keepAlive.end()).catch(() => {})
  cancelOnAbort(runtime, { threadId, resourceId, id, reject, result }, options.abortSignal)
  return { result }
}

/**
 * What a call needs before its run begins. Rejects on abort, also while a function of the agent never settles. What is known in this turn
 * of the event loop counts in any case: a run that was aborted before it began reports it itself. `late` receives what is found after that.
 */
export async function unlessAborted<T>(
  found: T | Promise<T>, signal: AbortSignal | undefined, late?: (value: T) => void,
): Promise<T> {
  if (!signal) return found
  try {
    return await untilAborted(Promise.resolve(found), signal, late)
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) throw error
    throw abortedBefore(signal)
  }
}

function abortedBefore({ reason }: AbortSignal): HeedError {
  return new HeedError('aborted', 'The call was aborted before its run began.', { cause: reason })
}

/** Rejects a call of a tool on its own thread, or on one above it: the run there waits for the tool, and the call waits for the run. */
function checkAwaitable(runtime: ThreadRuntime, threadId: string): void {
  const call = activeCall()
  if (!call || runtime.hostOf(call.threadId) !== call.host) return
  if (threadId !== call.threadId && !threadsAbove(call.threadId).includes(threadId)) return
  throw new HeedError(
    'waits_for_itself',
    `A tool called generate() or stream() on thread ${threadId}, whose run waits for the tool. Send with sendMessage() or queueMessage(), `
      + 'or use another thread.',
    { details: { threadId } },
  )
}

/** A run is addressed by its id alone: a caller id must not be that of another thread's run. The store checks the runs of the thread. */
export async function checkRunId(runtime: ThreadRuntime, runId: string, threadId: string): Promise<void> {
  await runtime.open()
  const known = [runtime.activeRuns.get(runId), await runtime.store.findRun(runId)]
  if (known.every((other) => !other || other.threadId === threadId)) return
  throw runIdTaken(runId)
}

export function runIdTaken(runId: string): HeedError {
  const message = `The run id '${runId}' is taken. Leave runId out, or choose a unique one.`
  return new HeedError('invalid_argument', message, { details: { field: 'runId' } })
}

interface QueuedCall {
  threadId: string
  resourceId: string
  id: string
  reject(error: unknown): void
  result: Promise<RunResult>
}

/** Cancels a queued call that is aborted. Once the call runs, the run handles the abort itself. */
function cancelOnAbort(runtime: ThreadRuntime, queued: QueuedCall, signal: AbortSignal | undefined): void {
  if (!signal) return
  const { threadId, resourceId, id } = queued
  const onAbort = () => {
    runtime.store.cancelSignals({ threadId, resourceId }, [id]).then(
      (cancelled) => {
        if (cancelled.length === 0) return
        runtime.waiters.takeCall(threadId, id)
        queued.reject(abortedBefore(signal))
      },
      (error: unknown) => {
        if (!runtime.closing) runtime.logger.error('an aborted call could not be cancelled', { threadId, error: String(error) })
      },
    )
  }
  if (signal.aborted) return onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  queued.result.finally(() => signal.removeEventListener('abort', onAbort)).catch(() => {})
}

/** A queued run with a stable id: a repeated request refers to the same run. */
interface TurnRequest extends Pick<Send, 'thread' | 'askedBy' | 'given' | 'givenRunId' | 'refuseSuspended'> {
  threadId: string
  resourceId: string
  /** The id of the signal. */
  id: string
  /** The id of the run. */
  runId: string
  rows: MessageRow[]
  options: AgentExecutionOptions
}

/**
 * Queues a run. A repeated request refers to the first run, whether that has ended, is pending or has no runner. The request belongs to no
 * process: if this one stops, the process that claims the thread runs it.
 */
export async function enqueueTurn(runtime: ThreadRuntime, agent: Runnable, request: TurnRequest): Promise<Accepted> {
  const { threadId, resourceId, id, runId, rows, given, givenRunId, thread, askedBy, refuseSuspended } = request
  runtime.register(agent)
  const options = await resolveMemoryOptions(agent, request.options)
  const turn = turnSend(runtime, agent, { threadId, resourceId, id, runId, rows }, options)
  runtime.waiters.retainOptions(runId, options)
  // From here on the request may be stored: a closing process waits until the sender has the answer.
  runtime.sends.inFlight.begin()
  try {
    const accepted = await runtime.sends.accept({
      ...turn,
      ...(given?.length ? { given } : {}),
      ...(thread ? { thread } : {}),
      ...(askedBy ? { askedBy } : {}),
      ...(givenRunId ? { givenRunId } : {}),
      ...(refuseSuspended ? { refuseSuspended } : {}),
    })
    const isElsewhere = accepted.duplicate ? !runtime.hostOf(threadId) : accepted.owner === undefined
    if (isElsewhere && !(await runtime.wake(threadId)) && !accepted.duplicate) runtime.peers.requestRunner(threadId)
    return accepted
  } finally {
    runtime.sends.inFlight.end()
  }
}

/** A send that is queued behind the active run, and runs in this process if it wakes the thread. */
function turnSend(
  runtime: ThreadRuntime,
  agent: Runnable,
  what: Pick<Send, 'threadId' | 'resourceId' | 'id' | 'rows' | 'runId'>,
  options: AgentExecutionOptions,
): Send {
  const stored = storedOptions(agent, options)
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
