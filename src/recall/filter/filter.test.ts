import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileFilter } from './filter.ts'

class Own {
  user = 'ada'
}

describe('an invalid filter', () => {
  const refused: ReadonlyArray<[unknown, string]> = [
    [{ user: undefined }, 'filter.user'],
    [{ user: { $eq: undefined } }, 'filter.user.$eq'],
    [{ user: { $ne: undefined } }, 'filter.user.$ne'],
    [{ user: { $in: ['a', undefined] } }, 'filter.user.$in[1]'],
    // oxlint-disable-next-line no-sparse-arrays -- holes are what is tried here
    [{ user: { $nin: [, 'a'] } }, 'filter.user.$nin[0]'],
    [{ user: { $not: undefined } }, 'filter.user.$not'],
    [{ user: { $not: {} } }, 'filter.user.$not'],
    [{ user: { name: undefined } }, 'filter.user.name'],
    [{ $and: [] }, 'filter.$and'],
    [{ $and: [{}] }, 'filter.$and[0]'],
    [{ $or: [] }, 'filter.$or'],
    [{ $or: [{ user: 'ada' }, {}] }, 'filter.$or[1]'],
    [{ $or: [undefined] }, 'filter.$or[0]'],
    [{ $nor: [] }, 'filter.$nor'],
    [{ $not: {} }, 'filter.$not'],
    [{ $not: { $or: [] } }, 'filter.$not.$or'],
    [{ $not: { user: undefined, age: 1 } }, 'filter.$not.user'],
    [{ $and: [{ $or: [{ age: { $gte: Number.NaN } }] }] }, 'filter.$and[0].$or[0].age.$gte'],
    [{ tags: { $elemMatch: {} } }, 'filter.tags.$elemMatch'],
    [{ tags: { $elemMatch: { k: undefined } } }, 'filter.tags.$elemMatch.k'],
    [{ age: Number.NaN }, 'filter.age'],
    [{ age: { $lt: Number.POSITIVE_INFINITY } }, 'filter.age.$lt'],
    [{ at: new Date(Number.NaN) }, 'filter.at'],
    [{ at: { $gt: new Date('no day') } }, 'filter.at.$gt'],
    [{ at: { $gt: true } }, 'filter.at.$gt'],
    [{ user: () => 1 }, 'filter.user'],
    [{ user: Symbol('ada') }, 'filter.user'],
    [{ user: { $regex: undefined } }, 'filter.user.$regex'],
    [{ [Symbol('user')]: 'ada' }, 'filter'],
    [{ user: { [Symbol('name')]: 'ada' } }, 'filter.user'],
    [new Map([['user', 'ada']]), 'filter'],
    [new Own(), 'filter'],
    [{ user: new Own() }, 'filter.user'],
    [{ $and: [new Own()] }, 'filter.$and[0]'],
    [null, 'filter'],
    ['user', 'filter'],
    [{ user: { $near: 1 } }, 'filter.user.$near'],
    [{ $xor: [] }, 'filter.$xor'],
  ]
  it.each(refused)('[K2.7] %j is rejected at %s', (filter, field) => {
    expect(() => compileFilter(filter)).toThrow(
      expect.objectContaining({
        code: 'invalid_argument',
        message: expect.stringContaining(field),
        details: expect.objectContaining({ field }),
      }),
    )
  })

  it('[K2.7] is rejected when it contains itself or is nested too deeply', () => {
    const itself: Record<string, unknown> = {}
    itself.$not = itself
    const data: Record<string, unknown> = {}
    data.user = { $eq: data }
    let deep: object = { user: 'ada' }
    for (let depth = 0; depth < 100_000; depth += 1) deep = { $not: deep }
    for (const filter of [itself, data, deep])
      expect(() => compileFilter(filter)).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
  })
})

describe('a valid filter', () => {
  it('compares objects whatever the order of their keys', () => {
    fc.assert(fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }), (value) => {
      const turned = Object.fromEntries(Object.entries(value).toReversed())
      expect(compileFilter({ of: { $eq: turned } })({ of: value })).toBe(true)
      expect(compileFilter({ of: { $in: [turned] } })({ of: [value] })).toBe(true)
      expect(compileFilter({ of: { $ne: { ...turned, another: 'one' } } })({ of: { ...value, another: 'two' } })).toBe(true)
    }))
  })

  it('may have empty lists, dates, and regular expressions at any depth', () => {
    expect(compileFilter({})({})).toBe(true)
    expect(compileFilter({ user: { $in: [] } })({ user: 'ada' })).toBe(false)
    expect(compileFilter({ user: { $nin: [] } })({ user: 'ada' })).toBe(true)
    expect(compileFilter({ tags: [] })({ tags: [] })).toBe(true)
    expect(compileFilter({ $and: [{ user: { $regex: /^A/i } }] })({ user: 'ada' })).toBe(true)
    expect(compileFilter({ at: { $gte: new Date(0) } })({ at: '2024-01-01T00:00:00.000Z' })).toBe(true)
    expect(compileFilter({ at: new Date(0) })({ at: new Date(0).toISOString() })).toBe(true)
    expect(compileFilter({ user: null })({})).toBe(true)
    expect(compileFilter(Object.assign(Object.create(null), { user: 'ada' }))({ user: 'ada' })).toBe(true)
  })
})

describe('filters', () => {
  const metadata = { city: 'Rome', age: 30, tags: ['a', 'b'], inner: { deep: true }, items: [{ n: 1 }, { n: 5 }] }
  it.each([
    [{ city: 'Rome' }, true],
    [{ city: { $ne: 'Rome' } }, false],
    [{ age: { $gt: 18, $lte: 30 } }, true],
    [{ age: { $gte: 31 } }, false],
    [{ age: { $lt: 30 } }, false],
    [{ city: { $in: ['Paris', 'Rome'] } }, true],
    [{ city: { $nin: ['Paris', 'Rome'] } }, false],
    [{ tags: { $all: ['a', 'b'] } }, true],
    [{ tags: { $all: ['a', 'c'] } }, false],
    [{ tags: 'a' }, true],
    [{ tags: { $contains: 'b' } }, true],
    [{ tags: { $size: 3 } }, false],
    [{ items: { $elemMatch: { n: { $gt: 4 } } } }, true],
    [{ items: { $elemMatch: { n: { $gt: 5 } } } }, false],
    [{ 'inner.deep': true }, true],
    [{ none: { $exists: false } }, true],
    [{ city: { $regex: '^Ro' } }, true],
    [{ city: { $not: { $eq: 'Rome' } } }, false],
    [{ $or: [{ city: 'Paris' }, { age: 30 }] }, true],
    [{ $and: [{ city: 'Rome' }, { age: 31 }] }, false],
    [{ $nor: [{ city: 'Paris' }, { age: 31 }] }, true],
    [{ $not: { city: 'Rome' } }, false],
  ])('%j is %s', (filter, expected) => {
    expect(compileFilter(filter)(metadata)).toBe(expected)
  })

  it.each([
    { city: { $like: 'R' } },
    { $xor: [] },
    { city: { $in: 'Rome' } },
    { city: { $regex: '(' } },
    { age: { $gt: {} } },
    [],
    { age: { $gt: 0, b: 2 } },
    { tags: { $size: 'a' } },
    { tags: { $size: -1 } },
    { city: { $exists: 'no' } },
    { city: { $elemMatch: { $gt: 1, b: 2 } } },
  ])('rejects %j', (filter) => {
    expect(() => compileFilter(filter)).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
  })

  it('rejects values that metadata cannot have', () => {
    const itself: Record<string, unknown> = {}
    itself.own = itself
    for (const value of [() => 1, Symbol('s'), 1n, /x/, new Map(), [() => 1], { deep: { er: Symbol('s') } }, itself]) {
      for (const filter of [
        { a: value },
        { a: { $ne: value } },
        { a: { $in: [value] } },
        { a: { $contains: value } },
        { $or: [{ a: value }] },
        { a: { $not: { $eq: value } } },
      ]) {
        expect(() => compileFilter(filter)).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
      }
    }
  })
})
