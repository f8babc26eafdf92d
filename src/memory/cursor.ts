import { HeedError } from '../base/errors.ts'

/** The last item of a page. It names its list, so that the cursor is rejected with another list. */
export interface ListPosition {
  list: string
  /** The value that the list is ordered by; `id` orders items with the same value. */
  at: number
  id: string
}

export function encodeCursor({ list, at, id }: ListPosition): string {
  return Buffer.from(JSON.stringify([list, at, id])).toString('base64url')
}

export function decodeCursor(cursor: unknown, list: string): { at: number; id: string } {
  const read = typeof cursor === 'string' ? parseJSON(cursor) : undefined
  if (
    !Array.isArray(read) ||
    read.length !== 3 ||
    typeof read[0] !== 'string' ||
    typeof read[1] !== 'number' ||
    typeof read[2] !== 'string'
  ) {
    throw new HeedError('invalid_cursor', 'The cursor is invalid. Pass the `nextCursor` of the previous page, unchanged.')
  }
  if (read[0] !== list) {
    throw new HeedError('invalid_cursor', 'The cursor belongs to another list. Pass it with the filter and the order of its own list.', {
      details: { of: read[0], used: list },
    })
  }
  return { at: read[1], id: read[2] }
}

function parseJSON(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString())
  } catch {
    return undefined
  }
}
