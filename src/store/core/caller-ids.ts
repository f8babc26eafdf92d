import { HeedError } from '../../base/errors.ts'
import { orderedJSON } from '../../base/json.ts'
import { hasOutcome } from '../../message/content.ts'
import type { MessageRow } from '../../message/row.ts'
import { isUserAuthored, rowToSignal, isSentSignal } from '../../signals/row.ts'
import type { Send } from '../contract/threads.ts'
import { messageRow, rowsOfMail } from './decode.ts'
import type { ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

/**
 * Ids that a sender chose mean something in the thread already, or nothing. What would be told apart from it by nobody is refused here: in history it
 * would be left out, or pass for a part of the other.
 *
 * Answers the row of the signal that is sent, where it was sent before and its record is gone.
 */
export function meetGivenIds(tables: ThreadTables, thread: ThreadRecord, send: Send): MessageRow | undefined {
  if (!send.given) return undefined
  const given = new Set(send.given)
  if (given.has(send.id)) return meetSignal(tables, thread, send.id)
  // What stands before the last answer is history that comes along: there the thread's own counts.
  const asked = send.rows.findLastIndex(isAnswer) + 1
  for (const [index, row] of send.rows.entries()) {
    if (!given.has(row.id)) continue
    const there = placedRow(tables, thread, row.id) ?? waitingSignal(tables, thread, row.id) ?? calledRow(tables, thread, row.id)
    if (there && !isSame(there, row, index >= asked)) throw taken(thread, row.id, `Change that message with updateMessages(), or give this one an id of its own.`)
  }
  return undefined
}

function meetSignal(tables: ThreadTables, thread: ThreadRecord, id: string): MessageRow | undefined {
  const placed = placedRow(tables, thread, id)
  if (placed?.messageId === id && isSentSignal(placed)) return placed
  if (!placed && !calledRow(tables, thread, id)) return undefined
  throw taken(thread, id, 'Take a new id for each thing that is sent.')
}

/** The row that has this id or is of the message that has it. */
function placedRow(tables: ThreadTables, thread: ThreadRecord, id: string): MessageRow | undefined {
  const placed = tables.row(thread, id) ?? (tables.hasMessage(thread, id) ? tables.messageRows(thread, id)[0] : undefined)
  return placed && messageRow(thread, placed)
}

/** The same of what a call brings that waits for its turn. On a thread where nothing runs or is due, nothing waits. */
function calledRow(tables: ThreadTables, thread: ThreadRecord, id: string): MessageRow | undefined {
  if (thread.status === 'idle' && thread.dueAt === null) return undefined
  for (const mail of tables.boundMail(thread)) {
    const row = rowsOfMail(tables, thread, mail).find((one) => one.id === id || one.messageId === id)
    if (row) return row
  }
  return undefined
}

function waitingSignal(tables: ThreadTables, thread: ThreadRecord, id: string): MessageRow | undefined {
  const mail = tables.mail(thread, id)
  return mail?.state === 'pending' ? rowsOfMail(tables, thread, mail)[0] : undefined
}

/** What a call brings without the answers that come along as history: the thread has them, in rows with ids of its own. */
export function unknownRows(tables: ThreadTables, thread: ThreadRecord, { rows, given }: Send): MessageRow[] {
  if (!given) return rows
  const named = new Set(given)
  return rows.filter((row) => !isAnswer(row) || !named.has(row.id) || !hasAnswer(tables, thread, row))
}

/** A result may be new to a message that is there: a tool of the caller's made it. */
function hasAnswer(tables: ThreadTables, thread: ThreadRecord, { messageId, role, content }: MessageRow): boolean {
  if (!tables.hasMessage(thread, messageId)) return false
  if (role === 'assistant') return true
  const known = new Set(tables.messageRows(thread, messageId).flatMap((row) => outcomesIn(messageRow(thread, row).content)))
  return outcomesIn(content).every((toolCallId) => known.has(toolCallId))
}

function outcomesIn({ parts }: MessageRow['content']): string[] {
  return parts.flatMap((part) => (part.type === 'tool-invocation' && hasOutcome(part.toolInvocation) ? part.toolInvocation.toolCallId : []))
}

/** Whether what is passed is what is there. Answers are known by their ids alone: displays needn't have all of them. */
function isSame(there: MessageRow, row: MessageRow, asked: boolean): boolean {
  if (isUserAuthored(row)) return isUserAuthored(there) && (!asked || contents(there) === contents(row))
  return isAnswer(row) ? isAnswer(there) : there.role === row.role
}

function isAnswer({ role }: MessageRow): boolean {
  return role === 'assistant' || role === 'tool'
}

function contents(row: MessageRow): string {
  return orderedJSON(rowToSignal(row).contents)
}

/** Refuses the id of what waits in the mailbox and has no place in history yet. */
export function refuseWaiting(tables: ThreadTables, thread: ThreadRecord, ids: readonly string[]): void {
  if (ids.length === 0) return
  const waiting = new Set(tables.pending(thread).flatMap((mail) => [mail.id, ...rowsOfMail(tables, thread, mail).map((row) => row.id)]))
  const id = ids.find((one) => waiting.has(one))
  if (id !== undefined) throw taken(thread, id, 'It waits for its turn: cancel it with cancelQueued(), or take another id.')
}

function taken(thread: ThreadRecord, id: string, what: string): HeedError {
  return new HeedError('id_taken', `Thread ${thread.id} has something else under the id ${id}. ${what}`, { details: { threadId: thread.id, id } })
}
