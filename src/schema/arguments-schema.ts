import type { JSONSchema7, JSONSchema7Definition } from '@ai-sdk/provider'

/**
 * The schema of a tool's input as providers accept it: one object, without a choice at its root. A choice of objects becomes one object
 * with the fields of all, requiring the fields that each requires; validation still rejects combinations that the choice forbids.
 * Undefined for a schema that no object matches, since models call tools with objects only.
 */
export function argumentsSchema(schema: JSONSchema7): JSONSchema7 | undefined {
  const { $ref, anyOf, oneOf, allOf, ...root } = schema
  const types = schema.type === undefined ? undefined : [schema.type].flat()
  if (types && !types.includes('object')) return undefined
  if ((anyOf ?? oneOf ?? allOf ?? $ref) === undefined) {
    if (schema.type === 'object') return schema
    return types || (schema.enum === undefined && schema.const === undefined) ? { ...root, type: 'object' } : undefined
  }
  const resolve = (one: JSONSchema7Definition) => objectSchema(resolveRef(one, schema))
  const rootObject: JSONSchema7 = { ...root, type: 'object' }
  const all = [...($ref === undefined ? [] : [{ $ref }]), ...(allOf ?? [])].map(resolve)
  const choices = [anyOf, oneOf].filter((choice) => choice !== undefined)
  const parts = [...all, ...choices.map((choice) => union(choice.flatMap((one) => resolve(one) ?? [])))]
  return parts.every((part) => part !== undefined) ? [rootObject, ...parts].reduce(intersection) : undefined
}

/** The schema of a local reference. */
function resolveRef(one: JSONSchema7Definition, root: JSONSchema7): JSONSchema7Definition {
  const [, group, name = ''] = (typeof one === 'object' && /^#\/(definitions|\$defs)\/([^/]+)$/.exec(one.$ref ?? '')) || []
  return (group === undefined ? undefined : root[group as 'definitions' | '$defs']?.[name]) ?? one
}

/** The schema as an object schema; undefined where it describes no object. */
function objectSchema(one: JSONSchema7Definition): JSONSchema7 | undefined {
  if (typeof one !== 'object' || one.$ref !== undefined) return undefined
  const isTyped = one.type !== undefined || one.properties !== undefined || one.required !== undefined
  return isTyped || one.anyOf || one.oneOf || one.allOf ? argumentsSchema(one) : undefined
}

/** An object with the fields of all choices. */
function union(choices: readonly JSONSchema7[]): JSONSchema7 | undefined {
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

/** An object that matches both schemas. */
function intersection(one: JSONSchema7, other: JSONSchema7): JSONSchema7 {
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
