import type { JSONSchema7, JSONSchema7Definition } from '@ai-sdk/provider'

/** The one field of an object that was put around a value. */
export const wrappedField = 'value'

/** Whether a provider that holds a model to a schema takes this one as the root: they insist on an object there, and refuse a choice of objects. */
export function hasObjectRoot({ type, properties }: JSONSchema7): boolean {
  return type === 'object' || (type === undefined && properties !== undefined)
}

/** The schema of an object whose one field is what the given schema describes. What it says of itself by `$ref` holds where it stands now. */
export function wrapRoot({ $schema, $id, definitions, $defs, ...inner }: JSONSchema7): JSONSchema7 {
  const named = ownName({ ...definitions, ...$defs })
  const moved = (schema: JSONSchema7) => withRefs(schema, `#/definitions/${named}`)
  const eachMoved = (group: Record<string, JSONSchema7Definition>) =>
    Object.fromEntries(Object.entries(group).map(([name, schema]) => [name, typeof schema === 'object' ? moved(schema) : schema]))
  const value = moved(inner)
  const groups = { ...(definitions ? { definitions: eachMoved(definitions) } : {}), ...($defs ? { $defs: eachMoved($defs) } : {}) }
  const recursive = JSON.stringify([value, groups]).includes(`"#/definitions/${named}`)
  return {
    ...($schema === undefined ? {} : { $schema }),
    ...($id === undefined ? {} : { $id }),
    type: 'object',
    properties: { [wrappedField]: recursive ? { $ref: `#/definitions/${named}` } : value },
    required: [wrappedField],
    additionalProperties: false,
    ...groups,
    ...(recursive ? { definitions: { ...groups.definitions, [named]: value } } : {}),
  }
}

function ownName(taken: object): string {
  let name = wrappedField
  while (name in taken) name += '_'
  return name
}

/** The schema with each reference to its root, or into it, changed to the place where the root is now. Definitions stay where they are. */
function withRefs(schema: JSONSchema7, root: string): JSONSchema7 {
  return JSON.parse(JSON.stringify(schema), (key, value: unknown) => (key === '$ref' && typeof value === 'string' ? movedRef(value, root) : value)) as JSONSchema7
}

function movedRef(ref: string, root: string): string {
  return ref === '#' || (ref.startsWith('#/') && !/^#\/(definitions|\$defs)\//.test(ref)) ? root + ref.slice(1) : ref
}
