import { checkName, checkNames, checkObject, checkWhole, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import type { JSONValue } from '../base/json.ts'
import type { Scope } from '../store/contract/threads.ts'

export { checkName, checkNames, checkObject, checkText, checkWhole, refused } from '../base/arguments.ts'

/** What callers of a memory pass, refused by name before anything is read or written. */

export function scopeOf(threadId: unknown, resourceId: unknown): Scope {
  checkName('threadId', threadId)
  if (resourceId === undefined) return { threadId }
  checkName('resourceId', resourceId)
  return { threadId, resourceId }
}

/** A time as programs have it: a Date, or what makes one. */
export function timeOf(field: string, value: unknown): Date | undefined {
  if (value === undefined || value === null) return undefined
  const date = value instanceof Date || typeof value === 'string' || typeof value === 'number' ? new Date(value) : undefined
  if (!date || Number.isNaN(date.getTime())) throw refused(field, 'a Date, or a text or number that makes one')
  return date
}

/** A page that a store can count up to. */
export function checkPage(page: unknown, perPage: number | false): asserts page is number {
  checkWhole('page', page)
  if (perPage !== false && !Number.isSafeInteger(page * perPage)) throw refused('page', `less: page ${page} of ${perPage} each is further than there is`)
}

export function checkOrder(orderBy: unknown, fields: readonly string[]): void {
  if (orderBy === undefined) return
  checkNames('orderBy', orderBy, ['field', 'direction'])
  const { field, direction } = orderBy as { field?: unknown; direction?: unknown }
  if (field !== undefined && !fields.some((known) => known === field)) throw refused('orderBy.field', fields.map((known) => `'${known}'`).join(' or '))
  if (direction !== undefined && direction !== 'ASC' && direction !== 'DESC') throw refused('orderBy.direction', "'ASC' or 'DESC'")
}

export function checkTitle(title: unknown): asserts title is string | undefined {
  if (title !== undefined && typeof title !== 'string') throw refused('title', 'a text')
}

/** Metadata as it will be read back. What JSON has no word for is refused, and so is what would change on its way. */
export function metadataOf(metadata: unknown): Record<string, JSONValue> | undefined {
  return metadata === undefined ? undefined : jsonOf('metadata', metadata)
}

export function jsonOf(field: string, given: unknown): Record<string, JSONValue> {
  checkObject(field, given)
  try {
    const text = JSON.stringify(given, (_, value: unknown) => {
      if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError(`${value} is no JSON`)
      if (typeof value === 'object' && value !== null && !isPlain(value)) throw new TypeError(`${Object.prototype.toString.call(value)} is more than its fields`)
      if (typeof value === 'function' || typeof value === 'symbol') throw new TypeError(`a ${typeof value} is no JSON`)
      return value
    })
    return JSON.parse(text) as Record<string, JSONValue>
  } catch (cause) {
    throw new HeedError('invalid_argument', `${field} must be JSON: ${cause instanceof Error ? cause.message : String(cause)}.`, { cause, details: { field } })
  }
}

/** A list, or an object that is no more than its fields: what a Map has, or a class does, would be lost. */
function isPlain(value: object): boolean {
  if (Array.isArray(value)) return true
  const made: unknown = Object.getPrototypeOf(value)
  return made === null || Object.getPrototypeOf(made) === null
}

export function checkReindex(options: unknown): void {
  checkNames('reindex()', options, ['onProgress'])
  const { onProgress } = options as { onProgress?: unknown }
  if (onProgress !== undefined && typeof onProgress !== 'function') throw refused('onProgress', 'a function')
}
