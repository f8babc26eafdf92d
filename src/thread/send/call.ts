import { HeedError } from '../../base/errors.ts'
import type { MessageRow } from '../../message/row.ts'
import type { Chunk } from '../../message/chunk.ts'
import type { AgentExecutionOptions } from '../../run/options.ts'
import type { RunResult } from '../../run/output/run-result.ts'
import type { Send } from '../../store/contract/threads.ts'
import { activeContext } from '../../tracing/telemetry.ts'
import type { Runnable } from '../runtime/runnable.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'
import { turnSend } from './enqueue-turn.ts'
import { withMemory } from './stored-options.ts'

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
  const options = await withMemory(agent, call.options)
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
