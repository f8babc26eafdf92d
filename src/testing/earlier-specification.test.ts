import type {
  LanguageModelV2,
  LanguageModelV2CallOptions,
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV4,
  LanguageModelV4StreamPart,
} from '@ai-sdk/provider'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { readParts } from './step-parts.ts'
import { scriptedModel } from './scripted-model.ts'
import type { ScriptedAnswer } from './script.ts'

const prompt: LanguageModelV2CallOptions['prompt'] & LanguageModelV3CallOptions['prompt'] = [
  { role: 'user', content: [{ type: 'text', text: '12345678' }] },
]

const step: ScriptedAnswer = {
  reasoning: 'why',
  text: 'so',
  files: [{ mediaType: 'image/png', data: 'AAAA' }],
  toolCalls: [{ toolName: 't' }],
  usage: { inputTokens: 10, cachedInputTokens: 4, outputTokens: 6, reasoningTokens: 2 },
}

/** Parts that only v4 has, and parts that later versions changed. */
const news: LanguageModelV4StreamPart[] = [
  {
    type: 'stream-start',
    warnings: [
      { type: 'unsupported', feature: 'seed', details: 'ignored' },
      { type: 'deprecated', setting: 'old', message: 'use new' },
    ],
  },
  { type: 'ping' },
  { type: 'custom', kind: 'acme.note' },
  { type: 'text-start', id: '1' },
  { type: 'text-end', id: '1', citations: [] },
  { type: 'tool-input-start', id: 'c', toolName: 't', inputEncoding: 'json', dynamic: true, title: 'T' },
  { type: 'tool-call', toolCallId: 'c', toolName: 't', input: '{}', providerExecuted: true, dynamic: true },
  { type: 'tool-result', toolCallId: 'c', toolName: 't', result: 1, preliminary: true },
  { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' },
  {
    type: 'finish',
    finishReason: { unified: 'interrupted', raw: undefined },
    usage: {
      inputTokens: { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
      outputTokens: { total: undefined, text: undefined, reasoning: undefined },
    },
  },
]

describe('a v3 model', () => {
  it('is typed as one, and so are the calls of its script', () => {
    const model = scriptedModel((call) => {
      expectTypeOf(call.options).toEqualTypeOf<LanguageModelV3CallOptions>()
      return 'ok'
    }, { specificationVersion: 'v3' })
    expectTypeOf(model).toExtend<LanguageModelV3>()
    expectTypeOf(model.calls).toEqualTypeOf<readonly LanguageModelV3CallOptions[]>()
    expect(model.specificationVersion).toBe('v3')
    expectTypeOf(scriptedModel(['ok'], { loop: true })).toExtend<LanguageModelV4>()
  })

  it('has usage and finish reason as objects, and files as their data', async () => {
    const model = scriptedModel([step, step], { specificationVersion: 'v3' })
    const parts = await readParts((await model.doStream({ prompt })).stream)
    expect(parts).toContainEqual({ type: 'file', mediaType: 'image/png', data: 'AAAA' })
    expect(parts.at(-1)).toMatchObject({
      finishReason: { unified: 'tool-calls', raw: 'tool-calls' },
      usage: { inputTokens: { total: 10, noCache: 6, cacheRead: 4 }, outputTokens: { total: 6, text: 4, reasoning: 2 } },
    })
    const whole = await model.doGenerate({ prompt })
    expect(whole.content.map((part) => part.type)).toEqual(['reasoning', 'text', 'file', 'tool-call'])
    expect(whole.finishReason).toEqual({ unified: 'tool-calls', raw: 'tool-calls' })
    expect(model.calls).toHaveLength(2)
  })

  it('leaves out what v3 has no word for', async () => {
    const { stream } = await scriptedModel([{ parts: news }], { specificationVersion: 'v3' }).doStream({ prompt })
    const parts = await readParts(stream)
    expect(parts.map((part) => part.type)).toEqual([
      'stream-start', 'text-start', 'text-end', 'tool-input-start', 'tool-call', 'tool-result', 'tool-approval-request', 'finish',
    ])
    expect(parts[0]).toEqual({
      type: 'stream-start',
      warnings: [{ type: 'unsupported', feature: 'seed', details: 'ignored' }, { type: 'other', message: 'old: use new' }],
    })
    expect(parts[2]).toEqual({ type: 'text-end', id: '1' })
    expect(parts.at(-1)).toMatchObject({ finishReason: { unified: 'other' } })
  })

  it('refuses a file by URL', async () => {
    const model = scriptedModel([{ files: [{ mediaType: 'a/b', url: 'https://example.com' }] }], { specificationVersion: 'v3' })
    await expect(readParts((await model.doStream({ prompt })).stream)).rejects.toMatchObject({ code: 'invalid_argument' })
  })
})

describe('a v2 model', () => {
  it('is typed as one, and so are the calls of its script', () => {
    const model = scriptedModel((call) => {
      expectTypeOf(call.options).toEqualTypeOf<LanguageModelV2CallOptions>()
      return 'ok'
    }, { specificationVersion: 'v2' })
    expectTypeOf(model).toExtend<LanguageModelV2>()
    expect(model.specificationVersion).toBe('v2')
  })

  it('has flat usage, and the finish reason as a string', async () => {
    const model = scriptedModel([step, step], { specificationVersion: 'v2' })
    const usage = { inputTokens: 10, outputTokens: 6, totalTokens: 16, reasoningTokens: 2, cachedInputTokens: 4 }
    const parts = await readParts((await model.doStream({ prompt })).stream)
    expect(parts.at(-1)).toEqual({ type: 'finish', finishReason: 'tool-calls', usage })
    expect(await model.doGenerate({ prompt })).toMatchObject({ finishReason: 'tool-calls', usage, warnings: [] })
  })

  it('leaves out what v2 has no word for', async () => {
    const { stream } = await scriptedModel([{ parts: news }], { specificationVersion: 'v2' }).doStream({ prompt })
    expect(await readParts(stream)).toEqual([
      {
        type: 'stream-start',
        warnings: [{ type: 'other', message: 'unsupported seed: ignored' }, { type: 'other', message: 'old: use new' }],
      },
      { type: 'text-start', id: '1' },
      { type: 'text-end', id: '1' },
      { type: 'tool-input-start', id: 'c', toolName: 't' },
      { type: 'tool-call', toolCallId: 'c', toolName: 't', input: '{}', providerExecuted: true },
      { type: 'tool-result', toolCallId: 'c', toolName: 't', result: 1, providerExecuted: true },
      {
        type: 'finish',
        finishReason: 'unknown',
        usage: {},
      },
    ])
  })

  it('continues when no part that is due has a form in the version', async () => {
    const parts: LanguageModelV4StreamPart[] = [{ type: 'ping' }, { type: 'text-start', id: '1' }]
    const gated: ScriptedAnswer = { parts, gate: { parts: 1, until: Promise.resolve() } }
    const { stream } = await scriptedModel([gated], { specificationVersion: 'v2' }).doStream({ prompt })
    expect(await readParts(stream)).toEqual([{ type: 'text-start', id: '1' }])
  })
})
