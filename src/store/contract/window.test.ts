import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cutOrdinal, turnBoundary, windowStart } from './window.ts'

const marks = fc.tuple(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 0, max: 50 })).map(([low, more]) => ({ low, high: low + more }))

describe('the window', () => {
  it('[P1.3] holds at least the low mark and at most the high one, whatever the thread has', () => {
    fc.assert(fc.property(fc.nat(5_000), marks, (ordinal, window) => {
      const kept = ordinal - windowStart(ordinal, window)
      expect(kept).toBeGreaterThanOrEqual(Math.min(ordinal, window.low))
      expect(kept).toBeLessThanOrEqual(window.high)
    }))
  })

  it('[P1.3] only moves forward, and stays where it is between two cuts', () => {
    fc.assert(fc.property(marks, (window) => {
      const starts = Array.from({ length: 300 }, (_, ordinal) => windowStart(ordinal, window))
      expect(starts).toEqual(starts.toSorted((a, b) => a - b))
      const cuts = new Set(starts).size - 1
      expect(cuts).toBeLessThanOrEqual(Math.ceil(300 / Math.max(1, window.high - window.low)))
    }))
  })

  it('[P1.6] slides by one when both marks are the same, and begins with a turn that is not too far', () => {
    fc.assert(fc.property(fc.integer({ min: 1, max: 50 }), fc.nat(500), fc.nat(10), (mark, ordinal, back) => {
      const window = { low: mark, high: mark }
      expect(windowStart(ordinal, window)).toBe(Math.max(0, ordinal - mark))
      const first = { ordinal: ordinal + back + 1, turn: ordinal + 1 }
      expect(turnBoundary(first, window)).toBe(back > mark ? first.ordinal : first.turn)
    }))
  })

  it('[K2.14] knows the message with which the window was cut', () => {
    fc.assert(fc.property(marks, fc.integer({ min: 1, max: 2_000 }), (window, ordinal) => {
      const start = windowStart(ordinal, window)
      fc.pre(start > 0)
      const cut = cutOrdinal(start, window)
      expect(windowStart(cut, window)).toBe(start)
      expect(windowStart(cut - 1, window)).toBeLessThan(start)
    }))
  })

  it('[P1.3] begins with a turn, unless that began too long ago', () => {
    const window = { low: 10, high: 20 }
    expect(turnBoundary({ ordinal: 31, turn: 30 }, window)).toBe(30)
    expect(turnBoundary({ ordinal: 51, turn: 30 }, window)).toBe(51)
    expect(turnBoundary({ ordinal: 31, turn: 0 }, window)).toBe(31)
  })
})
