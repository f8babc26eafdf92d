import { HeedError } from '../../base/errors.ts'
import { dateOf } from './raw.ts'

/** The one refusal of a message from outside: which of them, and why. */
export function invalidMessage(index: number, why: string, details: Record<string, unknown> = {}): HeedError {
  return new HeedError('invalid_message', `messages[${index}]: ${why}.`, { details: { index, ...details } })
}

/** The time that a message says, if it says one. */
export function saidTime(value: unknown, index: number, field = 'createdAt'): Date | undefined {
  const date = dateOf(value)
  if (!date && value !== undefined && value !== null) throw invalidMessage(index, `\`${field}\` is not a time. Write it as 2026-01-31T12:00:00Z, or leave it out`, { field })
  return date
}

/** What a value is, in a word that fits in an error. */
export function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (typeof value === 'string') return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
