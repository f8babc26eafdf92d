import type { JSONObject, JSONValue } from '@ai-sdk/provider'

/** What OpenAI says of an answer's schema whose root is none that it takes. */
export function schemaRefusal(format: JSONValue | undefined): string | undefined {
  if (!isObject(format) || !isObject(format.schema)) return undefined
  const { type, anyOf } = format.schema
  if (type === 'object' && anyOf === undefined) return undefined
  const got = type === 'object' ? 'anyOf' : `type: ${JSON.stringify(type ?? 'None')}`
  return `Invalid schema for response_format '${String(format.name)}': schema must be a JSON Schema of 'type: "object"', got '${got}'.`
}

function isObject(value: JSONValue | undefined): value is JSONObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
