import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { JsonCache } from './frames.ts'

/** A value whose JSON has `length` characters and two quotes; counts how often it is written. */
const valueOf = (length: number, times = { written: 0 }) => ({
  toJSON() {
    times.written++
    return 'x'.repeat(length)
  },
})

describe('the cache of JSON', () => {
  it('[H6.2] is bounded by the number of its characters and of its entries', () => {
    const cache = new JsonCache()
    for (let index = 0; index < 1_000; index++) cache.stringify(valueOf(60_000))
    expect(cache.chars).toBeLessThanOrEqual(2 * 1024 * 1024)
    expect(cache.chars).toBeGreaterThan(1024 * 1024)
    for (let index = 0; index < 1_000; index++) cache.stringify(valueOf(98))
    expect(cache.chars).toBe(256 * 100)
    cache.clear()
    expect(cache.chars).toBe(0)
  })

  it.each([['short', 1_000], ['long', 1_000_000]])('[H6.2] writes a value once for all its readers: %s', (_what, length) => {
    const cache = new JsonCache()
    const times = { written: 0 }
    const value = valueOf(length, times)
    for (let index = 0; index < 100; index++) expect(cache.stringify(value).length).toBe(length + 2)
    expect(times.written).toBe(1)
  })

  it('[H6.2] frees a long text together with its value', () => {
    const cache = new JsonCache()
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const heap = () => {
      collect()
      return process.memoryUsage().heapUsed / 2 ** 20
    }
    const kept = valueOf(4_000_000)
    const before = heap()
    cache.stringify(kept)
    for (let index = 10; index < 30; index++) cache.stringify({ index, text: `${index}`.repeat(2_000_000) })
    // All of them would be 80 MB.
    expect(heap() - before).toBeLessThan(40)
    expect([cache.chars, cache.stringify(kept).length]).toEqual([0, 4_000_002])
  })
})
