import type { LanguageModelV3StreamPart } from '@ai-sdk/provider'
import { expect, it } from 'vitest'
import { addUsage, noUsage, toV4Part, usageOf } from './model-parts.ts'

it('converts the finish of interface version 2', () => {
  expect(
    toV4Part({
      type: 'finish',
      finishReason: 'unknown',
      usage: { inputTokens: 9, outputTokens: 4, totalTokens: 13, cachedInputTokens: 5, reasoningTokens: 1 },
    }),
  ).toEqual({
    type: 'finish',
    finishReason: { unified: 'other', raw: 'unknown' },
    usage: {
      inputTokens: { total: 9, noCache: 4, cacheRead: 5, cacheWrite: undefined },
      outputTokens: { total: 4, text: 3, reasoning: 1 },
    },
    providerMetadata: undefined,
  })
})

it('converts files of interface versions 2 and 3', () => {
  const part: LanguageModelV3StreamPart = { type: 'file', mediaType: 'image/png', data: 'AA==' }
  expect(toV4Part(part)).toEqual({ type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AA==' } })
})

it('reads a finish without usage as no usage', () => {
  const part = toV4Part({ type: 'finish', finishReason: { unified: 'stop', raw: 'stop' } } as never)
  expect(part).toMatchObject({ type: 'finish', usage: undefined })
  expect(usageOf(undefined)).toBe(noUsage)
})

it('adds every kind of token', () => {
  const usage = { inputTokens: 1, outputTokens: 2, totalTokens: 3, reasoningTokens: 4, cachedInputTokens: 5, cacheWriteTokens: 6 }
  expect(addUsage(usage, usage)).toEqual({
    inputTokens: 2,
    outputTokens: 4,
    totalTokens: 6,
    reasoningTokens: 8,
    cachedInputTokens: 10,
    cacheWriteTokens: 12,
  })
})
