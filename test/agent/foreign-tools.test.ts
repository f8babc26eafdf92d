import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { dynamicTool, jsonSchema, tool } from 'ai'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent } from '../../src/agent/agent.ts'
import { RequestContext } from '../../src/run/request-context.ts'
import { createTool } from '../../src/run/tools/tool.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { chunksOf, of, recordedHeed, rejection } from './asking.ts'

const call = (toolName: string, input: unknown = {}) => ({ toolCalls: [{ toolName, input }] })

describe('tools of the AI SDK work as they are', () => {
  it('tool(), with its options', async () => {
    const seen: unknown[] = []
    const weather = tool({
      description: 'Weather.',
      inputSchema: z.object({ city: z.string() }),
      strict: true,
      execute: async ({ city }, options) => {
        seen.push(options)
        return { city, sky: 'rain' }
      },
      toModelOutput: ({ toolCallId, input, output }) => ({ type: 'text', value: `${toolCallId} ${input.city} ${output.sky}` }),
    })
    const model = scriptedModel([call('weather', { city: 1 }), call('weather', { city: 'Bern' }), 'Done.'])
    const requestContext = new RequestContext({ user: 'u1' })
    const { toolResults } = await new Agent({ id: 'a', model, tools: { weather } }).generate('Go.', { requestContext })
    expect(toolResults).toMatchObject([{ isError: true }, { result: { city: 'Bern', sky: 'rain' } }])
    expect(seen).toMatchObject([{ toolCallId: 'call_1_0', abortSignal: expect.any(AbortSignal), context: requestContext }])
    expect(model.calls[0]?.tools).toMatchObject([{ type: 'function', name: 'weather', description: 'Weather.', strict: true, inputSchema: { required: ['city'] } }])
    expect(model.calls[2]?.prompt.at(-1)).toMatchObject({ content: [{ output: { type: 'text', value: 'call_1_0 Bern rain' } }] })
  })

  it('with the messages that the model was sent, and told of their input as it is written', async () => {
    const heard: unknown[] = []
    const note = (what: string) => (options: { toolCallId: string; messages: unknown[]; inputTextDelta?: string; input?: unknown }) => {
      heard.push([what, options.toolCallId, options.messages.length, options.inputTextDelta ?? options.input ?? ''])
      if (what === 'start') throw new Error('not my day')
    }
    const look = tool({
      inputSchema: z.object({ at: z.string().transform((text) => text.length) }),
      execute: async (_, { messages }) => (heard.push(['execute', '', messages.length, messages.at(-1)?.role]), 'seen'),
      onInputStart: note('start'),
      onInputDelta: note('delta'),
      onInputAvailable: note('available'),
    })
    const model = scriptedModel([call('look', { at: 'noon' }), call('look', { at: 7 }), 'Done.'])
    const { heed, logged } = recordedHeed()
    const { toolResults } = await new Agent({ id: 'a', heed, model, tools: { look } }).generate('Go.')
    expect(toolResults.map(({ isError }) => isError ?? false)).toEqual([false, true])
    const first = heard.filter((event) => (event as string[])[1] !== 'call_1_0')
    expect(first[0]).toEqual(['start', 'call_0_0', 1, ''])
    expect(first.filter((event) => (event as string[])[0] === 'delta').map((event) => (event as string[])[3]).join('')).toBe('{"at":"noon"}')
    expect(first.slice(-2)).toEqual([['available', 'call_0_0', 1, { at: 4 }], ['execute', '', 1, 'user']])
    const second = heard.filter((event) => (event as string[])[1] === 'call_1_0')
    expect(second[0]).toEqual(['start', 'call_1_0', 3, ''])
    expect(second.map((event) => (event as string[])[0])).not.toContain('available')
    expect(logged).toHaveLength(2)
  })

  it('dynamicTool(), and a description that is a function', async () => {
    const any = dynamicTool({ description: 'Anything.', inputSchema: z.object({}).loose(), execute: async (input) => ({ got: input }) })
    const described = tool({ description: () => 'Made up.', inputSchema: z.object({}), execute: async () => 1 })
    const model = scriptedModel([call('any', { a: 1 }), 'Done.'])
    const { toolResults } = await new Agent({ id: 'a', model, tools: { any, described } }).generate('Go.')
    expect(toolResults).toMatchObject([{ result: { got: { a: 1 } } }])
    expect(model.calls[0]?.tools).toMatchObject([{ description: 'Anything.' }, { description: 'Made up.' }])
  })

  it('needsApproval, as a word and as a question', async () => {
    const execute = async () => 'ran'
    const always = tool({ inputSchema: z.object({}), needsApproval: true, execute })
    const sometimes = tool({ inputSchema: z.object({ n: z.number() }), needsApproval: async ({ n }, { toolCallId }) => n > 1 && toolCallId !== '', execute })
    const run = async (step: ReturnType<typeof call>) => (await new Agent({ id: 'a', model: scriptedModel([step, 'Done.']), tools: { always, sometimes } }).generate('Go.')).suspended.length
    expect([await run(call('always')), await run(call('sometimes', { n: 1 })), await run(call('sometimes', { n: 2 }))]).toEqual([1, 0, 1])
  })

  it('a generator as execute', async () => {
    const count = tool({
      inputSchema: z.object({}),
      async *execute() {
        yield 'one'
        yield 'two'
      },
    })
    const stream = await new Agent({ id: 'a', model: scriptedModel([call('count'), 'Done.']), tools: { count } }).stream('Go.')
    expect(of(await chunksOf(stream), 'tool-result').map(({ payload }) => [payload.result, payload.preliminary])).toEqual([['one', true], ['two', undefined]])
  })

  it('a tool without execute, for the client', async () => {
    const confirm = tool({ inputSchema: z.object({}), outputSchema: z.string() })
    const result = await new Agent({ id: 'a', model: scriptedModel([call('confirm')]), tools: { confirm } }).generate('Go.')
    expect(result.finishReason).toBe('tool-calls')
    expect(result.toolResults).toEqual([])
  })

  it('tools that a provider executes are offered to the model, and their results are part of its output', async () => {
    const { tools: { webSearch } } = createOpenAI({ apiKey: 'x' })
    const search = { toolCallId: 'ws_1', toolName: 'web_search' }
    const model = scriptedModel([
      {
        parts: [
          { type: 'tool-call', ...search, input: '{"q":"x"}', providerExecuted: true, providerMetadata: { openai: { itemId: 'i1' } } },
          { type: 'tool-result', ...search, result: { hits: 3 }, providerMetadata: { openai: { itemId: 'i2' } } },
          { type: 'tool-call', toolCallId: 'c2', toolName: 'look', input: '{}' },
          { type: 'finish', finishReason: { unified: 'tool-calls', raw: 'x' }, usage },
        ],
      },
      'Done.',
    ])
    const look = tool({ inputSchema: z.object({}), execute: async () => 'seen' })
    const result = await new Agent({ id: 'a', model, tools: { web_search: webSearch({ searchContextSize: 'low' }), look } }).generate('Go.')
    expect(model.calls[0]?.tools).toMatchObject([{ type: 'function', name: 'look' }, { type: 'provider', id: 'openai.web_search', name: 'web_search', args: { searchContextSize: 'low' } }])
    expect(result.toolResults).toMatchObject([{ toolName: 'web_search', providerExecuted: true, result: { hits: 3 } }, { toolName: 'look', result: 'seen' }])
    expect(model.calls[1]?.prompt.slice(1)).toMatchObject([
      {
        role: 'assistant',
        content: [
          { type: 'tool-call', toolCallId: 'ws_1', providerExecuted: true, providerOptions: { openai: { itemId: 'i1' } } },
          { type: 'tool-result', toolCallId: 'ws_1', output: { type: 'json', value: { hits: 3 } }, providerOptions: { openai: { itemId: 'i2' } } },
          { type: 'tool-call', toolCallId: 'c2' },
        ],
      },
      { role: 'tool', content: [{ toolCallId: 'c2' }] },
    ])
  })

  it('tools that a provider defines and we run', async () => {
    const { tools: { bash_20250124 } } = createAnthropic({ apiKey: 'x' })
    const bash = bash_20250124({ execute: async ({ command }) => `ran ${command}` })
    const model = scriptedModel([call('bash', { command: 'ls' }), 'Done.'])
    const { toolResults } = await new Agent({ id: 'a', model, tools: { bash } }).generate('Go.')
    expect(toolResults).toMatchObject([{ result: 'ran ls' }])
    expect(model.calls[0]?.tools).toEqual([{ type: 'provider', id: 'anthropic.bash_20250124', name: 'bash', args: {} }])
  })
})

const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } }

describe('tools of an MCP client work as they are', () => {
  /** What such a client makes of a server's tool. */
  const fromServer = (inputSchema: object, execute: (input: unknown) => unknown) => ({
    type: 'dynamic' as const,
    description: 'From a server.',
    inputSchema: jsonSchema({ ...inputSchema }),
    execute: async (input: unknown) => execute(input),
    toModelOutput: ({ output }: { output: unknown }) => ({ type: 'content' as const, value: (output as { content: Array<{ type: 'text'; text: string }> }).content }),
  })

  it('with their input checked by the JSON Schema of the server', async () => {
    const schema = { $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object', properties: { path: { type: 'string' } }, required: ['path'], additionalProperties: false }
    const files = fromServer(schema, (input) => ({ content: [{ type: 'text', text: `read ${(input as { path: string }).path}` }], isError: false }))
    const model = scriptedModel([call('files_read', { file: 'x' }), call('files_read', { path: 'README' }), 'Done.'])
    const { toolResults } = await new Agent({ id: 'a', model }).generate('Go.', { toolsets: { files: { files_read: files } } })
    expect(toolResults).toMatchObject([{ isError: true, result: expect.stringContaining("must have required property 'path'") }, { result: { isError: false } }])
    expect(model.calls[0]?.tools).toMatchObject([{ name: 'files_read', description: 'From a server.', inputSchema: schema }])
    expect(model.calls[2]?.prompt.at(-1)).toMatchObject({ content: [{ output: { type: 'content', value: [{ type: 'text', text: 'read README' }] } }] })
  })
})

describe('tools that are none', () => {
  it.each([['a text', z.string()], ['a list', z.array(z.string())], ['a choice of words', z.enum(['a', 'b'])]])('[G1.7] such as one whose input is %s are refused by name, before a model is asked', async (_, inputSchema) => {
    const model = scriptedModel(['Hi.'])
    const tools = { say: createTool({ id: 'say', inputSchema, execute: async () => 'said' }) }
    expect(await rejection(new Agent({ id: 'a', model, tools }).generate('Go.'))).toMatchObject({ code: 'invalid_tool', message: expect.stringContaining("inputSchema of tool 'say' must describe an object") })
    expect(model.callCount).toBe(0)
  })

  it.each([
    ['an object', { nope: { description: 'x' } }],
    ['null', { nope: null }],
    ['a function', { nope: () => 1 }],
  ])('such as %s are refused by name', async (_, tools) => {
    const agent = new Agent({ id: 'a', model: scriptedModel(['Hi.']), tools: tools as never })
    expect(await rejection(agent.generate('Go.'))).toMatchObject({ code: 'invalid_tool', message: expect.stringContaining("'nope' in the tools of agent 'a'") })
  })
})
