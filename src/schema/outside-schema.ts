import { HeedError } from '../base/errors.ts'
import { checkOutsidePattern } from './outside-pattern.ts'
import type { PlainJSONSchema } from './schema.ts'

const maxDepth = 32
/** Subschemas, with those that references repeat. */
const maxSubschemas = 2_000
const maxProperties = 500
const maxValues = 1_000

/** With their senders. */
const outsideSchemas = new WeakMap<object, string>()

/** Keywords whose value is a subschema that applies to the same value as its parent. */
const sameValue = ['not', 'if', 'then', 'else'] as const
const sameValueLists = ['allOf', 'anyOf', 'oneOf'] as const
const sameValueMaps = ['dependentSchemas', 'dependencies'] as const
/** Keywords whose value is a subschema of a part of the value. */
const part = [
  'items', 'additionalItems', 'contains', 'additionalProperties', 'propertyNames', 'unevaluatedItems', 'unevaluatedProperties',
] as const
const partLists = ['prefixItems', 'items'] as const
const partMaps = ['properties', 'patternProperties'] as const

/** Who sent a schema that came from outside this process: it is compiled and used in a worker thread, with a deadline. */
export function senderOfSchema(schema: object): string | undefined {
  return outsideSchemas.get(schema)
}

/**
 * Checks and marks a JSON Schema of a caller outside this process. One that would take long to compile or to validate with is rejected:
 * by its size, depth and breadth, by references that repeat much of it, and by patterns that may backtrack.
 */
export function acceptOutsideSchema(schema: unknown, subject: string, sender = ''): PlainJSONSchema {
  new OutsideSchema(schema, subject).check()
  markOutsideSchema(schema as object, sender)
  return schema as PlainJSONSchema
}

/** For a schema that was accepted before it was stored: its sender is known only where it is still the same object. */
export function markOutsideSchema(schema: object, sender?: string): void {
  outsideSchemas.set(schema, sender ?? outsideSchemas.get(schema) ?? '')
}

class OutsideSchema {
  readonly #root: unknown
  readonly #subject: string
  /** The subschemas that a subschema leads to, itself included. Undefined while they are counted. */
  readonly #counts = new Map<object, number | undefined>()

  constructor(root: unknown, subject: string) {
    this.#root = root
    this.#subject = subject
  }

  check(): void {
    if (!isObject(this.#root)) throw this.#rejected('', 'is not a JSON Schema')
    this.#count(this.#root, '', 0, [])
  }

  /** `above` are the subschemas of the same value that this one is a part of: none of them may come again below. */
  #count(schema: unknown, path: string, depth: number, above: readonly object[]): number {
    if (!isObject(schema)) return 1
    if (depth > maxDepth) throw this.#rejected(path, `is nested more than ${maxDepth} levels deep`)
    if (above.includes(schema)) throw this.#rejected(path, 'refers to itself for the same value')
    const known = this.#counts.get(schema)
    if (known !== undefined) return known
    // A reference from below: it is counted once here, and the depth of the value bounds how often it is followed.
    if (this.#counts.has(schema)) return 1
    this.#counts.set(schema, undefined)
    this.#checkKeywords(schema, path)
    let count = 1
    const add = (child: unknown, childPath: string, isSame: boolean) => {
      count += this.#count(child, childPath, depth + 1, isSame ? [...above, schema] : [])
      if (count > maxSubschemas) throw this.#rejected(childPath, `and what refers to it have more than ${maxSubschemas} subschemas`)
    }
    for (const [child, childPath, isSame] of this.#children(schema, path)) add(child, childPath, isSame)
    this.#counts.set(schema, count)
    return count
  }

  *#children(schema: Record<string, unknown>, path: string): Generator<[child: unknown, path: string, isSame: boolean]> {
    for (const name of sameValue) if (Object.hasOwn(schema, name)) yield [schema[name], `${path}/${name}`, true]
    for (const name of sameValueLists) yield* listed(schema, name, path, true)
    for (const name of sameValueMaps) yield* mapped(schema, name, path, true)
    for (const name of part) {
      if (Object.hasOwn(schema, name) && !Array.isArray(schema[name])) yield [schema[name], `${path}/${name}`, false]
    }
    for (const name of partLists) yield* listed(schema, name, path, false)
    for (const name of partMaps) yield* mapped(schema, name, path, false)
    if (Object.hasOwn(schema, '$ref')) yield [this.#resolved(schema.$ref, path), `${path}/$ref`, true]
  }

  #checkKeywords(schema: Record<string, unknown>, path: string): void {
    // Below the root, an id changes what references mean.
    const names = ['$dynamicRef', '$recursiveRef', '$dynamicAnchor', '$recursiveAnchor', ...(path === '' ? [] : ['$id', 'id'])]
    for (const name of names) {
      if (typeof schema[name] === 'string' || schema[name] === true) throw this.#rejected(`${path}/${name}`, 'is not allowed')
    }
    if (isObject(schema.properties) && Object.keys(schema.properties).length > maxProperties)
      throw this.#rejected(`${path}/properties`, `has more than ${maxProperties} properties`)
    for (const name of ['enum', 'required', 'examples']) {
      const values = schema[name]
      if (Array.isArray(values) && values.length > maxValues) throw this.#rejected(`${path}/${name}`, `has more than ${maxValues} values`)
    }
    const patterns = isObject(schema.patternProperties) ? Object.keys(schema.patternProperties) : []
    if (typeof schema.pattern === 'string') patterns.push(schema.pattern)
    for (const pattern of patterns) {
      const problem = checkOutsidePattern(pattern)
      if (problem !== undefined) throw this.#rejected(`${path}/pattern`, problem)
    }
  }

  /** The subschema that a local reference names. */
  #resolved(reference: unknown, path: string): unknown {
    if (typeof reference !== 'string' || !/^#(?:\/[^%]*)?$/.test(reference))
      throw this.#rejected(`${path}/$ref`, 'must refer to a part of this schema, such as #/$defs/name')
    let found: unknown = this.#root
    for (const key of reference.split('/').slice(1)) {
      const name = key.replaceAll('~1', '/').replaceAll('~0', '~')
      found = isObject(found) && Object.hasOwn(found, name) ? found[name] : Array.isArray(found) ? found[Number(name)] : undefined
    }
    if (found === undefined) throw this.#rejected(`${path}/$ref`, 'refers to no part of this schema')
    return found
  }

  #rejected(path: string, problem: string): HeedError {
    const where = path === '' ? this.#subject : `${this.#subject} at ${path.slice(0, 200)}`
    return new HeedError('invalid_schema', `${where} ${problem}. Send a simpler schema.`, { details: { schema: this.#subject } })
  }
}

function* listed(schema: Record<string, unknown>, name: string, path: string, isSame: boolean): Generator<[unknown, string, boolean]> {
  const list = Object.hasOwn(schema, name) ? schema[name] : undefined
  if (Array.isArray(list)) for (const [index, child] of list.entries()) yield [child, `${path}/${name}/${index}`, isSame]
}

function* mapped(schema: Record<string, unknown>, name: string, path: string, isSame: boolean): Generator<[unknown, string, boolean]> {
  const map = Object.hasOwn(schema, name) ? schema[name] : undefined
  if (isObject(map)) for (const [key, child] of Object.entries(map)) yield [child, `${path}/${name}/${key}`, isSame]
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
