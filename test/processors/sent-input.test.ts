import { describe, expect, it } from 'vitest'
import { Agent, createTool, type Message, type Processor } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, placeKinds } from '../thread/places.ts'
import { idle, texts, userTexts } from '../thread/said.ts'

const thread = { threadId: 't', resourceId: 'u' }
const memory = { thread: 't', resource: 'u' }
const quiet = { ...thread, ifIdle: { behavior: 'persist' } } as const

/** A guardrail as it is usually written: it looks at what the user said last. */
const validator: Processor = {
  id: 'input-validator',
  async processInput({ messages, abort }) {
    const last = messages.findLast(({ role }) => role === 'user')
    if (JSON.stringify(last?.content.parts)?.includes('INVALID')) abort('Invalid input detected')
    return messages
  },
}

/** Refuses, and notes, whatever it is shown. */
function watcher(seen: string[][]): Processor {
  return {
    id: 'watcher',
    processInput({ messages, abort }) {
      seen.push(messages.map((message) => `${message.role}: ${text(message)}`))
      if (JSON.stringify(messages).includes('EVIL')) abort('no')
    },
  }
}

function text({ content }: Message): string {
  return content.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

async function history(agent: Agent): Promise<Message[]> {
  return (await (await agent.getMemory()).recall({ ...thread, perPage: false })).messages
}

describe.each(placeKinds())('what is sent to a thread, $name', ({ make }) => {
  it.each(['generate', 'sendMessage', 'queueMessage', 'with attributes', 'mid-run'] as const)('[G2.10] is refused as a user\'s words are, by %s', async (way) => {
    const model = scriptedModel(({ prompt }) => (way === 'mid-run' && !prompt.some(({ role }) => role === 'tool') ? { toolCalls: [{ toolName: 'look' }] } : 'Done.'))
    const look = createTool({ id: 'look', execute: async () => (await agent.sendMessage({ id: 's', contents: 'INVALID' }, thread).stored, 'seen') })
    const agent: Agent = new Agent({ id: 'a', model, tools: { look }, inputProcessors: [validator] })
    openHeed({ agent }, make().store())
    if (way === 'generate') expect((await agent.generate('INVALID', { memory })).tripwire?.reason).toBe('Invalid input detected')
    if (way === 'sendMessage') await agent.sendMessage({ id: 's', contents: 'INVALID' }, thread).outcome
    if (way === 'queueMessage') await agent.queueMessage({ id: 's', contents: 'INVALID' }, thread).outcome
    if (way === 'with attributes') await agent.sendMessage({ id: 's', contents: 'INVALID', attributes: { from: 'web' } }, thread).outcome
    if (way === 'mid-run') expect((await agent.generate('Go.', { memory })).tripwire?.reason).toBe('Invalid input detected')
    await idle(agent, thread)
    expect(JSON.stringify(await history(agent))).not.toContain('INVALID')
    expect(model.callCount).toBe(way === 'mid-run' ? 1 : 0)
    if (way !== 'generate') expect(await agent.explain({ ...thread, signalId: 's' })).toMatchObject({ state: 'rejected' })
  })

  it('[G2.10] has its record beside it, stays a signal in history, and is found by its id when words alone come back', async () => {
    const seen: Message[] = []
    const plain: Processor = {
      id: 'plain',
      processInput: ({ messages }) => messages.map((message) => {
        seen.push(message)
        const { id, role, createdAt } = message
        return { id, role, createdAt, content: { format: 2, parts: [{ type: 'text', text: text(message).replace('secret', '***') }] } }
      }),
    }
    const model = scriptedModel(() => 'Done.')
    const agent = new Agent({ id: 'a', model, inputProcessors: [plain] })
    openHeed({ agent }, make().store())
    await agent.sendMessage({ id: 's', contents: 'My secret.', attributes: { from: 'web' } }, thread).outcome
    await idle(agent, thread)
    expect(seen).toMatchObject([{ id: 's', role: 'user', content: { metadata: { signal: { type: 'user', attributes: { from: 'web' } } } } }])
    const [stored] = await history(agent)
    expect(stored).toMatchObject({ id: 's', role: 'signal', content: { parts: [{ type: 'text', text: 'My ***.' }], metadata: { signal: { type: 'user', acceptedAt: expect.any(String) } } } })
    expect(userTexts(model.calls[0])).toEqual(['<user from="web">My ***.</user>'])
  })

  it('[G2.10] looks the same to every hook, and to user interfaces as ever', async () => {
    const roles: string[][] = []
    const ui: unknown[] = []
    const hook: Processor = {
      id: 'p',
      processInputStep({ messages, messageList }) {
        roles.push(messages.map(({ role }) => role))
        ui.push(messageList.get.all.ui().map(({ role, metadata }) => [role, metadata?.signal !== undefined]))
      },
    }
    const agent = new Agent({ id: 'a', model: scriptedModel(() => 'Done.'), inputProcessors: [hook] })
    openHeed({ agent }, make().store())
    await agent.sendMessage('One.', thread).outcome
    await idle(agent, thread)
    await agent.sendSignal({ type: 'notification', contents: 'CI failed.' }, thread).outcome
    await idle(agent, thread)
    expect(roles).toEqual([['user'], ['user', 'assistant', 'signal']])
    expect(ui.at(-1)).toEqual([['user', true], ['assistant', false], ['system', true]])
  })

  const persists = {
    'a signal on an idle thread': async (agent: Agent, contents: string) => await agent.sendSignal({ id: 'p', type: 'notification', contents }, quiet).persisted,
    'a message on an idle thread': async (agent: Agent, contents: string) => await agent.sendMessage({ id: 'p', contents }, quiet).persisted,
    'a state on an idle thread': async (agent: Agent, contents: string) => { await agent.sendStateSignal({ id: 'lane', signalId: 'p', cacheKey: 'k', contents }, quiet) },
    'a signal beside a run': async (agent: Agent, contents: string) => {
      beside = contents
      await agent.generate('Look.', { memory })
    },
  }
  let beside = ''

  function listener(seen: string[][]) {
    const model = scriptedModel(({ prompt }) => (texts(prompt).at(-1) === 'user: Look.' ? { toolCalls: [{ toolName: 'look' }] } : 'Done.'))
    const look = createTool({
      id: 'look',
      execute: async () => (await agent.sendSignal({ id: 'p', type: 'notification', contents: beside }, { ...thread, ifActive: { behavior: 'persist' } }).persisted, 'seen'),
    })
    const agent: Agent = new Agent({ id: 'a', model, tools: { look }, inputProcessors: [watcher(seen)] })
    openHeed({ agent }, make().store())
    return { agent, model }
  }

  it.each(Object.entries(persists))('[G2.11] %s that is only stored is seen by processInput before a model reads it, and once', async (_, persist) => {
    const seen: string[][] = []
    const { agent, model } = listener(seen)
    await persist(agent, 'Something.')
    const before = seen.length
    expect(model.calls.every(({ prompt }) => !JSON.stringify(prompt).includes('Something.'))).toBe(true)
    await agent.generate('Hi.', { memory })
    expect(seen.slice(before)).toEqual([[expect.stringContaining('Something.')], ['user: Hi.']])
    await agent.generate('Again.', { memory })
    expect(seen.slice(before + 2)).toEqual([['user: Again.']])
  })

  it.each(Object.entries(persists))('[G2.11] %s that is refused is in no prompt, history or lane, and the thread goes on', async (name, persist) => {
    const seen: string[][] = []
    const { agent, model } = listener(seen)
    await persist(agent, 'EVIL')
    expect((await agent.generate('Hi.', { memory })).tripwire).toMatchObject({ reason: 'no', processorId: 'watcher' })
    expect(JSON.stringify(await history(agent))).not.toMatch(/EVIL|Hi\./)
    if (name.includes('state')) expect(await agent.getLane({ ...thread, id: 'lane' })).toBeNull()
    expect((await agent.generate('Again.', { memory })).text).toBe('Done.')
    expect(JSON.stringify(model.calls.map(({ prompt }) => prompt))).not.toContain('EVIL')
  })

  it('[G2.11] a refusal of the question leaves what was stored before it', async () => {
    const { agent } = listener([])
    await persists['a signal on an idle thread'](agent, 'Something.')
    expect((await agent.generate('EVIL', { memory })).tripwire).toBeDefined()
    expect((await history(agent)).map(text)).toEqual(['Something.'])
  })

  it('[G2.11] what processors make of it is what the model reads and history has', async () => {
    const redact: Processor = {
      id: 'redact',
      processInput: ({ messages }) => messages.map((message) => ({ ...message, content: { ...message.content, parts: [{ type: 'text', text: text(message).replace('secret', '***') }] } })),
    }
    const model = scriptedModel(() => 'Done.')
    const agent = new Agent({ id: 'a', model, inputProcessors: [redact] })
    openHeed({ agent }, make().store())
    await agent.sendMessage('My secret.', quiet).persisted
    await agent.generate('Hi.', { memory })
    expect(userTexts(model.calls[0])).toEqual(['My ***.', 'Hi.'])
    expect((await history(agent)).map(text)).toEqual(['My ***.', 'Hi.', 'Done.'])
  })

  it('[G2.11] input of a run that failed in processInput, or was aborted in it, is shown again before a model reads it', async () => {
    let broken = true
    const seen: string[][] = []
    const fails: Processor = { id: 'fails', processInput: () => { if (broken) throw new Error('broke') } }
    const model = scriptedModel(() => 'Done.')
    const agent = new Agent({ id: 'a', model, inputProcessors: [watcher(seen), fails] })
    openHeed({ agent }, make().store())
    await agent.generate('One.', { memory }).catch(() => {})
    broken = false
    await agent.generate('Two.', { memory })
    expect(seen).toEqual([['user: One.'], ['user: One.'], ['user: Two.']])
    expect(userTexts(model.calls[0])).toEqual(['One.', 'Two.'])
  })
})
