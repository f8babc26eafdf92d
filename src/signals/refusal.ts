import { HeedError } from '../base/errors.ts'

/** How much of a path is told: keys may be anybody's, and what refers to itself has no end. */
const longestPath = 120

/** The error of a send: `path` is that of what is wrong, `why` completes the sentence that begins with it. */
export function refusal(path: string, why: string, details: Record<string, unknown> = {}): HeedError {
  const field = path.length > longestPath ? `${path.slice(0, longestPath)}…` : path
  return new HeedError('invalid_signal', `Invalid signal: ${field} ${why}`, { details: { field, ...details } })
}

/** What a value is, for the text of an error. */
export function describe(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'string') return value.length > 64 ? `${JSON.stringify(value.slice(0, 64))}…` : JSON.stringify(value)
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value !== 'object') return typeof value
  const name: unknown = value.constructor?.name
  return typeof name === 'string' && name !== 'Object' ? `an instance of ${name}` : 'an object'
}
