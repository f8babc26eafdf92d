import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { describe, expect, it } from 'vitest'
import { withCacheBreakpoints } from './cache-breakpoints.ts'
import { fingerprint } from './explain.ts'

const user = (text: string) => ({ role: 'user' as const, content: [{ type: 'text' as const, text }] })
const prompt: LanguageModelV4Prompt = [
  { role: 'system', content: 'Be brief.' },
  { role: 'system', content: 'Be kind.' },
  user('one'),
  { role: 'assistant', content: [{ type: 'text', text: 'first' }] },
  user('two'),
]
const claude = { provider: 'anthropic.messages', modelId: 'claude-sonnet-4-5' }
const marks = (of: LanguageModelV4Prompt) => of.flatMap(({ providerOptions }, place) => (providerOptions === undefined ? [] : { place, providerOptions }))

describe('cache breakpoints', () => {
  it.each([
    [claude, { anthropic: { cacheControl: { type: 'ephemeral' } } }],
    [{ provider: 'vertex.anthropic.messages', modelId: 'claude-opus-4-1@20250805' }, { anthropic: { cacheControl: { type: 'ephemeral' } } }],
    [{ provider: 'gateway', modelId: 'anthropic/claude-sonnet-4.5' }, { anthropic: { cacheControl: { type: 'ephemeral' } } }],
    [{ provider: 'openrouter', modelId: 'anthropic/claude-sonnet-4.5' }, { openrouter: { cacheControl: { type: 'ephemeral' } } }],
    [{ provider: 'amazon-bedrock', modelId: 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0' }, { bedrock: { cachePoint: { type: 'default' } } }],
    [{ provider: 'amazon-bedrock', modelId: 'anthropic.claude-3-5-haiku-20241022-v1:0' }, { bedrock: { cachePoint: { type: 'default' } } }],
  ])('[P1.5] of $provider $modelId stand after the instructions, after the previous prompt and at the end, and don’t change the bytes of the prompt', (model, providerOptions) => {
    const sent = withCacheBreakpoints(model, prompt)
    expect(marks(sent)).toEqual([1, 2, 4].map((place) => ({ place, providerOptions })))
    expect(sent.map(fingerprint)).toEqual(prompt.map(fingerprint))
    expect(marks(prompt)).toEqual([])
  })

  it.each([
    { provider: 'openai.responses', modelId: 'gpt-5' },
    { provider: 'openrouter', modelId: 'openai/gpt-5' },
    { provider: 'gateway', modelId: 'google/gemini-2.5-pro' },
    { provider: 'amazon-bedrock', modelId: 'meta.llama3-1-70b-instruct-v1:0' },
    { provider: 'amazon-bedrock', modelId: 'anthropic.claude-3-sonnet-20240229-v1:0' },
    { provider: 'amazon-bedrock', modelId: 'us.anthropic.claude-3-5-sonnet-20241022-v2:0' },
    { provider: 'amazon-bedrock', modelId: 'anthropic.claude-instant-v1' },
  ])('are not set for models that cache without them or reject them: $provider $modelId', (model) => {
    expect(withCacheBreakpoints(model, prompt)).toBe(prompt)
  })

  it('are not added to a prompt in which the program set its own', () => {
    const own: LanguageModelV4Prompt = [{ role: 'user', content: [{ type: 'text', text: 'x', providerOptions: { anthropic: { cacheControl: { type: 'ephemeral' } } } }] }, user('y')]
    expect(withCacheBreakpoints(claude, own)).toBe(own)
    const point: LanguageModelV4Prompt = [{ ...user('x'), providerOptions: { bedrock: { cachePoint: { type: 'default' } } } }, user('y')]
    expect(withCacheBreakpoints({ provider: 'amazon-bedrock', modelId: 'anthropic.claude-opus-4-1-v1:0' }, point)).toBe(point)
    expect(withCacheBreakpoints(claude, [])).toEqual([])
  })
})
