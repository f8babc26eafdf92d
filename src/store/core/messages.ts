import type { MessageRow } from '../../message/row.ts'
import type { Scope } from '../contract/threads.ts'
import { appendBeside, prepare } from './append.ts'
import { messageRow } from './decode.ts'
import { scopedThread } from './guard.ts'
import { forgetLaneSignals, forgetPlacedSignals } from './lanes.ts'
import { forgetWords } from './quotes.ts'
import type { ThreadTables } from './tables.ts'

export function saveRows(tables: ThreadTables, scope: Scope, rows: readonly MessageRow[]): MessageRow[] {
  const thread = scopedThread(tables, scope)
  const saved = prepare(rows).flatMap((prepared) => {
    const there = tables.row(thread, prepared.stored.id)
    if (!there) return appendBeside(tables, thread, [prepared])
    const revised = { ...there, ...prepared.stored, decoded: undefined }
    forgetWords(tables, thread, there.messageId, [there], [revised])
    tables.reviseRow(thread, revised)
    return messageRow(thread, revised)
  })
  thread.updatedAt = tables.now()
  tables.putThread(thread)
  return saved
}

export function deleteMessages(tables: ThreadTables, scope: Scope, messageIds?: readonly string[]): number {
  const thread = scopedThread(tables, scope)
  if (messageIds === undefined) {
    forgetPlacedSignals(tables, thread)
    return tables.removeAllRows(thread)
  }
  const removed = messageIds.filter((id) => tables.removeMessage(thread, id))
  tables.removeQuotes(thread, removed)
  forgetLaneSignals(tables, thread, removed)
  return removed.length
}
