import { HeedError } from '../../base/errors.ts'
import { orderedJSON } from '../../base/json.ts'
import { checkData, entriesOf, invalid, isPlain, items, values, type Place } from './filter-input.ts'

/**
 * What metadata must be like: values by key (`a.b` for what is inside), or operators: `{ city: 'Rome', age: { $gte: 18 }, $or: […] }`.
 */
export type MetadataFilter = { readonly [key: string]: unknown }

export type MetadataTest = (metadata: Readonly<Record<string, unknown>>) => boolean

type ValueTest = (value: unknown) => boolean

const logic = ['$and', '$or', '$nor', '$not'] as const
const operators: Readonly<Record<string, (wanted: unknown, place: Place) => ValueTest>> = {
  $eq: (wanted, place) => equal(wanted, place),
  $ne: (wanted, place) => not(equal(wanted, place)),
  $gt: (wanted, place) => ordered(wanted, place, (order) => order > 0),
  $gte: (wanted, place) => ordered(wanted, place, (order) => order >= 0),
  $lt: (wanted, place) => ordered(wanted, place, (order) => order < 0),
  $lte: (wanted, place) => ordered(wanted, place, (order) => order <= 0),
  $in: (wanted, place) => anyOf(values(wanted, place), false),
  $nin: (wanted, place) => anyOf(values(wanted, place), true),
  $all: (wanted, place) => {
    const all = values(wanted, place)
    return (value) => Array.isArray(value) && all.length > 0 && all.every((one) => value.some((item) => same(item, one)))
  },
  $size: (wanted, place) => {
    if (!Number.isSafeInteger(wanted) || Number(wanted) < 0) throw invalid(place, 'must be a whole number')
    return (value) => Array.isArray(value) && value.length === wanted
  },
  $contains: (wanted, place) => {
    checkData(wanted, place)
    return (value) => (typeof value === 'string' ? typeof wanted === 'string' && value.includes(wanted) : Array.isArray(value) && value.some((item) => same(item, wanted)))
  },
  $exists: (wanted, place) => {
    if (typeof wanted !== 'boolean') throw invalid(place, 'must be true or false')
    return (value) => (value !== undefined) === wanted
  },
  $regex: (wanted, place) => {
    const expression = expressionOf(wanted, place)
    return (value) => typeof value === 'string' && expression.test(value)
  },
  $elemMatch: (wanted, place) => {
    const test = isOperators(wanted, place) ? valueTest(wanted, place) : undefined
    const inside = test ? undefined : part(wanted, place)
    return (value) => Array.isArray(value) && value.some((item) => (test ? test(item) : isPlain(item) && inside?.(item) === true))
  },
  $not: (wanted, place) => {
    if (isPlain(wanted) && Object.keys(wanted).length === 0) throw invalid(place, 'is empty, which says nothing')
    return not(isOperators(wanted, place) ? valueTest(wanted, place) : equal(wanted, place))
  },
}

/** Makes a test of a filter, and refuses what can't be meant by its path, which begins with `name`. One that is empty lets everything through. */
export function compileFilter(filter: unknown, name = 'filter'): MetadataTest {
  return compiled(filter, { path: name, depth: 0 })
}

function compiled(filter: unknown, place: Place): MetadataTest {
  const tests = entriesOf(filter, place, 'must be an object of metadata keys and operators').map(([key, wanted, at]): MetadataTest => {
    if (key.startsWith('$')) return logicTest(key, wanted, at)
    const test = isOperators(wanted, at) ? valueTest(wanted, at) : equal(wanted, at)
    const path = key.split('.')
    return (metadata) => test(Object.hasOwn(metadata, key) ? metadata[key] : valueAt(metadata, path))
  })
  return (metadata) => tests.every((test) => test(metadata))
}

/** A filter within another: one that says nothing would make it say everything, or nothing. */
function part(filter: unknown, place: Place): MetadataTest {
  const test = compiled(filter, place)
  if (Object.keys(filter as object).length === 0) throw invalid(place, 'is empty, which says nothing')
  return test
}

function logicTest(key: string, wanted: unknown, place: Place): MetadataTest {
  if (!logic.some((known) => known === key)) throw unknownOperator(key, place)
  if (key === '$not') {
    const test = part(wanted, place)
    return (metadata) => !test(metadata)
  }
  const tests = items(wanted, place).map(([one, at]) => part(one, at))
  if (tests.length === 0) throw invalid(place, 'is empty, which says nothing')
  if (key === '$and') return (metadata) => tests.every((test) => test(metadata))
  if (key === '$or') return (metadata) => tests.some((test) => test(metadata))
  return (metadata) => !tests.some((test) => test(metadata))
}

function valueTest(wanted: Record<string, unknown>, place: Place): ValueTest {
  const tests = entriesOf(wanted, place).map(([name, operand, at]) => {
    const operator = Object.hasOwn(operators, name) ? operators[name] : undefined
    if (!operator) throw unknownOperator(name, at)
    return operator(operand, at)
  })
  return (value) => tests.every((test) => test(value))
}

function ordered(wanted: unknown, place: Place, holds: (order: number) => boolean): ValueTest {
  checkData(wanted, place)
  const than = comparable(wanted)
  if (than === undefined) throw invalid(place, 'must be a number, a text or a date')
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

function equal(wanted: unknown, place: Place): ValueTest {
  checkData(wanted, place)
  return (value) => matches(value, wanted)
}

function not(test: ValueTest): ValueTest {
  return (value) => !test(value)
}

/** A list has a value when one of its items is it. */
function matches(value: unknown, wanted: unknown): boolean {
  if (wanted === null) return value === null || value === undefined
  return same(value, wanted) || (Array.isArray(value) && !Array.isArray(wanted) && value.some((item) => same(item, wanted)))
}

function same(a: unknown, b: unknown): boolean {
  if (a instanceof Date || b instanceof Date) return comparable(a) === comparable(b)
  if (typeof a !== 'object' || typeof b !== 'object') return a === b
  return orderedJSON(a) === orderedJSON(b)
}

function expressionOf(wanted: unknown, place: Place): RegExp {
  try {
    if (wanted instanceof RegExp) return new RegExp(wanted.source, wanted.flags.replace(/[gy]/g, ''))
    if (typeof wanted === 'string') return new RegExp(wanted)
  } catch (cause) {
    throw new HeedError('invalid_argument', `${place.path} is no regular expression: ${cause instanceof Error ? cause.message : String(cause)}.`, { cause, details: { field: place.path } })
  }
  throw invalid(place, 'must be a text or a regular expression')
}

function valueAt(metadata: Readonly<Record<string, unknown>>, path: readonly string[]): unknown {
  let value: unknown = metadata
  for (const name of path) value = isPlain(value) && Object.hasOwn(value, name) ? value[name] : undefined
  return value
}

/** Operators, or a value that is an object: what is some of both can't be meant. */
function isOperators(value: unknown, place: Place): value is Record<string, unknown> {
  if (!isPlain(value)) return false
  const names = Object.keys(value)
  const some = names.filter((name) => name.startsWith('$'))
  if (some.length > 0 && some.length < names.length) {
    throw invalid(place, `has operators (${some.join(', ')}) and keys (${names.filter((name) => !some.includes(name)).join(', ')}) side by side. Write what is inside with its path, as 'key.inside'`)
  }
  return some.length > 0
}

function unknownOperator(operator: string, { path }: Place): HeedError {
  const known = [...new Set([...Object.keys(operators), ...logic])].join(', ')
  return new HeedError('invalid_argument', `${path}: there is no filter operator '${operator}'. Known: ${known}.`, { details: { field: path, operator } })
}
