import { describe, expect, it } from 'vitest'
import { Agent, Heed, InMemoryStore, Memory, RequestContext, createTool, stepCountIs } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { rejection, thrownBy } from './asking.ts'

const look = createTool({ id: 'look', execute: async () => 1 })
const made = () => {
  const model = scriptedModel(['Hi.'])
  return { model, agent: new Agent({ id: 'a', model, tools: { look } }) }
}

describe('an option of a call is refused', () => {
  it.each(['maxStep', 'temperature', 'threadId', 'toString'])('by name when it is %s, which there is not', async (option) => {
    const { agent, model } = made()
    const refused = { code: 'unsupported_option', message: expect.stringMatching(new RegExp(`'${option}'.*Known: .*maxSteps`)), details: { option } }
    expect(await rejection(agent.generate('Go.', { [option]: 3 }))).toMatchObject(refused)
    expect(await rejection(agent.stream('Go.', { [option]: 3 }))).toMatchObject(refused)
    expect(await rejection(agent.explainPrompt('Go.', { [option]: 3 }))).toMatchObject(refused)
    expect(thrownBy(() => agent.sendMessage('Go.', { threadId: 't', resourceId: 'u', ifIdle: { streamOptions: { [option]: 3 } } }))).toMatchObject(refused)
    expect(thrownBy(() => new Agent({ id: 'a', defaultOptions: { [option]: 3 } as never }))).toMatchObject({ code: 'unsupported_option' })
    const found = new Agent({ id: 'a', model, defaultOptions: () => ({ [option]: 3 }) as never })
    expect(await rejection(found.generate('Go.'))).toMatchObject(refused)
    expect(model.calls).toHaveLength(0)
  })

  it.each([
    ['maxSteps', 0], ['maxSteps', 1.5], ['maxSteps', Number.NaN], ['maxSteps', '3'],
    ['toolCallConcurrency', 0], ['toolCallConcurrency', -1],
    ['maxProcessorRetries', -1], ['maxProcessorRetries', Infinity],
    ['stopWhen', 5], ['stopWhen', [stepCountIs(1), 'x']],
    ['abortSignal', new AbortController()], ['abortSignal', {}],
    ['requestContext', { user: 'u' }], ['requestContext', new Map()],
    ['toolChoice', 'maybe'], ['toolChoice', { type: 'tool' }],
    ['activeTools', 'look'], ['activeTools', [look]],
    ['memory', 't'], ['runId', ''], ['onFinish', 'x'], ['transform', {}], ['structuredOutput', 7], ['inputProcessors', {}],
  ])('when %s is %j', async (option, value) => {
    const { agent, model } = made()
    const refused = { code: 'invalid_argument', message: expect.stringContaining(`${option} of generate() must be `), details: { option } }
    expect(await rejection(agent.generate('Go.', { [option]: value }))).toMatchObject(refused)
    expect(model.calls).toHaveLength(0)
  })

  it.each([
    ['no thread', { resource: 'u' }, 'memory.thread'],
    ['a thread without an id', { thread: {}, resource: 'u' }, 'memory.thread'],
    ['an empty thread', { thread: '', resource: 'u' }, 'memory.thread'],
    ['no resource', { thread: 't' }, 'memory.resource'],
  ])('when memory has %s', async (_, memory, field) => {
    const { agent } = made()
    expect(await rejection(agent.generate('Go.', { memory } as never))).toMatchObject({ code: 'invalid_argument', details: { field } })
    expect(await rejection(agent.explainPrompt('Go.', { memory } as never))).toMatchObject({ code: 'invalid_argument', details: { field } })
  })

  it('when it is an unknown option of memory or of structured output', async () => {
    const { agent } = made()
    const memory = (options: object) => ({ memory: { thread: 't', resource: 'u', options } }) as never
    expect(await rejection(agent.generate('Go.', memory({ semantics: true })))).toMatchObject({ code: 'unsupported_option', details: { option: 'semantics' } })
    expect(await rejection(agent.generate('Go.', memory({ readOnly: 'yes' })))).toMatchObject({ code: 'invalid_argument', details: { option: 'readOnly' } })
    expect(await rejection(agent.generate('Go.', memory({ lastMessages: -1 })))).toMatchObject({ code: 'invalid_argument', details: { option: 'lastMessages' } })
    const structuredOutput = { schema: { type: 'object' }, model: 'openai/gpt-5.5' }
    expect(await rejection(agent.generate('Go.', { structuredOutput } as never))).toMatchObject({ code: 'unsupported_option', details: { option: 'structuredOutput.model' } })
    expect(thrownBy(() => new Memory({ forget: true } as never))).toMatchObject({ code: 'unsupported_option', details: { option: 'forget' } })
    expect(thrownBy(() => new Memory({ options: { forget: true } } as never))).toMatchObject({ code: 'unsupported_option' })
  })

  it.each([
    [{ activeTools: ['lok'] }, "activeTools names 'lok', but the tools are look."],
    [{ toolChoice: { type: 'tool', toolName: 'lok' } }, "toolChoice names 'lok', but the tools are look."],
    [{ activeTools: [], toolChoice: { type: 'tool', toolName: 'look' } }, "toolChoice names 'look', but there are no tools."],
  ])('when it names a tool that the call does not have: %j', async (options, message) => {
    const { agent, model } = made()
    expect(await rejection(agent.generate('Go.', options as never))).toMatchObject({ code: 'unknown_tool', message: expect.stringContaining(message) })
    expect(model.calls).toHaveLength(0)
  })
})

describe('an option of a call is taken', () => {
  it('when it is an unknown model setting', async () => {
    const agent = new Agent({ id: 'a', model: scriptedModel([]) })
    const refused = { code: 'unsupported_option', message: expect.stringContaining('modelSettings.maxTokens'), details: { option: 'modelSettings.maxTokens' } }
    expect(await rejection(agent.generate('x', { modelSettings: { maxTokens: 5 } } as never))).toMatchObject(refused)
    expect(thrownBy(() => new Agent({ id: 'a', model: scriptedModel([]), defaultOptions: { modelSettings: { maxTokens: 5 } } as never }))).toMatchObject(refused)
  })

  it('when it is undefined, whatever its name', async () => {
    const { agent } = made()
    expect((await agent.generate('Go.', { maxSteps: undefined, ...({ maxStep: undefined } as object) })).text).toBe('Hi.')
  })

  it('by its older name where older programs call', async () => {
    const { agent, model } = made()
    await agent.generateLegacy('Go.', { temperature: 0.3, maxTokens: 50 })
    expect(model.calls[0]).toMatchObject({ temperature: 0.3, maxOutputTokens: 50 })
  })

  it('[G1.7] from the agent\'s defaults when it says where the conversation is kept', async () => {
    const memory = { thread: 't', resource: 'u' }
    const legacy = { threadId: 't', resourceId: 'u' }
    for (const defaults of [{ defaultOptions: { memory } }, { defaultOptions: () => ({ memory }) }, { defaultGenerateOptionsLegacy: legacy, defaultStreamOptionsLegacy: legacy }]) {
      const model = scriptedModel(['One.', 'Two.'])
      const agent = new Agent({ id: 'a', model, ...defaults })
      const heed = new Heed({ agents: { agent }, storage: new InMemoryStore() })
      await agent.generateLegacy('First.')
      await (await agent.streamLegacy('Second.')).result
      expect(model.calls[1]?.prompt.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
      await heed.close()
    }
  })
})

describe('[G1.7] a parameter of an agent is refused', () => {
  it.each([
    ['memory', {}], ['memory', new InMemoryStore()], ['heed', {}], ['heed', null], ['transform', () => 1], ['transform', { transformToolPayload: 'x' }],
    ['transform', { transformToolPayload: () => 1, targets: ['model'] }], ['defaultOptions', 'x'], ['defaultOptions', []], ['defaultOptions', null],
    ['defaultGenerateOptionsLegacy', 7], ['signalTags', 'tag'], ['signalTags', ['a b']], ['signalTags', [7]], ['metadata', 'x'], ['metadata', []],
    ['maxProcessorRetries', -1], ['maxProcessorRetries', '1'], ['description', 7],
  ])('when %s is %o', (field, value) => {
    expect(thrownBy(() => new Agent({ id: 'a', [field]: value } as never))).toMatchObject({
      code: 'invalid_agent',
      message: expect.stringContaining(`${field} of agent 'a' must be `),
      details: { field },
    })
  })

  it('when inputProcessors is neither a list nor a function', () => {
    expect(thrownBy(() => new Agent({ id: 'a', inputProcessors: {} } as never))).toMatchObject({ code: 'invalid_agent', message: expect.stringContaining('inputProcessors') })
  })

  it('when notifications has what nothing reads', () => {
    expect(thrownBy(() => new Agent({ id: 'a', notifications: { policy: {} } } as never))).toMatchObject({ code: 'unsupported_option', details: { option: 'notifications.policy' } })
  })

  it('and what is no agent is refused by a Heed', () => {
    expect(thrownBy(() => new Heed({ agents: { a: { id: 'a' } } } as never))).toMatchObject({ code: 'invalid_agent', details: { key: 'a' } })
  })

  it('but taken when it is what it should be', () => {
    const transform = { transformToolPayload: () => undefined, targets: ['display' as const] }
    const full = { memory: () => new Memory(), heed: new Heed(), transform, defaultOptions: { requestContext: new RequestContext(), maxProcessorRetries: 0 }, signalTags: ['build-status'], metadata: {} }
    expect(new Agent({ id: 'a', ...full }).id).toBe('a')
  })
})
