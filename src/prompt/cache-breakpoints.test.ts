import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { describe, expect, it } from 'vitest'
import { withCacheBreakpoints } from './cache-breakpoints.ts'
import { fingerprint } from './prefix.ts'

const user = (text: string) => ({ role: 'user' as const, content: [{ type: 'text' as const, text }] })
const prompt: LanguageModelV4Prompt = [
  { role: 'system', content: 'Be brief.' },
  { role: 'system', content: 'Be kind.' },
  user('one'),
  { role: 'assistant', content: [{ type: 'text', text: 'first' }] },
  user('two'),
]
const marks = (of: LanguageModelV4Prompt) => of.flatMap(({ providerOptions }, place) => (providerOptions?.anthropic?.cacheControl ? [place] : []))

describe('cache breakpoints', () => {
  it('[P1.5] stand after the instructions, after what was sent last time and at the end, and are no bytes of the prompt', () => {
    const sent = withCacheBreakpoints('anthropic.messages', prompt)
    expect(marks(sent)).toEqual([1, 2, 4])
    expect(sent.map(fingerprint)).toEqual(prompt.map(fingerprint))
    expect(marks(prompt)).toEqual([])
  })

  it('are left to providers that cache by themselves, and to programs that set their own', () => {
    expect(withCacheBreakpoints('openai.responses', prompt)).toBe(prompt)
    const own: LanguageModelV4Prompt = [{ role: 'user', content: [{ type: 'text', text: 'x', providerOptions: { anthropic: { cacheControl: { type: 'ephemeral' } } } }] }, user('y')]
    expect(withCacheBreakpoints('anthropic.messages', own)).toBe(own)
    expect(withCacheBreakpoints('anthropic.messages', [])).toEqual([])
  })
})
