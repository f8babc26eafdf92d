import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent } from '../../src/agent/agent.ts'
import type { Chunk } from '../../src/message/chunk.ts'
import { createTool } from '../../src/run/tools/tool.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { chunksOf } from './asking.ts'

const weather = createTool({
  id: 'weather',
  description: 'The weather of a city.',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => ({ city, sky: 'rain' }),
})

const twoSteps = () => scriptedModel([
  { text: ['Let me', ' look.'], toolCalls: [{ toolName: 'weather', input: { city: 'Bern' } }] },
  { text: ['It', ' rains.'] },
])

/** A chunk without what differs from run to run. */
function told(chunk: Chunk): unknown {
  if (!('payload' in chunk)) return chunk
  const { messageId: _, startedAt: __, output, ...payload } = chunk.payload as Record<string, unknown>
  const { usage: ___, ...said } = (output ?? {}) as Record<string, unknown>
  return [chunk.type, { ...payload, ...(output ? { output: said } : {}) }]
}

describe('a run of two steps', () => {
  it('[G1.9] says exactly these chunks in this order', async () => {
    const agent = new Agent({ id: 'sky', instructions: 'Be brief.', model: twoSteps(), tools: { weather } })
    const chunks = await chunksOf(await agent.stream('How is it in Bern?', { runId: 'run-1' }))
    const call = { toolCallId: 'call_0_0', toolName: 'weather' }
    const args = { city: 'Bern' }
    expect(chunks.map(told)).toEqual([
      ['start', { id: 'sky' }],
      ['step-start', { request: {}, warnings: [] }],
      ['response-metadata', { id: 'response_0', modelId: 'scripted', timestamp: undefined }],
      ['text-start', { id: 'text-0' }],
      ['text-delta', { id: 'text-0', text: 'Let me' }],
      ['text-delta', { id: 'text-0', text: ' look.' }],
      ['text-end', { id: 'text-0' }],
      ['tool-call-input-streaming-start', call],
      ['tool-call-delta', { ...call, argsTextDelta: '{"city":"Bern"}' }],
      ['tool-call-input-streaming-end', { toolCallId: 'call_0_0' }],
      ['tool-call', { ...call, args }],
      ['tool-result', { ...call, args, result: { city: 'Bern', sky: 'rain' } }],
      ['step-finish', {
        stepResult: { reason: 'tool-calls', isContinued: true, warnings: [] },
        output: { text: 'Let me look.', toolCalls: [{ ...call, args }] },
        metadata: { modelId: 'scripted' },
      }],
      ['step-start', { request: {}, warnings: [] }],
      ['response-metadata', { id: 'response_1', modelId: 'scripted', timestamp: undefined }],
      ['text-start', { id: 'text-0' }],
      ['text-delta', { id: 'text-0', text: 'It' }],
      ['text-delta', { id: 'text-0', text: ' rains.' }],
      ['text-end', { id: 'text-0' }],
      ['step-finish', {
        stepResult: { reason: 'stop', isContinued: false, warnings: [] },
        output: { text: 'It rains.', toolCalls: [] },
        metadata: { modelId: 'scripted' },
      }],
      ['finish', { stepResult: { reason: 'stop' }, output: {}, metadata: {} }],
    ])
  })

  it('[G1.9] puts every chunk into the envelope, and all of one turn under one message id', async () => {
    const agent = new Agent({ id: 'sky', model: twoSteps(), tools: { weather } })
    const chunks = await chunksOf(await agent.stream('How is it in Bern?', { runId: 'run-1' }))
    for (const chunk of chunks) expect(chunk).toMatchObject({ type: expect.any(String), runId: 'run-1', from: 'AGENT', payload: expect.any(Object) })
    const ids = chunks.flatMap((chunk) => ('payload' in chunk ? [(chunk.payload as { messageId?: string }).messageId ?? []].flat() : []))
    expect(ids.length).toBeGreaterThan(4)
    expect(new Set(ids).size).toBe(1)
  })

  it('sends exactly these prompts and tools', async () => {
    const model = twoSteps()
    await new Agent({ id: 'sky', instructions: 'Be brief.', model, tools: { weather } }).generate('How is it in Bern?')
    const first = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: [{ type: 'text', text: 'How is it in Bern?' }] },
    ]
    expect(model.calls.map((call) => call.prompt)).toEqual([
      first,
      [
        ...first,
        {
          role: 'assistant',
          content: [
            { type: 'text', text: 'Let me look.' },
            { type: 'tool-call', toolCallId: 'call_0_0', toolName: 'weather', input: { city: 'Bern' } },
          ],
        },
        {
          role: 'tool',
          content: [{
            type: 'tool-result',
            toolCallId: 'call_0_0',
            toolName: 'weather',
            output: { type: 'json', value: { city: 'Bern', sky: 'rain' } },
          }],
        },
      ],
    ])
    const tools = [{
      type: 'function',
      name: 'weather',
      description: 'The weather of a city.',
      inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false },
    }]
    expect(model.calls.map((call) => call.tools)).toEqual([tools, tools])
  })

  it('[P1.2] sends the bytes of a prompt again at the start of the next', async () => {
    const model = scriptedModel([...Array.from({ length: 6 }, (_, step) => ({ toolCalls: [{ toolName: 'weather', input: { city: `c${step}` } }] })), 'Done.'])
    await new Agent({ id: 'sky', instructions: ['One.', 'Two.'], model, tools: { weather } }).generate('Go.')
    const prompts = model.calls.map((call) => JSON.stringify(call.prompt).slice(0, -1))
    expect(prompts).toHaveLength(7)
    for (const [index, prompt] of prompts.slice(1).entries()) expect(prompt.startsWith(prompts[index] ?? '?')).toBe(true)
    const tools = new Set(model.calls.map((call) => JSON.stringify(call.tools)))
    expect(tools.size).toBe(1)
  })
})
