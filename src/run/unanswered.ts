import type { MessageRow } from '../message/row.ts'
import { wasSent } from '../signals/row.ts'
import type { Run } from './run.ts'
import { isInput } from './segment.ts'

/*
 * Processors see input before a model reads it for the first time. What no model has answered they are shown again: the process, the
 * run or the call that they saw it in may have ended before it counted.
 */

/** Input of the run itself that no model has answered. */
export function unansweredInput(run: Run): MessageRow[] {
  const own = run.rows.filter(({ runId }) => runId === run.id)
  return own.slice(own.findLastIndex(isAnswer) + 1).filter((row) => row.role !== 'context' && (row.role !== 'signal' || isInput(run, row)))
}

/** What was sent to the thread before the run and that no model has answered: stored for later, or of a run that came to nothing. */
export function unansweredBefore(run: Run, input: readonly MessageRow[]): MessageRow[] {
  const own = new Set(input)
  const found: MessageRow[] = []
  for (let index = run.rows.length - 1; index >= 0; index--) {
    const row = run.rows[index] as MessageRow
    if (isAnswer(row)) break
    if (row.runId !== run.id && isSent(row) && !own.has(row)) found.push(row)
  }
  return found.reverse()
}

/** What a run says has rows of its own under a message; what enters is a message. Why there is no answer is none. */
function isAnswer({ id, messageId, role, content }: MessageRow): boolean {
  return (role === 'assistant' || role === 'tool') && id !== messageId && content.parts.some(({ type }) => type !== 'error')
}

/** History that a program wrote itself was not sent by anybody. */
function isSent(row: MessageRow): boolean {
  return row.role === 'user' ? row.runId !== undefined : wasSent(row)
}
