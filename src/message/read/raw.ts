import type { JSONValue } from '../../base/json.ts'
import type { ProviderOptions } from '../message.ts'

/** An object from outside, before anything is known about it. */
export type Raw = Record<string, unknown>

export function isRaw(value: unknown): value is Raw {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The first of these that is a string. */
export function firstText(...values: unknown[]): string | undefined {
  return values.find(value => typeof value === 'string')
}

/** The value as it would come back from a store; `null` for what JSON has no word for. */
export function asJSON(value: unknown): JSONValue {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  try {
    return JSON.parse(JSON.stringify(value) ?? 'null') as JSONValue
  } catch {
    return null
  }
}

/** Provider options under any of the names that they have had. */
export function optionsOf(raw: Raw): { providerMetadata?: ProviderOptions } {
  const options = raw.providerMetadata ?? raw.providerOptions ?? raw.experimental_providerMetadata
  return isProviderOptions(options) ? { providerMetadata: options } : {}
}

export function isProviderOptions(value: unknown): value is ProviderOptions {
  return isRaw(value) && Object.values(value).every(isRaw)
}

export function dateOf(value: unknown): Date | undefined {
  if (!(value instanceof Date) && typeof value !== 'string' && typeof value !== 'number') return undefined
  const date = new Date(value)
  return Number.isNaN(date.getTime()) ? undefined : date
}
