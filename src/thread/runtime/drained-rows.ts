import type { MessageRow } from '../../message/row.ts'
import { isAnswer, isSent } from '../../run/loop/unanswered.ts'
import type { MailboxRow } from '../../store/contract/threads.ts'

export function takenRows(taken: readonly MailboxRow[]): readonly MessageRow[] {
  const [only] = taken
  if (only && taken.length === 1) return only.rows
  return taken.flatMap((mail) => mail.rows)
}

/** The last row of history before what this run says, its input included in what it says. */
export function seqBefore(rows: readonly MessageRow[], taken: readonly MailboxRow[]): number {
  const [first] = takenRows(taken)
  return first?.seq === undefined ? (rows.at(-1)?.seq ?? 0) : first.seq - 1
}

/** Whether the last input of a run that is taken up again was never answered. */
export function unreadInput(rows: readonly MessageRow[], runId: string): boolean {
  const own = rows.filter((row) => row.runId === runId)
  return own.findLastIndex(isSent) > own.findLastIndex(isAnswer)
}
