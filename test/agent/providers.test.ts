import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent } from '../../src/agent/agent.ts'
import { createTool } from '../../src/run/tools/tool.ts'
import { providerServer, type ProviderServer } from '../../src/testing/index.ts'
import { chunksOf, of, refuseStrayRejections, typesOf } from './asking.ts'

const makers = [
  ['OpenAI, responses', (server: ProviderServer) => createOpenAI(server.openai).responses('gpt-5')],
  ['OpenAI, chat', (server: ProviderServer) => createOpenAI(server.openai).chat('gpt-5')],
  ['Anthropic', (server: ProviderServer) => createAnthropic(server.anthropic)('claude-sonnet-4-5')],
] as const

const tools = {
  weather: createTool({
    id: 'weather',
    description: 'The weather of a city.',
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => ({ city, sky: 'rain' }),
  }),
}

describe.each(makers)('an agent on %s', (_, make) => {
  refuseStrayRejections()

  it('streams, calls a tool and answers', async () => {
    await using server = await providerServer({
      script: [{ text: 'Let me look.', toolCalls: [{ toolName: 'weather', input: { city: 'Bern' } }] }, 'It rains in Bern.'],
    })
    const stream = await new Agent({ id: 'a', instructions: 'Be brief.', model: make(server), tools }).stream('Weather?')
    const chunks = await chunksOf(stream)
    const result = await stream.result
    expect(result).toMatchObject({
      text: 'It rains in Bern.',
      finishReason: 'stop',
      toolCalls: [{ toolName: 'weather', args: { city: 'Bern' } }],
      toolResults: [{ result: { city: 'Bern', sky: 'rain' } }],
    })
    expect(result.usage.inputTokens).toBeGreaterThan(0)
    expect(of(chunks, 'text-delta').map((chunk) => chunk.payload.text).join('')).toBe('Let me look.It rains in Bern.')
    expect(of(chunks, 'tool-call-delta').map((chunk) => chunk.payload.argsTextDelta).join('')).toBe('{"city":"Bern"}')
    expect(typesOf(chunks).filter((type) => type === 'step-finish' || type === 'finish')).toEqual(['step-finish', 'step-finish', 'finish'])
    expect(server.requests).toHaveLength(2)
    const [first, second] = server.requests.map((request) => request.body)
    expect(first).toMatchObject({ stream: true })
    expect(JSON.stringify(first)).toContain('Be brief.')
    expect(JSON.stringify(second)).toContain('rain')
    expect(JSON.stringify(first?.tools)).toBe(JSON.stringify(second?.tools))
  })

  it('[G1.3] calls a tool whose input is a choice of objects: its provider takes it, and what does not go together is corrected', async () => {
    const steer = createTool({
      id: 'steer',
      inputSchema: z.discriminatedUnion('kind', [z.object({ kind: z.literal('move'), to: z.string() }), z.object({ kind: z.literal('stop') })]),
      execute: async (input) => (input.kind === 'move' ? `to ${input.to}` : 'stopped'),
    })
    const call = (input: object) => ({ toolCalls: [{ toolName: 'steer', input }] })
    await using server = await providerServer({ script: [call({ kind: 'move' }), call({ kind: 'move', to: 'Bern' }), call({ kind: 'stop' }), 'There.'] })
    const { toolResults } = await new Agent({ id: 'a', model: make(server), tools: { steer } }).generate('Go.')
    expect(toolResults).toMatchObject([{ isError: true, result: expect.stringContaining('to: ') }, { result: 'to Bern' }, { result: 'stopped' }])
  })

  it('[G1.3] goes on after malformed tool input', async () => {
    await using server = await providerServer({
      script: [
        { toolCalls: [{ toolName: 'weather', inputText: '{"city": "Be' }] },
        { toolCalls: [{ toolName: 'weather', input: { city: 'Bern' } }] },
        'Rain.',
      ],
    })
    const { toolResults, text } = await new Agent({ id: 'a', model: make(server), tools }).generate('Weather?')
    expect(toolResults).toMatchObject([{ isError: true, result: expect.stringMatching(/not valid/) }, { result: { sky: 'rain' } }])
    expect(text).toBe('Rain.')
    expect(await server.requests[1]?.outcome).toBe('answered')
  })

  it('[G1.5] tells the provider when it is aborted', async () => {
    await using server = await providerServer({ script: [{ text: ['Once ', 'upon ', 'a time'], hang: { parts: 3 } }] })
    const stop = new AbortController()
    const stream = await new Agent({ id: 'a', model: make(server) }).stream('A story.', { abortSignal: stop.signal })
    for await (const text of stream.textStream) if (text === 'upon ') stop.abort()
    expect(await stream.finishReason).toBe('aborted')
    expect(await stream.text).toBe('Once upon ')
    expect(await server.requests[0]?.outcome).toBe('disconnected')
  })
})

describe.each([makers[0], makers[2]])('reasoning of %s', (name, make) => {
  it('is read, and given back in the next step with its signature', async () => {
    await using server = await providerServer({
      script: [{ reasoning: 'I should look.', toolCalls: [{ toolName: 'weather', input: { city: 'Bern' } }] }, 'Rain.'],
    })
    const stream = await new Agent({ id: 'a', model: make(server), tools }).stream('Weather?', {
      providerOptions: { openai: { store: false, reasoningSummary: 'auto', include: ['reasoning.encrypted_content'] }, anthropic: { thinking: { type: 'enabled', budgetTokens: 1024 } } },
    })
    const chunks = await chunksOf(stream)
    expect(of(chunks, 'reasoning-delta').map((chunk) => chunk.payload.text).join('')).toBe('I should look.')
    expect((await stream.steps)[0]?.reasoningText).toBe('I should look.')
    const sent = JSON.stringify(server.requests[1]?.body)
    expect(sent).toContain('I should look.')
    expect(sent).toContain(name === 'Anthropic' ? '"signature":"signature_0_0"' : '"encrypted_content":"encrypted_')
  })
})

describe('prompt caching', () => {
  it('is asked for where the instructions say so, and is counted', async () => {
    await using server = await providerServer({ script: [{ text: 'Hi.', usage: { inputTokens: 100, outputTokens: 2, cachedInputTokens: 70, cacheWriteTokens: 20 } }] })
    const agent = new Agent({
      id: 'a',
      instructions: { role: 'system', content: 'Long rules.', providerOptions: { anthropic: { cacheControl: { type: 'ephemeral' } } } },
      model: createAnthropic(server.anthropic)('claude-sonnet-4-5'),
    })
    const { usage } = await agent.generate('Hi')
    expect(server.requests[0]?.body).toMatchObject({ system: [{ text: 'Long rules.', cache_control: { type: 'ephemeral' } }] })
    expect(usage).toMatchObject({ inputTokens: 100, cachedInputTokens: 70, cacheWriteTokens: 20 })
  })
})
