import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent } from '../../src/agent/agent.ts'
import { createTool } from '../../src/run/tools/tool.ts'
import { scriptedModel, type ScriptedStep } from '../../src/testing/index.ts'
import { chunksOf, of, recordedHeed, refuseStrayRejections, rejection, thrownBy, typesOf } from './asking.ts'

describe('an agent can\'t be made', () => {
  it.each([
    ['without parameters', undefined, 'invalid_agent'],
    ['with an empty id', { id: '' }, 'invalid_agent'],
    ['with an id of blanks', { id: '  ' }, 'invalid_agent'],
    ['with an id that is no text', { id: 7 }, 'invalid_agent'],
    ['with an empty name', { name: '' }, 'invalid_agent'],
    ['with a request context schema that is none', { id: 'a', requestContextSchema: 'user' }, 'invalid_schema'],
    ['with a processor without an id', { id: 'a', inputProcessors: [{ processInput() {} }] }, 'invalid_agent'],
    ['with a processor that is null', { id: 'a', outputProcessors: [null] }, 'invalid_agent'],
  ])('%s', (_, config, code) => {
    expect(thrownBy(() => new Agent(config as never))).toMatchObject({ name: 'HeedError', code })
  })

  it.each([
    ['instuctions', { instuctions: 'a typo' }],
    ['signals', { signals: [] }],
  ])('[G1.7] with %s, which is refused by its name', (option, config) => {
    expect(thrownBy(() => new Agent({ id: 'a', ...config } as never))).toMatchObject({
      code: 'unsupported_option',
      message: expect.stringContaining(`'${option}'`),
      details: { option },
    })
  })

  it('[G1.7] with a workflow as a processor', () => {
    const workflow = { id: 'w', createRun: () => {} }
    for (const key of ['inputProcessors', 'outputProcessors']) {
      expect(thrownBy(() => new Agent({ id: 'a', [key]: [workflow] } as never))).toMatchObject({ code: 'unsupported_option', message: expect.stringContaining(key) })
    }
  })
})

describe('an agent can be made', () => {
  it('[G1.7] with editor: false, and with parameters that are undefined', async () => {
    const agent = new Agent({ id: 'a', editor: false, description: undefined, tools: undefined, ...({ voice: undefined } as object), model: scriptedModel(['Hi.']) })
    expect((await agent.generate('Go.')).text).toBe('Hi.')
  })

  it('[G1.7] with its name as its id, and says so when it has neither', () => {
    expect(new Agent({ name: 'Support' }).id).toBe('Support')
    expect(new Agent({ id: 'support' }).name).toBe('support')
    expect(thrownBy(() => new Agent({}).id)).toMatchObject({ code: 'invalid_agent', message: expect.stringContaining('Give it one') })
  })
})

describe('a call is refused', () => {
  const model = () => scriptedModel(['Hi.'])
  const tool = createTool({ id: 'look', execute: async () => 1 })

  it('for two tools of one name, wherever they come from', async () => {
    const agent = new Agent({ id: 'a', model: model(), tools: { look: tool } })
    const error = await rejection(agent.generate('Go.', { toolsets: { eyes: { look: tool } } }))
    expect(error).toMatchObject({ code: 'duplicate_tool', message: "Two tools are called 'look': one in the tools of agent 'a', one in the toolset 'eyes'. Rename one of them.", details: { name: 'look' } })
    expect(await rejection(agent.generate('Go.', { clientTools: { look: tool } }))).toMatchObject({ code: 'duplicate_tool' })
    const expert = new Agent({ id: 'expert', model: model() })
    const named = new Agent({ id: 'a', model: model(), tools: { 'agent-expert': tool }, agents: { expert } })
    expect(await rejection(named.generate('Go.'))).toMatchObject({ code: 'duplicate_tool' })
  })

  it.each(['has blank', 'ümlaut', '', 'x'.repeat(129)])('for a tool that is called %j', async (name) => {
    expect(await rejection(new Agent({ id: 'a', model: model(), tools: { [name]: tool } }).generate('Go.'))).toMatchObject({ code: 'invalid_tool' })
  })

  it.each([
    ['tools in a list', { tools: [tool] }, 'invalid_tool'],
    ['an agent that is none', { agents: { x: {} } }, 'invalid_agent'],
    ['processors that are no list', { inputProcessors: () => ({}) }, 'invalid_agent'],
    ['a tool whose schema has no JSON Schema', { tools: { t: createTool({ id: 't', inputSchema: z.object({ at: z.date() }) }) } }, 'invalid_schema'],
  ])('for %s', async (_, config, code) => {
    expect(await rejection(new Agent({ id: 'a', model: model(), ...config } as never).generate('Go.'))).toMatchObject({ code })
  })

  it.each([
    ['no message', []],
    ['an empty message', [{ role: 'user', content: [] }]],
    ['an unknown role', [{ role: 'boss', content: 'x' }]],
    ['null', null],
  ])('for %s', async (_, input) => {
    expect(await rejection(new Agent({ id: 'a', model: model() }).generate(input as never))).toMatchObject({ code: 'invalid_message' })
  })
})

describe('a run goes on', () => {
  refuseStrayRejections()

  const run = async (execute: () => unknown, step: ScriptedStep = { toolCalls: [{ toolName: 'odd' }] }) => {
    const model = scriptedModel([step, 'Well.'])
    const odd = createTool({ id: 'odd', inputSchema: z.object({}), execute: execute as () => Promise<unknown> })
    const stream = await new Agent({ id: 'a', heed: recordedHeed().heed, model, tools: { odd } }).stream('Go.')
    const chunks = await chunksOf(stream)
    const { toolResults, text } = await stream.result
    expect(text).toBe('Well.')
    expect(typesOf(chunks).at(-1)).toBe('finish')
    const [failed] = of(chunks, 'tool-error')
    expect(toolResults).toMatchObject([{ isError: true, result: failed?.payload.error.message }])
    expect(model.calls[1]?.prompt.at(-1)).toMatchObject({ role: 'tool', content: [{ output: { type: 'error-text', value: failed?.payload.error.message } }] })
    return failed?.payload.error.message
  }
  const cycle: { self?: unknown } = {}
  cycle.self = cycle

  it.each([
    ['throws', () => { throw new Error('no luck') }, 'odd failed: no luck'],
    ['throws what is no error', () => { throw { why: 'because' } }, 'odd failed: {"why":"because"}'],
    ['rejects', () => Promise.reject(new Error('no luck')), 'odd failed: no luck'],
    ['rejects with nothing', () => Promise.reject(undefined), 'odd failed: undefined'],
    ['returns a BigInt', () => 1n, "The result of odd can't be stored as JSON: Do not know how to serialize a BigInt"],
    ['returns a function', () => () => 1, "The result of odd can't be stored as JSON: it is a function."],
    ['returns a symbol', () => Symbol('x'), "The result of odd can't be stored as JSON: it is a symbol."],
    ['returns what can\'t be read', () => ({ toJSON() { throw new Error('private') } }), "The result of odd can't be stored as JSON: private"],
  ])('after a tool that %s', async (_, execute, message) => {
    expect(await run(execute)).toBe(message)
  })

  it('after a tool that returns a cycle', async () => {
    expect(await run(() => cycle)).toMatch(/^The result of odd can't be stored as JSON: Converting circular structure/)
  })

  it.each([
    ['cut off', '{"a": ', /^The input is not valid JSON: .*Call odd again with valid JSON\.$/],
    ['no JSON', 'sure!', /^The input is not valid JSON: /],
    ['a list', '[1]', /^The input is not a JSON object\. Call odd again/],
    ['a number', '7', /^The input is not a JSON object/],
  ])('after tool input that is %s', async (_, inputText, message) => {
    let ran = false
    expect(await run(() => (ran = true), { toolCalls: [{ toolName: 'odd', inputText }] })).toMatch(message)
    expect(ran).toBe(false)
  })

  it('after a call to a tool that is not there', async () => {
    expect(await run(() => 1, { toolCalls: [{ toolName: 'teleport' }] })).toBe("There is no tool 'teleport'. Available: odd.")
    const alone = scriptedModel([{ toolCalls: [{ toolName: 'teleport' }] }, 'Well.'])
    const { toolResults } = await new Agent({ id: 'a', model: alone }).generate('Go.')
    expect(toolResults).toMatchObject([{ isError: true, result: "There is no tool 'teleport'; no tools are available." }])
  })

  it.each([['nothing', undefined, null], ['NaN', Number.NaN, null], ['a date', new Date(0), '1970-01-01T00:00:00.000Z'], ['a map', new Map(), {}]])(
    'with what JSON makes of %s',
    async (_, value, stored) => {
      const odd = createTool({ id: 'odd', execute: async () => value })
      const { toolResults } = await new Agent({ id: 'a', model: scriptedModel([{ toolCalls: [{ toolName: 'odd' }] }, 'Well.']), tools: { odd } }).generate('Go.')
      expect(toolResults).toMatchObject([{ result: stored }])
    },
  )

  it('after empty tool input, and null: no arguments', async () => {
    const inputs: unknown[] = []
    const odd = createTool({ id: 'odd', inputSchema: z.object({}), execute: async (input) => inputs.push(input) })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'odd', inputText: '' }, { toolName: 'odd', inputText: 'null' }] }, 'Well.'])
    await new Agent({ id: 'a', model, tools: { odd } }).generate('Go.')
    expect(inputs).toEqual([{}, {}])
  })
})

describe('a run ends in a named error', () => {
  refuseStrayRejections()

  it.each([
    ['throws what is no error', () => Promise.reject('nope'), 'provider_error'],
    ['gives no stream', async () => ({}), 'provider_error'],
    ['gives nothing', async () => undefined, 'provider_error'],
    ['throws at once', () => { throw new TypeError('oops') }, 'provider_error'],
    ['says something that is no part', async () => ({ stream: new ReadableStream({ start: (c) => (c.enqueue({ type: 'text-start', id: 't' }), c.enqueue(undefined), c.close()) }) }), 'stream_broken'],
  ])('when a model %s', async (_, doStream, code) => {
    const model = { specificationVersion: 'v4', provider: 'odd', modelId: 'odd', supportedUrls: {}, doStream, doGenerate: doStream } as never
    const stream = await new Agent({ id: 'a', heed: recordedHeed().heed, model }).stream('Go.', { modelSettings: { maxRetries: 0 } })
    expect(of(await chunksOf(stream), 'error')).toMatchObject([{ payload: { error: { code } } }])
    expect(await rejection(stream.result)).toMatchObject({ name: 'HeedError', code })
  })
})
