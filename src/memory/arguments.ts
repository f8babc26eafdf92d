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

/** Rejects pages whose offset is not a safe integer. */
export function checkPage(page: unknown, perPage: number | false): asserts page is number {
  checkWhole('page', page)
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
