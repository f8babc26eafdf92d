import { afterEach, describe, expect, it, vi } from 'vitest'
import { Agent } from '../agent/agent.ts'
import { systemClock } from './clock.ts'
import { createTool } from '../run/tools/tool.ts'
import { scriptedModel } from '../testing/index.ts'

const longest = 2 ** 31 - 1

describe('a long time', () => {
  afterEach(() => void vi.useRealTimers())

  it.each([longest + 1, 2 ** 32, 3 * longest + 7])('of %d ms is waited for in full', (ms) => {
    vi.useFakeTimers()
    const ring = vi.fn()
    systemClock.after(ms, ring)
    vi.advanceTimersByTime(ms - 1)
    expect(ring).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(ring).toHaveBeenCalledOnce()
    vi.advanceTimersByTime(ms)
    expect(ring).toHaveBeenCalledOnce()
  })

  it('without an end is never over, and can be cancelled in every turn of it', () => {
    vi.useFakeTimers()
    const ring = vi.fn()
    const forever = systemClock.after(Infinity, ring)
    const long = systemClock.after(longest + 10, ring)
    vi.advanceTimersByTime(longest + 5)
    long.cancel()
    expect(vi.getTimerCount()).toBe(1)
    vi.advanceTimersByTime(3 * longest)
    forever.cancel()
    expect([ring.mock.calls.length, vi.getTimerCount()]).toEqual([0, 0])
  })

  it.each([Infinity, 2 ** 31])('as the timeoutMs of a tool and of a processor, %d, lets both end by themselves', async (timeoutMs) => {
    // Longer than the 1 ms that an overflowing timer takes.
    const slowly = <T>(value: T) => new Promise<T>((resolve) => void systemClock.after(20, () => resolve(value)))
    const agent = new Agent({
      id: 'guide',
      model: scriptedModel([{ toolCalls: [{ toolName: 'look' }] }, 'Done.']),
      tools: { look: createTool({ id: 'look', timeoutMs, execute: () => slowly('seen') }) },
      inputProcessors: [{ id: 'slow', timeoutMs, processInput: () => slowly(undefined) }],
    })
    const { text, steps } = await agent.generate('Go.')
    expect([text, steps[0]?.toolResults[0]?.result]).toEqual(['Done.', 'seen'])
  })
})
