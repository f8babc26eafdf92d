import { describe, expect, it } from 'vitest'
import { virtualClock } from '../../testing/virtual-clock.ts'
import { Renewal } from './scheduler.ts'

const minute = 60_000
const day = 86_400_000

function world() {
  const clock = virtualClock(0)
  const state = { fails: false, at: [] as number[], reported: [] as string[] }
  const renewal = new Renewal(clock, async () => {
    state.at.push(clock.now())
    if (state.fails) throw new Error('the disk is gone')
  }, (error) => void state.reported.push(error))
  return { clock, state, renewal }
}

describe('the renewal of embedders that a process uses', () => {
  it('[K1.15] happens once a day', async () => {
    const { clock, state, renewal } = world()
    await clock.advance(3 * day)
    expect(state.at).toEqual([day, 2 * day, 3 * day])
    expect(renewal.error).toBeUndefined()
    renewal.close()
  })

  it('[K1.15] is retried after a minute, then later, and reports the failure until it succeeds', async () => {
    const { clock, state, renewal } = world()
    state.fails = true
    await clock.advance(day + 7 * minute)
    expect(state.at).toEqual([0, 1, 3, 7].map((minutes) => day + minutes * minute))
    expect(renewal.error).toContain('the disk is gone')
    expect(state.reported).toHaveLength(4)
    state.fails = false
    await clock.advance(8 * minute)
    expect(state.at).toHaveLength(5)
    expect(renewal.error).toBeUndefined()
    await clock.advance(day)
    expect(state.at).toHaveLength(6)
    renewal.close()
  })

  it('[K1.15] is never delayed by more than a day, and stops with its owner', async () => {
    const { clock, state, renewal } = world()
    state.fails = true
    await clock.advance(10 * day)
    const pauses = state.at.slice(1).map((at, index) => at - (state.at[index] ?? 0))
    expect(Math.max(...pauses)).toBe(day)
    renewal.close()
    const { length } = state.at
    await clock.advance(10 * day)
    expect(state.at).toHaveLength(length)
  })
})
