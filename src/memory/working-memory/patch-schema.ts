import type { JSONSchema7 } from '@ai-sdk/provider'
import { HeedError } from '../../base/errors.ts'
import { compileSchema } from '../../schema/compile.ts'
import type { PlainJSONSchema, Schema } from '../../schema/schema.ts'

type Definition = JSONSchema7 | boolean
type Shape = Record<string, unknown>

/**
 * What a change of an object of this schema may look like, as the property `memory` of the tool's input: every field may be left out, and
 * null removes it. Lists are replaced, so what is in them has to be whole.
 */
export function patchInput(schema: Schema): Promise<PlainJSONSchema> {
  let input = inputs.get(schema)
  if (!input) inputs.set(schema, (input = makeInput(schema)))
  return input
}

/** One for each schema: validators are made once for an object. */
const inputs = new WeakMap<object, Promise<PlainJSONSchema>>()

async function makeInput(schema: Schema): Promise<PlainJSONSchema> {
  const { definitions, $defs, $schema, ...shape } = (await compileSchema(schema, 'workingMemory.schema').jsonSchema()) as Shape
  if (shape.type !== 'object' && !(shape.type === undefined && shape.properties)) {
    throw new HeedError('invalid_schema', 'workingMemory.schema must describe an object: fields are merged one by one.', { details: { option: 'workingMemory.schema' } })
  }
  return {
    ...($schema === undefined ? {} : { $schema }),
    type: 'object',
    properties: {
      memory: { ...partial(relocated(shape)), description: 'Only the fields that change. null removes a field; a list replaces the one before.' },
      delete: { type: 'array', items: { type: 'string' }, description: "Fields to remove, as paths such as 'preferences.tone'." },
    },
    additionalProperties: false,
    ...(definitions === undefined ? {} : { definitions: relocated(definitions) }),
    ...($defs === undefined ? {} : { $defs: relocated($defs) }),
  }
}

function partial(schema: Shape): Shape {
  const { anyOf, additionalProperties: others } = schema
  // Of a choice between several objects each has to be whole: a part could be of any of them.
  if (Array.isArray(anyOf) && anyOf.filter((one: Shape) => one.type !== 'null').length === 1) return { ...schema, anyOf: anyOf.map(partial) }
  const open = typeof others === 'object' && others !== null ? { ...schema, additionalProperties: removable(others) } : schema
  return withFields(open)
}

function withFields(schema: Shape): Shape {
  if (typeof schema.properties !== 'object' || schema.properties === null) return schema
  const { required: _, properties, ...rest } = schema
  return { ...rest, properties: Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, removable(field as Definition)])) }
}

function removable(field: Definition): Definition {
  if (typeof field === 'boolean') return field
  // A field without a default: one that is left out stays as it was, and must not come back as that.
  const { default: _, description, ...shape } = partial(field as Shape) as JSONSchema7
  return { ...(description === undefined ? {} : { description }), anyOf: [shape, { type: 'null' }] }
}

/** The schema of the whole is not the root any more. */
function relocated<T>(schema: T): T {
  if (Array.isArray(schema)) return schema.map(relocated) as T
  if (typeof schema !== 'object' || schema === null) return schema
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, key === '$ref' && value === '#' ? '#/properties/memory' : relocated(value as unknown)])) as T
}

/** `preferences.tone`, or `/preferences/tone` where names have dots. */
export function pathOf(written: string): string[] {
  if (written.startsWith('/')) return written.slice(1).split('/').map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  return written.split('.')
}
