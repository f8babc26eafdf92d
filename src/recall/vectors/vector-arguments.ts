import { checkName, refused } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import type { JSONObject } from '../../base/json.ts'
import { compileFilter, type MetadataFilter } from '../filter/filter.ts'
import { copyJSONObject } from '../../signals/json-copy.ts'

export type VectorNumbers = readonly number[] | Float32Array | Float64Array

/** A copy as 32-bit floats, which is how vectors are stored. */
export function parseVector(field: string, vector: unknown): Float32Array {
  const isList = Array.isArray(vector) || vector instanceof Float32Array || vector instanceof Float64Array
  if (!isList || vector.length === 0) throw refused(field, 'a list of numbers')
  // Array.from makes undefined of holes, which every() would skip.
  const items: unknown[] = Array.from(vector)
  if (!items.every((number) => typeof number === 'number')) throw refused(field, 'a list of numbers only')
  const numbers = Float32Array.from(items)
  if (!numbers.every(Number.isFinite)) throw refused(field, 'a list of numbers that are finite as 32-bit floats')
  return numbers
}

/** The metadata of `count` vectors, encoded. */
export function encodeMetadataList(metadata: unknown, count: number): string[] {
  if (metadata === undefined) return Array.from({ length: count }, () => '{}')
  checkLength('metadata', metadata, count)
  return Array.from(metadata, (one, at) => encodeMetadata(`metadata[${at}]`, one))
}

/** Rejects, by its path, what JSON would silently change. Dates are stored as strings. */
export function encodeMetadata(field: string, metadata: unknown): string {
  let copied: JSONObject
  try {
    copied = copyJSONObject(metadata, field)
  } catch (cause) {
    const { details = {} } = cause as { details?: { field?: string } }
    throw new HeedError(
      'invalid_argument',
      `${details.field ?? field} must be a JSON object: strings, finite numbers, true, false, null, and lists and objects of these.`,
      { cause, details: { field: details.field ?? field } },
    )
  }
  return JSON.stringify(copied)
}

export function checkLength(field: string, list: unknown, length: number): asserts list is unknown[] {
  if (!Array.isArray(list) || list.length !== length) throw refused(field, 'a list of the same length as vectors')
}

/** One of two vectors with the same id would overwrite the other. */
export function rejectDuplicates(ids: readonly string[]): void {
  const seen = new Set<string>()
  for (const id of ids) {
    if (seen.has(id))
      throw new HeedError('invalid_argument', `ids contains '${id}' twice: an id names one vector. Nothing was stored.`, {
        details: { field: 'ids', id },
      })
    seen.add(id)
  }
}

/** The vectors that a change selects: exactly one of the three is given. */
export function parseSelection({
  id,
  ids,
  filter,
}: {
  id?: string
  ids?: readonly string[]
  filter?: MetadataFilter
}): { ids: readonly string[] } | { filter: MetadataFilter } {
  if ([id, ids, filter].filter((given) => given !== undefined).length !== 1) {
    throw refused('id', 'given, or ids, or a filter: exactly one of them')
  }
  if (filter !== undefined) return { filter: parseSelectingFilter('filter', filter) }
  const chosen = ids ?? [id]
  if (!Array.isArray(chosen)) throw refused('ids', 'a list')
  for (const one of chosen) checkName(ids ? 'ids' : 'id', one)
  return { ids: chosen as string[] }
}

/** A filter that selects vectors to change. An empty one is rejected: it would select all of them. */
export function parseSelectingFilter(field: string, filter: MetadataFilter): MetadataFilter {
  compileFilter(filter, field)
  if (Object.keys(filter).length === 0) throw refused(field, 'a filter with at least one condition; deleteIndex removes all vectors')
  rejectEmptyLists(filter, field)
  return filter
}

function rejectEmptyLists(within: object, path: string): void {
  for (const [key, value] of Object.entries(within) as Array<[string, unknown]>) {
    const at = Array.isArray(within) ? `${path}[${key}]` : `${path}.${key}`
    if (['$in', '$nin', '$all'].includes(key) && Array.isArray(value) && value.length === 0) throw refused(at, 'a list that is not empty')
    if (typeof value === 'object' && value !== null) rejectEmptyLists(value, at)
  }
}
