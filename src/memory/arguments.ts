import { checkObject, checkText, refused } from '../arguments.ts'
import { HeedError } from '../errors.ts'
import type { JSONValue } from '../json.ts'
import type { Scope } from '../store/contract.ts'

export { checkNames, checkObject, checkText, checkWhole, refused } from '../arguments.ts'

/** What callers of a memory pass, refused by name before anything is read or written. */

export function scopeOf(threadId: unknown, resourceId: unknown): Scope {
  checkText('threadId', threadId)
  if (resourceId === undefined) return { threadId }
  checkText('resourceId', resourceId)
  return { threadId, resourceId }
}

/** A time as programs have it: a Date, or what makes one. */
export function timeOf(field: string, value: unknown): Date | undefined {
  if (value === undefined || value === null) return undefined
  const date = value instanceof Date || typeof value === 'string' || typeof value === 'number' ? new Date(value) : undefined
  if (!date || Number.isNaN(date.getTime())) throw refused(field, 'a Date, or a text or number that makes one')
  return date
}

export function checkTitle(title: unknown): asserts title is string | undefined {
  if (title !== undefined && typeof title !== 'string') throw refused('title', 'a text')
}

/** Metadata as it will be read back. What JSON has no word for is refused, and so is what would change on its way. */
export function metadataOf(metadata: unknown): Record<string, JSONValue> | undefined {
  if (metadata === undefined) return undefined
  checkObject('metadata', metadata)
  try {
    const text = JSON.stringify(metadata, (_, value: unknown) => {
      if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError(`${value} is no JSON`)
      if (typeof value === 'function' || typeof value === 'symbol') throw new TypeError(`a ${typeof value} is no JSON`)
      return value
    })
    return JSON.parse(text) as Record<string, JSONValue>
  } catch (cause) {
    throw new HeedError('invalid_argument', `metadata must be JSON: ${cause instanceof Error ? cause.message : String(cause)}.`, { cause, details: { field: 'metadata' } })
  }
}
