import { describe, HeedError, isHeedError } from '../../base/errors.ts'
import type { JSONObject, JSONValue } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import type { ChildCall, Chunk } from '../../message/chunk.ts'
import type { ToolInvocationPart } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import type { Tripwire } from '../../processors/processor.ts'
import type { Continuation } from '../../run/loop/loop.ts'
import type { RunCommit, RunCommitEnd } from '../../run/loop/run-contract.ts'
import { noUsage } from '../../run/model/model-parts.ts'
import { chunkError } from '../../run/model/provider-error.ts'
import type { OpenCall } from '../../run/tools/tool-calls.ts'
import { failedResult, type RunResult } from '../../run/output/run-result.ts'
import { rowToSignal, signalToDataChunk } from '../../signals/conversions.ts'
import { childThreadId, isWorkflowThreadId } from '../../store/contract/thread-row.ts'
import type { BegunRun, Fence, RunEnd, RunRow, StepCommit } from '../../store/contract/threads.ts'
import { runInTrace, traceRun, type RunTrace } from '../../tracing/run-trace.ts'
import type { LocalCall } from '../send/waiters.ts'
import { codeOf, drainedRows } from './drained-signals.ts'
import type { ThreadRuntime } from './runtime.ts'

/** Whether a tool may run again after a crash. */
type IsIdempotent = (toolName: string) => boolean

/** What a run that continues has beside its rows. */
type ContinuedRun = Pick<RunRow, 'runId' | 'threadId' | 'step' | 'suspended' | 'started'>

/**
 * How a run continues from its rows: the calls of its last step that have no result. A decided call runs with its decision. A call that had
 * started when its process ended runs again only if its tool is idempotent; otherwise the model gets a result that names the interruption.
 */
export function continuationOf(run: ContinuedRun, rows: readonly MessageRow[], idempotent: IsIdempotent): Continuation {
  const own = rows.filter((row) => row.runId === run.runId)
  const last = own.findLast((row) => row.role === 'assistant')
  if (!last) return { calls: [] }
  const after = own.slice(own.indexOf(last) + 1)
  // Input that entered after the message closed it: the next step writes another message.
  const closed = after.some((row) => row.role === 'signal' || row.role === 'user')
  // Only results after the message count: some providers restart the numbers of their calls in each step.
  const settled = new Set(
    after.filter((row) => row.role === 'tool').flatMap((row) => invocations(row).map((part) => part.toolInvocation.toolCallId)),
  )
  const calls = invocations(last)
    .filter((part) => part.toolInvocation.state === 'call' && !part.providerExecuted && !settled.has(part.toolInvocation.toolCallId))
    .map((part) => toOpenCall(part, run, idempotent))
  return { ...(closed ? {} : { messageId: last.messageId }), calls }
}

function toOpenCall(part: ToolInvocationPart, run: ContinuedRun, idempotent: IsIdempotent): OpenCall {
  const { toolCallId, toolName } = part.toolInvocation
  const { decision, child } = run.suspended.find((call) => call.toolCallId === toolCallId) ?? {}
  const begun = run.started.includes(toolCallId)
  const interrupted = interruption(toolName)
  if (begun && !idempotent(toolName)) return { part, interrupted }
  return {
    part,
    ...(begun ? { begun, startedBefore: { interrupted, child: calledRunOf(run, toolCallId) } } : {}),
    ...(decision ? { decision: { ...decision, ...(child ? { child } : {}) } } : {}),
  }
}

/** The run that a call has where its tool is an agent. */
export function calledRunOf({ runId, threadId, step }: ContinuedRun, toolCallId: string): Pick<ChildCall, 'threadId' | 'runId'> {
  return { threadId: childThreadId(threadId, toolCallId), runId: `${runId}/${step}/${toolCallId}` }
}

/**
 * Stores that calls which were stored as begun have not begun, so that the next owner runs them. Also while the process closes: its lease
 * ends after its runs.
 */
export async function withdrawBegun({ store, logger }: ThreadRuntime, fence: Fence, commit: StepCommit): Promise<void> {
  try {
    await store.commitStep(fence, commit)
  } catch (error) {
    // Another process has the thread. It reports the calls as interrupted, which is all that it can know.
    if (isHeedError(error) && error.code === 'fenced') return
    const { runId, notStarted } = commit
    logger.warn('calls that were not run will be reported as interrupted', {
      threadId: fence.threadId, runId, toolCallIds: notStarted, error: describe(error),
    })
  }
}

function interruption(toolName: string): string {
  const cause = `${toolName} was interrupted: the process that ran it stopped, or could not store its result.`
  return `${cause} It is not known whether it took effect. Check before you call it again.`
}

function invocations(row: MessageRow): ToolInvocationPart[] {
  return row.content.parts.filter((part) => part.type === 'tool-invocation')
}

/** The message that shows why a run has no answer. Transcripts contain it; prompts don't. */
export function errorRow(runId: string, error: Error, now: number): MessageRow {
  const id = errorRowId(runId)
  return {
    id,
    messageId: id,
    role: 'assistant',
    createdAt: new Date(now),
    content: { format: 2, parts: [{ type: 'error', error: chunkError(error) }] },
  }
}

export function errorRowId(runId: string): string {
  return `${runId}/error`
}

/** The chunks of the drained signals of a run that ended before it published anything. */
export function inputChunks({ run: { runId, agentId }, taken, resumed }: BegunRun): Chunk[] {
  if (resumed) return []
  const start: Chunk = { type: 'start', runId, from: 'AGENT', payload: { id: agentId, messageId: errorRowId(runId) } }
  return [start, ...drainedRows(taken).flatMap((row) => (row.role === 'signal' ? signalToDataChunk(rowToSignal(row), runId) : []))]
}

type FinishedEnd = Extract<RunEnd, { titleUntil?: number }>

/** The end of a run as it is stored. `unread`: no model was called; `clearPending`: pending signals are cancelled with it. */
export function runEnd(
  end: RunCommitEnd, unread: boolean, clearPending: boolean, titleUntil: number | undefined, scores: FinishedEnd['scores'],
): RunEnd {
  if (end.status === 'suspended') return { status: 'suspended', calls: end.calls, usage: { ...end.usage } }
  if (end.status === 'rejected') return { status: 'rejected', error: refusalError(end.tripwire, unread) }
  const ended: RunEnd = { status: end.status, usage: { ...end.usage } }
  if (end.error) ended.error = errorJSON(end.error)
  if (end.status === 'failed' && unread) ended.error = { ...ended.error, code: codeOf(end.error), unread: true }
  if (clearPending) ended.clearPending = true
  if (titleUntil !== undefined) ended.titleUntil = titleUntil
  if (scores && scores.length > 0) ended.scores = scores
  return ended
}

/** A rejection as it is stored with its run. `unread`: no model was called. */
function refusalError({ reason, processorId, metadata }: Tripwire, unread: boolean): JSONObject {
  return {
    message: reason, processorId, ...(metadata === undefined ? {} : { metadata: metadata as JSONValue }), ...(unread ? { unread } : {}),
  }
}

/** The commit of work that is no run of a model. It takes signals in any case. */
export function workCommit(
  step: number, end: boolean, workflow: StepCommit['workflow'],
): RunCommit & Pick<StepCommit, 'workflow'> {
  return { step, rows: [], drain: true, ...(workflow ? { workflow } : {}), ...(end ? { end: { status: 'finished', usage: noUsage } } : {}) }
}

/** The result of such work for those who wait for the run: what it did is in its own rows. */
export function workResult(runId: string): RunResult {
  return { ...failedResult(runId, new Error('')), error: undefined, finishReason: 'stop' }
}

export function errorJSON(error: Error): JSONObject {
  return chunkError(error) as unknown as JSONObject
}

/** Logs the error of a run that no caller awaits. A parked run is logged when it is parked. */
export function reportFailure(logger: Logger, { threadId, runId, agentId }: RunRow, error: Error): void {
  const code = isHeedError(error) ? error.code : undefined
  if (code === 'run_parked') return
  logger.error('a run failed', { threadId, runId, agentId, ...(code === undefined ? {} : { code }), error: describe(error) })
}

/** The error of a run that began too often without ending. */
export function parked(runId: string, attempts: number, why: string, cause: unknown): HeedError {
  const problem = `Run ${runId} was begun ${attempts - 1} times and never ended (${why}).`
  return new HeedError('run_parked', `${problem} It is parked: agent.retryParked() continues it.`, {
    details: { runId, attempts, cause: why }, cause,
  })
}

/** Runs `work` in a span: a child of the caller's span where a caller waits, else a root span with links to the signals that woke it. */
export function tracedRun(
  runtime: ThreadRuntime,
  { run, thread, taken, resumed }: BegunRun,
  callers: readonly LocalCall[],
  work: (trace: RunTrace | undefined) => Promise<RunResult>,
): Promise<RunResult> {
  const trace = traceRun(runtime.tracing, () => ({
    agent: { id: run.agentId, name: runtime.hasAgent(run.agentId) ? runtime.agent(run.agentId).name : run.agentId },
    isWorkflow: isWorkflowThreadId(run.agentId),
    runId: run.runId,
    threadId: thread.id,
    resourceId: thread.resourceId,
    parent: callers.find(({ from }) => from)?.from,
    drained: drainedRows(taken),
    ...(resumed ? { resumed: { attempt: run.attempts } } : {}),
  }))
  return runInTrace(trace, () => work(trace))
}
