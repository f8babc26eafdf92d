import { HeedError } from '../../base/errors.ts'
import type { JSONSchema, ObjectSchema } from '../route.ts'

/**
 * The query as the schema types it: numbers and booleans by their words, objects as JSON or as `name[key]=value`, lists of objects as JSON,
 * other lists as repeated or comma-separated values. What can't be read as its type is passed on as it is, for the check to name.
 */
export function readQuery(search: URLSearchParams, schema: ObjectSchema): Record<string, unknown> {
  const query: Record<string, unknown> = {}
  for (const [name, property] of Object.entries(schema.properties)) {
    const value = isWritten(property) ? readObject(search, name, property) : readValue(search.getAll(name), property)
    if (value !== undefined) query[name] = value
  }
  return query
}

function isWritten({ type, items }: JSONSchema): boolean {
  return type === 'object' || (type === 'array' && (items as JSONSchema | undefined)?.type === 'object')
}

function readValue(values: readonly string[], property: JSONSchema): unknown {
  if (values.length === 0) return undefined
  if (property.type === 'array') return values.flatMap((value) => value.split(',')).filter((value) => value !== '')
  const [value = ''] = values
  const types: readonly unknown[] = Array.isArray(property.type) ? property.type : [property.type]
  if (types.includes('boolean') && (value === 'true' || value === 'false')) return value === 'true'
  if ((types.includes('integer') || types.includes('number')) && value.trim() !== '' && Number.isFinite(Number(value))) return Number(value)
  return value
}

function readObject(search: URLSearchParams, name: string, property: JSONSchema): unknown {
  const whole = search.get(name)
  if (whole !== null) {
    try {
      return JSON.parse(whole) as unknown
    } catch (cause) {
      throw new HeedError('invalid_argument', `The query's ${name} is not JSON.`, { cause, details: { field: name } })
    }
  }
  const inner = (property.properties ?? {}) as Record<string, JSONSchema>
  const entries = Object.entries(inner).flatMap(([key, of]) => {
    const value = readValue(search.getAll(`${name}[${key}]`), of)
    return value === undefined ? [] : [[key, value] as const]
  })
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}
