import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { MessageRow, RowRole } from '../message/row.ts'
import type { WindowRow } from './window.ts'
import { windowOrdinals, windowReach, windowRow, windowStart } from './window.ts'

const user = (id: string): WindowRow => ({ messageId: id, counts: 'user' })
const assistant = (id: string): WindowRow => ({ messageId: id, counts: 'assistant' })
const other = (id: string): WindowRow => ({ messageId: id })

/** A thread as runs write it: what users say, answers of several rows with results between them, and rows that don't count. */
const thread: fc.Arbitrary<WindowRow[]> = fc
  .array(fc.oneof(fc.constant('user'), fc.constant('signal'), fc.integer({ min: 1, max: 3 })), { maxLength: 60 })
  .map(turns => turns.flatMap((turn, index) => {
    const id = `m${index}`
    if (turn === 'user') return [user(id)]
    if (turn === 'signal') return [other(id)]
    return Array.from({ length: Number(turn) }, () => [assistant(id), other(id)]).flat()
  }))
const size = fc.tuple(fc.integer({ min: 1, max: 8 }), fc.nat({ max: 8 })).map(([low, more]) => ({ low, high: low + more }))

function messages(rows: readonly WindowRow[]): number {
  return new Set(rows.filter(({ counts }) => counts).map(({ messageId }) => messageId)).size
}

describe('the window of history', () => {
  it('counts users, assistants and what users signalled, and nothing else', () => {
    const row = (role: RowRole, type?: string): MessageRow => ({
      id: 'r', messageId: 'm', role, createdAt: new Date(0), ...(type && { type }),
      content: { format: 2, parts: [], ...(type && { metadata: { signal: { type, tagName: type } } }) },
    })
    expect(windowRow(row('user'))).toEqual(user('m'))
    expect(windowRow(row('assistant'))).toEqual(assistant('m'))
    expect(windowRow(row('signal', 'user'))).toEqual(user('m'))
    for (const silent of [
      row('signal', 'notification'),
      row('tool'),
      row('context'),
      row('system'),
    ]) expect(windowRow(silent)).toEqual(other('m'))
  })

  it('grows to the high mark, is cut to the low one, and begins with what a user said', () => {
    const turns = (count: number) => Array.from({ length: count }, (_, index) => [
      user(`u${index}`),
      assistant(`a${index}`),
    ]).flat()
    const start = (count: number) => windowStart(turns(count), { low: 4, high: 8 })
    expect([1, 2, 3, 4, 5, 6, 7, 8].map(start)).toEqual([0, 0, 0, 0, 4, 4, 8, 8])
  })

  it('slides by one message when both marks are equal', () => {
    const rows = [user('u0'), assistant('a0'), other('a0'), assistant('a0'), user('u1'), assistant('a1')]
    expect([1, 2, 3, 4].map(low => windowStart(rows, { low, high: low }))).toEqual([5, 4, 1, 0])
  })

  it('starts at an answer where no user wrote anything near', () => {
    const rows = Array.from({ length: 20 }, (_, index) => assistant(`a${index}`))
    expect(windowStart(rows, { low: 4, high: 8 })).toBe(12)
  })

  it('refuses marks that make no sense', () => {
    for (const marks of [{ low: 3, high: 2 }, { low: -1, high: 2 }, { low: 1.5, high: 2 }, { low: NaN, high: NaN }]) {
      expect(() => windowStart([], marks)).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
    }
    expect(windowStart([user('u'), assistant('a')], { low: 1, high: Infinity })).toBe(0)
  })

  it('[P1.3] always holds the last `low` messages, and never many more than `high`', () => {
    fc.assert(fc.property(thread, size, (rows, marks) => {
      const held = messages(rows.slice(windowStart(rows, marks)))
      expect(held).toBeGreaterThanOrEqual(Math.min(marks.low, messages(rows)))
      expect(held).toBeLessThanOrEqual(windowReach(marks))
    }))
  })

  it('[P1.3] never parts a call from its result: it starts with the first row of a message', () => {
    fc.assert(fc.property(thread, size, (rows, marks) => {
      const start = windowStart(rows, marks)
      const [first] = rows.slice(start)
      if (start === 0 || !first) return
      expect(first.counts).toBeDefined()
      expect(rows.findIndex(({ messageId }) => messageId === first.messageId)).toBe(start)
    }))
  })

  it('[P1.3] only moves forward, and stays where it is between cuts', () => {
    fc.assert(fc.property(thread, size, (rows, marks) => {
      const starts = rows.map((_, index) => windowStart(rows.slice(0, index + 1), marks))
      expect(starts).toEqual(starts.toSorted((a, b) => a - b))
      const cuts = new Set(starts).size - 1
      const stride = Math.max(1, marks.high - marks.low)
      expect(cuts).toBeLessThanOrEqual(Math.ceil(Math.max(0, messages(rows) - marks.high) / stride))
    }))
  })

  it('[P1.3] follows from ordinals alone: the end of a thread gives the same start as all of it', () => {
    fc.assert(fc.property(thread, size, fc.nat({ max: 10 }), (rows, marks, more) => {
      const total = messages(rows)
      const skipped = Math.max(0, total - windowReach(marks) - more)
      const counted = [...new Set(rows.filter(({ counts }) => counts).map(({ messageId }) => messageId))]
      const cut = skipped === 0 ? 0 : rows.findIndex(({ messageId }) => messageId === counted[skipped])
      expect(cut + windowStart(rows.slice(cut), { ...marks, before: skipped })).toBe(Math.max(cut, windowStart(rows, marks)))
      const { from, to } = windowOrdinals(total, marks)
      expect(from).toBeGreaterThanOrEqual(0)
      expect(to).toBeGreaterThanOrEqual(from)
    }))
  })
})
