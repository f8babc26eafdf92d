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

/** The only field of a wrapped schema. */
export const wrappedField = 'value'

/** True for a schema that providers accept as the root of structured output: an object, and not a choice of objects. */
export function hasObjectRoot({ type, properties }: JSONSchema7): boolean {
  return type === 'object' || (type === undefined && properties !== undefined)
}

/** An object schema whose only field has the passed schema. References to the former root are adjusted. */
export function wrapRoot({ $schema, $id, definitions, $defs, ...inner }: JSONSchema7): JSONSchema7 {
  const rootName = unusedName({ ...definitions, ...$defs })
  const adjust = (schema: JSONSchema7) => adjustRefs(schema, `#/definitions/${rootName}`)
  const adjustAll = (group: Record<string, JSONSchema7Definition>) =>
    Object.fromEntries(Object.entries(group).map(([name, schema]) => [name, typeof schema === 'object' ? adjust(schema) : schema]))
  const value = adjust(inner)
  const groups = { ...(definitions ? { definitions: adjustAll(definitions) } : {}), ...($defs ? { $defs: adjustAll($defs) } : {}) }
  const recursive = JSON.stringify([value, groups]).includes(`"#/definitions/${rootName}`)
  return {
    ...($schema === undefined ? {} : { $schema }),
    ...($id === undefined ? {} : { $id }),
    type: 'object',
    properties: { [wrappedField]: recursive ? { $ref: `#/definitions/${rootName}` } : value },
    required: [wrappedField],
    additionalProperties: false,
    ...groups,
    ...(recursive ? { definitions: { ...groups.definitions, [rootName]: value } } : {}),
  }
}

function unusedName(taken: object): string {
  let name = wrappedField
  while (name in taken) name += '_'
  return name
}

/** Replaces references to the root, or to a path below it, by references below `root`. References to definitions stay. */
function adjustRefs(schema: JSONSchema7, root: string): JSONSchema7 {
  const reviver = (key: string, value: unknown) => (key === '$ref' && typeof value === 'string' ? adjustRef(value, root) : value)
  return JSON.parse(JSON.stringify(schema), reviver) as JSONSchema7
}

function adjustRef(ref: string, root: string): string {
  return ref === '#' || (ref.startsWith('#/') && !/^#\/(definitions|\$defs)\//.test(ref)) ? root + ref.slice(1) : ref
}

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
