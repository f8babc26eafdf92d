import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { mostOfValue, toJSONValue } from './json-value.ts'

const numRuns = Number(process.env.HEED_PROPERTY_RUNS ?? 200)

describe('a value of a run', () => {
  it('[F1.1] is what its JSON is, for every value, and shares nothing with it', () => {
    const values = fc.oneof(fc.anything({ withDate: true, withNullPrototype: true, withSparseArray: true, withBoxedValues: true, withMap: true }), fc.jsonValue())
    fc.assert(fc.property(values, (value) => {
      const text = JSON.stringify(value) as string | undefined
      const copy = toJSONValue(value, 'the value')
      expect(copy).toStrictEqual(text === undefined ? undefined : JSON.parse(text))
      // Also the order of the keys, and no zero with a sign.
      expect(JSON.stringify(copy)).toBe(text)
      if (typeof copy === 'number') expect(Object.is(copy, -0)).toBe(false)
      if (typeof copy === 'object' && copy !== null) expect(copy).not.toBe(value)
    }), { numRuns })
  })

  it('[F1.1] keeps a field named __proto__, and what toJSON() gives', () => {
    const odd = JSON.parse('{"a":{"__proto__":{"x":1}}}') as unknown
    expect(JSON.stringify(toJSONValue(odd, 'v'))).toBe('{"a":{"__proto__":{"x":1}}}')
    expect(toJSONValue({ at: new Date(0), big: { toJSON: () => 'ten' }, gone: undefined, list: [undefined, Number.NaN] }, 'v'))
      .toEqual({ at: '1970-01-01T00:00:00.000Z', big: 'ten', list: [null, null] })
  })

  it('[F4.12] that is circular, or longer than 16 MiB as JSON, is refused by name; a long list is copied whole', () => {
    const circle: { self?: unknown } = {}
    circle.self = circle
    expect(() => toJSONValue(circle, 'the output')).toThrow(/the output can't be stored as JSON/)
    expect(() => toJSONValue('x'.repeat(mostOfValue), 'the output')).toThrow(/the output has 16777218 characters/)
    const long = Array.from({ length: 20_000 }, (_, index) => ({ index }))
    expect(toJSONValue(long, 'v')).toEqual(long)
  })
})
