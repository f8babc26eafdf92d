import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HeedError } from '../base/errors.ts'
import { CATEGORIES } from './annotation.ts'
import { checkWatchInput, type WatchInput, type WatchLimits } from './criteria.ts'
import { matchedOnly } from './result-schema.ts'

const now = Date.parse('2026-03-01T12:00:00Z')
const minute = 60_000
const input = (fields: object = {}): WatchInput => ({ description: 'the SMS code of the bank', expected_categories: ['verification_code'], ...fields })
const check = (fields: object = {}, limits: Partial<WatchLimits> = {}) => checkWatchInput(input(fields), { now, ...limits })

const numbered = (start: string, count: number) => Array.from({ length: count }, (_, index) => `${start}${index}`)

function refusal(given: unknown, limits: Partial<WatchLimits> = {}): HeedError {
  try {
    checkWatchInput(given, { now, ...limits })
  } catch (error) {
    if (error instanceof HeedError) return error
    throw error
  }
  throw new Error(`${JSON.stringify(given)} was accepted`)
}

const fieldOf = (fields: object, limits?: Partial<WatchLimits>) => refusal(input(fields), limits).details?.field

describe('what await_signal takes', () => {
  it('[V2.14] defaults to one match within an hour, since the turn began', () => {
    expect(check({}, { turnStartedAt: now - 5000 })).toStrictEqual({
      description: 'the SMS code of the bank', mode: 'once', mayEnd: false, exclusive: false, criteria: { categories: ['verification_code'], channels: [], contacts: [] },
      expiresAt: now + 60 * minute, maxEvaluations: 50, since: now - 5000, resultSchema: matchedOnly,
    })
    expect(check({ mode: 'continuous' }).maxEvaluations).toBe(1000)
    expect(check().since).toBe(now)
  })

  it('[V2.14] needs categories, channels or contacts', () => {
    for (const lists of [{}, { expected_categories: [] }, { expected_categories: undefined, expected_channels: [] }]) {
      const error = refusal({ description: 'x', ...lists })
      expect([error.code, error.message]).toStrictEqual(['invalid_argument', expect.stringContaining('expected_channels')])
    }
    expect(checkWatchInput({ description: 'x', expected_channels: ['sms'] }, { now }).criteria.channels).toStrictEqual(['sms'])
    expect(checkWatchInput({ description: 'x', expected_contacts: ['c1', 'c1'] }, { now }).criteria.contacts).toStrictEqual(['c1'])
  })

  it('[V2.14] rejects unknown names by name, with a suggestion', () => {
    const error = refusal(input({ expected_category: ['x'] }))
    expect([error.code, error.details]).toStrictEqual(['unsupported_option', { option: 'expected_category' }])
    expect(refusal(input({ max_evaluation: 3 })).message).toContain('Did you mean max_evaluations?')
    expect(refusal(input({ resultSchema: {} })).message).toContain('Did you mean result_schema?')
    expect(refusal(input({ threadId: 't1' })).message).toContain("no 'threadId'")
    for (const given of [undefined, null, 'x', []]) expect(refusal(given).code).toBe('invalid_argument')
  })

  it.each<[string, object]>([
    ['description', { description: '' }], ['description', { description: ' ' }], ['description', { description: 'x'.repeat(2001) }], ['description', { description: 5 }],
    ['description', { description: 'a\0b' }], ['mode', { mode: 'twice' }], ['exclusive', { exclusive: 'yes' }],
    ['expected_categories', { expected_categories: 'auth' }], ['expected_categories', { expected_categories: CATEGORIES.concat(CATEGORIES) }],
    ['expected_categories[1]', { expected_categories: ['auth', '</x>'] }], ['expected_categories[0]', { expected_categories: ['a\nb'] }],
    ['expected_channels[0]', { expected_channels: ['SMS'] }], ['expected_channels[0]', { expected_channels: ['sms/'] }], ['expected_channels[0]', { expected_channels: [''] }],
    ['expected_categories', { expected_categories: CATEGORIES, expected_channels: numbered('sms/', 16) }],
    ['expected_contacts[0]', { expected_contacts: [''] }], ['expected_contacts[0]', { expected_contacts: [7] }],
    ['expires_at', { expires_at: '2026-03-01T11:59:59Z' }], ['expires_at', { expires_at: '2026-03-01T12:00:00Z' }], ['expires_at', { expires_at: 'tomorrow' }],
    ['expires_at', { expires_at: '2026-03-01T13:00:00' }], ['expires_at', { expires_at: '2026-13-41T13:00:00Z' }], ['expires_at', { expires_at: now + 1 }],
    ['expires_at', { expires_at: '2026-03-01T13:00:00Z', expires_in_minutes: 3 }], ['expires_at', { expires_at: '2027-03-01T13:00:00Z' }],
    ['expires_in_minutes', { expires_in_minutes: 0 }], ['expires_in_minutes', { expires_in_minutes: Infinity }], ['expires_in_minutes', { expires_in_minutes: '5' }],
    ['max_evaluations', { max_evaluations: 0 }], ['max_evaluations', { max_evaluations: 1001 }], ['max_evaluations', { max_evaluations: 1.5 }],
    ['look_back_seconds', { look_back_seconds: -1 }], ['look_back_seconds', { look_back_seconds: 601 }], ['look_back_seconds', { look_back_seconds: Number.NaN }],
    ['result_schema', { result_schema: { type: 'string' } }], ['result_schema', { result_schema: null }],
  ])('[V2.14] rejects %s: %o', (field, fields) => {
    expect(fieldOf(fields)).toBe(field)
  })

  it('[V2.14] reads times, limits and the look-back', () => {
    expect(check({ expires_at: '2026-03-01T15:30:00+01:00' }).expiresAt).toBe(now + 150 * minute)
    expect(check({ expires_in_minutes: 0.5 }).expiresAt).toBe(now + 30_000)
    expect(check({ max_evaluations: 1000 }).maxEvaluations).toBe(1000)
    expect(check({ look_back_seconds: 30 }, { turnStartedAt: now - 1000 }).since).toBe(now - 30_000)
    expect(check({ look_back_seconds: 0 }).since).toBe(now)
    expect(check({}, { turnStartedAt: now - 3600_000 }).since).toBe(now - 600_000)
    expect(check({}, { turnStartedAt: now + 5000 }).since).toBe(now)
    expect(check({ expected_channels: ['sms', 'email/work.1'] }).criteria.channels).toStrictEqual(['sms', 'email/work.1'])
  })

  it("[V2.14] holds a watch to the operator's limits", () => {
    expect(check({}, { maxExpiryMs: 10 * minute }).expiresAt).toBe(now + 10 * minute)
    expect(fieldOf({ expires_in_minutes: 11 }, { maxExpiryMs: 10 * minute })).toBe('expires_in_minutes')
    expect(refusal(input({ expires_in_minutes: 11 }), { maxExpiryMs: 10 * minute }).message).toContain('10 minutes')
    expect(fieldOf({ look_back_seconds: 11 }, { maxLookBackMs: 10_000 })).toBe('look_back_seconds')
    expect(check({}, { turnStartedAt: 0, maxLookBackMs: 10_000 }).since).toBe(now - 10_000)
  })

  it('[V2.14] is either whole or rejected, whatever is passed', () => {
    const values = fc.record({
      description: fc.oneof(fc.string(), fc.anything()), expected_categories: fc.oneof(fc.array(fc.constantFrom('auth', 'a', 'B')), fc.anything()),
      expected_channels: fc.oneof(fc.array(fc.constantFrom('sms', 'email/x', '/')), fc.anything()), mode: fc.constantFrom('once', 'continuous', 'x'),
      expires_in_minutes: fc.oneof(fc.double(), fc.anything()), max_evaluations: fc.oneof(fc.integer({ min: -5, max: 1500 }), fc.anything()), look_back_seconds: fc.oneof(fc.double(), fc.anything()),
    }, { requiredKeys: [] })
    fc.assert(
      fc.property(values, (given) => {
        try {
          const watch = checkWatchInput(given, { now })
          expect(watch.expiresAt).toBeGreaterThan(now)
          expect(watch.since).toBeLessThanOrEqual(now)
          expect(watch.since).toBeGreaterThanOrEqual(now - 600_000)
          expect(watch.maxEvaluations >= 1 && watch.maxEvaluations <= 1000).toBe(true)
          const { categories, channels, contacts } = watch.criteria
          expect(categories.length + channels.length + contacts.length).toBeGreaterThan(0)
        } catch (error) {
          expect(error).toBeInstanceOf(HeedError)
        }
      }),
      { numRuns: 500, seed: 14 },
    )
  })
})
