import { expect, it } from 'vitest'
import { PendingEchoes } from './echoes.ts'

it('[W2.1] waits for the echoes that are pending, and not for later ones', async () => {
  const announcing = new PendingEchoes()
  expect(announcing.flushed('t')).toBeUndefined()
  const resolved: string[] = []
  const begin = () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const work = announcing.during('t', () => promise)
    return async () => {
      resolve()
      await work
    }
  }
  const tellOne = begin()
  const tellTwo = begin()
  const first = announcing.flushed('t')?.then(() => resolved.push('first'))
  const tellThree = begin()
  const second = announcing.flushed('t')?.then(() => resolved.push('second'))
  expect(announcing.flushed('other')).toBeUndefined()
  await tellOne()
  expect(resolved).toEqual([])
  await tellTwo()
  await first
  expect(resolved).toEqual(['first'])
  await tellThree()
  await second
  expect([resolved, announcing.flushed('t')]).toEqual([['first', 'second'], undefined])
})
