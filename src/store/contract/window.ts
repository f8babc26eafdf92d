/**
 * Which part of a thread a model gets. All functions here depend only on numbers that are stored with the rows, so that every store, and
 * the same store after a restart, cuts at the same row.
 *
 * Messages of users and assistants count, each once; other signals, tool results and context rows do not. The `ordinal` of a row is the
 * number of counted messages up to it; its `turn` is the ordinal of the user's last message up to it.
 */
interface WindowMarks {
  /** The window always has at least this many of the last messages. */
  low: number
  /**
   * The window grows to this size before it is cut. If equal to `low`, the window is exact: it has so many messages before the input of
   * the run, and one more where it would begin with an answer.
   */
  high: number
}

/**
 * The number of messages before the window of a thread that has `ordinal` of them. It is constant until the window is full again, then
 * grows by a whole chunk. The window has at least `low` and at most `high` messages.
 */
export function windowStart(ordinal: number, { low, high }: WindowMarks): number {
  const full = Math.max(low, high)
  if (ordinal <= full) return 0
  const chunk = Math.max(1, full - low)
  return Math.ceil((ordinal - full) / chunk) * chunk
}

/** The ordinal of the message with which the window was cut to this start. */
export function cutOrdinal(start: number, { low, high }: WindowMarks): number {
  const full = Math.max(low, high)
  return start - Math.max(1, full - low) + full + 1
}

/** True for a window of a fixed size, which moves with each run. */
export function isExact({ low, high }: WindowMarks): boolean {
  return low >= high
}

/**
 * The ordinal at which the window begins, given the first message inside of it: the start of that message's turn. A window whose turn
 * began too long ago, as in a thread that mostly gets other signals, begins at the message itself. Neither splits a call from its result:
 * both are one message.
 */
export function turnBoundary(first: { ordinal: number; turn: number }, { low, high }: WindowMarks): number {
  const isFar = first.ordinal - first.turn > Math.max(low, high)
  return first.turn === 0 || isFar ? first.ordinal : first.turn
}
