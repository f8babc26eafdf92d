import type { JSONSchema7, JSONSchema7Definition } from '@ai-sdk/provider'

/**
 * The schema with `additionalProperties: false` in each object that doesn't set `additionalProperties`. Schema libraries leave it out of
 * the JSON Schema of an input, and providers reject structured output without it.
 */
export function closeObjects(schema: JSONSchema7): JSONSchema7 {
  const closed = closeNested(schema)
  return closed.properties && closed.additionalProperties === undefined ? { ...closed, additionalProperties: false } : closed
}

/** Closes nested objects only: a closed part of an intersection would reject the properties of the other parts. */
function closeNested(schema: JSONSchema7): JSONSchema7 {
  const closed: JSONSchema7 = { ...schema }
  for (const key of ['properties', 'definitions', '$defs'] as const) {
    const named = schema[key]
    if (named) closed[key] = Object.fromEntries(Object.entries(named).map(([name, inner]) => [name, closeDefinition(inner)]))
  }
  for (const key of ['anyOf', 'oneOf'] as const) {
    const list = schema[key]
    if (list) closed[key] = list.map(closeDefinition)
  }
  if (schema.allOf) closed.allOf = schema.allOf.map((part) => (typeof part === 'object' ? closeNested(part) : part))
  if (Array.isArray(schema.items)) closed.items = schema.items.map(closeDefinition)
  else if (schema.items !== undefined) closed.items = closeDefinition(schema.items)
  if (schema.additionalProperties !== undefined) closed.additionalProperties = closeDefinition(schema.additionalProperties)
  return closed
}

function closeDefinition(schema: JSONSchema7Definition): JSONSchema7Definition {
  return typeof schema === 'object' ? closeObjects(schema) : schema
}
