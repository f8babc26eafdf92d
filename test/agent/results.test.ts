import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/agent/agent.ts'
import { createTool } from '../../src/run/tools/tool.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { chunksOf, of, rejection } from './asking.ts'

const rich = () => scriptedModel([
  {
    reasoning: 'I should look.',
    toolCalls: [{ toolName: 'look', input: { at: 'sky' } }],
    usage: { inputTokens: 100, outputTokens: 20, reasoningTokens: 5, cachedInputTokens: 60, cacheWriteTokens: 30 },
  },
  {
    reasoning: 'It is blue.',
    sources: [{ url: 'https://sky.example/', title: 'Sky' }],
    text: 'Blue.',
    files: [{ mediaType: 'image/png', data: 'AAAA' }],
    usage: { inputTokens: 130, outputTokens: 7, cachedInputTokens: 100 },
  },
])
const tools = { look: createTool({ id: 'look', execute: async () => ({ colour: 'blue' }) }) }

describe('a result', () => {
  it('has all messages of the run, and its usage', async () => {
    const result = await new Agent({ id: 'a', model: rich(), tools }).generate('Colour?', { runId: 'run-1' })
    const call = { toolCallId: 'call_0_0', toolName: 'look', args: { at: 'sky' } }
    expect(result).toMatchObject({
      runId: 'run-1',
      text: 'Blue.',
      reasoningText: 'It is blue.',
      object: undefined,
      toolCalls: [call],
      toolResults: [{ ...call, result: { colour: 'blue' } }],
      files: [{ type: 'file', mimeType: 'image/png', data: 'AAAA' }],
      sources: [{ sourceType: 'url', url: 'https://sky.example/', title: 'Sky' }],
      finishReason: 'stop',
      warnings: [],
      tripwire: undefined,
      suspended: [],
      error: undefined,
    })
    expect(result.usage).toEqual({ inputTokens: 230, outputTokens: 27, totalTokens: 257, reasoningTokens: 8, cachedInputTokens: 160, cacheWriteTokens: 30 })
    expect(result.totalUsage).toEqual(result.usage)
    expect(result.steps).toMatchObject([
      { stepNumber: 0, text: '', reasoningText: 'I should look.', toolCalls: [call], finishReason: 'tool-calls', usage: { cachedInputTokens: 60 }, modelId: 'scripted' },
      { stepNumber: 1, text: 'Blue.', toolCalls: [], finishReason: 'stop', usage: { inputTokens: 130, cacheWriteTokens: 0 } },
    ])
  })

  it('has the turn as one message', async () => {
    const { messages } = await new Agent({ id: 'a', model: rich(), tools }).generate('Colour?')
    expect(messages).toHaveLength(1)
    expect(messages[0]).toMatchObject({ role: 'assistant', id: expect.any(String) })
    expect(messages[0]?.content.parts.map((part) => part.type)).toEqual(['step-start', 'reasoning', 'tool-invocation', 'step-start', 'reasoning', 'source', 'text', 'file'])
    expect(messages[0]?.content.parts[2]).toMatchObject({ toolInvocation: { state: 'result', result: { colour: 'blue' } } })
  })

  it('has the warnings of the provider', async () => {
    const model = scriptedModel([{
      parts: [
        { type: 'stream-start', warnings: [{ type: 'unsupported', feature: 'seed' }] },
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: 'Hi.' },
        { type: 'text-end', id: 't' },
        { type: 'finish', finishReason: { unified: 'length', raw: 'max' }, usage: noTokens, providerMetadata: { p: { a: 1 } } },
      ],
    }])
    const result = await new Agent({ id: 'a', model }).generate('Go.')
    expect(result.warnings).toEqual([{ type: 'unsupported', feature: 'seed' }])
    expect(result.finishReason).toBe('length')
    expect(result.steps[0]?.providerMetadata).toEqual({ p: { a: 1 } })
  })
})

const noTokens = {
  inputTokens: { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: undefined, text: undefined, reasoning: undefined },
}

describe('a stream', () => {
  it('can be read more than once, during the run and after it', async () => {
    const stream = await new Agent({ id: 'a', model: rich(), tools }).stream('Colour?')
    const [first, second] = await Promise.all([chunksOf(stream), chunksOf(stream)])
    const third = await chunksOf(stream)
    expect(first.length).toBeGreaterThan(15)
    expect(second).toEqual(first)
    expect(third).toEqual(first)
    const texts = async () => {
      let text = ''
      for await (const delta of stream.textStream) text += delta
      return text
    }
    expect([await texts(), await texts()]).toEqual(['Blue.', 'Blue.'])
  })

  it('leaves other readers alone when one stops early', async () => {
    const stream = await new Agent({ id: 'a', model: rich(), tools }).stream('Colour?')
    for await (const chunk of stream.fullStream) if (chunk.type === 'tool-call') break
    expect(of(await chunksOf(stream), 'finish')).toHaveLength(1)
  })

  it('continues without a reader, and gives every field as a promise', async () => {
    const stream = await new Agent({ id: 'a', model: rich(), tools }).stream('Colour?')
    await stream.consumeStream()
    const full = await stream.getFullOutput()
    expect(await stream.result).toBe(full)
    const fields = [
      'text', 'reasoningText', 'object', 'toolCalls', 'toolResults', 'files', 'sources', 'usage', 'totalUsage', 'finishReason', 'steps',
      'warnings', 'tripwire', 'suspended', 'messages',
    ] as const
    for (const field of fields) expect([field, await stream[field]]).toEqual([field, full[field]])
    expect(full.runId).toBe(stream.runId)
  })

  it('rejects its promises with the error of the run, and only for those who ask', async () => {
    const stream = await new Agent({ id: 'a', model: scriptedModel([{ error: { status: 400, message: 'bad request' } }]) }).stream('Go.')
    await stream.consumeStream()
    expect(await rejection(stream.text)).toMatchObject({ code: 'provider_error' })
    expect(await rejection(stream.result)).toMatchObject({ code: 'provider_error', details: { statusCode: 400 } })
    expect(of(await chunksOf(stream), 'error')).toHaveLength(1)
  })

  it('throws the error of a failed run at the end of its text, to each reader once', async () => {
    const model = scriptedModel([{ text: ['One ', 'two.'], toolCalls: [{ toolName: 'look', input: { at: 'sky' } }] }, { error: { status: 400, message: 'bad request' } }])
    const stream = await new Agent({ id: 'a', model, tools }).stream('Go.')
    for (const _ of [1, 2]) {
      const texts: string[] = []
      const reading = (async () => {
        for await (const text of stream.textStream) texts.push(text)
      })()
      expect(await rejection(reading)).toMatchObject({ code: 'provider_error', details: { statusCode: 400 } })
      expect(texts).toEqual(['One ', 'two.'])
    }
    const reader = stream.textStream[Symbol.asyncIterator]()
    await rejection((async () => {
      while (!(await reader.next()).done);
    })())
    expect(await reader.next()).toEqual({ done: true, value: undefined })
    for await (const text of stream.textStream) if (text === 'One ') break
  })

  it('throws what a structured answer lacks after the objects that were shown', async () => {
    const schema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] } as const
    const stream = await new Agent({ id: 'a', model: scriptedModel(['{"m": 1}', '{"m": 2}']) }).stream('Go.', { structuredOutput: { schema } })
    const objects: unknown[] = []
    const reading = (async () => {
      for await (const object of stream.objectStream) objects.push(object)
    })()
    expect(await rejection(reading)).toBe(await rejection(stream.result))
    expect(objects.length).toBeGreaterThan(0)
  })

  it('ends its text quietly when it is refused by a processor', async () => {
    const guard = { id: 'guard', processInput: ({ abort }: { abort(reason: string): never }) => abort('no') }
    const stream = await new Agent({ id: 'a', model: scriptedModel([]), inputProcessors: [guard] }).stream('Go.')
    const texts: string[] = []
    for await (const text of stream.textStream) texts.push(text)
    expect([texts, await stream.tripwire]).toMatchObject([[], { reason: 'no' }])
  })

  it('shows the provider\'s own chunks when asked to', async () => {
    const model = scriptedModel([{
      parts: [
        { type: 'stream-start', warnings: [] },
        { type: 'raw', rawValue: { event: 1 } },
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: 'Hi.' },
        { type: 'text-end', id: 't' },
        { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage: noTokens },
      ],
    }])
    const chunks = await chunksOf(await new Agent({ id: 'a', model }).stream('Go.', { includeRawChunks: true }))
    expect(of(chunks, 'raw').map((chunk) => chunk.payload)).toEqual([{ event: 1 }])
  })
})
