import { HeedError } from '../../base/errors.ts'
import { orderedJSON } from '../../base/json.ts'
import { hasOutcome } from '../../message/content.ts'
import type { MessageRow } from '../../message/row.ts'
import { isSentSignal, isUserAuthored, rowToSignal } from '../../signals/row.ts'
import type { Send } from '../contract/threads.ts'
import { messageRow, rowsOfMail, type ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

/**
 * Compares the caller ids of a send with what the thread has under them. Throws `id_taken` where that is something else: history would
 * drop the new row, or show it as a part of the other.
 *
 * Returns the stored row of the signal if it was sent before and its mailbox record was pruned.
 */
export function resolveCallerIds(tables: ThreadTables, thread: ThreadRecord, send: Send): MessageRow | undefined {
  if (!send.given) return undefined
  const callerIds = new Set(send.given)
  if (callerIds.has(send.id)) return resolveSignalId(tables, thread, send.id)
  // Rows up to the last reply are history that the caller repeats; the thread's own version of them counts.
  const firstInput = send.rows.findLastIndex(isReply) + 1
  for (const [index, row] of send.rows.entries()) {
    if (!callerIds.has(row.id)) continue
    const existing = storedRow(tables, thread, row.id) ?? pendingRow(tables, thread, row.id) ?? boundRow(tables, thread, row.id)
    if (existing && !isSameRow(existing, row, index >= firstInput)) {
      throw idTaken(thread, row.id, 'Change that message with updateMessages(), or give this one an id of its own.')
    }
  }
  return undefined
}

function resolveSignalId(tables: ThreadTables, thread: ThreadRecord, id: string): MessageRow | undefined {
  const stored = storedRow(tables, thread, id)
  if (stored?.messageId === id && isSentSignal(stored)) return stored
  if (!stored && !boundRow(tables, thread, id)) return undefined
  throw idTaken(thread, id, 'Use a new id for each signal.')
}

/** The row in history with this id, or the first row of the message with this id. */
function storedRow(tables: ThreadTables, thread: ThreadRecord, id: string): MessageRow | undefined {
  const stored = tables.row(thread, id) ?? (tables.hasMessage(thread, id) ? tables.messageRows(thread, id)[0] : undefined)
  return stored && messageRow(thread, stored)
}

/** The same among the rows of queued calls. A thread that is idle and not due has none. */
function boundRow(tables: ThreadTables, thread: ThreadRecord, id: string): MessageRow | undefined {
  if (thread.status === 'idle' && thread.dueAt === null) return undefined
  for (const mail of tables.boundMail(thread)) {
    const row = rowsOfMail(tables, thread, mail).find((one) => one.id === id || one.messageId === id)
    if (row) return row
  }
  return undefined
}

function pendingRow(tables: ThreadTables, thread: ThreadRecord, id: string): MessageRow | undefined {
  const mail = tables.mail(thread, id)
  return mail?.state === 'pending' ? rowsOfMail(tables, thread, mail)[0] : undefined
}

/** The rows of a send without the replies that it repeats: the thread has them already, in rows with its own ids. */
export function rowsNotStored(tables: ThreadTables, thread: ThreadRecord, { rows, given }: Send): MessageRow[] {
  if (!given) return rows
  const callerIds = new Set(given)
  return rows.filter((row) => !isReply(row) || !callerIds.has(row.id) || !hasReply(tables, thread, row))
}

/** A stored message may still lack the result of a tool that the caller ran. */
function hasReply(tables: ThreadTables, thread: ThreadRecord, { messageId, role, content }: MessageRow): boolean {
  if (!tables.hasMessage(thread, messageId)) return false
  if (role === 'assistant') return true
  const known = new Set(tables.messageRows(thread, messageId).flatMap((row) => callsWithOutcome(messageRow(thread, row).content)))
  return callsWithOutcome(content).every((toolCallId) => known.has(toolCallId))
}

function callsWithOutcome({ parts }: MessageRow['content']): string[] {
  return parts.flatMap((part) => (
    part.type === 'tool-invocation' && hasOutcome(part.toolInvocation) ? part.toolInvocation.toolCallId : []
  ))
}

/** Compares replies by id alone, because a client may hold only parts of them. Compares contents of user messages that are input. */
function isSameRow(existing: MessageRow, row: MessageRow, isInput: boolean): boolean {
  if (isUserAuthored(row)) return isUserAuthored(existing) && (!isInput || contentsOf(existing) === contentsOf(row))
  return isReply(row) ? isReply(existing) : existing.role === row.role
}

function isReply({ role }: MessageRow): boolean {
  return role === 'assistant' || role === 'tool'
}

function contentsOf(row: MessageRow): string {
  return orderedJSON(rowToSignal(row).contents)
}

/** Throws `id_taken` for the id of a pending signal or of one of its rows. */
export function rejectPendingIds(tables: ThreadTables, thread: ThreadRecord, ids: readonly string[]): void {
  if (ids.length === 0) return
  const pending = new Set(tables.pending(thread).flatMap((mail) => [mail.id, ...rowsOfMail(tables, thread, mail).map((row) => row.id)]))
  const id = ids.find((one) => pending.has(one))
  if (id !== undefined) throw idTaken(thread, id, 'It is pending: cancel it with cancelQueued(), or use another id.')
}

function idTaken(thread: ThreadRecord, id: string, what: string): HeedError {
  return new HeedError('id_taken', `Thread ${thread.id} has something else under the id ${id}. ${what}`, {
    details: { threadId: thread.id, id },
  })
}
