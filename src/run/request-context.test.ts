import { expect, expectTypeOf, it } from 'vitest'
import { RequestContext } from './request-context.ts'

it('is created from an object or from entries, and reads like a map', () => {
  const context = new RequestContext<{ plan: string; seats: number }>({ plan: 'free', seats: 1 })
  expectTypeOf(context.get('seats')).toEqualTypeOf<number>()
  context.set('seats', 2)
  expect([context.get('plan'), context.get('seats'), context.has('plan'), context.has('other')]).toEqual(['free', 2, true, false])
  expect([...context.keys()]).toEqual(['plan', 'seats'])
  expect(context.delete('plan')).toBe(true)
  expect(context.all).toEqual({ seats: 2 })
  expect([...new RequestContext([['a', 1]]).entries()]).toEqual([['a', 1]])
})
