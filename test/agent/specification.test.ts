import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent, createTool, Heed, InMemoryStore, Memory, RequestContext, type AgentConfig, type AgentThreadSubscription, type Chunk } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }
const opened: Heed[] = []
afterEach(async () => {
  for (const heed of opened.splice(0)) await heed.close()
})

function made(config: Partial<AgentConfig> = {}) {
  const model = scriptedModel(() => 'Fine.')
  const agent = new Agent({ id: 'helper', name: 'Helper', model, ...config })
  opened.push(new Heed({ agents: { agent }, storage: new InMemoryStore() }))
  const words = (call = -1) => model.calls.at(call)?.prompt.map(({ role, content }) => [role, typeof content === 'string' ? content : content.map((part) => ('text' in part ? part.text : part.type)).join('')])
  const idle = async () => {
    await expect.poll(() => agent.activeRun(thread)).toBeNull()
  }
  return { agent, model, words, idle }
}

async function until(subscription: AgentThreadSubscription, type: Chunk['type']): Promise<Chunk[]> {
  const chunks: Chunk[] = []
  for await (const chunk of subscription.stream) {
    chunks.push(chunk)
    if (chunk.type === type) break
  }
  return chunks
}

describe('every form of instructions', () => {
  const tone = { role: 'system', content: 'Stay calm.' }
  const cached = { anthropic: { cacheControl: { type: 'ephemeral' } } }

  it.each<[string, AgentConfig['instructions'], string[]]>([
    ['a text', 'Answer briefly.', ['Answer briefly.']],
    ['a list of texts', ['Answer briefly.', 'In English.'], ['Answer briefly.', 'In English.']],
    ['a system message', { role: 'system', content: 'You know code.' }, ['You know code.']],
    ['system messages', [{ role: 'system', content: 'You help.' }, { role: 'system', content: 'You know types.' }], ['You help.', 'You know types.']],
    ['with options of a provider', { role: 'system', content: 'You write.', providerOptions: { openai: { reasoningEffort: 'low' } } }, ['You write.']],
    ['mixed, one of them from a variable', [{ role: 'system', content: 'You serve.' }, tone, { role: 'system', content: 'Call a person.', providerOptions: cached }], ['You serve.', 'Stay calm.', 'Call a person.']],
    ['a function', ({ requestContext }) => `For ${String(requestContext.get('user'))}.`, ['For Ada.']],
    ['a function that answers later', async ({ requestContext }) => [{ role: 'system', content: `For ${String(requestContext.get('user'))}.` }], ['For Ada.']],
  ])('[G1.7] %s', async (_, instructions, told) => {
    const { agent, model } = made(instructions === undefined ? {} : { instructions })
    await agent.generate('Hello.', { requestContext: new RequestContext({ user: 'Ada' }) })
    const system = model.calls[0]?.prompt.filter(({ role }) => role === 'system') ?? []
    expect(system.map(({ content }) => content)).toEqual(told)
    if (told.includes('You write.')) expect([system[0]?.providerOptions, model.calls[0]?.providerOptions]).toEqual([undefined, { openai: { reasoningEffort: 'low' } }])
    if (told.includes('Call a person.')) expect(system.at(-1)?.providerOptions).toEqual(cached)
  })
})

describe('every parameter that may be a function', () => {
  it('[G1.7] is asked with the request context, and may answer later', async () => {
    const inner = scriptedModel(() => 'From the function.')
    const asked: string[] = []
    const find = <T>(name: string, value: T) => async ({ requestContext }: { requestContext: RequestContext }) => (asked.push(`${name}:${String(requestContext.get('user'))}`), value)
    const look = createTool({ id: 'look', execute: () => 'seen' })
    const other = new Agent({ id: 'other', model: inner })
    const { agent } = made({
      model: find('model', inner), instructions: find('instructions', 'Be kind.'), tools: find('tools', { look }), agents: find('agents', { other }), metadata: find('metadata', { team: 'a' }),
      memory: find('memory', new Memory()), defaultOptions: find('defaultOptions', { maxSteps: 2 }), inputProcessors: find('inputProcessors', []), outputProcessors: find('outputProcessors', []),
    })
    const requestContext = new RequestContext({ user: 'ada' })
    expect((await agent.generate('Hello.', { requestContext, memory: { thread: 't', resource: 'u' } })).text).toBe('From the function.')
    expect(inner.calls[0]?.tools?.map(({ name }) => name)).toEqual(['agent-other', 'look'])
    expect(await agent.getMetadata({ requestContext })).toEqual({ team: 'a' })
    expect([...new Set(asked)].toSorted()).toEqual(['agents', 'defaultOptions', 'inputProcessors', 'instructions', 'memory', 'metadata', 'model', 'outputProcessors', 'tools'].map((name) => `${name}:ada`))
  })

  it('[G1.7] an id falls back to the name, then to the key; options of older programs are mapped', async () => {
    expect(new Agent({ name: 'Only a name' }).id).toBe('Only a name')
    const nameless = new Agent({ model: scriptedModel(() => 'Hi.') })
    opened.push(new Heed({ agents: { keyed: nameless }, storage: new InMemoryStore() }))
    expect(nameless.id).toBe('keyed')
    const model = scriptedModel(() => 'Hi.')
    const older = new Agent({ id: 'older', model, defaultGenerateOptionsLegacy: { temperature: 0.1 }, defaultStreamOptionsLegacy: { maxTokens: 7 } })
    opened.push(new Heed({ agents: { older }, storage: new InMemoryStore() }))
    expect((await older.generateLegacy('Hello.', { threadId: 't', resourceId: 'u', topP: 0.5 })).text).toBe('Hi.')
    expect(await (await older.streamLegacy('Hello.')).text).toBe('Hi.')
    expect(model.calls.map(({ temperature, maxOutputTokens, topP }) => [temperature, maxOutputTokens, topP])).toEqual([[0.1, undefined, 0.5], [undefined, 7, undefined]])
    expect((await (await older.getMemory()).recall({ threadId: 't' })).messages).toHaveLength(2)
  })

  it('[G1.7] a request context that its schema doesn\'t allow ends the call before anything is asked', async () => {
    const { agent, model } = made({ requestContextSchema: z.object({ user: z.string() }) })
    for (const call of [() => agent.generate('Hello.'), () => agent.stream('Hello.')]) await expect(call()).rejects.toMatchObject({ code: 'invalid_request_context' })
    expect(model.callCount).toBe(0)
  })
})

describe('every call of a thread', () => {
  it('[A4.1] a message wakes an idle thread, with options of its own, and is seen by who subscribed before', async () => {
    const { agent, model } = made()
    const subscription = await agent.subscribeToThread(thread)
    expect(subscription.activeRunId()).toBeNull()
    expect(subscription.abort()).toBe(false)
    const sent = agent.sendMessage('Use the newest note too.', { ...thread, ifIdle: { behavior: 'wake', streamOptions: { maxSteps: 3, modelSettings: { temperature: 0.3 } } } })
    expect(sent).toMatchObject({ accepted: true, runId: expect.any(String), signal: { type: 'user', contents: 'Use the newest note too.' } })
    expect(sent.persisted).toBeUndefined()
    const chunks = await until(subscription, 'finish')
    expect(chunks.map(({ type }) => type)).toEqual(expect.arrayContaining(['start', 'data-user-message', 'text-delta', 'finish']))
    expect(model.calls[0]?.temperature).toBe(0.3)
    subscription.unsubscribe()
  })

  it('[A4.1] the author is in attributes, chosen by whether the thread is active', async () => {
    const hold = Promise.withResolvers<void>()
    const model = scriptedModel(({ index }) => (index === 1 ? { text: 'Working.', gate: { parts: 1, until: hold.promise } } : 'Fine.'))
    const { agent, idle } = made({ model })
    const texts = () => model.calls.at(-1)?.prompt.filter(({ role }) => role === 'user').map(({ content }) => (content[0] as { text: string }).text)
    await agent.sendMessage({ contents: 'Can it be simpler?', attributes: { name: 'Devin', from: 'slack' } }, thread).outcome
    await idle()
    expect(texts()).toEqual(['<user name="Devin" from="slack">Can it be simpler?</user>'])
    const both = { ...thread, ifActive: { attributes: { delivery: 'while-active' } }, ifIdle: { attributes: { delivery: 'new-message' } } }
    const message = { contents: 'The edges too.', attributes: { source: 'chat' } }
    await agent.sendMessage(message, both).outcome
    const second = agent.sendMessage(message, both)
    await second.stored
    hold.resolve()
    await second.outcome
    await idle()
    expect(texts()?.slice(1)).toEqual(['<user source="chat" delivery="new-message">The edges too.</user>', '<user source="chat" delivery="while-active">The edges too.</user>'])
  })

  it('[A4.1] signals of every type, by the tag that the model sees', async () => {
    const { agent, words, idle } = made()
    const shown = async (signal: Parameters<typeof agent.sendSignal>[0]) => {
      await agent.sendSignal(signal, thread).outcome
      await idle()
      return words()?.filter(([role]) => role === 'user').at(-1)?.[1]
    }
    expect(await shown({ type: 'notification', tagName: 'github-review', contents: 'Look.' })).toBe('<github-review>Look.</github-review>')
    expect(await shown({ type: 'reactive', contents: 'Remember.' })).toBe('<system-reminder>Remember.</system-reminder>')
    expect(await shown({ type: 'user-message', contents: 'Hello.' })).toBe('Hello.')
    expect(await shown({ type: 'system-reminder', contents: 'Old.', attributes: { pr: '1' } })).toBe('<system-reminder pr="1">Old.</system-reminder>')
    expect(await shown({ type: 'user', contents: [{ type: 'text', text: 'See ' }, { type: 'file', data: 'aGk=', mediaType: 'text/plain' }] })).toContain('See ')
    expect(() => agent.sendSignal({ type: 'github' as never, contents: 'x' }, thread)).toThrow(/tagName/)
  })

  it('[A4.1] a state is skipped while it is what the lane says, and a notification says what was decided', async () => {
    const { agent, idle } = made()
    const state = { id: 'browser', mode: 'snapshot', cacheKey: 'one', contents: 'One tab.', value: { tabs: 1 } } as const
    expect(await agent.sendStateSignal(state, thread)).toMatchObject({ accepted: true, skipped: false, runId: expect.any(String) })
    expect(await agent.sendStateSignal(state, thread)).toEqual({ accepted: true, skipped: true, reason: 'unchanged' })
    await idle()
    const told = await agent.sendNotificationSignal({ source: 'github', kind: 'ci-status', priority: 'high', summary: 'CI failed.', dedupeKey: 'main' }, { ...thread, ifIdle: { streamOptions: { maxSteps: 2 } } })
    expect(told).toMatchObject({ accepted: true, record: { source: 'github', kind: 'ci-status' }, decision: { action: 'deliver' }, runId: expect.any(String), signal: { type: 'notification' } })
    await idle()
  })

  it('[A4.1] a queued message is a turn of its own; what is persisted says when; a run is addressed by its id', async () => {
    const hold = Promise.withResolvers<void>()
    const model = scriptedModel(({ index }) => (index === 0 ? { text: 'Working.', gate: { parts: 1, until: hold.promise } } : 'Fine.'))
    const { agent, idle } = made({ model })
    const first = agent.sendMessage('Begin.', thread)
    await first.outcome
    const queued = agent.queueMessage('And the tests?', thread)
    const noted = agent.sendSignal({ type: 'notification', contents: 'Later.' }, { ...thread, ifActive: { behavior: 'persist' } })
    await noted.persisted
    const entered = agent.sendMessage('By run.', { runId: first.runId })
    await Promise.all([queued.stored, entered.stored])
    expect((await agent.sendMessage('No.', { ...thread, ifActive: { behavior: 'discard' } }).outcome).action).toBe('discarded')
    hold.resolve()
    expect(await entered.outcome).toMatchObject({ action: 'delivered', runId: first.runId })
    await idle()
    await expect.poll(() => model.callCount).toBe(3)
    expect(queued.runId).not.toBe(first.runId)
    await idle()
  })
})
