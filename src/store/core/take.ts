import type { MailboxRow } from '../contract/threads.ts'
import { appendToRun, prepare } from './append.ts'
import { mailboxRow, rowIds, rowsOfMail } from './decode.ts'
import { takeAtHand } from './mailed.ts'
import type { MailRecord, ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'
import { shift } from './waiting.ts'

/** Gives waiting rows their place in history, in their order. `seq` is given here and not at acceptance: they follow what was said. */
export function takeMail(
  tables: ThreadTables, thread: ThreadRecord, waiting: readonly MailRecord[], run: { runId: string; step: number },
): MailboxRow[] {
  return waiting.map((mail) => {
    const rows = appendToRun(tables, thread, takeAtHand(mail, run) ?? prepare(rowsOfMail(tables, thread, mail), run))
    shift(mail, 'take')
    mail.runId = run.runId
    mail.step = run.step
    mail.rows = rowIds(rows)
    tables.putMail(thread, mail)
    return mailboxRow(thread, mail, rows)
  })
}
