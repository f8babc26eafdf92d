import { describe, expect, it } from 'vitest'
import { KeepAlive } from '../../base/promises.ts'
import type { MailboxRow } from '../../store/contract/threads.ts'
import { Waiters } from './waiters.ts'

describe('the options that only this process has of queued signals', () => {
  const signal = (index: number) => ({ threadId: `thread-${index % 7}`, id: `signal-${index}` }) as MailboxRow
  const queue = (waiters: Waiters, index: number) => {
    const { threadId, id } = signal(index)
    waiters.setOptions(threadId, id, { maxSteps: index + 1 })
    waiters.resolveOutcome(threadId, id, { action: 'queued' })
  }

  it('are kept until their runs begin here', () => {
    const waiters = new Waiters(new KeepAlive())
    queue(waiters, 1)
    expect(waiters.optionsOf([signal(1)])).toEqual({ maxSteps: 2 })
    waiters.resolveOutcome(signal(1).threadId, signal(1).id, { action: 'woke' })
    expect(waiters.optionsOf([signal(1)])).toBeUndefined()
  })

  it('are limited: another process may run the signals, which this one does not hear of', () => {
    const waiters = new Waiters(new KeepAlive())
    waiters.setOptions('thread-0', 'on its way', { maxSteps: 1 })
    for (let index = 0; index <= 10_000; index++) queue(waiters, index)
    expect(waiters.optionsOf([signal(0)])).toBeUndefined()
    for (const index of [1, 10_000]) expect(waiters.optionsOf([signal(index)])).toEqual({ maxSteps: index + 1 })
    expect(waiters.optionsOf([{ ...signal(0), id: 'on its way' }])).toEqual({ maxSteps: 1 })
  })
})
