import { HeedError } from '../../base/errors.ts'
import { isPlainObject, orderedJSON } from '../../base/json.ts'

/** Conditions on metadata: values by key (`a.b` for a nested key), or operators: `{ city: 'Rome', age: { $gte: 18 }, $or: […] }`. */
export type MetadataFilter = { readonly [key: string]: unknown }

type MetadataTest = (metadata: Readonly<Record<string, unknown>>) => boolean

type ValueTest = (value: unknown) => boolean

/** A part of a filter: its path, which errors name, and its depth. */
interface FilterNode {
  path: string
  depth: number
}

/** Deeper filters are rejected, and so is one that contains itself. */
const maxDepth = 64

const logicalOperators = ['$and', '$or', '$nor', '$not'] as const
const operators: Readonly<Record<string, (wanted: unknown, node: FilterNode) => ValueTest>> = {
  $eq: (wanted, node) => equals(wanted, node),
  $ne: (wanted, node) => not(equals(wanted, node)),
  $gt: (wanted, node) => compares(wanted, node, (order) => order > 0),
  $gte: (wanted, node) => compares(wanted, node, (order) => order >= 0),
  $lt: (wanted, node) => compares(wanted, node, (order) => order < 0),
  $lte: (wanted, node) => compares(wanted, node, (order) => order <= 0),
  $in: (wanted, node) => anyOf(listValues(wanted, node), false),
  $nin: (wanted, node) => anyOf(listValues(wanted, node), true),
  $all: (wanted, node) => {
    const all = listValues(wanted, node)
    return (value) => Array.isArray(value) && all.length > 0 && all.every((one) => value.some((item) => same(item, one)))
  },
  $size: (wanted, node) => {
    if (!Number.isSafeInteger(wanted) || Number(wanted) < 0) throw invalidFilter(node, 'must be a whole number')
    return (value) => Array.isArray(value) && value.length === wanted
  },
  $contains: (wanted, node) => {
    checkValue(wanted, node)
    return (value) =>
      typeof value === 'string'
        ? typeof wanted === 'string' && value.includes(wanted)
        : Array.isArray(value) && value.some((item) => same(item, wanted))
  },
  $exists: (wanted, node) => {
    if (typeof wanted !== 'boolean') throw invalidFilter(node, 'must be true or false')
    return (value) => (value !== undefined) === wanted
  },
  $regex: (wanted, node) => {
    const expression = parseExpression(wanted, node)
    return (value) => typeof value === 'string' && expression.test(value)
  },
  $elemMatch: (wanted, node) => {
    const test = isOperators(wanted, node) ? compileOperators(wanted, node) : undefined
    const inside = test ? undefined : compileNested(wanted, node)
    return (value) => Array.isArray(value) && value.some((item) => (test ? test(item) : isPlainObject(item) && inside?.(item) === true))
  },
  $not: (wanted, node) => {
    if (isPlainObject(wanted) && Object.keys(wanted).length === 0) {
      throw invalidFilter(node, 'is empty. Give at least one condition, or leave it out')
    }
    return not(isOperators(wanted, node) ? compileOperators(wanted, node) : equals(wanted, node))
  },
}

/**
 * Compiles a filter to a test; an error names the path of the part that is invalid, beginning with `name`. An empty filter matches
 * everything.
 */
export function compileFilter(filter: unknown, name = 'filter'): MetadataTest {
  return compileNode(filter, { path: name, depth: 0 })
}

function compileNode(filter: unknown, node: FilterNode): MetadataTest {
  const tests = entriesOf(filter, node, 'must be an object of metadata keys and operators').map(([key, wanted, at]): MetadataTest => {
    if (key.startsWith('$')) return compileLogical(key, wanted, at)
    const test = isOperators(wanted, at) ? compileOperators(wanted, at) : equals(wanted, at)
    const path = key.split('.')
    return (metadata) => test(Object.hasOwn(metadata, key) ? metadata[key] : valueAt(metadata, path))
  })
  return (metadata) => tests.every((test) => test(metadata))
}

/** A filter within another. An empty one is rejected: it would make the outer one match everything, or nothing. */
function compileNested(filter: unknown, node: FilterNode): MetadataTest {
  const test = compileNode(filter, node)
  if (Object.keys(filter as object).length === 0) throw invalidFilter(node, 'is empty. Give at least one condition, or leave it out')
  return test
}

function compileLogical(key: string, wanted: unknown, node: FilterNode): MetadataTest {
  if (!logicalOperators.some((known) => known === key)) throw unknownOperator(key, node)
  if (key === '$not') {
    const test = compileNested(wanted, node)
    return (metadata) => !test(metadata)
  }
  const tests = listItems(wanted, node).map(([one, at]) => compileNested(one, at))
  if (tests.length === 0) throw invalidFilter(node, 'is empty. Give at least one condition, or leave it out')
  if (key === '$and') return (metadata) => tests.every((test) => test(metadata))
  if (key === '$or') return (metadata) => tests.some((test) => test(metadata))
  return (metadata) => !tests.some((test) => test(metadata))
}

function compileOperators(wanted: Record<string, unknown>, node: FilterNode): ValueTest {
  const tests = entriesOf(wanted, node).map(([name, operand, at]) => {
    const operator = Object.hasOwn(operators, name) ? operators[name] : undefined
    if (!operator) throw unknownOperator(name, at)
    return operator(operand, at)
  })
  return (value) => tests.every((test) => test(value))
}

function compares(wanted: unknown, node: FilterNode, holds: (order: number) => boolean): ValueTest {
  checkValue(wanted, node)
  const than = comparable(wanted)
  if (than === undefined) throw invalidFilter(node, 'must be a number, a string or a date')
  return (value) => {
    const own = comparable(value)
    if (own === undefined || typeof own !== typeof than) return false
    return holds(own < than ? -1 : own > than ? 1 : 0)
  }
}

function comparable(value: unknown): number | string | undefined {
  if (value instanceof Date) return value.toISOString()
  return typeof value === 'number' || typeof value === 'string' ? value : undefined
}

function anyOf(wanted: readonly unknown[], none: boolean): ValueTest {
  return (value) => wanted.some((one) => matches(value, one)) !== none
}

function equals(wanted: unknown, node: FilterNode): ValueTest {
  checkValue(wanted, node)
  return (value) => matches(value, wanted)
}

function not(test: ValueTest): ValueTest {
  return (value) => !test(value)
}

/** A list matches a value when one of its items is equal to it. */
function matches(value: unknown, wanted: unknown): boolean {
  if (wanted === null) return value === null || value === undefined
  return same(value, wanted) || (Array.isArray(value) && !Array.isArray(wanted) && value.some((item) => same(item, wanted)))
}

function same(a: unknown, b: unknown): boolean {
  if (a instanceof Date || b instanceof Date) return comparable(a) === comparable(b)
  if (typeof a !== 'object' || typeof b !== 'object') return a === b
  return orderedJSON(a) === orderedJSON(b)
}

function parseExpression(wanted: unknown, node: FilterNode): RegExp {
  try {
    if (wanted instanceof RegExp) return new RegExp(wanted.source, wanted.flags.replace(/[gy]/g, ''))
    if (typeof wanted === 'string') return new RegExp(wanted)
  } catch (cause) {
    throw new HeedError(
      'invalid_argument',
      `${node.path} is not a regular expression: ${cause instanceof Error ? cause.message : String(cause)}.`,
      { cause, details: { field: node.path } },
    )
  }
  throw invalidFilter(node, 'must be a string or a regular expression')
}

function valueAt(metadata: Readonly<Record<string, unknown>>, path: readonly string[]): unknown {
  let value: unknown = metadata
  for (const name of path) value = isPlainObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
  return value
}

/** True for operators, false for a value to compare with; an object with both is rejected. */
function isOperators(value: unknown, node: FilterNode): value is Record<string, unknown> {
  if (!isPlainObject(value)) return false
  const names = Object.keys(value)
  const operatorNames = names.filter((name) => name.startsWith('$'))
  if (operatorNames.length > 0 && operatorNames.length < names.length) {
    const keys = names.filter((name) => !operatorNames.includes(name)).join(', ')
    const mixed = `has operators (${operatorNames.join(', ')}) and keys (${keys}) side by side`
    throw invalidFilter(node, `${mixed}. Write a nested key as a path: 'key.nested'`)
  }
  return operatorNames.length > 0
}

function unknownOperator(operator: string, { path }: FilterNode): HeedError {
  const known = [...new Set([...Object.keys(operators), ...logicalOperators])].join(', ')
  return new HeedError('invalid_argument', `${path}: unknown filter operator '${operator}'. Known: ${known}.`, {
    details: { field: path, operator },
  })
}

/** The items of a list, with holes as undefined, each with its node. */
function listItems(list: unknown, node: FilterNode): Array<[unknown, FilterNode]> {
  if (!Array.isArray(list)) throw invalidFilter(node, 'must be a list')
  return Array.from(list, (one: unknown, at) => [one, childNode(node, `[${at}]`)])
}

function listValues(wanted: unknown, node: FilterNode): unknown[] {
  const found = listItems(wanted, node)
  for (const [one, at] of found) checkValue(one, at)
  return found.map(([one]) => one)
}

const allowedValues = 'must be a value that metadata can have: a string, number, true, false, null, a date, or a list or object of these'

/** Rejects values that metadata cannot have: nothing would match them, and most cannot be passed to the worker that compares. */
function checkValue(value: unknown, node: FilterNode): void {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return
  if (value === undefined) throw invalidFilter(node, 'is undefined. Leave it out, or compare with null')
  if (typeof value === 'number' || value instanceof Date) {
    if (!Number.isFinite(Number(value))) {
      throw invalidFilter(node, `is ${value instanceof Date ? 'an invalid date' : String(value)}, which metadata cannot contain`)
    }
  } else if (Array.isArray(value)) listValues(value, node)
  else for (const [, one, at] of entriesOf(value, node, allowedValues)) checkValue(one, at)
}

/** The keys and values of an object, each with its node. */
function entriesOf(value: unknown, node: FilterNode, wanted = 'must be an object'): Array<[string, unknown, FilterNode]> {
  if (!isPlainObject(value)) throw invalidFilter(node, wanted)
  if (Object.getOwnPropertySymbols(value).length > 0) throw invalidFilter(node, 'has a symbol as a key, which metadata cannot have')
  return Object.entries(value).map(([key, one]) => {
    const at = childNode(node, `.${key}`)
    if (one === undefined) throw invalidFilter(at, 'is undefined. Leave it out, or compare with null')
    return [key, one, at]
  })
}

function childNode({ path, depth }: FilterNode, name: string): FilterNode {
  if (depth >= maxDepth) {
    throw invalidFilter({ path: path.slice(0, 200), depth }, `is nested deeper than ${maxDepth} levels, or contains itself`)
  }
  return { path: `${path}${name}`, depth: depth + 1 }
}

function invalidFilter({ path }: FilterNode, why: string): HeedError {
  return new HeedError('invalid_argument', `${path} ${why}.`, { details: { field: path } })
}
