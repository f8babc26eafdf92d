import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent } from '../../src/agent/agent.ts'
import { createTool } from '../../src/run/tools/tool.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { recordedHeed } from './asking.ts'

const model = () => scriptedModel([{ toolCalls: [{ toolName: 't', input: { q: 'x' } }] }, 'Done.'])

describe('toModelOutput', () => {
  it('is what the model reads in place of the result', async () => {
    const m = model()
    const calls: unknown[] = []
    const t = createTool({
      id: 't',
      inputSchema: z.object({ q: z.string() }),
      execute: async () => ({ rows: [1, 2, 3] }),
      toModelOutput: ({ rows }, call) => {
        calls.push(call)
        return { type: 'text', value: `${rows.length} rows` }
      },
    })
    const { toolResults } = await new Agent({ id: 'a', model: m, tools: { t } }).generate('Go.')
    expect(toolResults[0]?.result).toEqual({ rows: [1, 2, 3] })
    expect(m.calls[1]?.prompt.at(-1)).toMatchObject({ content: [{ output: { type: 'text', value: '3 rows' } }] })
    expect(calls).toEqual([{ toolCallId: 'call_0_0', input: { q: 'x' } }])
  })

  it('is kept as JSON: bytes as base64, so that the prompt is the same when it is made again', async () => {
    const m = model()
    const t = createTool({
      id: 't',
      execute: async () => new Uint8Array([1, 2, 3]),
      toModelOutput: (bytes) => ({
        type: 'content',
        value: [{ type: 'text', text: 'An image.' }, { type: 'file', mediaType: 'image/png', data: { type: 'data', data: bytes } }],
      }),
    })
    const { messages } = await new Agent({ id: 'a', model: m, tools: { t } }).generate('Go.')
    const output = { type: 'content', value: [{ type: 'text', text: 'An image.' }, { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AQID' } }] }
    expect(m.calls[1]?.prompt.at(-1)).toMatchObject({ content: [{ output }] })
    const [part] = messages[0]?.content.parts.filter((candidate) => candidate.type === 'tool-invocation') ?? []
    expect(part?.toolInvocation.modelOutput).toEqual(output)
    expect(JSON.parse(JSON.stringify(part))).toEqual(part)
  })

  it.each([
    ['throws', () => { throw new Error('no words') }, 't failed: no words'],
    ['returns no output', () => 'plain', 'toModelOutput of t must return { type, value }'],
    ['returns what JSON has no word for', () => ({ type: 'json', value: 1n }), "can't be stored as JSON"],
  ])('that %s is an error the model reads', async (_, toModelOutput, message) => {
    const t = createTool({ id: 't', execute: async () => 1, toModelOutput: toModelOutput as never })
    const { toolResults } = await new Agent({ id: 'a', model: model(), tools: { t } }).generate('Go.')
    expect(toolResults).toMatchObject([{ isError: true, result: expect.stringContaining(message) }])
  })

  it.each([
    ['a text that is none', { type: 'text', value: 7 }, 'a string'],
    ['no value', { type: 'json' }, 'a defined value'],
    ['a list of words', { type: 'content', value: ['a'] }, 'an array of'],
    ['a list with a text without words', { type: 'content', value: [{ type: 'text' }] }, 'an array of'],
  ])('that returns %s is an error the model reads', async (_, output, wanted) => {
    const t = createTool({ id: 't', execute: async () => 1, toModelOutput: () => output as never })
    const { toolResults, text } = await new Agent({ id: 'a', model: model(), tools: { t } }).generate('Go.')
    expect(toolResults).toMatchObject([{ isError: true, result: expect.stringContaining(`must return ${wanted}`) }])
    expect(text).toBe('Done.')
  })

  it('has what its tool left of timeoutMs', async () => {
    const clock = virtualClock()
    const t = createTool({
      id: 't',
      timeoutMs: 5_000,
      execute: () => new Promise<number>((resolve) => clock.after(3_000, () => resolve(1))),
      toModelOutput: () => new Promise<never>(() => {}),
    })
    const m = model()
    const stream = await new Agent({ id: 'a', heed: recordedHeed(clock).heed, model: m, tools: { t } }).stream('Go.')
    await clock.advance(4_999)
    expect(m.callCount).toBe(1)
    await clock.advance(1)
    expect(await stream.toolResults).toMatchObject([{ isError: true, result: 't did not finish within 5000 ms.' }])
    expect(clock.pending).toBe(0)
  })
})
