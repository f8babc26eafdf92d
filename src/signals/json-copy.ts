import type { JSONObject, JSONValue } from '../base/json.ts'
import type { ProviderOptions } from '../message/message.ts'
import { describe as messageOf, isHeedError } from '../base/errors.ts'
import { describe, refusal } from './refusal.ts'

const maxDepth = 128

/**
 * A copy that shares nothing with `value` and survives a store unchanged. As in `JSON.stringify`, `toJSON` is honoured and
 * `undefined` is left out; what JSON would silently turn into something else (`NaN`, a date that is none, a `Map`, a function) is refused by its path.
 */
export function copyJSON(value: unknown, field: string, depth = 0): JSONValue {
  if (depth > maxDepth) throw refusal(field, `is nested deeper than ${maxDepth} levels, or refers to itself.`)
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number' && Number.isFinite(value)) return value === 0 ? 0 : value
  if (typeof value !== 'object') throw refusal(field, `is not JSON (${describe(value)}).`)
  if (value instanceof Date && Number.isNaN(value.getTime())) throw refusal(field, 'is a date that is none.')
  if ('toJSON' in value && typeof value.toJSON === 'function') return copyJSON(attempt(field, () => (value as { toJSON(): unknown }).toJSON()), field, depth + 1)
  if (Array.isArray(value)) {
    const items = Array.from(value, (item: unknown) => (item === undefined ? null : item))
    return items.map((item, index) => copyJSON(item, `${field}[${index}]`, depth + 1))
  }
  if (!isPlainObject(value)) throw refusal(field, `is not JSON (${describe(value)}).`)
  return copyEntries(value, field, depth)
}

export function copyJSONObject(value: unknown, field: string): JSONObject {
  if (!isPlainObject(value)) throw refusal(field, `must be an object, not ${describe(value)}.`)
  return copyEntries(value, field, 0)
}

export function copyProviderOptions(value: unknown, field: string): ProviderOptions {
  if (!isPlainObject(value)) throw refusal(field, `must be an object keyed by provider, not ${describe(value)}.`)
  const providers = Object.entries(value).filter(([, options]) => options !== undefined)
  return Object.fromEntries(providers.map(([provider, options]) => [provider, copyJSONObject(options, `${field}.${provider}`)]))
}

/** True for objects without a class of their own, also those of another realm. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

// `fromEntries` defines its keys, so a key named `__proto__` stays a key.
function copyEntries(value: Record<string, unknown>, field: string, depth: number): JSONObject {
  const entries = attempt(field, () => Object.entries(value)).filter(([, item]) => item !== undefined)
  return Object.fromEntries(entries.map(([key, item]) => [key, copyJSON(item, `${field}.${key}`, depth + 1)]))
}

/** What an object does when it is read is its own: a failure of that is told as one of the field. */
export function attempt<Value>(field: string, read: () => Value): Value {
  try {
    return read()
  } catch (error) {
    if (isHeedError(error)) throw error
    throw refusal(field, `can't be read: ${messageOf(error)}`)
  }
}
