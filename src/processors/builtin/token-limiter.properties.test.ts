import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { called, said, stepArgs } from '../../../test/processors/asked.ts'
import { MessageList } from '../../message/list/list.ts'
import type { Message, MessagePart } from '../../message/message.ts'
import { TokenLimiter } from './token-limiter.ts'

const countTokens = (text: string) => text.split(/\s+/).filter((word) => word !== '').length
const words = fc.integer({ min: 1, max: 12 }).map((count) => 'word '.repeat(count).trim())

type Kind = { role: 'user' | 'assistant' | 'calls'; text: string; steps: number }
const kind: fc.Arbitrary<Kind> = fc.record({ role: fc.constantFrom('user' as const, 'assistant' as const, 'calls' as const), text: words, steps: fc.integer({ min: 1, max: 3 }) })

function messageOf({ role, text, steps }: Kind, id: string): Message {
  if (role !== 'calls') return said(id, role, text)
  const parts = Array.from({ length: steps }, (_, step): MessagePart[] => [{ type: 'step-start' }, called('look', `${id}-${step}`, {}, text)]).flat()
  return said(id, 'assistant', ...parts, { type: 'step-start' }, { type: 'text', text })
}

const conversation = fc.record({
  history: fc.array(kind, { maxLength: 12 }),
  asked: words,
  response: fc.option(kind.filter(({ role }) => role !== 'user')),
  limit: fc.integer({ min: 1, max: 150 }),
})

describe('TokenLimiter, for any conversation', () => {
  it('keeps the newest messages without a gap, calls with their results, and the run, and stays below the limit where history allows', () => {
    fc.assert(fc.property(conversation, ({ history, asked, response, limit }) => {
      const list = new MessageList()
        .add(history.map((one, index) => messageOf(one, `h${index}`)), 'memory')
        .add(said('asked', 'user', asked), 'input')
      if (response) list.add(messageOf(response, 'response'), 'response')
      const all = list.get.all.db()
      const kept = new TokenLimiter({ limit, countTokens }).processInputStep(stepArgs(list)) ?? all

      const ids = all.map(({ id }) => id)
      const own = response ? ['asked', 'response'] : ['asked']
      expect(kept.map(({ id }) => id)).toEqual(ids.slice(ids.length - kept.length))
      expect(kept.slice(-own.length).map(({ id }) => id)).toEqual(own)
      expect(kept).toEqual(all.slice(all.length - kept.length))

      const prompt = new MessageList().add(kept, 'memory').get.all.prompt()
      const calls = prompt.flatMap(({ role, content }) => (role === 'assistant' ? content.flatMap((part) => (part.type === 'tool-call' ? [part.toolCallId] : [])) : []))
      const results = prompt.flatMap(({ role, content }) => (role === 'tool' ? content.flatMap((part) => (part.type === 'tool-result' ? [part.toolCallId] : [])) : []))
      expect(results).toEqual(calls)

      const cost = (messages: readonly Message[]) => messages.reduce((sum, { content }) => sum + content.parts.reduce((of, part) => of + tokensOf(part), 0), 0)
      if (kept.length > own.length) {
        expect(cost(kept)).toBeLessThanOrEqual(limit)
        if (kept.length < all.length) expect(kept[0]?.role).not.toBe('assistant')
      }
      // No more goes than has to: with the turn before what is left, it would be too much.
      const turn = all.slice(0, all.length - kept.length).findLastIndex(({ role }) => role === 'user')
      if (turn >= 0) expect(cost(all.slice(turn))).toBeGreaterThan(limit)
    }), { numRuns: 500 })
  })
})

function tokensOf(part: MessagePart): number {
  if (part.type === 'text') return countTokens(part.text)
  if (part.type !== 'tool-invocation') return 0
  const { toolName, args, result } = part.toolInvocation
  return countTokens(`${toolName} ${JSON.stringify(args)}`) + countTokens(JSON.stringify(result))
}
