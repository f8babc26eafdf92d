import { checkNames, refused } from '../base/arguments.ts'
import { isObject } from '../base/json.ts'
import type { ScorerFilter, ScorerFilterTests } from './contract.ts'

/** What a filter is asked about. */
export interface FilteredRun {
  requestContext: Readonly<Record<string, unknown>>
  /** The agent, or the step of a workflow. */
  entity: Readonly<Record<string, unknown>>
  entityType: 'agent' | 'step'
  /** `live`: a run in use. `test`: a run of an evaluation. */
  source: 'live' | 'test'
  threadId: string
  resourceId: string
}

const roots = ['requestContext', 'entity', 'entityType', 'source', 'threadId', 'resourceId']
const nested = new Set(['requestContext', 'entity'])
const orders = ['lt', 'lte', 'gt', 'gte'] as const
const flags = ['exists', 'notExists', 'truthy', 'falsy'] as const
const lists = ['in', 'notIn'] as const
const tests = ['eq', 'ne', ...orders, ...lists, ...flags]

/** Rejects a filter that cannot work, by the field that is wrong. */
export function checkFilter(field: string, filter: unknown): asserts filter is ScorerFilter {
  if (!isObject(filter) || Object.keys(filter).length === 0)
    throw refused(field, 'an object of fields with their tests, or { and }, { or } or { not }')
  const joined = ['and', 'or', 'not'].find((name) => name in filter)
  if (joined === undefined) {
    for (const [name, given] of Object.entries(filter)) checkTests(field, name, given)
    return
  }
  checkNames(field, filter, [joined])
  const inner = filter[joined]
  if (joined === 'not') return checkFilter(`${field}.not`, inner)
  if (!Array.isArray(inner) || inner.length === 0) throw refused(`${field}.${joined}`, 'a list of filters')
  for (const [index, one] of inner.entries()) checkFilter(`${field}.${joined}[${index}]`, one)
}

function checkTests(of: string, name: string, given: unknown): void {
  const [root = '', ...path] = name.split('.')
  const fits = roots.includes(root) && (nested.has(root) ? path.length > 0 && path.every((part) => part !== '') : path.length === 0)
  const field = `${of}.${JSON.stringify(name)}`
  if (!fits) throw refused(`a field of ${of}, '${name}',`, 'requestContext.… or entity.…, entityType, source, threadId or resourceId')
  checkNames(field, given, tests)
  const entries = Object.entries(given as object).filter(([, value]) => value !== undefined)
  if (entries.length === 0) throw refused(field, `an object with a test: ${tests.join(', ')}`)
  for (const [test, value] of entries) {
    const wanted = wantedOf(test, value)
    if (wanted !== undefined) throw refused(`${field}.${test}`, wanted)
  }
}

function wantedOf(test: string, value: unknown): string | undefined {
  const isOf = (names: readonly string[]) => names.includes(test)
  if (isOf(lists)) return Array.isArray(value) && value.every(isPlain) ? undefined : 'a list of texts, numbers and booleans'
  if (isOf(flags)) return typeof value === 'boolean' ? undefined : 'true or false'
  if (!isOf(orders)) return isPlain(value) ? undefined : 'a text, a number, a boolean or null'
  return typeof value === 'string' || (typeof value === 'number' && Number.isFinite(value)) ? undefined : 'a number or a text'
}

function isPlain(value: unknown): boolean {
  return value === null || typeof value === 'string' || typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))
}

/** Whether a run is to be scored. */
export function meets(filter: ScorerFilter, run: FilteredRun): boolean {
  if ('and' in filter) return filter.and.every((one) => meets(one, run))
  if ('or' in filter) return filter.or.some((one) => meets(one, run))
  if ('not' in filter) return !meets(filter.not, run)
  return Object.entries(filter).every(([field, given]) => meetsAll(given as ScorerFilterTests, valueAt(run, field.split('.'))))
}

/** Own properties alone. */
function valueAt(value: unknown, [name, ...rest]: readonly string[]): unknown {
  if (name === undefined) return value
  return isObject(value) && Object.hasOwn(value, name) ? valueAt(value[name], rest) : undefined
}

function meetsAll(given: ScorerFilterTests, value: unknown): boolean {
  const { eq, ne, lt, lte, gt, gte, in: among, notIn, exists, notExists, truthy, falsy } = given
  return (eq === undefined || value === eq)
    && (ne === undefined || value !== ne)
    && (lt === undefined || compared(value, lt, (order) => order < 0))
    && (lte === undefined || compared(value, lte, (order) => order <= 0))
    && (gt === undefined || compared(value, gt, (order) => order > 0))
    && (gte === undefined || compared(value, gte, (order) => order >= 0))
    && (among === undefined || among.includes(value as string))
    && (notIn === undefined || !notIn.includes(value as string))
    && (exists === undefined || exists === (value !== undefined))
    && (notExists === undefined || notExists === (value === undefined))
    && (truthy === undefined || truthy === Boolean(value))
    && (falsy === undefined || falsy === !value)
}

/** Values of different types have no order. */
function compared(value: unknown, other: number | string, holds: (order: number) => boolean): boolean {
  if (typeof value !== typeof other || (typeof value !== 'number' && typeof value !== 'string')) return false
  return holds(value < other ? -1 : value > other ? 1 : 0)
}
