import { nearestName } from '../base/arguments.ts'
import { describe, HeedError, isHeedError } from '../base/errors.ts'
import { isObject, type JSONObject, type JSONValue } from '../base/json.ts'
import { addBits, choiceLetters, compilePattern, hasSpelling, listBits, type Pattern } from './pattern.ts'
import { FORBIDDEN_KEYS, type ResultIssue } from './result-json.ts'
import { hasHiddenCharacters } from './candidate-text.ts'
import { utf8Length, validateResult } from './result-value.ts'

/**
 * The schema of a watch's result: the only way from a message of an outside sender into the parent thread. It is a closed profile of JSON
 * Schema, checked when the watch is registered, in which every value has a bounded size and no text is free unless its author asks for it
 * by name.
 */
export interface ResultSchema {
  /** The schema as it was given: what a store keeps, and `compileResultSchema` accepts again. */
  readonly source: JSONObject
  /** JSON Schema for a provider that constrains what its model writes. */
  readonly schema: JSONObject
  /** An upper bound of the information that a result can carry: 20 bits for six digits. Always finite. */
  readonly capacityBits: number
  /** True where a field has `x-untrusted-text`: the sender of a message may write sentences there. */
  readonly untrustedText: boolean
  /** Checks a result that is already decoded. Nothing is coerced, completed or repaired. Keys of the copy are in the schema's order. */
  validate(value: unknown): ResultValidation
}

export type ResultValidation =
  | { readonly ok: true; readonly value: JSONValue }
  | { readonly ok: false; readonly issues: readonly ResultIssue[] }

/** A part of a checked schema. */
export type ResultNode =
  | {
    readonly type: 'string'
    readonly minLength: number
    readonly maxLength: number
    readonly maxBytes: number
    readonly pattern?: Pattern
    /** Has `x-untrusted-text`. */
    readonly isText: boolean
  }
  | { readonly type: 'number' | 'integer'; readonly minimum: number; readonly maximum: number; readonly multipleOf?: number }
  | { readonly type: 'boolean' }
  | { readonly type: 'null' }
  /** `enum` and `const`, of any scalar type. */
  | { readonly type: 'fixed'; readonly values: readonly Scalar[]; readonly code: 'enum' | 'const' }
  | { readonly type: 'array'; readonly items: ResultNode; readonly minItems: number; readonly maxItems: number }
  | { readonly type: 'object'; readonly properties: ReadonlyMap<string, ResultNode>; readonly required: ReadonlySet<string> }

export type Scalar = string | number | boolean | null

const MAX_SCHEMA_BYTES = 8192
const MAX_DEPTH = 4
const MAX_PROPERTIES = 32
const MAX_ITEMS = 20
/** Of a result, with all its lists: nested ones multiply. */
const MAX_VALUES = 256
const MAX_PATTERN_TEXT = 64
const MAX_UNTRUSTED_TEXT = 300
/** Of all strings of a result together. */
const MAX_STRING_BYTES = 1024
/** Of all strings of a result together, outside of `x-untrusted-text`: more letters are sentences, whatever they are chosen from. */
const MAX_FREE_LETTERS = 24
const MAX_DESCRIPTION = 500
/** A code point of text that is not ASCII has up to 3 bytes; those with 4 are not written in sentences. */
const BYTES_PER_CHARACTER = 3
const BITS_PER_CHARACTER = Math.log2(0x110000 - 0x800)

const propertyName = /^[a-z][a-z0-9_]{0,31}$/

const shared = ['type', 'description']
const keywordsOf: Readonly<Record<string, readonly string[] | undefined>> = {
  string: [...shared, 'enum', 'const', 'pattern', 'minLength', 'maxLength', 'x-untrusted-text'],
  number: [...shared, 'enum', 'const', 'minimum', 'maximum', 'multipleOf'],
  integer: [...shared, 'enum', 'const', 'minimum', 'maximum', 'multipleOf'],
  boolean: [...shared, 'enum', 'const'],
  null: shared,
  array: [...shared, 'items', 'minItems', 'maxItems'],
  object: [...shared, 'properties', 'required', 'additionalProperties'],
}
const allKeywords = [...new Set(Object.values(keywordsOf).flatMap((names) => names ?? []))]

/** Keywords of JSON Schema outside of the profile, with what they would let through. */
const refusedKeywords: Readonly<Record<string, string | undefined>> = {
  ...listed('it could be resolved to another schema than the one that was checked', '$ref', '$dynamicRef', '$recursiveRef', '$id',
    '$anchor', '$dynamicAnchor', '$defs', 'definitions', '$data', '$vocabulary'),
  ...listed('one open alternative lets any text through', 'anyOf', 'oneOf', 'allOf', 'not', 'if', 'then', 'else', 'dependentSchemas',
    'dependencies'),
  ...listed('names of properties could carry sentences', 'patternProperties', 'propertyNames', 'unevaluatedProperties', 'dependentRequired',
    'minProperties', 'maxProperties'),
  ...listed('elements would not be checked', 'prefixItems', 'additionalItems', 'unevaluatedItems', 'contains', 'minContains',
    'maxContains', 'uniqueItems'),
  ...listed('validators ignore or interpret it in their own ways; write a pattern', 'format', 'contentEncoding',
    'contentMediaType', 'contentSchema'),
  ...listed('values would appear that the judge did not report', 'default'),
  ...listed('write minimum and maximum', 'exclusiveMinimum', 'exclusiveMaximum'),
  ...listed('write a description', 'title', 'examples', '$comment', 'deprecated', 'readOnly', 'writeOnly'),
}

/** The values of `$schema` that mean what this profile means. They are left out of the result. */
const dialects = [
  'https://json-schema.org/draft/2020-12/schema', 'https://json-schema.org/draft/2019-09/schema', 'http://json-schema.org/draft-07/schema#',
]

/**
 * Checks and compiles the `result_schema` of a watch. A schema outside of the profile is rejected with `invalid_argument`, the JSON pointer
 * of the offending part, and what would leak. Without a schema, only that a message matched crosses: `{ matched: true }`.
 */
export function compileResultSchema(schema?: unknown): ResultSchema {
  if (schema === undefined) return matchedOnly
  const copy = copyOf(schema)
  const { $schema, ...root } = copy
  if ($schema !== undefined && !dialects.includes($schema as string)) {
    throw refusal('/$schema', 'names a dialect that is not known', `leave it out, or write ${dialects[0]}`)
  }
  return new SchemaCompiler().compile(root, copy as JSONObject)
}

class SchemaCompiler {
  #properties = 0
  #hasText = false

  compile(root: Record<string, unknown>, source: JSONObject): ResultSchema {
    const { node, schema } = this.#part(root, '', 1)
    const { bits, bytes, letters, values } = sizeOf(node)
    if (values > MAX_VALUES) {
      throw refusal('', `allows ${values} values`, `long lists carry text, bit by bit; allow ${MAX_VALUES} in all, and lower maxItems`)
    }
    if (bytes > MAX_STRING_BYTES) {
      const most = `all strings of a result together may have ${MAX_STRING_BYTES}; lower maxLength or maxItems`
      throw refusal('', `allows ${bytes} bytes of text`, most)
    }
    if (letters > MAX_FREE_LETTERS) {
      const shorter = `allow ${MAX_FREE_LETTERS} in all, with shorter lists and enums`
      const most = `the sender could spell sentences; ${shorter}, or add "x-untrusted-text": true`
      throw refusal('', `allows ${Math.ceil(letters)} letters that the sender of a message chooses`, most)
    }
    return { source, schema, capacityBits: bits, untrustedText: this.#hasText, validate: (value) => validateResult(node, value) }
  }

  #part(part: unknown, pointer: string, depth: number): { node: ResultNode; schema: JSONObject } {
    if (!isObject(part)) throw refusal(pointer, 'is no schema object', 'a schema that is true or empty lets any value through')
    if (depth > MAX_DEPTH) throw refusal(pointer, 'is too deep', `nest at most ${MAX_DEPTH} levels`)
    const { type } = part
    if (Array.isArray(type)) throw refusal(`${pointer}/type`, 'is a list of types', 'write one type')
    this.#checkKeywords(part, pointer, undefined)
    if (typeof type !== 'string') throw refusal(pointer, 'has no type', 'any value would be let through; write one type')
    const keywords = keywordsOf[type]
    if (!keywords) throw refusal(`${pointer}/type`, 'names an unknown type', `write ${Object.keys(keywordsOf).join(', ')}`)
    this.#checkKeywords(part, pointer, keywords)
    const built = this.#typed(type, part, pointer, depth)
    const description = descriptionOf(part, pointer)
    return { node: built.node, schema: { type, ...(description === undefined ? {} : { description }), ...built.schema } }
  }

  #checkKeywords(part: Record<string, unknown>, pointer: string, keywords: readonly string[] | undefined): void {
    for (const name of Object.keys(part)) {
      if ((keywords ?? allKeywords).includes(name)) continue
      const at = `${pointer}/${escapePointer(name)}`
      if (keywords) {
        throw refusal(at, `has no meaning for type ${part.type as string}`, 'it would be ignored; remove it or correct the type')
      }
      const why = Object.hasOwn(refusedKeywords, name) ? refusedKeywords[name] : undefined
      if (why !== undefined) throw refusal(at, 'is a keyword that result schemas may not have', why)
      const meant = nearestName(name, allKeywords)
      const hint = meant ? `Did you mean ${meant}?` : `Known: ${allKeywords.join(', ')}`
      throw refusal(at, 'is an unknown keyword', `it would be ignored. ${hint}`)
    }
  }

  #typed(type: string, part: Record<string, unknown>, pointer: string, depth: number): { node: ResultNode; schema: JSONObject } {
    if (part.enum !== undefined || part.const !== undefined) return this.#fixed(type, part, pointer)
    if (type === 'string') return this.#string(part, pointer)
    if (type === 'number' || type === 'integer') return numeric(type, part, pointer)
    if (type === 'array') return this.#array(part, pointer, depth)
    if (type === 'object') return this.#object(part, pointer, depth)
    return { node: { type: type === 'boolean' ? 'boolean' : 'null' }, schema: {} }
  }

  #fixed(type: string, part: Record<string, unknown>, pointer: string): { node: ResultNode; schema: JSONObject } {
    const code = part.enum === undefined ? 'const' : 'enum'
    const values: unknown = code === 'enum' ? part.enum : [part.const]
    const others = Object.keys(part).find((name) => !shared.includes(name) && name !== code)
    if (others !== undefined) throw refusal(`${pointer}/${others}`, `has no meaning beside ${code}`, 'remove one of them')
    if (!Array.isArray(values) || values.length === 0) throw refusal(`${pointer}/${code}`, 'is empty or no list', 'list the values')
    for (const [index, value] of values.entries()) {
      const at = code === 'enum' ? `${pointer}/enum/${index}` : `${pointer}/const`
      if (!isOfType(type, value)) throw refusal(at, `is not of type ${type}`, 'correct the value or the type')
      if (values.indexOf(value) < index) throw refusal(at, 'is listed twice', 'remove it')
      if (typeof value !== 'string') continue
      if (value.isWellFormed() && !hasHiddenCharacters(value)) continue
      throw refusal(at, 'has characters without a glyph', 'two values could look equal; remove them')
    }
    const schema = code === 'enum' ? { enum: values as JSONValue[] } : { const: part.const as JSONValue }
    return { node: { type: 'fixed', values: values as Scalar[], code }, schema }
  }

  #string(part: Record<string, unknown>, pointer: string): { node: ResultNode; schema: JSONObject } {
    const untrusted = part['x-untrusted-text']
    if (untrusted !== undefined && untrusted !== true) {
      throw refusal(`${pointer}/x-untrusted-text`, 'is not true', 'write true, or remove it')
    }
    const isText = untrusted === true
    if (part.pattern === undefined && !isText) {
      const wanted = 'the sender of a message could write any text; write an enum, a pattern, or "x-untrusted-text": true with maxLength'
      throw refusal(pointer, 'is an unconstrained string', wanted)
    }
    if (part.pattern !== undefined && typeof part.pattern !== 'string') {
      throw refusal(`${pointer}/pattern`, 'is no text', 'write a regular expression')
    }
    const pattern = part.pattern === undefined ? undefined : patternAt(part.pattern, `${pointer}/pattern`)
    const limit = isText ? MAX_UNTRUSTED_TEXT : MAX_PATTERN_TEXT
    const minLength = whole(part, 'minLength', pointer) ?? 0
    const maxLength = whole(part, 'maxLength', pointer) ?? pattern?.maxLength ?? Infinity
    if (maxLength > limit) {
      throw refusal(pointer, `has no maxLength of at most ${limit}`, 'a long text could carry sentences; write maxLength')
    }
    if (minLength > maxLength) throw refusal(`${pointer}/minLength`, 'is above maxLength', 'no text would match')
    this.#hasText ||= isText
    const maxBytes = pattern ? maxLength : maxLength * BYTES_PER_CHARACTER
    return {
      node: { type: 'string', minLength, maxLength, maxBytes, isText, ...(pattern ? { pattern } : {}) },
      schema: { ...(pattern ? { pattern: pattern.source } : {}), ...(minLength > 0 ? { minLength } : {}), maxLength },
    }
  }

  #array(part: Record<string, unknown>, pointer: string, depth: number): { node: ResultNode; schema: JSONObject } {
    const { items } = part
    if (items === undefined) throw refusal(pointer, 'has no items', 'elements of any kind would be let through')
    if (Array.isArray(items)) {
      throw refusal(`${pointer}/items`, 'is a list', 'elements behind its end would not be checked; write one schema')
    }
    const minItems = whole(part, 'minItems', pointer) ?? 0
    const maxItems = whole(part, 'maxItems', pointer)
    if (maxItems === undefined || maxItems > MAX_ITEMS) {
      throw refusal(pointer, `has no maxItems of at most ${MAX_ITEMS}`, 'a long list carries text, bit by bit')
    }
    if (minItems > maxItems) throw refusal(`${pointer}/minItems`, 'is above maxItems', 'no list would match')
    const { node, schema } = this.#part(items, `${pointer}/items`, depth + 1)
    return {
      node: { type: 'array', items: node, minItems, maxItems },
      schema: { items: schema, ...(minItems > 0 ? { minItems } : {}), maxItems },
    }
  }

  #object(part: Record<string, unknown>, pointer: string, depth: number): { node: ResultNode; schema: JSONObject } {
    if (part.additionalProperties !== false) {
      throw refusal(pointer, 'has no "additionalProperties": false', 'names and values of other properties could carry any text')
    }
    if (!isObject(part.properties)) throw refusal(pointer, 'has no properties', 'list them')
    const properties = new Map<string, ResultNode>()
    const schemas: Record<string, JSONValue> = {}
    for (const [name, property] of Object.entries(part.properties)) {
      const at = `${pointer}/properties/${escapePointer(name)}`
      if (!propertyName.test(name) || FORBIDDEN_KEYS.includes(name)) {
        const wanted = 'write a lowercase letter, then at most 31 lowercase letters, digits and _; not constructor or prototype'
        throw refusal(at, 'is no allowed name', wanted)
      }
      if (++this.#properties > MAX_PROPERTIES) throw refusal(at, 'is one property too many', `a schema may have ${MAX_PROPERTIES} in all`)
      const { node, schema } = this.#part(property, at, depth + 1)
      properties.set(name, node)
      schemas[name] = schema
    }
    const required = requiredOf(part, properties, pointer)
    return {
      node: { type: 'object', properties, required: new Set(required) },
      schema: { properties: schemas, required, additionalProperties: false },
    }
  }
}

function patternAt(source: string, pointer: string): Pattern {
  try {
    return compilePattern(source, `result_schema${pointer}`)
  } catch (error) {
    if (!isHeedError(error)) throw error
    throw new HeedError(error.code, error.message, { details: { ...error.details, field: 'result_schema', pointer } })
  }
}

function requiredOf(part: Record<string, unknown>, properties: ReadonlyMap<string, ResultNode>, pointer: string): string[] {
  const names: unknown = part.required ?? []
  if (!Array.isArray(names)) throw refusal(`${pointer}/required`, 'is no list', 'list names of properties')
  for (const [index, name] of names.entries()) {
    const at = `${pointer}/required/${index}`
    if (typeof name !== 'string' || !properties.has(name)) throw refusal(at, 'is not in properties', 'correct the name')
    if (names.indexOf(name) < index) throw refusal(at, 'is listed twice', 'remove it')
  }
  return [...properties.keys()].filter((name) => names.includes(name))
}

function numeric(type: 'number' | 'integer', part: Record<string, unknown>, pointer: string): { node: ResultNode; schema: JSONObject } {
  const edge = type === 'integer' ? Number.MAX_SAFE_INTEGER : Number.MAX_VALUE
  const schema: Record<string, JSONValue> = {}
  for (const name of ['minimum', 'maximum', 'multipleOf']) {
    const value = part[name]
    if (value === undefined) continue
    if (typeof value !== 'number' || !Number.isFinite(value)) throw refusal(`${pointer}/${name}`, 'is no number', 'write a number')
    schema[name] = value
  }
  const multipleOf = schema.multipleOf as number | undefined
  if (multipleOf !== undefined && !(multipleOf > 0 && /^[0-9]+(?:\.[0-9]{1,6})?$/.test(String(multipleOf)))) {
    throw refusal(`${pointer}/multipleOf`, 'is not above 0 with at most 6 decimals', 'correct it')
  }
  const [minimum = -edge, maximum = edge] = [schema.minimum, schema.maximum] as Array<number | undefined>
  if (minimum > maximum) throw refusal(`${pointer}/minimum`, 'is above maximum', 'no number would match')
  return { node: { type, minimum, maximum, ...(multipleOf === undefined ? {} : { multipleOf }) }, schema }
}

function descriptionOf(part: Record<string, unknown>, pointer: string): string | undefined {
  const { description } = part
  if (description === undefined) return undefined
  if (typeof description !== 'string' || description.length > MAX_DESCRIPTION) {
    throw refusal(`${pointer}/description`, `is no text of at most ${MAX_DESCRIPTION} characters`, 'shorten it')
  }
  return description
}

function whole(part: Record<string, unknown>, name: string, pointer: string): number | undefined {
  const value = part[name]
  if (value === undefined) return undefined
  if (!Number.isSafeInteger(value) || (value as number) < 0) {
    throw refusal(`${pointer}/${name}`, 'is no whole number of at least 0', 'correct it')
  }
  return value as number
}

function isOfType(type: string, value: unknown): boolean {
  if (type === 'integer') return Number.isSafeInteger(value) && !Object.is(value, -0)
  if (type === 'number') return Number.isFinite(value) && !Object.is(value, -0)
  return typeof value === type
}

interface Size {
  bits: number
  bytes: number
  letters: number
  values: number
}

/** What a value can carry: its information, the bytes of its strings, the letters among them that the sender chooses, and its scalars. */
function sizeOf(node: ResultNode): Size {
  if (node.type === 'fixed') return fixedSize(node.values)
  if (node.type === 'string') {
    const { maxLength, maxBytes, pattern, isText } = node
    const bits = pattern ? pattern.capacityBits(maxLength) : Math.min(maxLength * BITS_PER_CHARACTER, maxBytes * 8)
    return { bits, bytes: maxBytes, letters: isText ? 0 : Math.min(maxLength, pattern?.freeLetters ?? maxLength), values: 1 }
  }
  if (node.type === 'array') {
    const { bits, bytes, letters, values } = sizeOf(node.items)
    const { minItems, maxItems } = node
    return { bits: listBits(bits, minItems, maxItems), bytes: bytes * maxItems, letters: letters * maxItems, values: values * maxItems }
  }
  if (node.type === 'object') {
    const parts = [...node.properties].map(([name, property]) => {
      const size = sizeOf(property)
      return node.required.has(name) ? size : { ...size, bits: addBits(0, size.bits) }
    })
    return parts.reduce(
      (sum, part) => ({
        bits: sum.bits + part.bits, bytes: sum.bytes + part.bytes, letters: sum.letters + part.letters, values: sum.values + part.values,
      }),
      nothing,
    )
  }
  if (node.type === 'number' || node.type === 'integer') return { ...nothing, bits: numberBits(node), values: 1 }
  return { ...nothing, bits: node.type === 'boolean' ? 1 : 0, values: 1 }
}

/** An enum of letters spells like a pattern: its choice is worth as many letters as have so many texts. */
function fixedSize(values: readonly Scalar[]): Size {
  const texts = values.filter((value) => typeof value === 'string')
  return {
    bits: Math.log2(values.length),
    bytes: Math.max(0, ...texts.map(utf8Length)),
    letters: texts.some(hasSpelling) ? choiceLetters(values.map(() => 0)) : 0,
    values: 1,
  }
}

const nothing: Size = { bits: 0, bytes: 0, letters: 0, values: 0 }

function numberBits({ type, minimum, maximum, multipleOf }: Extract<ResultNode, { type: 'number' | 'integer' }>): number {
  const step = multipleOf ?? (type === 'integer' ? 1 : undefined)
  if (step === undefined) return minimum === maximum ? 0 : 64
  return Math.min(64, Math.log2((maximum - minimum) / step + 1))
}

/** A copy that no accessor, class or cycle is part of; what is not JSON is missing in it and refused by its absence. */
function copyOf(schema: unknown): Record<string, unknown> {
  let text: string | undefined
  try {
    text = JSON.stringify(schema)
  } catch (error) {
    throw refusal('', 'is no JSON', describe(error))
  }
  if (text !== undefined && utf8Length(text) > MAX_SCHEMA_BYTES) {
    throw refusal('', 'is too large', `write at most ${MAX_SCHEMA_BYTES} bytes`)
  }
  const copy: unknown = text === undefined ? undefined : JSON.parse(text)
  if (!isObject(copy)) throw refusal('', 'is no schema object', 'a schema that is true or empty lets any value through')
  return copy
}

function refusal(pointer: string, problem: string, wanted: string): HeedError {
  return new HeedError('invalid_argument', `result_schema${pointer} ${problem}: ${wanted}${wanted.endsWith('?') ? '' : '.'}`, {
    details: { field: 'result_schema', pointer },
  })
}

function escapePointer(name: string): string {
  return name.slice(0, 64).replaceAll('~', '~0').replaceAll('/', '~1')
}

function listed(why: string, ...names: string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, why]))
}

/** Without a schema, nothing of a message crosses: the only result is that one matched. */
export const matchedOnly: ResultSchema = compileResultSchema({
  type: 'object',
  properties: { matched: { type: 'boolean', const: true } },
  required: ['matched'],
  additionalProperties: false,
})
