import { describe, expect, it, vi } from 'vitest'
import { sleep } from '../base/clock.ts'
import { virtualClock } from './virtual-clock.ts'

describe('virtualClock', () => {
  it('stands still until it is moved', async () => {
    const clock = virtualClock(1000)
    expect(clock.now()).toBe(1000)
    await clock.advance(250)
    expect(clock.now()).toBe(1250)
    expect(virtualClock(new Date(7)).now()).toBe(7)
  })

  it('fires what falls due in the order of time, ties in the order of creation, each at its own time', async () => {
    const clock = virtualClock(0)
    const fired: string[] = []
    const at = (ms: number, name: string) => clock.after(ms, () => fired.push(`${name}@${clock.now()}`))
    at(30, 'late')
    at(10, 'first')
    at(20, 'tie one')
    at(20, 'tie two')
    at(31, 'not yet')
    await clock.advance(30)
    expect(fired).toEqual(['first@10', 'tie one@20', 'tie two@20', 'late@30'])
    expect(clock.pending).toBe(1)
  })

  it('lets what a timer set going settle before the next one fires', async () => {
    const clock = virtualClock(0)
    const seen: string[] = []
    const work = async () => {
      await sleep(clock, 10)
      for (let hop = 0; hop < 50; hop++) await Promise.resolve()
      seen.push(`worked@${clock.now()}`)
      await sleep(clock, 5)
      seen.push(`again@${clock.now()}`)
    }
    void work()
    clock.after(12, () => seen.push(`other@${clock.now()}`))
    await clock.advance(100)
    expect(seen).toEqual(['worked@10', 'other@12', 'again@15'])
    expect(clock.now()).toBe(100)
  })

  it('fires a timer of 0 ms when all else has settled, and one set by another at the same time in the same move', async () => {
    const clock = virtualClock(0)
    const fired: number[] = []
    clock.after(0, () => {
      fired.push(1)
      clock.after(0, () => fired.push(2))
    })
    expect(fired).toEqual([])
    await clock.advance(0)
    expect(fired).toEqual([1, 2])
  })

  it('fires what was set too late for the move it was meant for, without another', async () => {
    const clock = virtualClock(0)
    await clock.advance(100)
    const at = await new Promise((resolve) => clock.after(-40, () => resolve(clock.now())))
    expect(at).toBe(100)
  })

  it('forgets a cancelled timer, also one cancelled by a timer of the same moment', async () => {
    const clock = virtualClock(0)
    const fired: string[] = []
    clock.after(5, () => {
      fired.push('canceller')
      second.cancel()
    })
    const second = clock.after(5, () => fired.push('cancelled'))
    const third = clock.after(6, () => fired.push('cancelled too'))
    third.cancel()
    third.cancel()
    expect(clock.pending).toBe(2)
    await clock.advance(10)
    expect(fired).toEqual(['canceller'])
    expect(clock.pending).toBe(0)
  })

  it('queues moves behind each other', async () => {
    const clock = virtualClock(0)
    const fired: number[] = []
    clock.after(15, () => fired.push(clock.now()))
    await Promise.all([clock.advance(10), clock.advance(10)])
    expect(clock.now()).toBe(20)
    expect(fired).toEqual([15])
  })

  it('rejects the move in which a timer throws, and continues', async () => {
    const clock = virtualClock(0)
    clock.after(1, () => {
      throw new Error('boom')
    })
    clock.after(2, () => {})
    await expect(clock.advance(5)).rejects.toThrow('boom')
    await clock.advance(5)
    expect(clock.pending).toBe(0)
  })

  it('runAll moves until only background timers are left; those fire on the way only', async () => {
    const clock = virtualClock(0)
    const fired: string[] = []
    const sweep = () => {
      fired.push(`sweep@${clock.now()}`)
      clock.after(40, sweep, { background: true })
    }
    clock.after(40, sweep, { background: true })
    clock.after(100, () => {
      fired.push(`work@${clock.now()}`)
      clock.after(5, () => fired.push(`more@${clock.now()}`))
    })
    await clock.runAll()
    expect(fired).toEqual(['sweep@40', 'sweep@80', 'work@100', 'more@105'])
    expect(clock.pending).toBe(1)
  })

  it('runAll gives up on a timer that sets itself anew', async () => {
    const clock = virtualClock(0)
    const again = () => void clock.after(1, again)
    again()
    await expect(clock.runAll({ limit: 20 })).rejects.toMatchObject({ code: 'invalid_argument', message: /20 timers/ })
  })

  it('moves on under fake timers of a test runner', async () => {
    vi.useFakeTimers()
    try {
      const clock = virtualClock(0)
      let fired = false
      clock.after(1, () => (fired = true))
      await clock.advance(1)
      expect(fired).toBe(true)
    } finally {
      vi.useRealTimers()
    }
  })
})
