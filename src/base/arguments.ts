import { HeedError } from './errors.ts'

/** What callers pass, refused by name before anything is read or written. */

export function refused(field: string, wanted: string): HeedError {
  return new HeedError('invalid_argument', `${field} must be ${wanted}.`, { details: { field } })
}

export function checkText(field: string, value: unknown): asserts value is string {
  if (typeof value !== 'string' || value === '') throw refused(field, 'a text that is not empty')
}

/**
 * A text that comes out of every store as it went in, so that two of them are never one: no half of a surrogate pair, which UTF-8 can't hold, and no NUL, at which
 * some would end it.
 */
export function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.isWellFormed() && !value.includes('\0')
}

/** An id, or another name by which something is found again. */
export function checkName(field: string, value: unknown): asserts value is string {
  checkText(field, value)
  if (!isName(value)) throw refused(field, 'a text of whole characters, without NUL')
}

export function checkWhole(field: string, value: unknown, least = 0): asserts value is number {
  if (!Number.isSafeInteger(value) || Number(value) < least) throw refused(field, `a whole number of at least ${least}`)
}

export function checkObject(field: string, value: unknown): asserts value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw refused(field, 'an object')
}

/** Only these names; a misspelt option would otherwise pass for one that isn't given. */
export function checkNames(of: string, given: unknown, names: readonly string[]): void {
  checkObject(of, given)
  for (const name of Object.keys(given)) {
    if (names.includes(name) || given[name] === undefined) continue
    throw new HeedError('unsupported_option', `${of} has no '${name}'. Known: ${names.join(', ')}.`, { details: { option: name } })
  }
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
