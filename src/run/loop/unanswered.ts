import type { MessageRow } from '../../message/row.ts'
import { isSentSignal } from '../../signals/conversions.ts'
import type { RunHistory } from './run-history.ts'
import type { RunHost } from './run-contract.ts'

/*
 * Input processors see input before a model reads it for the first time. Input that no model has answered is shown to them again:
 * the process, the run or the call in which they saw it may have ended before its result was stored.
 */

/** Input of the run itself that no model has answered. */
export function unansweredInput(history: RunHistory, runId: string): MessageRow[] {
  const own = history.rows.filter((row) => row.runId === runId)
  const after = own.slice(own.findLastIndex(isAnswer) + 1)
  return after.filter((row) => row.role !== 'context' && (row.role !== 'signal' || history.isInput(row)))
}

/**
 * Input that the window has from before the run and that no model has answered: it was persisted without a run, or its run stored no
 * answer. `all`: there is none before the window.
 */
export function unansweredBefore(
  { rows }: RunHistory, runId: string, input: readonly MessageRow[],
): { rows: MessageRow[]; all: boolean } {
  let own: Set<MessageRow> | undefined
  const unanswered: MessageRow[] = []
  for (let index = rows.length - 1; index >= 0; index--) {
    const row = rows[index] as MessageRow
    if (isAnswer(row)) return { rows: unanswered.reverse(), all: true }
    if (row.runId !== runId && isSent(row) && !(own ??= new Set(input)).has(row)) unanswered.push(row)
  }
  return { rows: unanswered.reverse(), all: (rows[0]?.seq ?? 0) <= 1 }
}

const page = 100

/** The same for input before the window, page by page from the oldest on: recall and lanes may bring it into the prompt. */
export async function* unansweredOutside(host: RunHost, firstOfWindow: MessageRow | undefined): AsyncGenerator<MessageRow[], void> {
  const end = firstOfWindow?.seq ?? 0
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

/** True for a row that a run wrote: its id differs from that of its message. A row with an error alone is no answer. */
export function isAnswer({ id, messageId, role, content }: MessageRow): boolean {
  return (role === 'assistant' || role === 'tool') && id !== messageId && content.parts.some(({ type }) => type !== 'error')
}

/** True for input that was sent to a run or a thread; false for history that a program wrote. */
export function isSent(row: MessageRow): boolean {
  return row.role === 'user' ? row.runId !== undefined : isSentSignal(row)
}
