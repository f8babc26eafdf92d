import { expect, it } from 'vitest'
import { placesOf, spansOf } from './places.ts'

const mail = (...ords: number[]) => ords.map((ord) => ({ ord }))

it('[A4.1] places of what a run took are kept as spans, in whatever order they were taken', () => {
  expect(placesOf([])).toBeNull()
  expect(spansOf(null)).toEqual([])
  expect(placesOf(mail(7))).toBe('7')
  expect(placesOf(mail(5, 3, 4, 9))).toBe('3-5,9')
  expect(spansOf('3-5,9')).toEqual([[3, 5], [9, 9]])
  for (const ords of [[1], [1, 2, 3], [10, 1, 2, 12, 11, 5]]) {
    const within = spansOf(placesOf(mail(...ords))).flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, index) => from + index))
    expect(within).toEqual(ords.toSorted((a, b) => a - b))
  }
})
