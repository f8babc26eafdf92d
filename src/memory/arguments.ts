import { checkName, checkNames, checkObject, checkWhole, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { isPlainObject, type JSONValue } from '../base/json.ts'
import type { Scope } from '../store/contract/threads.ts'

export function parseScope(threadId: unknown, resourceId: unknown): Scope {
  checkName('threadId', threadId)
  if (resourceId === undefined) return { threadId }
  checkName('resourceId', resourceId)
  return { threadId, resourceId }
}

/** A Date, or a string or number that the Date constructor accepts. */
export function parseTime(field: string, value: unknown): Date | undefined {
  if (value === undefined || value === null) return undefined
  const date = value instanceof Date || typeof value === 'string' || typeof value === 'number' ? new Date(value) : undefined
  if (!date || Number.isNaN(date.getTime())) throw refused(field, 'a Date, or a string or number that can be converted to one')
  return date
}

/** Rejects pages that cannot exist, and those whose offset is not a safe integer. */
export function checkPage(page: unknown, perPage: number | false): asserts page is number {
  checkWhole('page', page)
  if (perPage === false && page > 0) throw refused('page', '0 or left out: with perPage: false all are on one page')
  if (perPage !== false && !Number.isSafeInteger(page * perPage)) {
    throw refused('page', `less: page ${page} of ${perPage} each is out of range`)
  }
}

export function checkOrder(orderBy: unknown, fields: readonly string[]): void {
  if (orderBy === undefined) return
  checkNames('orderBy', orderBy, ['field', 'direction'])
  const { field, direction } = orderBy as { field?: unknown; direction?: unknown }
  if (field !== undefined && !fields.some((known) => known === field)) {
    throw refused('orderBy.field', fields.map((known) => `'${known}'`).join(' or '))
  }
  if (direction !== undefined && direction !== 'ASC' && direction !== 'DESC') throw refused('orderBy.direction', "'ASC' or 'DESC'")
}

/** A copy of metadata as the store returns it. */
export function copyMetadata(metadata: unknown): Record<string, JSONValue> | undefined {
  return metadata === undefined ? undefined : copyJSON('metadata', metadata)
}

/** A copy as the store returns it. Rejects values that JSON lacks or would change. */
export function copyJSON(field: string, given: unknown): Record<string, JSONValue> {
  checkObject(field, given)
  try {
    const text = JSON.stringify(given, (_, value: unknown) => {
      if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError(`${value} is not JSON`)
      if (typeof value === 'object' && value !== null && !Array.isArray(value) && !isPlainObject(value)) {
        throw new TypeError(`${Object.prototype.toString.call(value)} has more than its fields`)
      }
      if (typeof value === 'function' || typeof value === 'symbol') throw new TypeError(`a ${typeof value} is not JSON`)
      return value
    })
    return JSON.parse(text) as Record<string, JSONValue>
  } catch (cause) {
    throw new HeedError('invalid_argument', `${field} must be JSON: ${cause instanceof Error ? cause.message : String(cause)}.`, {
      cause,
      details: { field },
    })
  }
}

export function checkReindex(options: unknown): void {
  checkNames('reindex()', options, ['onProgress'])
  const { onProgress } = options as { onProgress?: unknown }
  if (onProgress !== undefined && typeof onProgress !== 'function') throw refused('onProgress', 'a function')
}

/** The last item of a page. It names its list, so that the cursor is rejected with another list. */
interface ListPosition {
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
