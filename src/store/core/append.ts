import type { MessageRow } from '../../message/row.ts'
import { countsAs } from '../contract/window.ts'
import { messageRow } from './decode.ts'
import { TAIL_SEQ, type RowRecord, type ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

/** A row as it is stored, without the place that it gets. */
type Unplaced = Omit<RowRecord, 'seq' | 'ordinal' | 'turn' | 'counted'>

function unplaced(row: MessageRow, run?: { runId: string; step: number }): Unplaced {
  return {
    id: row.id,
    messageId: row.messageId,
    role: row.role,
    type: row.type ?? null,
    runId: run?.runId ?? row.runId ?? null,
    step: run?.step ?? row.step ?? null,
    content: JSON.stringify(row.content),
    createdAt: row.createdAt.getTime(),
  }
}

/** A row and its stored form. Making it can fail, on contents that are no JSON; so it is made before the first write. */
export interface Prepared {
  row: MessageRow
  stored: Unplaced
}

export function prepare(rows: readonly MessageRow[], run?: { runId: string; step: number }): Prepared[] {
  return rows.map((row) => ({ row, stored: unplaced(row, run) }))
}

/** Appends the rows of a run, where it reads on. The thread's counters grow; the caller puts the thread. */
export function appendToRun(tables: ThreadTables, thread: ThreadRecord, rows: readonly Prepared[]): MessageRow[] {
  return rows.map((row) => appendRow(tables, thread, row, false))
}

/** Appends rows that are of no run. While one is active they wait behind it. */
export function appendBeside(tables: ThreadTables, thread: ThreadRecord, rows: readonly Prepared[]): MessageRow[] {
  const tail = thread.status !== 'idle'
  return rows.map((row) => appendRow(tables, thread, row, tail))
}

/** The same for the only row of a message that is known not to be there. */
export function appendWhole(tables: ThreadTables, thread: ThreadRecord, row: Prepared): MessageRow {
  return appendRow(tables, thread, row, thread.status !== 'idle', true)
}

function appendRow(tables: ThreadTables, thread: ThreadRecord, { row, stored }: Prepared, tail: boolean, isFirst = false): MessageRow {
  const kind = countsAs(row)
  const counts = kind === 'user' || (kind === 'assistant' && (isFirst || !tables.hasMessage(thread, row.messageId)))
  const ordinal = (tail ? thread.tailOrdinal : thread.ordinal) + (counts ? 1 : 0)
  const turn = kind === 'user' ? ordinal : tail ? thread.tailTurn : thread.turn
  const seq = tail ? TAIL_SEQ + thread.tail : thread.nextSeq

  const { id, messageId, role, type, runId, step, content, createdAt } = stored
  const record: RowRecord = { seq, id, messageId, role, type, runId, step, content, createdAt, ordinal, turn, counted: counts ? (tail ? 2 : 1) : 0 }
  if (!tables.addRow(thread, record)) {
    const there = tables.row(thread, row.id)
    return there ? messageRow(thread, there) : row
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
  const placed: MessageRow = { ...row }
  placed.threadId = thread.id
  placed.resourceId = thread.resourceId
  placed.seq = seq
  if (runId !== null) placed.runId = runId
  if (step !== null) placed.step = step
  if (tables.decoded && isPlainText(row.content)) record.decoded = placed
  return placed
}

/**
 * True for contents that are nothing but texts: reading what was stored of them gives the same, and there is nothing in them that somebody
 * who has the row could change later without meaning to.
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

/** The run is over: what waited behind it takes its place. */
export function settleTail(tables: ThreadTables, thread: ThreadRecord): void {
  if (thread.tail === 0) return
  tables.settleTail(thread)
  thread.turn = thread.tailTurn === 0 ? thread.turn : thread.ordinal + thread.tailTurn
  thread.ordinal += thread.tailOrdinal
  thread.nextSeq += thread.tail
  thread.tail = 0
  thread.tailOrdinal = 0
  thread.tailTurn = 0
}
