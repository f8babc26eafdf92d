import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cronOf } from './timing.ts'

/** In Zurich clocks go from 2:00 to 3:00 on 29 March 2026, and from 3:00 to 2:00 on 25 October. */
const zurich = 'Europe/Zurich'

function times(cron: string, from: string, to: string, zone = zurich): string[] {
  const found: string[] = []
  const cronTimes = cronOf(cron, zone)
  for (let at = cronTimes.nextAfter(Date.parse(from) - 1); at !== undefined && at < Date.parse(to); at = cronTimes.nextAfter(at)) found.push(new Date(at).toISOString().slice(8, 16))
  return found
}
const spring = (cron: string) => times(cron, '2026-03-28T23:00Z', '2026-03-29T22:00Z')
const autumn = (cron: string) => times(cron, '2026-10-24T22:00Z', '2026-10-25T23:00Z')

describe('a cron when clocks are set', () => {
  it('[S1.8] a time that the clock skips occurs as much later as the clock is set forward', () => {
    expect(spring('30 2 * * *')).toEqual(['29T01:30'])
    expect(spring('15,45 2 * * *')).toEqual(['29T01:15', '29T01:45'])
    expect(spring('0 2 * * *')).toEqual(['29T01:00'])
    expect(spring('59 1 * * *')).toEqual(['29T00:59'])
    expect(spring('0 3 * * *')).toEqual(['29T01:00'])
    expect(times('30 2 29 3 *', '2026-01-01', '2027-01-01')).toEqual(['29T01:30'])
  })

  it('[S1.8] occurrences at one moment are one, and none is out of order', () => {
    expect(spring('0,30 2,3 * * *')).toEqual(['29T01:00', '29T01:30'])
    expect(spring('50 2 * * *')).toEqual(['29T01:50'])
    expect(spring('20,50 2-3 * * *')).toEqual(['29T01:20', '29T01:50'])
    expect(times('30 2,3 * * *', '2026-03-29T01:00Z', '2026-03-30T12:00Z')).toEqual(['29T01:30', '30T00:30', '30T01:30'])
  })

  it('[S1.8] a time that the clock shows twice occurs the first time', () => {
    expect(autumn('30 2 * * *')).toEqual(['25T00:30'])
    expect(autumn('15,45 2 * * *')).toEqual(['25T00:15', '25T00:45'])
    expect(autumn('0 */2 * * *').slice(0, 3)).toEqual(['24T22:00', '25T00:00', '25T03:00'])
    expect(autumn('0 3 * * *')).toEqual(['25T02:00'])
    expect(times('15,45 2 * * *', '2026-10-25T01:00Z', '2026-10-26T12:00Z')).toEqual(['26T01:15', '26T01:45'])
  })

  it('[S1.8] an hourly expression occurs in every hour that passes', () => {
    expect(spring('30 * * * *')).toHaveLength(23)
    expect(autumn('30 * * * *')).toHaveLength(25)
    expect(autumn('*/15 * * * *')).toHaveLength(100)
    expect(autumn('0 30 * * * *')).toHaveLength(25)
    expect(autumn('@hourly')).toHaveLength(25)
    for (const hours of ['0-23', '*/1', '0-23/1', '0-11,12-23', Array.from({ length: 24 }, (_, hour) => hour).join()]) expect(autumn(`30 ${hours} * * *`), hours).toEqual(autumn('30 * * * *'))
    for (const hours of ['0-22', '*/2', '1-23', '2']) expect(autumn(`30 ${hours} * * *`), hours).not.toContain('25T01:30')
  })

  it('[S1.8] an hourly expression, where clocks are set by half an hour', () => {
    // On Lord Howe Island they go from 2:00 to 2:30 on 4 October 2026 (15:30 UTC the day before), and from 2:00 to 1:30 on 5 April (15:00 UTC).
    const forward = (cron: string) => times(cron, '2026-10-03T14:00Z', '2026-10-03T17:00Z', 'Australia/Lord_Howe')
    const back = (cron: string) => times(cron, '2026-04-04T13:00Z', '2026-04-04T17:00Z', 'Australia/Lord_Howe')
    expect(forward('0 * * * *')).toEqual(['03T14:30', '03T15:30', '03T16:00'])
    expect(forward('15 * * * *')).toEqual(['03T14:45', '03T15:45', '03T16:15'])
    expect(forward('45 * * * *')).toEqual(['03T14:15', '03T15:15', '03T15:45', '03T16:45'])
    expect(forward('15 0-23 * * *')).toEqual(forward('15 * * * *'))
    expect(forward('*/10 * * * *')).toHaveLength(18)
    expect(back('45 * * * *')).toEqual(['04T13:45', '04T14:45', '04T15:15', '04T16:15'])
    expect(back('15 * * * *')).toEqual(['04T13:15', '04T14:15', '04T15:45', '04T16:45'])
    expect(back('*/10 * * * *')).toHaveLength(24)
  })

  it('[S1.8] an hourly expression occurs whenever the clock shows it, skipped times as much later, and at no other time', () => {
    const zones = ['Europe/Zurich', 'America/New_York', 'Australia/Lord_Howe', 'America/Santiago', 'Africa/Casablanca', 'Antarctica/Troll', 'UTC']
    // Around a day on which some of them are set, minute by minute.
    const days = ['2026-03-08', '2026-03-29', '2026-04-04', '2026-04-05', '2026-09-06', '2026-10-03', '2026-10-25', '2026-11-01']
    fc.assert(fc.property(fc.constantFrom(...zones), fc.constantFrom(...days), fc.integer({ min: 0, max: 59 }), (zone, day, minute) => {
      const from = Date.parse(`${day}T00:00Z`)
      const cron = cronOf(`${minute} * * * *`, zone)
      const clock = new Intl.DateTimeFormat('en', { timeZone: zone, minute: 'numeric' })
      const found: number[] = []
      for (let at = cron.nextAfter(from - 1); at !== undefined && at < from + 86_400_000; at = cron.nextAfter(at)) found.push(at)
      const shown = Array.from({ length: 24 * 60 }, (_, index) => from + index * 60_000).filter((at) => Number(clock.format(at)) === minute)
      expect(found).toEqual(expect.arrayContaining(shown))
      // No more than one can be skipped where clocks are set by less than an hour, and none otherwise.
      expect(found.length - shown.length).toBeLessThanOrEqual(zone === 'Australia/Lord_Howe' ? 1 : 0)
      const gaps = found.slice(1).map((at, index) => (at - (found[index] ?? 0)) / 60_000)
      expect(Math.min(60, ...gaps)).toBeGreaterThanOrEqual(30)
      expect(Math.max(0, ...gaps)).toBeLessThanOrEqual(90)
    }), { numRuns: 60 })
  })

  it('[S1.8] an expression for every second is found quickly, also in a night in which clocks are set', () => {
    const cron = cronOf('* * * * * *', zurich)
    for (const from of ['2026-03-29T00:59:58Z', '2026-03-29T01:30:00Z', '2026-10-25T00:30:00Z', '2026-10-25T00:59:58Z', '2026-10-25T01:30:00Z']) {
      const start = Date.parse(from)
      for (let at = start; at < start + 5_000; at += 1_000) expect(cron.nextAfter(at)).toBe(at + 1_000)
    }
  })

  it('[S1.8] elsewhere: by half an hour, at midnight, and where clocks are never set', () => {
    expect(times('15 2 * * *', '2026-10-03T13:00Z', '2026-10-05T13:00Z', 'Australia/Lord_Howe')).toEqual(['03T15:45', '04T15:15'])
    expect(times('0 0 * * *', '2026-09-05T12:00Z', '2026-09-07T12:00Z', 'America/Santiago')).toEqual(['06T04:00', '07T03:00'])
    expect(times('30 23 * * *', '2026-04-03T12:00Z', '2026-04-06T12:00Z', 'America/Santiago')).toEqual(['04T02:30', '05T02:30', '06T03:30'])
    expect(times('30 2 * * *', '2026-03-28T12:00Z', '2026-03-30T12:00Z', 'UTC')).toEqual(['29T02:30', '30T02:30'])
  })

  it('[S1.8] a time of day occurs once a day, in every zone, and times only grow', () => {
    const zones = ['Europe/Zurich', 'America/New_York', 'Australia/Lord_Howe', 'America/Santiago', 'Africa/Casablanca', 'Asia/Kathmandu', 'UTC']
    fc.assert(fc.property(fc.constantFrom(...zones), fc.integer({ min: 0, max: 23 }), fc.integer({ min: 0, max: 59 }), fc.integer({ min: 0, max: 720 }), (zone, hour, minute, day) => {
      const cron = cronOf(`${minute} ${hour} * * *`, zone)
      const start = Date.UTC(2025, 5, 1) + day * 86_400_000
      let at = cron.nextAfter(start) ?? Number.NaN
      for (let count = 0; count < 3; count++) {
        const next = cron.nextAfter(at) ?? Number.NaN
        expect(next - at).toBeGreaterThanOrEqual(22 * 3_600_000)
        expect(next - at).toBeLessThanOrEqual(26 * 3_600_000)
        expect(cron.nextAfter(at - 1)).toBe(at)
        at = next
      }
    }), { numRuns: 150 })
  })
})
