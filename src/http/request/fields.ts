import { HeedError } from '../../base/errors.ts'

/** An object without the properties that are undefined: options are left out, not passed as undefined. */
export function omitUndefined<T extends object>(values: T): { [Key in keyof T]: Exclude<T[Key], undefined> } {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as { [Key in keyof T]: Exclude<T[Key], undefined> }
}

export function parseDate(field: string, value: string): Date {
  const date = new Date(value)
  if (!Number.isNaN(date.getTime())) return date
  throw new HeedError('invalid_argument', `${field} is not a date. Write it as 2026-01-31T12:00:00Z.`, { details: { field } })
}
