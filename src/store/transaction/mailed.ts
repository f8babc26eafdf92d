import type { Prepared } from './append.ts'
import type { MailRecord } from './records.ts'

/** Rows that have no place yet, as a mailbox record keeps them. Their contents are text already. */
export function mailedRows(rows: readonly Prepared[]): string {
  return `[${rows.map(mailedRow).join()}]`
}

function mailedRow({ stored: { id, messageId, role, type, content, createdAt } }: Prepared): string {
  const named = JSON.stringify({ id, messageId, role, ...(type !== null && { type }) })
  return `${named.slice(0, -1)},"content":${content},"createdAt":${createdAt}}`
}

/** The rows of records that are taken by the run which their own send begins: what was just put into words isn't read again. */
const atHand = new WeakMap<MailRecord, readonly Prepared[]>()

export function keepAtHand(mail: MailRecord, rows: readonly Prepared[]): void {
  atHand.set(mail, rows)
}

/** The same as what the record says, for the run that takes it. */
export function takeAtHand(mail: MailRecord, { runId, step }: { runId: string; step: number }): Prepared[] | undefined {
  const rows = atHand.get(mail)
  atHand.delete(mail)
  return rows?.map(({ row, stored: { id, messageId, role, type, content, createdAt } }) => ({ row, stored: { id, messageId, role, type, runId, step, content, createdAt } }))
}
