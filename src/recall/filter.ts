import { HeedError } from '../errors.ts'

/**
 * What metadata must be like: values by key (`a.b` for what is inside), or operators: `{ city: 'Rome', age: { $gte: 18 }, $or: […] }`.
 */
export type MetadataFilter = { readonly [key: string]: unknown }

export type MetadataTest = (metadata: Readonly<Record<string, unknown>>) => boolean

type ValueTest = (value: unknown) => boolean

const logic = ['$and', '$or', '$nor', '$not'] as const
const operators: Readonly<Record<string, (wanted: unknown, field: string) => ValueTest>> = {
  $eq: (wanted, field) => equal(wanted, field),
  $ne: (wanted, field) => not(equal(wanted, field)),
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
  $size: (wanted, field) => {
    if (!Number.isSafeInteger(wanted) || Number(wanted) < 0) throw invalid(`$size of '${field}' must be a whole number.`, field)
    return (value) => Array.isArray(value) && value.length === wanted
  },
  $contains: (wanted, field) => {
    checkData(wanted, field)
    return (value) => (typeof value === 'string' ? typeof wanted === 'string' && value.includes(wanted) : Array.isArray(value) && value.some((item) => same(item, wanted)))
  },
  $exists: (wanted, field) => {
    if (typeof wanted !== 'boolean') throw invalid(`$exists of '${field}' must be true or false.`, field)
    return (value) => (value !== undefined) === wanted
  },
  $regex: (wanted, field) => {
    const expression = expressionOf(wanted, field)
    return (value) => typeof value === 'string' && expression.test(value)
  },
  $elemMatch: (wanted, field) => {
    const test = isOperators(wanted, field) ? valueTest(wanted, field) : undefined
    const inside = test ? undefined : compileFilter(wanted)
    return (value) => Array.isArray(value) && value.some((item) => (test ? test(item) : isRecord(item) && inside?.(item) === true))
  },
  $not: (wanted, field) => {
    return not(isOperators(wanted, field) ? valueTest(wanted, field) : equal(wanted, field))
  },
}

/** Makes a test of a filter, and refuses by name what is none. */
export function compileFilter(filter: unknown): MetadataTest {
  if (!isRecord(filter)) throw invalid('A filter is an object of metadata keys and operators.', 'filter')
  const tests = Object.entries(filter).filter(([, wanted]) => wanted !== undefined).map(([key, wanted]): MetadataTest => {
    if (key.startsWith('$')) return logicTest(key, wanted)
    const test = isOperators(wanted, key) ? valueTest(wanted, key) : equal(wanted, key)
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

function equal(wanted: unknown, field: string): ValueTest {
  checkData(wanted, field)
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
  return JSON.stringify(a) === JSON.stringify(b)
}

function list(wanted: unknown, field: string): unknown[] {
  if (!Array.isArray(wanted)) throw invalid(`The operator at '${field}' needs a list.`, field)
  checkData(wanted, field)
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

/** Operators, or a value that is an object: what is some of both can't be meant. */
function isOperators(value: unknown, field: string): value is Record<string, unknown> {
  if (!isRecord(value)) return false
  const names = Object.keys(value)
  const some = names.filter((name) => name.startsWith('$'))
  if (some.length > 0 && some.length < names.length) {
    throw invalid(`'${field}' has operators (${some.join(', ')}) and keys (${names.filter((name) => !some.includes(name)).join(', ')}) side by side. Write what is inside as '${field}.key'.`, field)
  }
  return some.length > 0
}

/** What metadata can be. Nothing else could be like it, and little else can be passed to the thread that compares. */
function checkData(value: unknown, field: string, within: readonly object[] = []): void {
  if (value === null || value === undefined || ['string', 'number', 'boolean'].includes(typeof value) || value instanceof Date) return
  const isData = (Array.isArray(value) || isPlain(value)) && !within.includes(value)
  if (!isData) throw invalid(`'${field}' can only be compared with what metadata can be: texts, numbers, true, false, null, dates, and lists and objects of them.`, field)
  for (const inside of Object.values(value)) checkData(inside, field, [...within, value])
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date) && !(value instanceof RegExp)
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return isRecord(value) && [Object.prototype, null].includes(Object.getPrototypeOf(value) as null)
}

function unknownOperator(operator: string): HeedError {
  const known = [...new Set([...Object.keys(operators), ...logic])].join(', ')
  return new HeedError('invalid_argument', `There is no filter operator '${operator}'. Known: ${known}.`, { details: { field: 'filter', operator } })
}

function invalid(message: string, field: string): HeedError {
  return new HeedError('invalid_argument', message, { details: { field } })
}
