import type { JSONSchema7, JSONSchema7Definition } from '@ai-sdk/provider'

/**
 * The shape of a tool's input as providers take it: one object, with no choice at its root. A choice of objects is told as one object with the
 * fields of all, of which those are required that each requires; what is not allowed together is left to validation. Undefined for what can't be
 * an object, since models call tools with nothing else.
 */
export function argumentsShape(schema: JSONSchema7): JSONSchema7 | undefined {
  const { $ref, anyOf, oneOf, allOf, ...root } = schema
  const types = schema.type === undefined ? undefined : [schema.type].flat()
  if (types && !types.includes('object')) return undefined
  if ((anyOf ?? oneOf ?? allOf ?? $ref) === undefined) {
    if (schema.type === 'object') return schema
    return types || (schema.enum === undefined && schema.const === undefined) ? { ...root, type: 'object' } : undefined
  }
  const named = (one: JSONSchema7Definition) => referred(one, schema)
  const given: JSONSchema7 = { ...root, type: 'object' }
  const all = [...($ref === undefined ? [] : [{ $ref }]), ...(allOf ?? [])].map((one) => objectIn(named(one)))
  const choices = [anyOf, oneOf].filter((choice) => choice !== undefined).map((choice) => oneOfThese(choice.flatMap((one) => objectIn(named(one)) ?? [])))
  const parts = [...all, ...choices]
  return parts.every((part) => part !== undefined) ? [given, ...parts].reduce(both) : undefined
}

/** The schema that a local reference stands for. */
function referred(one: JSONSchema7Definition, root: JSONSchema7): JSONSchema7Definition {
  const [, group, name = ''] = (typeof one === 'object' && /^#\/(definitions|\$defs)\/([^/]+)$/.exec(one.$ref ?? '')) || []
  return (group === undefined ? undefined : root[group as 'definitions' | '$defs']?.[name]) ?? one
}

/** What is an object, or could be one. */
function objectIn(one: JSONSchema7Definition): JSONSchema7 | undefined {
  if (typeof one !== 'object' || one.$ref !== undefined) return undefined
  if (one.type === undefined && one.properties === undefined && one.required === undefined) return argumentsOfChoice(one)
  return argumentsShape(one)
}

function argumentsOfChoice(one: JSONSchema7): JSONSchema7 | undefined {
  return one.anyOf || one.oneOf || one.allOf ? argumentsShape(one) : undefined
}

function oneOfThese(choices: readonly JSONSchema7[]): JSONSchema7 | undefined {
  const [first, ...others] = choices
  if (!first) return undefined
  const required = (first.required ?? []).filter((field) => others.every((other) => other.required?.includes(field)))
  const closed = choices.every(({ additionalProperties }) => additionalProperties === false)
  const fields = [...new Set(choices.flatMap(({ properties = {} }) => Object.keys(properties)))]
  const either = fields.map((field) => [field, anyOf(choices.flatMap(({ properties }) => properties?.[field] ?? []))] as const)
  return { type: 'object', properties: Object.fromEntries(either), required, ...(closed ? { additionalProperties: false } : {}) }
}

function anyOf(schemas: readonly JSONSchema7Definition[]): JSONSchema7Definition {
  const different = [...new Map(schemas.map((schema) => [JSON.stringify(schema), schema])).values()]
  return different.length === 1 ? (different[0] ?? true) : { anyOf: different }
}

/** An object that is both. */
function both(one: JSONSchema7, other: JSONSchema7): JSONSchema7 {
  const { properties = {}, required = [] } = one
  const shared = Object.entries(other.properties ?? {}).map(([field, schema]) => {
    const here = properties[field]
    return [field, here === undefined || JSON.stringify(here) === JSON.stringify(schema) ? schema : { allOf: [here, schema] }] as const
  })
  const all = [...new Set([...required, ...(other.required ?? [])])]
  const { additionalProperties } = other
  return {
    ...(other.description === undefined ? {} : { description: other.description }),
    ...one,
    properties: { ...properties, ...Object.fromEntries(shared) },
    ...(all.length > 0 ? { required: all } : {}),
    ...(additionalProperties === undefined ? {} : { additionalProperties }),
  }
}
