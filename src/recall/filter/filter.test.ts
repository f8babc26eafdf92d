import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileFilter } from './filter.ts'

class Own {
  user = 'ada'
}

describe('a filter that can\'t be meant', () => {
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
  it.each(refused)('[K2.7] %j is refused at %s', (filter, field) => {
    expect(() => compileFilter(filter)).toThrow(expect.objectContaining({ code: 'invalid_argument', message: expect.stringContaining(field), details: expect.objectContaining({ field }) }))
  })

  it('[K2.7] is refused when it holds itself or is deeper than can be meant', () => {
    const itself: Record<string, unknown> = {}
    itself.$not = itself
    const data: Record<string, unknown> = {}
    data.user = { $eq: data }
    let deep: object = { user: 'ada' }
    for (let depth = 0; depth < 100_000; depth += 1) deep = { $not: deep }
    for (const filter of [itself, data, deep]) expect(() => compileFilter(filter)).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
  })
})

describe('a filter that can be meant', () => {
  it('compares objects whatever the order of their keys', () => {
    fc.assert(fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }), (value) => {
      const turned = Object.fromEntries(Object.entries(value).toReversed())
      expect(compileFilter({ of: { $eq: turned } })({ of: value })).toBe(true)
      expect(compileFilter({ of: { $in: [turned] } })({ of: [value] })).toBe(true)
      expect(compileFilter({ of: { $ne: { ...turned, another: 'one' } } })({ of: { ...value, another: 'two' } })).toBe(true)
    }))
  })

  it('has lists that are empty, dates, and expressions at any depth', () => {
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
