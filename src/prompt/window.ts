import { HeedError } from '../errors.ts'
import type { MessageRow } from '../message/row.ts'
import { isUserAuthored } from '../signals/row.ts'

/**
 * How much history a prompt has. The last `low` user and assistant messages are always there. The window grows to `high` messages
 * and is then cut back to about `low`, so that most prompts begin where the last one began. With `low` equal to `high` it slides
 * by one message at a time.
 */
export interface WindowSize {
  low: number
  high: number
}

/** What the window needs to know of a row. Rows that don't count go with the message before them. */
export interface WindowRow {
  messageId: string
  counts?: 'user' | 'assistant'
}

/** User and assistant messages count, and signals that a user sent. */
export function windowRow(row: MessageRow): WindowRow {
  const { messageId } = row
  if (row.role === 'assistant') return { messageId, counts: 'assistant' }
  return isUserAuthored(row) ? { messageId, counts: 'user' } : { messageId }
}

/**
 * Where the window of a thread with `total` counted messages may start, by ordinal: at the last message in `from..to` that a user
 * wrote, else at `to`. Nothing but these numbers decides, so it is the same after a restart and in every process.
 */
export function windowOrdinals(total: number, size: WindowSize): { from: number; to: number } {
  const { low, high } = checked(size)
  const stride = high - low
  if (total <= high) return { from: 0, to: 0 }
  if (stride === 0) return { from: total - low, to: total - low }
  const to = Math.ceil((total - high) / stride) * stride
  return { from: Math.max(0, to - stride + 1), to }
}

/** How many counted messages at the end of a thread are enough to find its window. */
export function windowReach(size: WindowSize): number {
  const { low, high } = checked(size)
  return high + Math.max(0, high - low - 1)
}

/**
 * The index of the row at which the window starts. It is the first row of a message, so that a call is never parted from its
 * result, and of one that a user wrote where there is one nearby. `before` counts the thread's messages that precede these rows.
 */
export function windowStart(rows: readonly WindowRow[], size: WindowSize & { before?: number }): number {
  const { before = 0 } = size
  const counted = countedMessages(rows)
  const { from, to } = windowOrdinals(before + counted.length, size)
  if (to - before <= 0) return 0
  for (let ordinal = to; ordinal >= from; ordinal--) {
    const message = counted[ordinal - before]
    if (message?.by === 'user') return ordinal === 0 ? 0 : message.index
  }
  return counted[to - before]?.index ?? rows.length
}

interface Counted {
  index: number
  by: 'user' | 'assistant'
}

/** An assistant's message has many rows and counts once. */
function countedMessages(rows: readonly WindowRow[]): Counted[] {
  const counted: Counted[] = []
  let last: string | undefined
  for (const [index, { messageId, counts }] of rows.entries()) {
    if (!counts || (counts === 'assistant' && messageId === last)) continue
    counted.push({ index, by: counts })
    last = messageId
  }
  return counted
}

function checked(size: WindowSize): WindowSize {
  const { low, high } = size
  if (Number.isInteger(low) && low >= 0 && (high === Infinity || Number.isInteger(high)) && high >= low) return size
  const message = `A window needs whole numbers with 0 <= low <= high, not low ${low} and high ${high}.`
  throw new HeedError('invalid_argument', message, { details: { low, high } })
}
