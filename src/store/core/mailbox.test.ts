import { expect, it } from 'vitest'
import { decodeOrdRanges, encodeOrdRanges } from './mailbox.ts'

const mail = (...ords: number[]) => ords.map((ord) => ({ ord }))

it('[A4.1] stores the ords of the signals that a run took as ranges, in whatever order it took them', () => {
  expect(encodeOrdRanges([])).toBeNull()
  expect(decodeOrdRanges(null)).toEqual([])
  expect(encodeOrdRanges(mail(7))).toBe('7')
  expect(encodeOrdRanges(mail(5, 3, 4, 9))).toBe('3-5,9')
  expect(decodeOrdRanges('3-5,9')).toEqual([[3, 5], [9, 9]])
  for (const ords of [[1], [1, 2, 3], [10, 1, 2, 12, 11, 5]]) {
    const ranges = decodeOrdRanges(encodeOrdRanges(mail(...ords)))
    const decoded = ranges.flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, index) => from + index))
    expect(decoded).toEqual(ords.toSorted((a, b) => a - b))
  }
})
