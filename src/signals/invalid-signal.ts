import { HeedError } from '../base/errors.ts'

/** Keys come from the sender, and the path of an object that refers to itself is endless. */
const maxPathLength = 120

/** The error of an invalid input. `path` is the invalid field; `reason` completes the sentence that begins with it. */
export function invalidSignal(path: string, reason: string, details: Record<string, unknown> = {}): HeedError {
  const field = path.length > maxPathLength ? `${path.slice(0, maxPathLength)}…` : path
  return new HeedError('invalid_signal', `Invalid signal: ${field} ${reason}`, { details: { field, ...details } })
}
