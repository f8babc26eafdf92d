import type { JSONObject, JSONValue } from '../../base/json.ts'
import type { MessageRow } from '../../message/row.ts'
import type { Tripwire } from '../../processors/processor.ts'
import { chunkError } from '../../run/model/provider-error.ts'

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
