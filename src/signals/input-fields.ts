import { describeValue } from '../base/arguments.ts'
import { describe, HeedError, isHeedError } from '../base/errors.ts'
import { isPlainObject, type JSONObject, type JSONValue } from '../base/json.ts'
import type { ProviderOptions } from '../message/message.ts'

/** Keys come from the sender, and the path of an object that refers to itself is endless. */
const maxPathLength = 120

/** The error of an invalid input. `path` is the invalid field; `reason` completes the sentence that begins with it. */
export function invalidSignal(path: string, reason: string, details: Record<string, unknown> = {}): HeedError {
  const field = path.length > maxPathLength ? `${path.slice(0, maxPathLength)}…` : path
  return new HeedError('invalid_signal', `Invalid signal: ${field} ${reason}`, { details: { field, ...details } })
}

const maxDepth = 128

/**
 * A copy that shares nothing with `value` and that a store returns unchanged. As in `JSON.stringify`, `toJSON` is called and `undefined`
 * is left out. A value that JSON would silently replace (`NaN`, an invalid date, a `Map`, a function) is rejected with its path.
 */
export function copyJSON(value: unknown, field: string, depth = 0): JSONValue {
  if (depth > maxDepth) throw invalidSignal(field, `is nested deeper than ${maxDepth} levels, or refers to itself.`)
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number' && Number.isFinite(value)) return value === 0 ? 0 : value
  if (typeof value !== 'object') throw invalidSignal(field, `is not JSON (${describeValue(value)}).`)
  if (value instanceof Date && Number.isNaN(value.getTime())) throw invalidSignal(field, 'is an invalid date.')
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    const replacement = readField(field, () => (value as { toJSON(): unknown }).toJSON())
    return copyJSON(replacement, field, depth + 1)
  }
  if (Array.isArray(value)) {
    const items = Array.from(value, (item: unknown) => (item === undefined ? null : item))
    return items.map((item, index) => copyJSON(item, `${field}[${index}]`, depth + 1))
  }
  if (!isPlainObject(value)) throw invalidSignal(field, `is not JSON (${describeValue(value)}).`)
  return copyEntries(value, field, depth)
}

export function copyJSONObject(value: unknown, field: string): JSONObject {
  if (!isPlainObject(value)) throw invalidSignal(field, `must be an object, not ${describeValue(value)}.`)
  return copyEntries(value, field, 0)
}

export function copyProviderOptions(value: unknown, field: string): ProviderOptions {
  if (!isPlainObject(value)) throw invalidSignal(field, `must be an object keyed by provider, not ${describeValue(value)}.`)
  const providers = Object.entries(value).filter(([, options]) => options !== undefined)
  return Object.fromEntries(providers.map(([provider, options]) => [provider, copyJSONObject(options, `${field}.${provider}`)]))
}

// `fromEntries` defines its keys, so a key named `__proto__` stays a key.
function copyEntries(value: Record<string, unknown>, field: string, depth: number): JSONObject {
  const entries = readField(field, () => Object.entries(value)).filter(([, item]) => item !== undefined)
  return Object.fromEntries(entries.map(([key, item]) => [key, copyJSON(item, `${field}.${key}`, depth + 1)]))
}

/** Reads a field of the sender's object. A getter or `toJSON` that throws makes the field invalid. */
export function readField<Value>(field: string, read: () => Value): Value {
  try {
    return read()
  } catch (error) {
    if (isHeedError(error)) throw error
    throw invalidSignal(field, `can't be read: ${describe(error)}`)
  }
}
