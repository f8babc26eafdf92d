import type { Ajv, ErrorObject } from 'ajv'
import type { JSONSchema7 } from '@ai-sdk/provider'
import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec'
import { describe, HeedError } from '../base/errors.ts'
import { senderOfSchema } from './outside-schema.ts'
import { validateOutside } from './outside-validation.ts'
import { closeObjects } from './provider-schema.ts'
import type { AISDKSchema, Issue, PlainJSONSchema, Validation } from './schema.ts'

export interface CompiledSchema {
  /** The schema as a model receives it. */
  jsonSchema(): JSONSchema7 | PromiseLike<JSONSchema7>
  validate(value: unknown): Validation | Promise<Validation>
}

const compiled = new WeakMap<object, CompiledSchema>()
const aiSdkSchema = Symbol.for('vercel.ai.schema')

/** Compiles a schema of any accepted form, once per object. `subject` is its name in errors: `inputSchema of tool 'weather'`. */
export function compileSchema(schema: unknown, subject: string): CompiledSchema {
  if (!isObjectLike(schema)) throw invalidSchema(subject)
  const known = compiled.get(schema)
  if (known) return known
  const result = compile(schema, subject)
  compiled.set(schema, result)
  return result
}

function compile(schema: object, subject: string): CompiledSchema {
  if ('~standard' in schema) return compileStandard(schema as StandardSchemaV1 & Partial<StandardJSONSchemaV1>, subject)
  if (aiSdkSchema in schema) return compileAISDK(schema as object as AISDKSchema)
  // The `ai` package also passes functions that create the schema on first use.
  if (typeof schema === 'function') return compileSchema(createSchema(schema as () => unknown, subject), subject)
  if (isPlainJSONSchema(schema)) return compilePlain(schema)
  throw invalidSchema(subject)
}

function createSchema(create: () => unknown, subject: string): unknown {
  try {
    return create()
  } catch (cause) {
    throw invalidSchema(subject, cause)
  }
}

function compileStandard(schema: StandardSchemaV1 & Partial<StandardJSONSchemaV1>, subject: string): CompiledSchema {
  const standard = schema['~standard']
  if (typeof standard !== 'object' || standard === null || standard.version !== 1) throw invalidSchema(subject)
  let converted: JSONSchema7 | undefined
  const jsonSchema = (): JSONSchema7 => {
    converted ??= standardJSONSchema(schema, subject)
    return converted
  }
  if (typeof standard.validate !== 'function') return { jsonSchema, validate: lazyValidator(jsonSchema) }
  return {
    jsonSchema,
    validate(value) {
      const result = standard.validate(value)
      return result instanceof Promise ? result.then(fromStandard) : fromStandard(result)
    },
  }
}

function standardJSONSchema(schema: StandardSchemaV1 & Partial<StandardJSONSchemaV1>, subject: string): JSONSchema7 {
  const converter = schema['~standard'].jsonSchema
  if (!converter) {
    throw new HeedError(
      'invalid_schema',
      `${subject} can validate, but can't be converted to JSON Schema, which models need. Use a library version that implements `
        + 'Standard JSON Schema (Zod 4.2 or newer, ArkType 2.1.28 or newer, Valibot with @valibot/to-json-schema), or pass JSON Schema.',
    )
  }
  try {
    const { $schema: _, ...converted } = converter.input({ target: 'draft-07' })
    return closeObjects(converted)
  } catch (cause) {
    throw new HeedError('invalid_schema', `${subject} can't be converted to JSON Schema: ${describe(cause)}`, { cause })
  }
}

function fromStandard(result: StandardSchemaV1.Result<unknown>): Validation {
  if (!result.issues) return { ok: true, value: result.value }
  return { ok: false, issues: result.issues.map((issue) => ({ path: pathOf(issue), message: issue.message })) }
}

function pathOf(issue: StandardSchemaV1.Issue): string {
  const keys = issue.path?.map((segment) => String(typeof segment === 'object' ? segment.key : segment))
  return keys?.join('.') ?? ''
}

function compileAISDK(schema: AISDKSchema): CompiledSchema {
  const { validate } = schema
  const jsonSchema = () => schema.jsonSchema
  if (!validate) return { jsonSchema, validate: lazyValidator(jsonSchema) }
  return {
    jsonSchema,
    async validate(value) {
      const result = await validate(value)
      return result.success ? { ok: true, value: result.value } : { ok: false, issues: [{ path: '', message: result.error.message }] }
    },
  }
}

function compilePlain(schema: PlainJSONSchema): CompiledSchema {
  const jsonSchema = () => schema as JSONSchema7
  const sender = senderOfSchema(schema)
  if (sender === undefined) return { jsonSchema, validate: lazyValidator(jsonSchema) }
  return { jsonSchema, validate: (value) => validateOutside(sender, jsonSchema(), value) }
}

function lazyValidator(jsonSchema: () => JSONSchema7 | PromiseLike<JSONSchema7>): (value: unknown) => Promise<Validation> {
  let validator: Promise<(value: unknown) => Validation> | undefined
  return async (value) => {
    validator ??= Promise.resolve(jsonSchema()).then(jsonSchemaValidator)
    return (await validator)(value)
  }
}

const jsonTypes: readonly unknown[] = ['object', 'string', 'number', 'integer', 'boolean', 'array', 'null']

function isPlainJSONSchema(schema: object): schema is PlainJSONSchema {
  const { type, properties, enum: values, anyOf, oneOf, allOf, $ref } = schema as Record<string, unknown>
  if (Array.isArray(type)) return type.length > 0 && type.every((one) => jsonTypes.includes(one))
  if (type !== undefined) return jsonTypes.includes(type)
  return (typeof properties === 'object' && properties !== null) || typeof $ref === 'string'
    || [values, anyOf, oneOf, allOf].some((list) => Array.isArray(list) && list.length > 0)
}

function isObjectLike(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

function invalidSchema(subject: string, cause?: unknown): HeedError {
  const message = `${subject} is not a schema. Pass a Standard Schema (such as a Zod object), an AI SDK schema, or JSON Schema.`
  return new HeedError('invalid_schema', message, { cause })
}

/** `city: expected string; zip: required` */
export function describeIssues(issues: readonly Issue[]): string {
  return issues.map((issue) => (issue.path ? `${issue.path}: ${issue.message}` : issue.message)).join('; ')
}

/** A validator for plain JSON Schema. Ajv is loaded with the first such schema: most programs never need it. */
export async function jsonSchemaValidator(
  { $schema: draft, ...schema }: JSONSchema7, { allErrors = true }: { allErrors?: boolean } = {},
): Promise<(value: unknown) => Validation> {
  const { Ajv, drafts } = await validatorOf(draft)
  // A validator compiles the schema of schemas when it checks its first one, which takes longer than the schema of most tools.
  const ajv = new Ajv({ allErrors, strict: false, logger: false, validateSchema: false })
  let check: ReturnType<typeof ajv.compile>
  try {
    if (!drafts.validateSchema(schema)) throw new Error(`schema is invalid: ${drafts.errorsText()}`)
    check = ajv.compile(schema)
  } catch (cause) {
    throw new HeedError('invalid_schema', `JSON Schema can't be compiled: ${describe(cause)}`, { cause })
  }
  return (value) => {
    if (check(value)) return { ok: true, value }
    const issues = (check.errors ?? []).map((error) => ({
      path: error.instancePath.slice(1).replaceAll('/', '.'),
      message: messageOf(error),
    }))
    return { ok: false, issues }
  }
}

/** The validator's own message does not name the property that a schema does not have, or the values that it allows. */
function messageOf({ message = 'is invalid', keyword, params }: Pick<ErrorObject, 'message' | 'keyword' | 'params'>): string {
  const { additionalProperty, allowedValues } = params as { additionalProperty?: unknown; allowedValues?: unknown[] }
  if (keyword === 'additionalProperties') return `${message}: '${String(additionalProperty).slice(0, 64)}'`
  return keyword === 'enum' && allowedValues ? `${message}: ${allowedValues.map(String).join(', ')}`.slice(0, 300) : message
}

interface Validators {
  Ajv: typeof Ajv
  /** Checks schemas against their draft. */
  drafts: Ajv
}

const validators = new Map<string, Validators>()

/** Tools of MCP servers mostly use the newest draft, whose keywords a validator for older drafts ignores. */
async function validatorOf(draft: string | undefined): Promise<Validators> {
  const name = ['2020-12', '2019-09'].find((newer) => draft?.includes(newer)) ?? ''
  const known = validators.get(name)
  if (known) return known
  const Ajv = name === '2020-12' ? (await import('ajv/dist/2020.js')).Ajv2020
    : name === '2019-09' ? (await import('ajv/dist/2019.js')).Ajv2019 : (await import('ajv')).Ajv
  const made = { Ajv, drafts: new Ajv({ strict: false, logger: false }) }
  validators.set(name, made)
  return made
}
