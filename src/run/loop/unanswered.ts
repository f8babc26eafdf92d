import type { MessageRow } from '../../message/row.ts'
import { isSentSignal } from '../../signals/row.ts'
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

/**
 * What was sent to the thread before the run and that no model has answered, stored for later or of a run that came to nothing, as far as the
 * window has it; `all`: there is no more of it.
 */
export function unansweredBefore(run: Run, input: readonly MessageRow[]): { rows: MessageRow[]; all: boolean } {
  let own: Set<MessageRow> | undefined
  const found: MessageRow[] = []
  for (let index = run.rows.length - 1; index >= 0; index--) {
    const row = run.rows[index] as MessageRow
    if (isAnswer(row)) return { rows: found.reverse(), all: true }
    if (row.runId !== run.id && isSent(row) && !(own ??= new Set(input)).has(row)) found.push(row)
  }
  return { rows: found.reverse(), all: (run.rows[0]?.seq ?? 0) <= 1 }
}

const page = 100

/** The same of what the window leaves out, page by page from the oldest on. Recall and lanes may bring it before the model all the same. */
export async function* unansweredOutside({ host, rows: [first] }: Run): AsyncGenerator<MessageRow[], void> {
  const end = first?.seq ?? 0
  let from = 0
  for (let before = end, more = end > 1; more;) {
    const rows = await host.history({ before, limit: page })
    from = rows.findLast(isAnswer)?.seq ?? 0
    before = rows[0]?.seq ?? 0
    more = from === 0 && rows.length === page
  }
  for (let more = end > from + 1; more;) {
    const rows = await host.history({ after: from, limit: page })
    from = rows.at(-1)?.seq ?? end
    more = rows.length === page && from < end
    const sent = rows.filter((row) => (row.seq ?? end) < end && isSent(row))
    if (sent.length > 0) yield sent
  }
}

/** What a run says has rows of its own under a message; what enters is a message. Why there is no answer is none. */
export function isAnswer({ id, messageId, role, content }: MessageRow): boolean {
  return (role === 'assistant' || role === 'tool') && id !== messageId && content.parts.some(({ type }) => type !== 'error')
}

/** History that a program wrote itself was not sent by anybody. */
export function isSent(row: MessageRow): boolean {
  return row.role === 'user' ? row.runId !== undefined : isSentSignal(row)
}
