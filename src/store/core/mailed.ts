import type { Prepared } from './append.ts'
import type { MailRecord } from './records.ts'

/** Rows that have no place yet, as a mailbox record keeps them. Their contents are text already. */
export function mailedRows(rows: readonly Prepared[]): string {
  return `[${rows.map(mailedRow).join()}]`
}

/** What is written of its rows. */
export function mailText(mail: MailRecord): string {
  return mail.atHand ? mailedRows(mail.atHand.rows) : mail.rows
}

function mailedRow({ stored: { id, messageId, role, type, content, createdAt } }: Prepared): string {
  const named = JSON.stringify({ id, messageId, role, ...(type !== null && { type }) })
  return `${named.slice(0, -1)},"content":${content},"createdAt":${createdAt}}`
}

/** The same as what the record says, for the run that takes it. What was just put into words isn't read again. */
export function takeAtHand(mail: MailRecord, { runId, step }: { runId: string; step: number }): Prepared[] | undefined {
  const rows = mail.atHand?.rows
  mail.atHand = undefined
  return rows?.map(({ row, stored: { id, messageId, role, type, content, createdAt } }) => ({ row, stored: { id, messageId, role, type, runId, step, content, createdAt } }))
}
