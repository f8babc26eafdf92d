import { describe } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import type { RequestContext } from '../../run/request-context.ts'
import { isOver } from '../plan/machine.ts'
import type { WorkflowGraph } from '../plan/graph.ts'
import { errorOf, resultOf, type StoredRun, type WorkflowResult } from '../place/stored-run.ts'

/** Names the run that a hook is called for. */
interface HookedRun {
  runId: string
  workflowId: string
  resourceId?: string | undefined
  requestContext: RequestContext
}

/** What `onStart` is called with. */
export interface WorkflowStarting<Input = unknown, State = unknown> extends HookedRun {
  /** The input of the run, as its schema has made it. */
  inputData: Input
  state: State
}

type Ended<Result> = Result extends { status: 'success' | 'failed' | 'tripwire' | 'canceled' } ? Result : never
type Failed<Result> = Result extends { status: 'failed' | 'tripwire' } ? Result : never

/** What `onFinish` is called with: the result of the run. */
export type WorkflowEnded<Output = unknown, State = unknown> = Ended<WorkflowResult<Output, State>> & HookedRun & {
  /** Aborts when this process closes. The next one calls the hook again. */
  abortSignal: AbortSignal
}

/** What `onError` is called with: the result of a run that failed, or that a processor refused. */
export type WorkflowFailed<Output = unknown, State = unknown> = Failed<WorkflowResult<Output, State>> & HookedRun & {
  error: Error
  abortSignal: AbortSignal
}

/** What is called when a run starts and ends, of a workflow of any types. */
export interface WorkflowHooks {
  onStart?(starting: never): unknown
  onFinish?(ended: never): unknown
  onError?(failed: never): unknown
}

export const hookNames = ['onStart', 'onFinish', 'onError'] as const

/** Whether a run that has ended has hooks to call. */
export function hasEndHooks({ hooks }: WorkflowGraph, { status }: StoredRun['head']): boolean {
  return isOver(status) && (hooks?.onFinish !== undefined || (hooks?.onError !== undefined && isFailure(status)))
}

/**
 * Calls the hooks of a run whose end is stored, one after the other. Their errors are logged. Rejects when the signal aborts: the next
 * process calls them again.
 */
export async function callEndHooks(
  graph: WorkflowGraph, stored: StoredRun & { requestContext: RequestContext }, signal: AbortSignal, logger: Logger,
): Promise<void> {
  const { head: { runId, workflowId, status }, resourceId, requestContext } = stored
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  aborted.catch(() => {})
  const onAbort = () => reject(signal.reason as Error)
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort, { once: true })
  try {
    for (const name of ['onFinish', 'onError'] as const) {
      const hook = graph.hooks?.[name]
      if (!hook || (name === 'onError' && !isFailure(status))) continue
      const ended = {
        ...resultOf(graph, stored), ...(name === 'onError' ? { error: errorOf(stored.head.error) } : {}),
        workflowId, resourceId, requestContext, abortSignal: signal,
      }
      const called = Promise.resolve().then(() => hook(ended as never)).catch((error: unknown) => {
        logger.error(`${name} of a workflow failed`, { workflowId, runId, error: describe(error) })
      })
      await Promise.race([called, aborted])
    }
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

function isFailure(status: string): boolean {
  return status === 'failed' || status === 'tripwire'
}
