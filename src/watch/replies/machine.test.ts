import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isOpenReply, maxReplyAttempts, nextReplyState, replyStates, replyTransitions, replyWait, type ReplyEvent, type ReplyState } from './machine.ts'

const events: ReplyEvent[] = ['ask', 'answer', 'send', 'give_up', 'end', 'retry']

describe('the states of a reply', () => {
  it('[V3.16] whatever happens, a text is made once, and what is sent or has no reply stays so', () => {
    fc.assert(fc.property(fc.array(fc.constantFrom(...events), { maxLength: 30 }), (happened) => {
      let state: ReplyState = 'received'
      let answers = 0
      for (const event of happened) {
        const next = nextReplyState(state, event)
        if (next === undefined) continue
        if (event === 'answer') answers += 1
        expect(state === 'sent' || state === 'none').toBe(false)
        state = next
      }
      expect(answers).toBeLessThanOrEqual(1)
      if (state === 'pending' || state === 'sent' || state === 'dead') expect(answers).toBe(1)
    }))
  })

  it('are open exactly where an event other than a retry is possible', () => {
    for (const state of replyStates) expect(isOpenReply(state)).toBe(Object.keys(replyTransitions[state]).some((event) => event !== 'retry'))
  })

  it('[V3.17] the delay doubles, is at least what the provider asked for, at most an hour, and ends with the last attempt', () => {
    const waits = Array.from({ length: maxReplyAttempts }, (_, index) => replyWait(index + 1, { retryable: true }))
    expect(waits.slice(0, 4)).toEqual([2_000, 4_000, 8_000, 16_000])
    expect(waits.at(-1)).toBeUndefined()
    expect(replyWait(1, { retryable: true, retryAfterMs: 30_000 })).toBe(30_000)
    expect(replyWait(1, { retryable: true, retryAfterMs: 86_400_000 })).toBe(3_600_000)
    expect(replyWait(1, { retryable: false })).toBeUndefined()
  })
})
