import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { isoTime } from './conversions.ts'

it('writes times as dates do', () => {
  fc.assert(fc.property(fc.array(fc.date({ noInvalidDate: true }), { minLength: 1 }), fc.array(fc.integer({ min: 0, max: 4e12 })), (dates, times) => {
    for (const time of [...dates.map((date) => date.getTime()), ...times, 0, -1, 253_402_300_799_999, 253_402_300_800_000]) expect(isoTime(time)).toBe(new Date(time).toISOString())
  }))
  expect(() => isoTime(Number.NaN)).toThrow(RangeError)
})
