import type { ChildCall, Chunk } from '../../message/chunk.ts'
import type { ToolInvocation } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import { notRun } from '../../run/tools/tool-calls.ts'
import { aborted, type OpenCall } from '../../run/tools/tool-execution.ts'
import type { BegunRun, RunRow, ThreadStore } from '../../store/contract/threads.ts'
import { calledRunOf, continuationOf, inputChunks } from './run-rows.ts'

/** How the open calls of a run end: what is stored and published, and the runs that they had called. */
interface EndedCalls {
  rows: MessageRow[]
  chunks: Chunk[]
  children: Array<Pick<ChildCall, 'threadId' | 'runId'>>
}

/** How a run ends that was aborted before it began or continued. */
export async function abortEarly(store: ThreadStore, begun: BegunRun, now: number): Promise<EndedCalls> {
  const { run, rows, resumed } = begun
  const ended = resumed ? await endOpenCalls(store, run, rows, now) : { rows: [], chunks: [], children: [] }
  const abort: Chunk = { type: 'abort', runId: run.runId, from: 'AGENT', payload: {} }
  return { ...ended, chunks: [...inputChunks(begun), ...ended.chunks, abort] }
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
