import type { JSONSchema7, JSONSchema7Definition } from '@ai-sdk/provider'

/**
 * The schema with `additionalProperties: false` wherever an object doesn't say what else it may hold. Schema libraries leave it out
 * of the shape that they read, and providers that hold a model to a schema refuse one without it.
 */
export function closedObjects(schema: JSONSchema7): JSONSchema7 {
  const closed = within(schema)
  return closed.properties && closed.additionalProperties === undefined ? { ...closed, additionalProperties: false } : closed
}

/** What is in the schema closed, itself left as it is: each part of an intersection would refuse what the others allow. */
function within(schema: JSONSchema7): JSONSchema7 {
  const closed: JSONSchema7 = { ...schema }
  for (const key of ['properties', 'definitions', '$defs'] as const) {
    const named = schema[key]
    if (named) closed[key] = Object.fromEntries(Object.entries(named).map(([name, inner]) => [name, each(closedObjects)(inner)]))
  }
  for (const key of ['anyOf', 'oneOf'] as const) {
    const list = schema[key]
    if (list) closed[key] = list.map(each(closedObjects))
  }
  if (schema.allOf) closed.allOf = schema.allOf.map(each(within))
  if (schema.items !== undefined) closed.items = Array.isArray(schema.items) ? schema.items.map(each(closedObjects)) : each(closedObjects)(schema.items)
  if (schema.additionalProperties !== undefined) closed.additionalProperties = each(closedObjects)(schema.additionalProperties)
  return closed
}

function each(change: (schema: JSONSchema7) => JSONSchema7): (schema: JSONSchema7Definition) => JSONSchema7Definition {
  return (schema) => (typeof schema === 'object' ? change(schema) : schema)
}
