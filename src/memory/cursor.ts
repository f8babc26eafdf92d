import { HeedError } from '../base/errors.ts'

/** Where a list was left. It says of which list, so that it can't be used with another. */
export interface Place {
  list: string
  /** What the list is ordered by, and which of several with the same comes last. */
  at: number
  id: string
}

export function cursorOf({ list, at, id }: Place): string {
  return Buffer.from(JSON.stringify([list, at, id])).toString('base64url')
}

export function placeIn(cursor: unknown, list: string): { at: number; id: string } {
  const read = typeof cursor === 'string' ? parsed(cursor) : undefined
  if (!Array.isArray(read) || read.length !== 3 || typeof read[0] !== 'string' || typeof read[1] !== 'number' || typeof read[2] !== 'string') {
    throw new HeedError('invalid_cursor', 'This cursor is none of ours. Pass the `nextCursor` of the page before, unchanged.')
  }
  if (read[0] !== list) {
    throw new HeedError('invalid_cursor', 'This cursor is of another list. Pass it with the filter and the order that it came from.', { details: { of: read[0], used: list } })
  }
  return { at: read[1], id: read[2] }
}

function parsed(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString())
  } catch {
    return undefined
  }
}
