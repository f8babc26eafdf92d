import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { Words } from './json-cache.ts'

const told = (length: number, times = { written: 0 }) => ({
  toJSON() {
    times.written++
    return 'x'.repeat(length)
  },
})

describe('what was put into words', () => {
  it('[H6.2] is bounded by its characters and by its number', () => {
    const words = new Words()
    for (let index = 0; index < 1_000; index++) words.of(told(60_000))
    expect(words.chars).toBeLessThanOrEqual(2 * 1024 * 1024)
    expect(words.chars).toBeGreaterThan(1024 * 1024)
    for (let index = 0; index < 1_000; index++) words.of(told(98))
    expect(words.chars).toBe(256 * 100)
    words.clear()
    expect(words.chars).toBe(0)
  })

  it.each([['short', 1_000], ['long', 1_000_000]])('[H6.2] is written once for all who ask for it: %s', (_what, length) => {
    const words = new Words()
    const times = { written: 0 }
    const value = told(length, times)
    for (let index = 0; index < 100; index++) expect(words.of(value).length).toBe(length + 2)
    expect(times.written).toBe(1)
  })

  it('[H6.2] is let go with what it is of where it is long', () => {
    const words = new Words()
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const heap = () => {
      collect()
      return process.memoryUsage().heapUsed / 2 ** 20
    }
    const kept = told(4_000_000)
    const before = heap()
    words.of(kept)
    for (let index = 0; index < 50; index++) words.of({ index, text: `${index}`.repeat(2_000_000) })
    // All of them would be over 300 MB.
    expect(heap() - before).toBeLessThan(40)
    expect([words.chars, words.of(kept).length]).toEqual([0, 4_000_002])
  })
})
