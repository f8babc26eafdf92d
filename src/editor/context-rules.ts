import { checkNames, checkObject, refused } from '../base/arguments.ts'
import { isPlainObject, type JSONObject, type JSONValue } from '../base/json.ts'
import type { ContextCondition, ContextRules, ContextValue } from './contract.ts'

const operators = [
  'equals', 'not_equals', 'contains', 'not_contains', 'greater_than', 'less_than', 'greater_than_or_equal', 'less_than_or_equal',
  'in', 'not_in', 'exists', 'not_exists',
] as const satisfies ReadonlyArray<ContextCondition['operator']>
const ordering: ReadonlySet<string> = new Set(['greater_than', 'less_than', 'greater_than_or_equal', 'less_than_or_equal'])
/** Groups in groups in a group. */
const maxLevels = 3
const maxConditions = 64
const maxValues = 1_000
const maxText = 1_024

/** `plan`, or `user.plan` for a value within one. */
const path = /^[\p{L}_$][\p{L}\p{N}_$-]*(?:\.[\p{L}\p{N}_$-]+){0,7}$/u

/** True for a text that names a value of the request context. */
export function isContextPath(text: string): boolean {
  return text.length <= 256 && path.test(text)
}

/** The value of a path. Reads own fields of plain objects only: nothing that an object inherits, and no method. */
export function valueAt(context: JSONObject, field: string): JSONValue | undefined {
  let value: JSONValue | undefined = context
  for (const name of field.split('.')) {
    if (!isPlainObject(value) || !Object.hasOwn(value, name)) return undefined
    value = value[name]
  }
  return value
}

/** Whether a request is one of those that rules are for. */
export function fitsContext(rules: ContextRules, context: JSONObject): boolean {
  const fits = (one: ContextCondition | ContextRules) => ('conditions' in one ? fitsContext(one, context) : holds(one, context))
  return rules.operator === 'AND' ? rules.conditions.every(fits) : rules.conditions.some(fits)
}

function holds(condition: ContextCondition, context: JSONObject): boolean {
  const found = valueAt(context, condition.field)
  switch (condition.operator) {
    case 'exists':
      return isSet(found)
    case 'not_exists':
      return !isSet(found)
    case 'equals':
      return found === condition.value
    case 'not_equals':
      return found !== condition.value
    case 'contains':
      return contains(found, condition.value)
    case 'not_contains':
      return !contains(found, condition.value)
    case 'in':
      return condition.value.some((one) => one === found)
    case 'not_in':
      return !condition.value.some((one) => one === found)
    case 'greater_than':
      return isOrdered(found, condition.value, (order) => order > 0)
    case 'greater_than_or_equal':
      return isOrdered(found, condition.value, (order) => order >= 0)
    case 'less_than':
      return isOrdered(found, condition.value, (order) => order < 0)
    case 'less_than_or_equal':
      return isOrdered(found, condition.value, (order) => order <= 0)
  }
}

function isSet(value: JSONValue | undefined): boolean {
  return value !== undefined && value !== null
}

function contains(found: JSONValue | undefined, value: ContextValue): boolean {
  if (Array.isArray(found)) return found.includes(value)
  return typeof found === 'string' && typeof value === 'string' && found.includes(value)
}

/** Numbers by size, texts by their characters; a number and a text have no order. */
function isOrdered(found: JSONValue | undefined, value: string | number, is: (order: number) => boolean): boolean {
  if (typeof found === 'number' && typeof value === 'number') return is(found - value)
  return typeof found === 'string' && typeof value === 'string' && is(found < value ? -1 : Number(found > value))
}

/** Refuses rules that cannot be meant, by name. */
export function checkContextRules(field: string, rules: unknown): ContextRules {
  checkGroup(field, rules, 1, { left: maxConditions })
  return rules as ContextRules
}

function checkGroup(field: string, rules: unknown, level: number, count: { left: number }): void {
  checkNames(field, rules, ['operator', 'conditions'])
  const { operator, conditions } = rules as Record<string, unknown>
  if (operator !== 'AND' && operator !== 'OR') throw refused(`${field}.operator`, "'AND' or 'OR'")
  if (level > maxLevels) throw refused(field, `a group of at most ${maxLevels} levels`)
  if (!Array.isArray(conditions) || conditions.length === 0) throw refused(`${field}.conditions`, 'a list of conditions')
  for (const [index, condition] of conditions.entries()) {
    const of = `${field}.conditions[${index}]`
    checkObject(of, condition)
    if (--count.left < 0) throw refused(field, `rules of at most ${maxConditions} conditions`)
    if ('conditions' in condition) checkGroup(of, condition, level + 1, count)
    else checkCondition(of, condition)
  }
}

function checkCondition(of: string, condition: Record<string, unknown>): void {
  const { field, operator, value } = condition
  const known = operators.find((name) => name === operator)
  if (!known) throw refused(`${of}.operator`, `one of ${operators.join(', ')}`)
  const isAlone = known === 'exists' || known === 'not_exists'
  checkNames(of, condition, isAlone ? ['field', 'operator'] : ['field', 'operator', 'value'])
  if (typeof field !== 'string' || !isContextPath(field))
    throw refused(`${of}.field`, "a name of the request context, or 'user.plan' for a value within one")
  if (isAlone) return
  if (known === 'in' || known === 'not_in') {
    const isList = Array.isArray(value) && value.length > 0 && value.length <= maxValues && value.every(isContextValue)
    if (!isList) throw refused(`${of}.value`, 'a list of texts, numbers or booleans')
    return
  }
  if (!isContextValue(value)) throw refused(`${of}.value`, 'a text, a number or a boolean')
  if (typeof value === 'boolean' && ordering.has(known)) throw refused(`${of}.value`, 'a number or a text, which have an order')
}

function isContextValue(value: unknown): value is ContextValue {
  return typeof value === 'string' ? value.length <= maxText : typeof value === 'boolean' || Number.isFinite(value)
}
