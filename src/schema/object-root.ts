import type { JSONSchema7, JSONSchema7Definition } from '@ai-sdk/provider'

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
