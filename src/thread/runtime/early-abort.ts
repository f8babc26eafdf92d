import type { ChildCall, Chunk } from '../../message/chunk.ts'
import type { ToolInvocation } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import type { RunHost } from '../../run/loop/run-contract.ts'
import { noUsage } from '../../run/model/model-parts.ts'
import { chunkError } from '../../run/model/provider-error.ts'
import { failedResult, type RunResult } from '../../run/output/run-result.ts'
import { notRun } from '../../run/tools/tool-calls.ts'
import { aborted, type OpenCall } from '../../run/tools/tool-execution.ts'
import type { BegunRun, RunRow, ThreadStore } from '../../store/contract/threads.ts'
import { calledRunOf, continuationOf, errorRow, inputChunks } from './run-rows.ts'
import type { ThreadRuntime } from './runtime.ts'

/** How the open calls of a run end: what is stored and published, and the runs that they had called. */
interface EndedCalls {
  rows: MessageRow[]
  chunks: Chunk[]
  children: Array<Pick<ChildCall, 'threadId' | 'runId'>>
}

/** What a run needs of its host that ends before its first step. */
type EndingHost = Required<Pick<RunHost, 'commit' | 'emit' | 'abortChild'>>
type Surroundings = Pick<ThreadRuntime, 'store' | 'clock'>

/** Ends a run that was aborted while it was being prepared to begin or to continue. */
export async function abortEarly(host: EndingHost, { store, clock }: Surroundings, begun: BegunRun): Promise<RunResult> {
  const { run, rows, resumed } = begun
  const { runId, step } = run
  const ended = resumed ? await endOpenCalls(store, run, rows, clock.now()) : { rows: [], chunks: [], children: [] }
  await host.commit({ step, rows: ended.rows, end: { status: 'aborted', usage: noUsage } })
  for (const child of ended.children) host.abortChild(child)
  const abort: Chunk = { type: 'abort', runId, from: 'AGENT', payload: {} }
  for (const chunk of [...inputChunks(begun), ...ended.chunks, abort]) host.emit(chunk)
  return { ...failedResult(runId, new Error('aborted')), error: undefined, finishReason: 'aborted' }
}

/** The run could not be prepared: it ends before its first step, and its callers and subscribers receive the error. */
export async function failToStart(host: EndingHost, { clock }: Surroundings, begun: BegunRun, thrown: unknown): Promise<RunResult> {
  const { runId, step } = begun.run
  const error = thrown instanceof Error ? thrown : new Error(String(thrown))
  await host.commit({ step, rows: [errorRow(runId, error, clock.now())], end: { status: 'failed', usage: noUsage, error } })
  for (const chunk of inputChunks(begun)) host.emit(chunk)
  host.emit({ type: 'error', runId, from: 'AGENT', payload: { error: chunkError(error) } })
  return failedResult(runId, error)
}

/**
 * Of a run that would have continued, each call gets its result: a call that was declined is denied, one that did not
 * begin was not run, one that waited for an agent was stopped, and of another that had begun it is not known whether it took effect.
 */
export async function endOpenCalls(store: ThreadStore, run: RunRow, rows: readonly MessageRow[], now: number): Promise<EndedCalls> {
  const { calls } = continuationOf(run, rows, () => false)
  const message = rows.findLast((row) => row.runId === run.runId && row.role === 'assistant')
  const first = calls[0]?.part.toolInvocation.toolCallId
  if (first === undefined || !message) return { rows: [], chunks: [], children: [] }
  const called = await Promise.all(calls.map((call) => calledRun(store, run, call)))
  const results = calls.map((call, index) => resultOf(call, called[index] !== undefined))
  const { messageId } = message
  const row: MessageRow = {
    id: `${messageId}/${run.step}/${first}`,
    messageId,
    role: 'tool',
    createdAt: new Date(now),
    content: { format: 2, parts: results.map((toolInvocation) => ({ type: 'tool-invocation', toolInvocation })) },
  }
  const chunks = results.map((result) => resultChunk(run.runId, result))
  return { rows: [row], chunks, children: called.filter((one) => one !== undefined) }
}

/** The run of an agent that the call has started, if any. */
async function calledRun(
  store: ThreadStore, run: RunRow, { decision, interrupted, part }: OpenCall,
): Promise<EndedCalls['children'][number] | undefined> {
  if (decision?.child) return decision.child
  if (interrupted === undefined) return undefined
  const child = calledRunOf(run, part.toolInvocation.toolCallId)
  // The tool may be no agent: then there is no such thread.
  if (!(await store.getThread({ threadId: child.threadId }))) return undefined
  return (await store.getRun({ threadId: child.threadId }, child.runId)) ? child : undefined
}

function resultOf({ part: { toolInvocation }, decision, interrupted }: OpenCall, calledAgent: boolean): ToolInvocation {
  if (calledAgent) return { ...toolInvocation, state: 'output-error', errorText: aborted(toolInvocation.toolName).message }
  if (interrupted !== undefined) return { ...toolInvocation, state: 'output-error', errorText: interrupted }
  if (decision?.approved !== false) return notRun(toolInvocation)
  const { by, reason } = decision
  const approval = { approved: false, ...(by === undefined ? {} : { by }), ...(reason === undefined ? {} : { reason }) }
  return { ...toolInvocation, state: 'output-denied', approval }
}

/** Without the arguments: the rules that say which of them displays may show are not prepared. They were published with the call. */
function resultChunk(runId: string, { toolCallId, toolName, state, approval, errorText = '' }: ToolInvocation): Chunk {
  const call = { toolCallId, toolName, args: null }
  if (state === 'output-error') {
    return { type: 'tool-error', runId, from: 'AGENT', payload: { ...call, error: { name: 'ToolError', message: errorText } } }
  }
  const { by, reason } = approval ?? {}
  const denied = { ...call, ...(by === undefined ? {} : { by }), ...(reason === undefined ? {} : { reason }) }
  return { type: 'tool-output-denied', runId, from: 'AGENT', payload: denied }
}
