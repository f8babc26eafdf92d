import { HeedError } from '../errors.ts'

/** The one refusal of a message from outside: which of them, and why. */
export function invalidMessage(index: number, why: string, details: Record<string, unknown> = {}): HeedError {
  return new HeedError('invalid_message', `messages[${index}]: ${why}.`, { details: { index, ...details } })
}

/** What a value is, in a word that fits in an error. */
export function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (typeof value === 'string') return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
