import type { JSONObject, JSONValue } from '../../base/json.ts'
import type { ToolInvocationPart } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import type { Tripwire } from '../../processors/processor.ts'
import type { Continuation } from '../../run/loop/loop.ts'
import { chunkError } from '../../run/model/provider-error.ts'
import type { OpenCall } from '../../run/tools/tool-calls.ts'
import type { RunRow } from '../../store/contract/threads.ts'

/** Whether a tool may run again after a crash. */
export type IsIdempotent = (toolName: string) => boolean

/**
 * How a run goes on from its rows: the calls of its last step that have no result. A call that somebody decided about runs with the
 * decision. One that had begun when its process died runs again only if that does no harm; otherwise the model is told.
 */
export function continuationOf(run: RunRow, rows: readonly MessageRow[], idempotent: IsIdempotent): Continuation {
  const own = rows.filter((row) => row.runId === run.runId)
  const last = own.findLast((row) => row.role === 'assistant')
  if (!last) return { calls: [] }
  const after = own.slice(own.indexOf(last) + 1)
  // Input that entered after it closed that message: the next step writes another.
  const closed = after.some((row) => row.role === 'signal' || row.role === 'user')
  // Only what follows it: some providers number their calls anew in every step.
  const settled = new Set(after.filter((row) => row.role === 'tool').flatMap((row) => invocations(row).map((part) => part.toolInvocation.toolCallId)))
  const calls = invocations(last)
    .filter((part) => part.toolInvocation.state === 'call' && !part.providerExecuted && !settled.has(part.toolInvocation.toolCallId))
    .map((part) => openCall(part, run, idempotent))
  return { ...(closed ? {} : { messageId: last.messageId }), calls }
}

function openCall(part: ToolInvocationPart, run: RunRow, idempotent: IsIdempotent): OpenCall {
  const { toolCallId, toolName } = part.toolInvocation
  const { decision, child } = run.suspended.find((call) => call.toolCallId === toolCallId) ?? {}
  // A call that was decided begins when the run is continued the first time; in a later one it had begun already.
  const begun = decision ? run.attempts > 1 && decision.approved !== false : run.started.includes(toolCallId)
  if (begun && !idempotent(toolName)) return { part, interrupted: interruption(toolName) }
  return { part, ...(decision ? { decision: { ...decision, ...(child ? { child } : {}) } } : {}) }
}

function interruption(toolName: string): string {
  return `${toolName} was interrupted: the process that ran it stopped, or could not store what it came to. It is not known whether it took effect. Check before you call it again.`
}

function invocations(row: MessageRow): ToolInvocationPart[] {
  return row.content.parts.filter((part) => part.type === 'tool-invocation')
}

/** The message that says why a run has no answer. Transcripts show it; models don't. */
export function errorRow(runId: string, error: Error, now: number): MessageRow {
  const id = errorRowId(runId)
  return { id, messageId: id, role: 'assistant', createdAt: new Date(now), content: { format: 2, parts: [{ type: 'error', error: chunkError(error) }] } }
}

export function errorRowId(runId: string): string {
  return `${runId}/error`
}

/** A refusal as its run keeps it. `unread`: no model was asked. */
export function refusalError({ reason, processorId, metadata }: Tripwire, unread: boolean): JSONObject {
  return { message: reason, processorId, ...(metadata === undefined ? {} : { metadata: metadata as JSONValue }), ...(unread ? { unread } : {}) }
}

export function errorJSON(error: Error): JSONObject {
  return chunkError(error) as unknown as JSONObject
}
