import type { MessageRow } from '../../message/row.ts'
import { isUserAuthored } from '../../signals/row.ts'

/**
 * Which part of a thread a model is shown. Everything here is a function of numbers that are stored with the rows, so that every
 * store, and the same store after a restart, cuts at the same place.
 *
 * What counts is what users and assistants said; signals of other kinds, tool results and context don't. A row's `ordinal` is how
 * many counted messages there are up to it; its `turn` is the ordinal of the last thing a user said up to it.
 */
export interface WindowMarks {
  /** So many of the last messages are always there. */
  low: number
  /** The window grows to this before it is cut back. Equal to `low`, it slides by one. */
  high: number
}

/** Whether a row counts; an assistant's message does so once, with its first row. */
export function countsAs(row: Pick<MessageRow, 'role' | 'type' | 'content'>): 'user' | 'assistant' | undefined {
  if (isUserAuthored(row)) return 'user'
  return row.role === 'assistant' ? 'assistant' : undefined
}

/**
 * How many messages lie before the window of a thread that has `ordinal` of them: always the same until the window is full again,
 * then a whole chunk more. What remains is at least `low` and at most `high`.
 */
export function windowStart(ordinal: number, { low, high }: WindowMarks): number {
  const full = Math.max(low, high)
  if (ordinal <= full) return 0
  const chunk = Math.max(1, full - low)
  return Math.ceil((ordinal - full) / chunk) * chunk
}

/**
 * The ordinal at which the window begins, given the first message inside of it: back to the start of its turn. A window that slides
 * by one is exact and begins at the message itself. So does that of a thread which lives of other signals and has turns without end.
 * Neither splits a call from its result: both are one message.
 */
export function turnBoundary(first: { ordinal: number; turn: number }, { low, high }: WindowMarks): number {
  const far = first.ordinal - first.turn > Math.max(low, high)
  return first.turn === 0 || far || low >= high ? first.ordinal : first.turn
}
