import type { MessageRow } from '../../message/row.ts'
import { TAIL_SEQ } from '../contract/tail.ts'
import { countsAs } from '../contract/window.ts'
import { messageRow, type PreparedRow, type RowRecord, type ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

/** Appends the rows of a run at the end of its history. Advances the thread's counters; the caller puts the thread. */
export function appendToRun(tables: ThreadTables, thread: ThreadRecord, rows: readonly PreparedRow[]): MessageRow[] {
  return rows.map((row) => appendRow(tables, thread, row, false))
}

/** Appends rows that belong to no run: to the tail band while a run is active. The caller puts the thread. */
export function appendOutsideRun(tables: ThreadTables, thread: ThreadRecord, rows: readonly PreparedRow[]): MessageRow[] {
  const tail = thread.status !== 'idle'
  return rows.map((row) => appendRow(tables, thread, row, tail))
}

/** The same for the only row of a message that the thread does not have yet. */
export function appendMessage(tables: ThreadTables, thread: ThreadRecord, row: PreparedRow): MessageRow {
  return appendRow(tables, thread, row, thread.status !== 'idle', true)
}

function appendRow(tables: ThreadTables, thread: ThreadRecord, { row, stored }: PreparedRow, tail: boolean, isFirst = false): MessageRow {
  const kind = countsAs(row)
  const counts = kind === 'user' || (kind === 'assistant' && (isFirst || !tables.hasMessage(thread, row.messageId)))
  const ordinal = (tail ? thread.tailOrdinal : thread.ordinal) + (counts ? 1 : 0)
  const turn = kind === 'user' ? ordinal : tail ? thread.tailTurn : thread.turn
  const seq = tail ? TAIL_SEQ + thread.tail : thread.nextSeq
  const counted = counts ? (tail ? 2 : 1) : 0

  const { id, messageId, role, type, runId, step, content, createdAt } = stored
  const record: RowRecord = { seq, id, messageId, role, type, runId, step, content, createdAt, ordinal, turn, counted }
  if (!tables.addRow(thread, record)) {
    const existing = tables.row(thread, row.id)
    return existing ? messageRow(thread, existing) : row
  }
  if (tail) {
    thread.tail += 1
    thread.tailOrdinal = ordinal
    thread.tailTurn = turn
  } else {
    thread.nextSeq += 1
    thread.ordinal = ordinal
    thread.turn = turn
  }
  const appended: MessageRow = { ...row }
  appended.threadId = thread.id
  appended.resourceId = thread.resourceId
  appended.seq = seq
  if (runId !== null) appended.runId = runId
  if (step !== null) appended.step = step
  if (tables.decoded && isPlainText(row.content)) record.decoded = appended
  return appended
}

/**
 * True for contents of text parts alone. Such a row may be cached as decoded: decoding its JSON gives an equal object, and it has no nested
 * objects that a holder of the row could change by accident.
 */
function isPlainText(content: MessageRow['content']): boolean {
  for (const key in content) if (key !== 'format' && key !== 'parts' && key !== 'metadata') return false
  for (const part of content.parts) if (part.type !== 'text' || !isFlat(part)) return false
  const { metadata } = content
  if (metadata === undefined) return !('metadata' in content)
  for (const key in metadata) if (key !== 'signal' || !isFlat(metadata[key])) return false
  return true
}

function isFlat(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const fields = value as Record<string, unknown>
  for (const key in fields) {
    const kind = typeof fields[key]
    if (kind !== 'string' && kind !== 'boolean') return false
  }
  return true
}

/** Moves the tail band to the end of history, after the run that it was kept apart from has ended. The caller puts the thread. */
export function mergeTail(tables: ThreadTables, thread: ThreadRecord): void {
  if (thread.tail === 0) return
  tables.mergeTail(thread)
  thread.turn = thread.tailTurn === 0 ? thread.turn : thread.ordinal + thread.tailTurn
  thread.ordinal += thread.tailOrdinal
  thread.nextSeq += thread.tail
  thread.tail = 0
  thread.tailOrdinal = 0
  thread.tailTurn = 0
}
