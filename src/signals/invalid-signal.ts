import { HeedError } from '../base/errors.ts'

/** Keys come from the sender, and the path of an object that refers to itself is endless. */
const maxPathLength = 120

/** The error of an invalid input. `path` is the invalid field; `reason` completes the sentence that begins with it. */
export function invalidSignal(path: string, reason: string, details: Record<string, unknown> = {}): HeedError {
  const field = path.length > maxPathLength ? `${path.slice(0, maxPathLength)}…` : path
  return new HeedError('invalid_signal', `Invalid signal: ${field} ${reason}`, { details: { field, ...details } })
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
