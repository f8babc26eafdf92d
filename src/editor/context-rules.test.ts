import { describe, expect, it } from 'vitest'
import type { JSONObject } from '../base/json.ts'
import { checkContextRules, fitsContext, valueAt } from './context-rules.ts'
import type { ContextRules } from './contract.ts'

const context: JSONObject = { plan: 'pro', seats: 5, beta: true, tags: ['eu', 'big'], user: { name: 'Ann', age: 30 }, nothing: null }
const one = (field: string, operator: string, value?: unknown): ContextRules => (
  { operator: 'AND', conditions: [{ field, operator, ...(value !== undefined && { value }) } as never] }
)

describe('rules of a prompt block or a tool', () => {
  it.each([
    ['plan', 'equals', 'pro', true], ['plan', 'equals', 'free', false], ['seats', 'equals', 5, true], ['seats', 'equals', '5', false],
    ['beta', 'equals', true, true], ['missing', 'equals', 'x', false], ['user.name', 'equals', 'Ann', true],
    ['plan', 'contains', 'pr', true], ['tags', 'contains', 'eu', true], ['tags', 'contains', 'us', false], ['seats', 'contains', '5', false],
    ['missing', 'contains', 'x', false], ['plan', 'in', ['pro', 'team'], true], ['plan', 'in', ['free'], false], ['missing', 'in', ['x'], false],
  ] as const)('[O4.6] %s %s %j is %s, and its opposite is not', (field, operator, value, fits) => {
    expect(fitsContext(one(field, operator, value), context)).toBe(fits)
    expect(fitsContext(one(field, `not_${operator}`, value), context)).toBe(!fits)
  })

  it.each([
    ['seats', 'greater_than', 4, true], ['seats', 'greater_than', 5, false], ['seats', 'greater_than_or_equal', 5, true],
    ['seats', 'less_than', 6, true], ['seats', 'less_than', 5, false], ['seats', 'less_than_or_equal', 5, true],
    ['plan', 'greater_than', 'free', true], ['plan', 'less_than', 'free', false], ['plan', 'greater_than', 4, false], ['seats', 'less_than', '9', false],
    ['missing', 'less_than', 9, false], ['tags', 'greater_than', 0, false],
    ['user', 'exists', undefined, true], ['missing', 'exists', undefined, false], ['nothing', 'exists', undefined, false],
    ['missing', 'not_exists', undefined, true], ['plan', 'not_exists', undefined, false],
  ] as const)('[O4.6] %s %s %j is %s', (field, operator, value, fits) => {
    expect(fitsContext(one(field, operator, value), context)).toBe(fits)
  })

  it('[O4.6] all conditions of a group must fit, or one of them; a group may be in a group', () => {
    const pro = { field: 'plan', operator: 'equals', value: 'pro' } as const
    const large = { field: 'seats', operator: 'greater_than', value: 100 } as const
    expect(fitsContext({ operator: 'AND', conditions: [pro, large] }, context)).toBe(false)
    expect(fitsContext({ operator: 'OR', conditions: [pro, large] }, context)).toBe(true)
    expect(fitsContext({ operator: 'AND', conditions: [pro, { operator: 'OR', conditions: [large, pro] }] }, context)).toBe(true)
  })

  it('[O4.5] a path reads own fields of plain objects, and nothing that an object inherits', () => {
    const odd = JSON.parse('{ "__proto__": { "x": 1 }, "own": { "a": 1 } }') as JSONObject
    expect(valueAt(odd, '__proto__.x')).toBe(1)
    for (const path of ['constructor', 'constructor.name', 'own.constructor.name', 'own.__proto__', 'toString', 'own.a.b', 'tags.length', 'plan.length']) {
      expect(valueAt({ ...context, own: { a: 1 } }, path)).toBeUndefined()
    }
  })

  it.each([
    ['no operator', { conditions: [{ field: 'a', operator: 'exists' }] }, 'operator'],
    ['no conditions', { operator: 'AND', conditions: [] }, 'rules.conditions'],
    ['an unknown operator', { operator: 'AND', conditions: [{ field: 'a', operator: 'matches', value: 'x' }] }, 'one of equals'],
    ['a value of exists', { operator: 'AND', conditions: [{ field: 'a', operator: 'exists', value: 1 }] }, "'value'"],
    ['a list for equals', { operator: 'AND', conditions: [{ field: 'a', operator: 'equals', value: ['x'] }] }, 'value'],
    ['a text for in', { operator: 'AND', conditions: [{ field: 'a', operator: 'in', value: 'x' }] }, 'value'],
    ['an order of booleans', { operator: 'AND', conditions: [{ field: 'a', operator: 'less_than', value: true }] }, 'order'],
    ['a path that is code', { operator: 'AND', conditions: [{ field: 'a()', operator: 'exists' }] }, 'field'],
    ['an empty path', { operator: 'AND', conditions: [{ field: 'a..b', operator: 'exists' }] }, 'field'],
    ['a number that is none', { operator: 'AND', conditions: [{ field: 'a', operator: 'equals', value: Number.NaN }] }, 'value'],
    ['an unknown field', { operator: 'AND', conditions: [{ field: 'a', operator: 'exists', not: true }] }, "'not'"],
    ['four levels', [1, 2, 3].reduce((inner: object) => ({ operator: 'AND', conditions: [inner] }), { operator: 'AND', conditions: [{ field: 'a', operator: 'exists' }] }), 'levels'],
    ['65 conditions', { operator: 'AND', conditions: Array.from({ length: 65 }, () => ({ field: 'a', operator: 'exists' })) }, '64'],
  ])('[O4.7] refuses %s by name', (_, rules, named) => {
    expect(() => checkContextRules('rules', rules)).toThrow(named)
  })
})
