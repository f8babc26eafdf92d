import { describe, expect, it, onTestFinished } from 'vitest'
import { Agent, Heed, InMemoryStore, Memory, createTool, silentLogger, type AgentConfig } from '../../src/index.ts'
import { MessageHistory } from '../../src/processors/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

const memory = { thread: 'trip', resource: 'ada' }

function open(config: Partial<AgentConfig> = {}) {
  const model = scriptedModel(() => 'Fine.')
  const agent = new Agent({ id: 'guide', model, memory: new Memory(), ...config })
  const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
  onTestFinished(() => heed.close())
  /** The texts of the users in a prompt. */
  const asked = (call: number) =>
    model.calls[call]?.prompt.flatMap(({ role, content }) => (role === 'user' ? content.map((part) => ('text' in part ? part.text : '')) : []))
  return { agent, model, asked }
}

describe('the options of a call over those of its agent', () => {
  it('[G1.30] an option that is undefined overrides nothing, at any depth', async () => {
    const { agent, model } = open({
      defaultOptions: { maxSteps: 3, modelSettings: { temperature: 0.2, headers: { 'x-team': 'search' } }, providerOptions: { openai: { effort: 'low' } } },
    })
    const given = {
      maxSteps: undefined, modelSettings: { temperature: undefined, topP: 0.5, headers: { 'x-team': undefined } },
      providerOptions: { openai: { effort: undefined, user: 'ada' } },
    }
    await agent.generate('Hello', given as never)
    expect(model.calls[0]).toMatchObject({
      temperature: 0.2, topP: 0.5, headers: { 'x-team': 'search' }, providerOptions: { openai: { effort: 'low', user: 'ada' } },
    })
  })

  it('[G1.30] headers are merged by name', async () => {
    const { agent, model } = open({ defaultOptions: { modelSettings: { headers: { 'x-team': 'search', 'x-tier': 'low' } } } })
    await agent.generate('Hello', { modelSettings: { headers: { 'x-request': '7', 'x-tier': 'high' } } })
    expect(model.calls[0]?.headers).toEqual({ 'x-team': 'search', 'x-tier': 'high', 'x-request': '7' })
  })

  it.each([
    ['in its default options', { defaultOptions: { memory: { options: { lastMessages: 1 } } } }],
    ['in default options of each request', { defaultOptions: () => ({ memory: { options: { lastMessages: 1 } } }) }],
    ['in a processor of its default options', { defaultOptions: { inputProcessors: [new MessageHistory({ lastMessages: 1 })] } }],
  ])('[G1.30] an agent with a window %s: calls and sends that name a thread have it', async (_, config) => {
    const { agent, model, asked } = open(config)
    for (const question of ['One?', 'Two?', 'Three?', 'Four?']) await agent.generate(question, { memory })
    expect(asked(3)).not.toContain('One?')
    await agent.generate('Five?', { memory: { ...memory, options: { lastMessages: 10 } } })
    expect(asked(4)).toContain('One?')
    const { runId } = await agent.sendMessage('Six?', { threadId: 'trip', resourceId: 'ada' }).outcome
    await expect.poll(() => agent.activeRun({ threadId: 'trip' })).toBeNull()
    expect([runId !== undefined, asked(5)?.includes('Six?'), asked(5)?.includes('One?')]).toEqual([true, true, false])
    expect(model.callCount).toBe(6)
  })

  it('[G1.30] memory options of the agent apply to a call that has others', async () => {
    const { agent, model } = open({ defaultOptions: { memory: { resource: 'ada', options: { workingMemory: { enabled: true, template: '# Name:' } } } } })
    await agent.generate('Hello', { memory: { thread: 'trip', options: { lastMessages: 2 } } })
    expect(model.calls[0]?.tools?.map(({ name }) => name)).toEqual(['updateWorkingMemory'])
    expect(JSON.stringify(model.calls[0]?.prompt)).toContain('# Name:')
    expect(await (await agent.getMemory()).getThreadById({ threadId: 'trip' })).toMatchObject({ resourceId: 'ada' })
  })

  it('[G1.30] without a thread of the call, options of memory are no thread', async () => {
    const { agent } = open({ defaultOptions: { memory: { options: { lastMessages: 1 } } } })
    expect((await agent.generate('Hello')).text).toBe('Fine.')
    expect(await agent.explainPrompt('Hello')).toBeDefined()
    expect((await (await agent.getMemory()).listThreads()).threads).toEqual([])
  })
})

describe('options of a call that have no effect', () => {
  it("[G1.30] toolChoice 'required' without tools is rejected", async () => {
    const { agent, model } = open()
    await expect(agent.generate('Hello', { toolChoice: 'required' })).rejects.toMatchObject({ details: { option: 'toolChoice' } })
    expect(model.callCount).toBe(0)
  })

  it.each([
    ['toolChoice', { toolChoice: { type: 'tool', toolName: 'look', always: true } }],
    ['modelSettings.maxRetries', { modelSettings: { maxRetries: -1 } }],
    ['modelSettings.maxRetries', { modelSettings: { maxRetries: 1.5 } }],
    ['modelSettings.reasoning', { modelSettings: { reasoning: 3 } }],
    ['structuredOutput.jsonPromptInjection', { structuredOutput: { schema: { type: 'object' }, jsonPromptInjection: 'yes' } }],
    ['structuredOutput.name', { structuredOutput: { schema: { type: 'object' }, name: 5 } }],
    ['structuredOutput.description', { structuredOutput: { schema: { type: 'object' }, description: [] } }],
  ])('[G1.12] %s of the wrong kind is rejected by name: %j', async (option, options) => {
    const { agent } = open({ tools: { look: createTool({ id: 'look', execute: () => 1 }) } })
    await expect(agent.generate('Hello', options as never)).rejects.toMatchObject({ code: 'invalid_argument', details: { option } })
  })

  it('[G1.12] a name that instructions do not have is rejected', async () => {
    const { agent } = open()
    const instructions = { role: 'system', content: 'Be brief.', cacheControl: { type: 'ephemeral' } }
    await expect(agent.generate('Hello', { instructions } as never)).rejects.toThrow("'cacheControl'")
  })
})
