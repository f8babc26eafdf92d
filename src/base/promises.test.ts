import { describe, expect, it } from 'vitest'
import { untilAborted } from './promises.ts'

const never = new Promise<never>(() => {})

describe('untilAborted', () => {
  it('gives what the work gives, and throws what it throws', async () => {
    const { signal } = new AbortController()
    expect(await untilAborted(Promise.resolve(1), signal)).toBe(1)
    await expect(untilAborted(Promise.reject(new Error('x')), signal)).rejects.toThrow('x')
  })

  it('rejects with the reason as soon as the signal aborts', async () => {
    const stop = new AbortController()
    const waiting = untilAborted(never, stop.signal)
    stop.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
  })

  it('passes a late value on, and ignores a late error', async () => {
    const stop = new AbortController()
    const late: number[] = []
    const work = Promise.withResolvers<number>()
    const failing = Promise.withResolvers<number>()
    const waiting = [untilAborted(work.promise, stop.signal, (value) => late.push(value)), untilAborted(failing.promise, stop.signal)]
    stop.abort()
    await Promise.allSettled(waiting)
    work.resolve(7)
    failing.reject(new Error('late'))
    await work.promise
    expect(late).toEqual([7])
  })

  it('still takes work that is as good as done when the signal has aborted', async () => {
    expect(await untilAborted(Promise.resolve().then(() => 1), AbortSignal.abort())).toBe(1)
    await expect(untilAborted(never, AbortSignal.abort(new Error('enough')))).rejects.toThrow('enough')
  })
})
