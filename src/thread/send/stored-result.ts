import { HeedError } from '../../base/errors.ts'
import type { JSONObject } from '../../base/json.ts'
import { joinRows } from '../../message/join.ts'
import type { MessagePart, ToolInvocationPart } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import type { Tripwire } from '../../processors/processor.ts'
import type { FinishReason, Usage } from '../../message/chunk.ts'
import { failedResult, type RunResult } from '../../run/output/run-result.ts'
import { toolCallOf, toolResultOf } from '../../run/step/step-result.ts'
import type { RunRow, Scope, ThreadStore } from '../../store/contract/threads.ts'

/** How many rows are read at once. */
const page = 100

/** What a run wrote, oldest first. */
async function rowsOf(store: ThreadStore, scope: Scope, runId: string): Promise<MessageRow[]> {
  const rows: MessageRow[] = []
  for (let before: number | undefined, more = true; more;) {
    const found = await store.listRows(scope, { limit: page, ...(before === undefined ? {} : { before }) })
    const own = found.rows.filter((row) => row.runId === runId)
    rows.unshift(...own)
    before = found.rows[0]?.seq
    more = found.more && before !== undefined && (rows.length === 0 || own.length > 0)
  }
  return rows
}

/** What a run answered: the text of its last step, with those before it whose stream broke. */
export async function storedAnswer(store: ThreadStore, scope: Scope, runId: string): Promise<string> {
  return answerOf(await rowsOf(store, scope, runId))
}

function answerOf(rows: readonly MessageRow[]): string {
  const said = rows.filter((row) => row.role === 'assistant')
  const before = said.slice(0, -1).findLastIndex((row) => row.content.metadata?.incomplete !== 'broken')
  return said.slice(before + 1).flatMap((row) => row.content.parts.flatMap((part) => (part.type === 'text' ? part.text : []))).join('')
}

const reasons: Partial<Record<RunRow['status'], FinishReason>> = { finished: 'stop', aborted: 'aborted', rejected: 'tripwire', suspended: 'suspended' }

/** The result of a run that ended where nobody here could hear it, as far as rows tell it: not step by step, and without warnings. */
export async function storedResult(store: ThreadStore, run: RunRow): Promise<RunResult> {
  const { runId, status, suspended, usage } = run
  const why = typeof run.error?.message === 'string' ? run.error.message : ''
  if (status === 'failed' || status === 'parked') {
    return failedResult(runId, new HeedError(status === 'parked' ? 'run_parked' : 'store_failed', why || `Run ${runId} failed.`, { details: { runId } }))
  }
  const rows = status === 'rejected' ? [] : await rowsOf(store, run, runId)
  const parts = rows.flatMap((row): MessagePart[] => row.content.parts)
  const invocations = parts.filter((part): part is ToolInvocationPart => part.type === 'tool-invocation')
  const { error: _, ...empty } = failedResult(runId, new Error(why))
  const cost = usage ? (usage as unknown as Usage) : empty.usage
  return {
    ...empty,
    error: undefined,
    text: answerOf(rows),
    toolCalls: invocations.filter((part) => part.toolInvocation.state === 'call').map(toolCallOf),
    toolResults: invocations.filter((part) => part.toolInvocation.state !== 'call').map(toolResultOf),
    files: parts.filter((part) => part.type === 'file'),
    sources: parts.flatMap((part) => (part.type === 'source' ? part.source : [])),
    usage: cost,
    totalUsage: cost,
    finishReason: reasons[status] ?? 'other',
    tripwire: status === 'rejected' ? tripwireOf(why, run.error) : undefined,
    suspended: suspended.filter((call) => !call.decision),
    messages: joinRows(rows.filter((row) => row.role !== 'signal' && row.role !== 'user')),
  }
}

/** A refusal as its run keeps it. */
function tripwireOf(reason: string, { processorId, metadata }: JSONObject = {}): Tripwire {
  return { reason, processorId: typeof processorId === 'string' ? processorId : '', ...(metadata === undefined ? {} : { metadata }) }
}
