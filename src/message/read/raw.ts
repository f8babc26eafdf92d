import { HeedError } from '../../base/errors.ts'
import { isObject, type JSONValue } from '../../base/json.ts'
import type { ProviderOptions } from '../message.ts'

/** An object of the caller or of an older row, not validated yet. */
export type Raw = Record<string, unknown>

export function firstString(...values: unknown[]): string | undefined {
  return values.find(value => typeof value === 'string')
}

/** The value as a store returns it; `null` for a value that JSON can't represent. */
export function asJSON(value: unknown): JSONValue {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  try {
    return JSON.parse(JSON.stringify(value) ?? 'null') as JSONValue
  } catch {
    return null
  }
}

/** Provider options under any of the names that they have had. */
export function providerMetadataOf(raw: Raw): { providerMetadata?: ProviderOptions } {
  const options = raw.providerMetadata ?? raw.providerOptions ?? raw.experimental_providerMetadata
  return isProviderOptions(options) ? { providerMetadata: options } : {}
}

export function isProviderOptions(value: unknown): value is ProviderOptions {
  return isObject(value) && Object.values(value).every(isObject)
}

export function parseDate(value: unknown): Date | undefined {
  if (!(value instanceof Date) && typeof value !== 'string' && typeof value !== 'number') return undefined
  const date = new Date(value)
  return Number.isNaN(date.getTime()) ? undefined : date
}

/** The thread and the resource that a message names, and its type. */
export function placeOf({ threadId, resourceId, type }: Raw): { threadId?: string; resourceId?: string; type?: string } {
  return {
    ...(typeof threadId === 'string' && { threadId }),
    ...(typeof resourceId === 'string' && { resourceId }),
    ...(typeof type === 'string' && { type }),
  }
}

/** The error of an invalid message of the caller: its index, and the reason. */
export function invalidMessage(index: number, reason: string, details: Record<string, unknown> = {}): HeedError {
  return new HeedError('invalid_message', `messages[${index}]: ${reason}.`, { details: { index, ...details } })
}

/** The time of a message; undefined when it has none. Rejects an invalid one. */
export function readTime(value: unknown, index: number, field = 'createdAt'): Date | undefined {
  const date = parseDate(value)
  if (date || value === undefined || value === null) return date
  throw invalidMessage(index, `\`${field}\` is not a time. Write it as 2026-01-31T12:00:00Z, or leave it out`, { field })
}

/** The limit of a stored message, equal to that of a signal. */
const maxBytes = 10 * 1024 * 1024

/** Rejects content that a store can't take: no JSON, or too large. `index`: the position of the message in the call. */
export function checkStorable(content: object, index: number): void {
  let text: string
  try {
    text = JSON.stringify(content)
  } catch (cause) {
    throw new HeedError('invalid_message', `messages[${index}] is not JSON and can't be stored.`, { cause, details: { index } })
  }
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return
  const reason = `messages[${index}] has more than ${maxBytes} bytes. Store the file elsewhere and pass its URL.`
  throw new HeedError('invalid_message', reason, { details: { index, maxBytes } })
}
