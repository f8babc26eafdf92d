import { joinRows } from '../../message/join.ts'
import type { MessageRow } from '../../message/row.ts'
import { searchableText } from '../../recall/text/searchable.ts'
import type { Quoted } from '../contract/threads.ts'
import { messageRow } from './decode.ts'
import type { RowRecord, ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

/** The rows of these whose quotes are all as they were read: of the same resource, there, and saying that. */
export function stillQuoting(tables: ThreadTables, thread: ThreadRecord, rows: readonly MessageRow[], quoted: readonly Quoted[] = []): readonly MessageRow[] {
  if (quoted.length === 0) return rows
  const gone = new Set(quoted.filter((quote) => !isSaid(tables, thread, quote)).map(({ rowId }) => rowId))
  return gone.size === 0 ? rows : rows.filter(({ id }) => !gone.has(id))
}

function isSaid(tables: ThreadTables, thread: ThreadRecord, { threadId, messageId, text }: Quoted): boolean {
  const of = threadId === thread.id ? thread : tables.thread(threadId)
  if (of?.resourceId !== thread.resourceId) return false
  const rows = tables.messageRows(of, messageId)
  return rows.length > 0 && textOf(of, rows).includes(text)
}

/** Removes what quotes a message that says something else now. */
export function forgetWords(tables: ThreadTables, thread: ThreadRecord, messageId: string, before: readonly RowRecord[], after: readonly RowRecord[]): void {
  if (before.length > 0 && textOf(thread, before) !== textOf(thread, after)) tables.removeQuotes(thread, [messageId])
}

/** What these rows of one message say. */
function textOf(thread: ThreadRecord, rows: readonly RowRecord[]): string {
  return joinRows(rows.map((row) => messageRow(thread, row))).map(({ content }) => searchableText(content)).join('\n')
}
