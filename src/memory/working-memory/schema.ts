import type { JSONSchema7 } from '@ai-sdk/provider'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { HeedError } from '../../base/errors.ts'
import { compileSchema, describeIssues } from '../../schema/compile.ts'
import type { AISDKSchema, PlainJSONSchema, Schema } from '../../schema/schema.ts'
import { isObject } from '../../base/json.ts'
import type { WorkingMemoryChange, WorkingMemoryValue } from '../../store/contract/working-memory.ts'

type Definition = JSONSchema7 | boolean
type Shape = Record<string, unknown>

/**
 * The input schema of a change to an object of this schema, as the property `memory` of the tool's input: each field is optional, and null
 * removes it. Lists are replaced, so their items must be complete.
 */
export function patchInput(schema: Schema): Promise<Schema> {
  let input = inputs.get(schema)
  if (!input) inputs.set(schema, (input = createInput(schema).then(lenientInput)))
  return input
}

/** One per schema: validators are compiled once per object. */
const inputs = new WeakMap<object, Promise<Schema>>()

/** The input schema of a tool that replaces a text. */
export const textInput: Schema = lenientInput({
  type: 'object',
  properties: { memory: { type: 'string', description: 'The complete new text.' } },
  required: ['memory'],
  additionalProperties: false,
})

/**
 * The schema, which also accepts the property `memory` as JSON text, its value alone, and either as JSON text, if that matches the schema
 * in one way only: models leave out the wrapper, and the meaning is the same.
 */
function lenientInput(schema: PlainJSONSchema): Schema {
  const { validate } = compileSchema(schema, 'The input of updateWorkingMemory')
  const lenient: AISDKSchema = {
    _type: undefined,
    jsonSchema: schema as JSONSchema7,
    async validate(value) {
      const asGiven = await validate(value)
      if (asGiven.ok) return { success: true, value: asGiven.value }
      const matching = (await Promise.all(otherForms(value).map(async (form) => validate(form)))).filter(({ ok }) => ok)
      const [only, another] = matching
      if (only?.ok && !another) return { success: true, value: only.value }
      return { success: false, error: new Error(describeIssues(asGiven.issues)) }
    },
  }
  return Object.assign(lenient, { [Symbol.for('vercel.ai.schema')]: true })
}

function otherForms(value: unknown): unknown[] {
  const parsed = parseText(value)
  if (parsed !== undefined) return [parsed, { memory: parsed }, { memory: value }]
  if (!isObject(value)) return [{ memory: value }]
  const memory = parseText(value.memory)
  return memory === undefined ? [{ memory: value }] : [{ ...value, memory }]
}

/** The object that a JSON text encodes; undefined for everything else. */
function parseText(value: unknown): Record<string, unknown> | undefined {
  if (typeof value !== 'string' || !value.trimStart().startsWith('{')) return undefined
  try {
    const parsed: unknown = JSON.parse(value)
    return isObject(parsed) ? parsed : undefined
  } catch {
    return undefined
  }
}

async function createInput(schema: Schema): Promise<PlainJSONSchema> {
  const { definitions, $defs, $schema, ...shape } = (await compileSchema(schema, 'workingMemory.schema').jsonSchema()) as Shape
  if (shape.type !== 'object' && !(shape.type === undefined && shape.properties)) {
    throw new HeedError('invalid_schema', 'workingMemory.schema must describe an object: its fields are merged one by one.', {
      details: { option: 'workingMemory.schema' },
    })
  }
  return {
    ...($schema === undefined ? {} : { $schema }),
    type: 'object',
    properties: {
      memory: {
        ...partial(relocated(shape)),
        description: 'Only the fields that change. null removes a field; a list replaces the one before.',
      },
      delete: { type: 'array', items: { type: 'string' }, description: "Fields to remove, as paths such as 'preferences.tone'." },
    },
    additionalProperties: false,
    ...(definitions === undefined ? {} : { definitions: relocated(definitions) }),
    ...($defs === undefined ? {} : { $defs: relocated($defs) }),
  }
}

function partial(schema: Shape): Shape {
  const { anyOf, additionalProperties: others } = schema
  // Each object of a union must be complete: a part could belong to any of them.
  if (Array.isArray(anyOf) && anyOf.filter((one: Shape) => one.type !== 'null').length === 1) {
    return { ...schema, anyOf: anyOf.map(partial) }
  }
  const open = typeof others === 'object' && others !== null ? { ...schema, additionalProperties: removable(others) } : schema
  return withOptionalFields(open)
}

function withOptionalFields(schema: Shape): Shape {
  if (typeof schema.properties !== 'object' || schema.properties === null) return schema
  const { required: _, properties, ...rest } = schema
  return {
    ...rest,
    properties: Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, removable(field as Definition)])),
  }
}

function removable(field: Definition): Definition {
  if (typeof field === 'boolean') return field
  // Without its default: a field that is left out must stay unchanged, not be reset.
  const { default: _, description, ...shape } = partial(field as Shape) as JSONSchema7
  return { ...(description === undefined ? {} : { description }), anyOf: [shape, { type: 'null' }] }
}

/** Rewrites references to the root: the schema is not the root any more. */
function relocated<T>(schema: T): T {
  if (Array.isArray(schema)) return schema.map(relocated) as T
  if (typeof schema !== 'object' || schema === null) return schema
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [
      key,
      key === '$ref' && value === '#' ? '#/properties/memory' : relocated(value as unknown),
    ]),
  ) as T
}

/** `preferences.tone`, or `/preferences/tone` (a JSON pointer) for names with dots. */
export function parsePath(path: string): string[] {
  if (path.startsWith('/')) return path.slice(1).split('/').map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  return path.split('.')
}

/**
 * A check of the whole value after a change, with the schema's own validator, which may check more than JSON Schema can express. Fields may
 * be missing, and issues that existed before the change are ignored.
 */
export function checkOfWhole(schema: Schema): WorkingMemoryChange['check'] {
  if (!('~standard' in schema)) return undefined
  const standard = schema['~standard'] as Partial<StandardSchemaV1.Props>
  const validate = standard.validate
  if (!validate) return undefined
  const issuesOf = (value: WorkingMemoryValue): string[] => {
    const result = validate(value)
    if (result instanceof Promise) {
      result.catch(() => undefined)
      throw new HeedError(
        'invalid_schema',
        'workingMemory.schema validates asynchronously, which a transaction cannot wait for. Remove its async checks.',
        { details: { option: 'workingMemory.schema' } },
      )
    }
    return (result.issues ?? []).flatMap((issue) => {
      const path = issuePath(issue)
      return hasValue(value, path) ? [path.length > 0 ? `${path.join('.')}: ${issue.message}` : issue.message] : []
    })
  }
  return (value, before) => {
    const issues = issuesOf(value)
    if (issues.length === 0) return
    const known = new Set(before === undefined ? [] : issuesOf(before))
    const added = issues.filter((issue) => !known.has(issue))
    if (added.length === 0) return
    throw new HeedError('invalid_argument', `workingMemory would not match its schema: ${added.join('; ')}. Nothing was changed.`, {
      details: { field: 'workingMemory' },
    })
  }
}

function issuePath({ path = [] }: StandardSchemaV1.Issue): string[] {
  return path.map((segment) => String(typeof segment === 'object' ? segment.key : segment))
}

function hasValue(value: unknown, path: readonly string[]): boolean {
  let inner = value
  for (const key of path) {
    if (!(isObject(inner) || Array.isArray(inner)) || !Object.hasOwn(inner, key)) return false
    inner = (inner as Record<string, unknown>)[key]
  }
  return true
}
