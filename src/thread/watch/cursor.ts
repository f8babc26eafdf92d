import { HeedError } from '../../base/errors.ts'

/**
 * A place in a thread's stream: `epoch.index`. The epoch comes with the lease and only grows, so that whoever takes a thread over
 * needs no counter of the one before; the index counts the chunks within it.
 */
export interface Cursor {
  epoch: number
  index: number
}

export function formatCursor({ epoch, index }: Cursor): string {
  return `${epoch}.${index}`
}

export function parseCursor(text: string): Cursor {
  const match = /^(\d{1,15})\.(\d{1,15})$/.exec(text)
  if (!match) throw new HeedError('invalid_argument', `'${text}' is not a cursor. Pass the 'cursor' of a chunk as it came.`, { details: { field: 'after' } })
  return { epoch: Number(match[1]), index: Number(match[2]) }
}

/** Negative when `a` comes before `b`. */
export function compareCursors(a: Cursor, b: Cursor): number {
  return a.epoch - b.epoch || a.index - b.index
}

/** The place before this one. */
export function formatBefore({ epoch, index }: Cursor): string {
  return formatCursor({ epoch, index: index - 1 })
}
