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
