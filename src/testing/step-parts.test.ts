import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { describe, expect, it } from 'vitest'
import { readParts } from './step-parts.ts'
import { scriptedModel } from './scripted-model.ts'
import type { ScriptedStep } from './script.ts'

const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: '12345678' }] }]

const partsOf = async (step: ScriptedStep): Promise<LanguageModelV4StreamPart[]> =>
  readParts((await scriptedModel([step]).doStream({ prompt })).stream)

const withoutOpening = (parts: LanguageModelV4StreamPart[]) => parts.slice(2)

describe('the parts of a step', () => {
  it('is a text for a string, a delta a word, whose deltas join to the string', async () => {
    expect(await partsOf('It rains.\n  In Bern ')).toEqual([
      { type: 'stream-start', warnings: [] },
      { type: 'response-metadata', id: 'response_0', modelId: 'scripted' },
      { type: 'text-start', id: 'text-0' },
      { type: 'text-delta', id: 'text-0', delta: 'It ' },
      { type: 'text-delta', id: 'text-0', delta: 'rains.\n  ' },
      { type: 'text-delta', id: 'text-0', delta: 'In ' },
      { type: 'text-delta', id: 'text-0', delta: 'Bern ' },
      { type: 'text-end', id: 'text-0' },
      {
        type: 'finish',
        finishReason: { unified: 'stop', raw: 'stop' },
        usage: {
          inputTokens: { total: 2, noCache: 2, cacheRead: 0, cacheWrite: 0 },
          outputTokens: { total: 5, text: 5, reasoning: 0 },
        },
      },
    ])
  })

  it('keeps the deltas of an array, and opens no block for an empty text', async () => {
    const deltas = (await partsOf({ text: ['a', '', 'bc'] })).flatMap((part) => (part.type === 'text-delta' ? [part.delta] : []))
    expect(deltas).toEqual(['a', '', 'bc'])
    expect(withoutOpening(await partsOf('')).map((part) => part.type)).toEqual(['finish'])
  })

  it('has an order: reasoning, sources, text, files, tool calls, finish', async () => {
    const parts = await partsOf({
      toolCalls: [{ toolName: 'weather', input: { city: 'Bern' } }, { toolName: 'noop', toolCallId: 'mine' }],
      files: [{ mediaType: 'image/png', data: 'AAAA' }, { mediaType: 'image/png', url: 'https://example.com/a.png' }],
      text: 'x',
      sources: [{ url: 'https://example.com', title: 'E' }, { mediaType: 'application/pdf', title: 'Doc' }],
      reasoning: 'why',
    })
    expect(withoutOpening(parts)).toEqual([
      { type: 'reasoning-start', id: 'reasoning-0' },
      { type: 'reasoning-delta', id: 'reasoning-0', delta: 'why' },
      { type: 'reasoning-end', id: 'reasoning-0' },
      { type: 'source', sourceType: 'url', id: 'source_0_0', url: 'https://example.com', title: 'E' },
      { type: 'source', sourceType: 'document', id: 'source_0_1', mediaType: 'application/pdf', title: 'Doc' },
      { type: 'text-start', id: 'text-0' },
      { type: 'text-delta', id: 'text-0', delta: 'x' },
      { type: 'text-end', id: 'text-0' },
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AAAA' } },
      { type: 'file', mediaType: 'image/png', data: { type: 'url', url: new URL('https://example.com/a.png') } },
      { type: 'tool-input-start', id: 'call_0_0', toolName: 'weather' },
      { type: 'tool-input-delta', id: 'call_0_0', delta: '{"city":"Bern"}' },
      { type: 'tool-input-end', id: 'call_0_0' },
      { type: 'tool-call', toolCallId: 'call_0_0', toolName: 'weather', input: '{"city":"Bern"}' },
      { type: 'tool-input-start', id: 'mine', toolName: 'noop' },
      { type: 'tool-input-delta', id: 'mine', delta: '{}' },
      { type: 'tool-input-end', id: 'mine' },
      { type: 'tool-call', toolCallId: 'mine', toolName: 'noop', input: '{}' },
      {
        type: 'finish',
        finishReason: { unified: 'tool-calls', raw: 'tool-calls' },
        usage: {
          inputTokens: { total: 2, noCache: 2, cacheRead: 0, cacheWrite: 0 },
          // 'x' and both inputs are 18 characters, 'why' is 3.
          outputTokens: { total: 6, text: 5, reasoning: 1 },
        },
      },
    ])
  })

  it('gives tool input in pieces, and as malformed as it is written', async () => {
    const inputText = '{"text":"a longer\n text", "open'
    const parts = await partsOf({ toolCalls: [{ toolName: 't', inputText }] })
    const pieces = parts.flatMap((part) => (part.type === 'tool-input-delta' ? [part.delta] : []))
    expect(pieces).toHaveLength(2)
    expect(pieces.join('')).toBe(inputText)
    expect(parts.find((part) => part.type === 'tool-call')).toMatchObject({ input: inputText })
  })

  it('has the usage and the finish reason the script gives', async () => {
    const usage = { inputTokens: 100, cachedInputTokens: 80, cacheWriteTokens: 5 }
    const flat = await partsOf({ text: 'x', finishReason: 'length', usage })
    expect(flat.at(-1)).toMatchObject({
      finishReason: { unified: 'length' },
      usage: { inputTokens: { total: 100, noCache: 15, cacheRead: 80, cacheWrite: 5 }, outputTokens: { total: 1 } },
    })
    const exact = {
      inputTokens: { total: 1, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
      outputTokens: { total: undefined, text: undefined, reasoning: undefined },
    }
    const finish = (await partsOf({ usage: exact, finishReason: { unified: 'other', raw: 'odd' } })).at(-1)
    expect(finish).toEqual({ type: 'finish', finishReason: { unified: 'other', raw: 'odd' }, usage: exact })
  })

  it('is verbatim for raw parts', async () => {
    const parts: LanguageModelV4StreamPart[] = [{ type: 'ping' }, { type: 'error', error: 'odd' }]
    expect(await partsOf({ parts })).toEqual(parts)
  })
})
