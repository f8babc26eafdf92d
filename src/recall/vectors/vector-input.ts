import { checkName, refused } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import type { JSONObject } from '../../base/json.ts'
import { compileFilter, type MetadataFilter } from '../filter/filter.ts'
import { copyJSONObject } from '../../signals/json-copy.ts'

/** What callers pass to a store of vectors, refused by name before anything is read or written. */

export type VectorNumbers = readonly number[] | Float32Array | Float64Array

/** A copy, in the numbers that are stored. */
export function numbersOf(field: string, vector: unknown): Float32Array {
  const isList = Array.isArray(vector) || vector instanceof Float32Array || vector instanceof Float64Array
  if (!isList || vector.length === 0) throw refused(field, 'a list of numbers')
  // Holes are among the items here.
  const given: unknown[] = Array.from(vector)
  if (!given.every((number) => typeof number === 'number')) throw refused(field, 'a list of numbers and nothing else')
  const numbers = Float32Array.from(given)
  if (!numbers.every(Number.isFinite)) throw refused(field, 'a list of finite numbers, of 32 bits each')
  return numbers
}

/** The metadata of so many vectors, as it is stored. */
export function describedBy(metadata: unknown, count: number): string[] {
  if (metadata === undefined) return Array.from({ length: count }, () => '{}')
  checkLength('metadata', metadata, count)
  return Array.from(metadata, (one, at) => metadataText(`metadata[${at}]`, one))
}

/** What JSON would silently make something else of is refused by its path. Dates are stored as texts. */
export function metadataText(field: string, metadata: unknown): string {
  let copied: JSONObject
  try {
    copied = copyJSONObject(metadata, field)
  } catch (cause) {
    const { details = {} } = cause as { details?: { field?: string } }
    throw new HeedError('invalid_argument', `${details.field ?? field} must be an object of JSON: texts, finite numbers, true, false, null, and lists and objects of them.`, { cause, details: { field: details.field ?? field } })
  }
  return JSON.stringify(copied)
}

export function checkLength(field: string, list: unknown, length: number): asserts list is unknown[] {
  if (!Array.isArray(list) || list.length !== length) throw refused(field, 'a list, as long as that of vectors')
}

/** Of two vectors under one id only one would stay, and nobody said which. */
export function refuseTwice(ids: readonly string[]): void {
  const seen = new Set<string>()
  for (const id of ids) {
    if (seen.has(id)) throw new HeedError('invalid_argument', `ids has '${id}' twice: an id is one vector. Nothing was stored.`, { details: { field: 'ids', id } })
    seen.add(id)
  }
}

/** Which vectors a change is meant for: one of the three. */
export function choiceOf({ id, ids, filter }: { id?: string; ids?: readonly string[]; filter?: MetadataFilter }): { ids: readonly string[] } | { filter: MetadataFilter } {
  if ([id, ids, filter].filter((given) => given !== undefined).length !== 1) throw refused('id', 'given, or ids, or a filter: one of them')
  if (filter !== undefined) return { filter: checkChoosing('filter', filter) }
  const chosen = ids ?? [id]
  if (!Array.isArray(chosen)) throw refused('ids', 'a list')
  for (const one of chosen) checkName(ids ? 'ids' : 'id', one)
  return { ids: chosen as string[] }
}

/** A filter that says which vectors to change. What was meant by nothing at all is not everything. */
export function checkChoosing(field: string, filter: MetadataFilter): MetadataFilter {
  compileFilter(filter, field)
  if (Object.keys(filter).length === 0) throw refused(field, 'one that says which; deleteIndex removes all')
  refuseEmptyLists(filter, field)
  return filter
}

function refuseEmptyLists(within: object, path: string): void {
  for (const [key, value] of Object.entries(within) as Array<[string, unknown]>) {
    const at = Array.isArray(within) ? `${path}[${key}]` : `${path}.${key}`
    if (['$in', '$nin', '$all'].includes(key) && Array.isArray(value) && value.length === 0) throw refused(at, 'a list that is not empty, to say which vectors are meant')
    if (typeof value === 'object' && value !== null) refuseEmptyLists(value, at)
  }
}
