import { HeedError } from '../../base/errors.ts'

/** Where in a filter something stands, to name it by, and how deep that is. */
export interface Place {
  path: string
  depth: number
}

/** No filter that is meant is deeper; one that holds itself is. */
const deepest = 64

/** What a list holds, holes too, each with its place. */
export function items(list: unknown, place: Place): Array<[unknown, Place]> {
  if (!Array.isArray(list)) throw invalid(place, 'must be a list')
  return Array.from(list, (one: unknown, at) => [one, inside(place, `[${at}]`)])
}

export function values(wanted: unknown, place: Place): unknown[] {
  const found = items(wanted, place)
  for (const [one, at] of found) checkData(one, at)
  return found.map(([one]) => one)
}

const data = 'can only be compared with what metadata can be: texts, numbers, true, false, null, dates, and lists and objects of them'

/** What metadata can be. Nothing else could be like it, and little else can be passed to the thread that compares. */
export function checkData(value: unknown, place: Place): void {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return
  if (value === undefined) throw invalid(place, 'is undefined. Leave it out, or compare with null')
  if (typeof value === 'number' || value instanceof Date) {
    if (!Number.isFinite(Number(value))) throw invalid(place, `is ${value instanceof Date ? 'a date that is none' : String(value)}, which no metadata can be`)
  } else if (Array.isArray(value)) values(value, place)
  else for (const [, one, at] of entriesOf(value, place, data)) checkData(one, at)
}

/** Its keys and what they hold, each with its place. */
export function entriesOf(value: unknown, place: Place, wanted = 'must be an object'): Array<[string, unknown, Place]> {
  if (!isPlain(value)) throw invalid(place, wanted)
  if (Object.getOwnPropertySymbols(value).length > 0) throw invalid(place, 'has a symbol for a key, which no metadata has')
  return Object.entries(value).map(([key, one]) => {
    const at = inside(place, `.${key}`)
    if (one === undefined) throw invalid(at, 'is undefined. Leave it out, or compare with null')
    return [key, one, at]
  })
}

function inside({ path, depth }: Place, name: string): Place {
  if (depth >= deepest) throw invalid({ path: path.slice(0, 200), depth }, `is nested deeper than ${deepest} levels, or holds itself`)
  return { path: `${path}${name}`, depth: depth + 1 }
}

/** True for objects without a class of their own, also those of another realm. */
export function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

export function invalid({ path }: Place, why: string): HeedError {
  return new HeedError('invalid_argument', `${path} ${why}.`, { details: { field: path } })
}
