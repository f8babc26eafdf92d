import type { MessageRow } from '../message/row.ts'
import { chunkError } from '../run/provider-error.ts'

/** The message that says why a run has no answer. Transcripts show it; models don't. */
export function errorRow(runId: string, error: Error, now: number): MessageRow {
  const id = errorRowId(runId)
  return { id, messageId: id, role: 'assistant', createdAt: new Date(now), content: { format: 2, parts: [{ type: 'error', error: chunkError(error) }] } }
}

export function errorRowId(runId: string): string {
  return `${runId}/error`
}
