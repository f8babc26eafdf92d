import { HeedError } from '../errors.ts'

/**
 * What metadata must be like: values by key (`a.b` for what is inside), or operators: `{ city: 'Rome', age: { $gte: 18 }, $or: […] }`.
 */
export type MetadataFilter = { readonly [key: string]: unknown }

export type MetadataTest = (metadata: Readonly<Record<string, unknown>>) => boolean

type ValueTest = (value: unknown) => boolean

const logic = ['$and', '$or', '$nor', '$not'] as const
const operators: Readonly<Record<string, (wanted: unknown, field: string) => ValueTest>> = {
  $eq: (wanted) => (value) => matches(value, wanted),
  $ne: (wanted) => (value) => !matches(value, wanted),
  $gt: (wanted, field) => ordered(wanted, field, (order) => order > 0),
  $gte: (wanted, field) => ordered(wanted, field, (order) => order >= 0),
  $lt: (wanted, field) => ordered(wanted, field, (order) => order < 0),
  $lte: (wanted, field) => ordered(wanted, field, (order) => order <= 0),
  $in: (wanted, field) => anyOf(list(wanted, field), false),
  $nin: (wanted, field) => anyOf(list(wanted, field), true),
  $all: (wanted, field) => {
    const all = list(wanted, field)
    return (value) => Array.isArray(value) && all.length > 0 && all.every((one) => value.some((item) => same(item, one)))
  },
  $size: (wanted) => (value) => Array.isArray(value) && value.length === wanted,
  $contains: (wanted) => (value) => (typeof value === 'string' ? typeof wanted === 'string' && value.includes(wanted) : Array.isArray(value) && value.some((item) => same(item, wanted))),
  $exists: (wanted) => (value) => (value !== undefined) === Boolean(wanted),
  $regex: (wanted, field) => {
    const expression = expressionOf(wanted, field)
    return (value) => typeof value === 'string' && expression.test(value)
  },
  $elemMatch: (wanted, field) => {
    const test = isOperators(wanted) ? valueTest(wanted, field) : undefined
    const inside = test ? undefined : compileFilter(wanted)
    return (value) => Array.isArray(value) && value.some((item) => (test ? test(item) : isRecord(item) && inside?.(item) === true))
  },
  $not: (wanted, field) => {
    const test = isOperators(wanted) ? valueTest(wanted, field) : (value: unknown) => matches(value, wanted)
    return (value) => !test(value)
  },
}

/** Makes a test of a filter, and refuses by name what is none. */
export function compileFilter(filter: unknown): MetadataTest {
  if (!isRecord(filter)) throw invalid('A filter is an object of metadata keys and operators.', 'filter')
  const tests = Object.entries(filter).filter(([, wanted]) => wanted !== undefined).map(([key, wanted]): MetadataTest => {
    if (key.startsWith('$')) return logicTest(key, wanted)
    const test = isOperators(wanted) ? valueTest(wanted, key) : (value: unknown) => matches(value, wanted)
    const path = key.split('.')
    return (metadata) => test(Object.hasOwn(metadata, key) ? metadata[key] : valueAt(metadata, path))
  })
  return (metadata) => tests.every((test) => test(metadata))
}

function logicTest(key: string, wanted: unknown): MetadataTest {
  if (!logic.some((known) => known === key)) throw unknownOperator(key)
  if (key === '$not') {
    const test = compileFilter(wanted)
    return (metadata) => !test(metadata)
  }
  const tests = list(wanted, key).map(compileFilter)
  if (key === '$and') return (metadata) => tests.every((test) => test(metadata))
  if (key === '$or') return (metadata) => tests.some((test) => test(metadata))
  return (metadata) => !tests.some((test) => test(metadata))
}

function valueTest(wanted: Record<string, unknown>, field: string): ValueTest {
  const tests = Object.entries(wanted).map(([name, operand]) => {
    const operator = Object.hasOwn(operators, name) ? operators[name] : undefined
    if (!operator) throw unknownOperator(name)
    return operator(operand, field)
  })
  return (value) => tests.every((test) => test(value))
}

function ordered(wanted: unknown, field: string, holds: (order: number) => boolean): ValueTest {
  const than = comparable(wanted)
  if (than === undefined) throw invalid(`'${field}' can only be compared with a number, a text or a date.`, field)
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

/** A list has a value when one of its items is it. */
function matches(value: unknown, wanted: unknown): boolean {
  if (wanted === null) return value === null || value === undefined
  return same(value, wanted) || (Array.isArray(value) && !Array.isArray(wanted) && value.some((item) => same(item, wanted)))
}

function same(a: unknown, b: unknown): boolean {
  if (a instanceof Date || b instanceof Date) return comparable(a) === comparable(b)
  if (typeof a !== 'object' || typeof b !== 'object') return a === b
  return JSON.stringify(a) === JSON.stringify(b)
}

function list(wanted: unknown, field: string): unknown[] {
  if (!Array.isArray(wanted)) throw invalid(`The operator at '${field}' needs a list.`, field)
  return wanted
}

function expressionOf(wanted: unknown, field: string): RegExp {
  try {
    if (wanted instanceof RegExp) return new RegExp(wanted.source, wanted.flags.replace(/[gy]/g, ''))
    if (typeof wanted === 'string') return new RegExp(wanted)
  } catch (cause) {
    throw new HeedError('invalid_argument', `$regex of '${field}' is no regular expression: ${cause instanceof Error ? cause.message : String(cause)}.`, { cause, details: { field } })
  }
  throw invalid(`$regex of '${field}' must be a text or a regular expression.`, field)
}

function valueAt(metadata: Readonly<Record<string, unknown>>, path: readonly string[]): unknown {
  let value: unknown = metadata
  for (const name of path) value = isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined
  return value
}

function isOperators(value: unknown): value is Record<string, unknown> {
  return isRecord(value) && Object.keys(value).length > 0 && Object.keys(value).every((key) => key.startsWith('$'))
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date) && !(value instanceof RegExp)
}

function unknownOperator(operator: string): HeedError {
  const known = [...new Set([...Object.keys(operators), ...logic])].join(', ')
  return new HeedError('invalid_argument', `There is no filter operator '${operator}'. Known: ${known}.`, { details: { field: 'filter', operator } })
}

function invalid(message: string, field: string): HeedError {
  return new HeedError('invalid_argument', message, { details: { field } })
}
