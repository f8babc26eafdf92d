import { describe, expect, it } from 'vitest'
import { HeedError } from '../../base/errors.ts'
import { Failure, reportFailure, toFailure, wrongUsage } from './failure.ts'

const shown = { command: 'send', isJSON: false, isDebug: false }

describe('failures of a command', () => {
  it('[C1.4] have the exit code of their cause', () => {
    const codeOf = (error: unknown) => toFailure(error).exitCode
    expect(codeOf(wrongUsage('no'))).toBe(2)
    expect(codeOf(new HeedError('unreachable', 'no'))).toBe(3)
    for (const code of ['unauthorized', 'forbidden', 'thread_forbidden'] as const) expect(codeOf(new HeedError(code, 'no'))).toBe(4)
    expect(codeOf(new HeedError('store_failed', 'no'))).toBe(1)
    expect(codeOf(new Error('no'))).toBe(1)
    expect(codeOf('no')).toBe(1)
    expect(codeOf(new Failure(5, 'no'))).toBe(5)
  })

  it('[C1.5] are reported as what, where and what to do, without a stack', () => {
    const failure = new Failure(1, 'heed.ts exports no Heed.', { code: 'no_heed', place: 'heed.ts', remedy: 'Export one.\nOr two.' })
    expect(reportFailure(failure, shown)).toBe('heed send: heed.ts exports no Heed.\n  at heed.ts\n  Export one.\n  Or two.\n  no_heed')
    expect(reportFailure(toFailure(new Error('broken')), { ...shown, command: '' })).toBe('heed: broken')
    expect(reportFailure(toFailure(new Error('broken')), { ...shown, isDebug: true })).toMatch(/^heed send: broken\nError: broken\n +at .*failure\.test\.ts/)
  })

  it('[C1.3] are one JSON object with --json', () => {
    const failure = toFailure(new HeedError('rate_limited', 'Too many.', { retryable: true, details: { retryAfterMs: 5 } }))
    expect(JSON.parse(reportFailure(failure, { ...shown, isJSON: true }))).toEqual({
      error: { code: 'rate_limited', message: 'Too many.', retryable: true, details: { retryAfterMs: 5 } },
    })
  })
})
