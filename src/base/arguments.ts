import { HeedError } from './errors.ts'
import { isName, isObject } from './json.ts'

/** The error of an invalid argument. `field` names it; `wanted` completes the sentence. */
export function refused(field: string, wanted: string): HeedError {
  return new HeedError('invalid_argument', `${field} must be ${wanted}.`, { details: { field } })
}

export function checkText(field: string, value: unknown): asserts value is string {
  if (typeof value !== 'string' || value === '') throw refused(field, 'a text that is not empty')
}

/** Rejects values that can't be an id. */
export function checkName(field: string, value: unknown): asserts value is string {
  checkText(field, value)
  if (!isName(value)) throw refused(field, 'a text of whole characters, without NUL')
}

export function checkWhole(field: string, value: unknown, least = 0): asserts value is number {
  if (!Number.isSafeInteger(value) || Number(value) < least) throw refused(field, `a whole number of at least ${least}`)
}

export function checkObject(field: string, value: unknown): asserts value is Record<string, unknown> {
  if (!isObject(value)) throw refused(field, 'an object')
}

/** Rejects unknown fields: a misspelt option would otherwise be ignored. */
export function checkNames(of: string, given: unknown, names: readonly string[]): void {
  checkObject(of, given)
  for (const name of Object.keys(given)) {
    if (names.includes(name) || given[name] === undefined) continue
    throw new HeedError('unsupported_option', `${of} has no '${name}'. Known: ${names.join(', ')}.`, { details: { option: name } })
  }
}

/** True for names at an edit distance of 2 at most, ignoring case: one is probably a misspelling of the other. */
export function isSimilar(name: string, other: string): boolean {
  return editDistance(name.toLowerCase(), other.toLowerCase()) <= 2
}

/** The most similar of the names; undefined where none is similar. */
export function nearestName<Name extends string>(given: string, names: readonly Name[]): Name | undefined {
  const similar = names.filter((name) => isSimilar(given, name))
  const distance = (name: string) => editDistance(given.toLowerCase(), name.toLowerCase())
  return similar.toSorted((one, other) => distance(one) - distance(other))[0]
}

/** The number of characters that differ; Infinity where more than two do by the lengths alone. */
function editDistance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 2) return Infinity
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const changed = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}

/** A value in an error message. */
export function describeValue(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'string') return value.length > 64 ? `${JSON.stringify(value.slice(0, 64))}…` : JSON.stringify(value)
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value !== 'object') return typeof value
  const name: unknown = value.constructor?.name
  return typeof name === 'string' && name !== 'Object' ? `an instance of ${name}` : 'an object'
}
