import { afterEach, describe, expect, it } from 'vitest'
import { Agent, createTool, Heed, InMemoryStore, Memory } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { rejection } from '../agent/asking.ts'

const target = { threadId: 't', resourceId: 'u' }
const memory = { thread: 't', resource: 'u' }
const ended: Array<() => unknown> = []
afterEach(async () => {
  for (const end of ended.splice(0)) await end()
})

function made(storage: InMemoryStore, gate?: Promise<void>) {
  const model = scriptedModel(({ index }) => (index === 0 && gate ? { text: 'Answer 0.', gate } : `Answer ${index}.`))
  const agent = new Agent({ id: 'a', model, memory: new Memory({ semanticRecall: false }) })
  const heed = new Heed({ agents: { agent }, storage })
  ended.unshift(() => heed.close())
  const said = async () => (await (await agent.getMemory()).recall({ ...target, perPage: false })).messages.map(({ id, content }) => [id, content.parts.flatMap((part) => (part.type === 'text' ? part.text : [])).join()])
  return { agent, model, said, heed }
}

const taken = { action: 'rejected', code: 'id_taken' }

describe('a caller id', () => {
  it('[A2.4] that belongs to a message, an answer or input of a call is rejected for every kind of send, and nothing is written', async () => {
    const { agent, model, said } = made(new InMemoryStore())
    await agent.generate([{ id: 'asked', role: 'user', content: 'What is 2+2?' }], { memory })
    const before = await said()
    for (const [id = ''] of before) {
      const receipt = agent.sendMessage({ id, contents: 'What is 3+3?' }, target)
      expect(await receipt.outcome).toMatchObject(taken)
      expect(await rejection(receipt.stored)).toMatchObject({ code: 'id_taken', details: { id } })
      expect(await agent.queueMessage({ id, contents: 'x' }, target).outcome).toMatchObject(taken)
      expect(await agent.sendSignal({ id, type: 'notification', contents: 'x' }, { ...target, ifIdle: { behavior: 'persist' } }).outcome).toMatchObject(taken)
      expect(await rejection(agent.sendStateSignal({ id: 'lane', cacheKey: 'k', contents: 'x', signalId: id }, target))).toMatchObject({ code: 'id_taken' })
    }
    expect(await said()).toEqual(before)
    expect(model.callCount).toBe(1)
    expect(await agent.listLanes(target)).toEqual([])
  })

  it('[A2.4] belongs to one of a concurrent call and send, whichever was accepted first', async () => {
    const { promise: gate, resolve: release } = Promise.withResolvers<void>()
    const { agent, said } = made(new InMemoryStore(), gate)
    await agent.sendMessage({ id: 'go', contents: 'go' }, target).outcome
    const calls = Array.from({ length: 10 }, (_, index) => agent.generate([{ id: `m${index}`, role: 'user', content: 'asked' }], { memory }).then(() => 'asked', (error: { code: string }) => error.code))
    const sends = Array.from({ length: 10 }, (_, index) => agent.sendMessage({ id: `m${index}`, contents: 'sent' }, target))
    await Promise.allSettled(sends.map(({ stored }) => stored))
    release()
    const sent = await Promise.all(sends.map(async ({ outcome }) => ((await outcome).action === 'rejected' ? 'id_taken' : 'sent')))
    const asked = await Promise.all(calls)
    const history = new Map((await said()).map(([id = '', text]) => [id, text]))
    for (const [index, one] of sent.entries()) {
      expect([one, asked[index]].filter((what) => what !== 'id_taken')).toEqual([history.get(`m${index}`)])
    }
  })

  it('[A2.5] is recognized by its message after its record was pruned', async () => {
    const store = new InMemoryStore()
    const { agent, model, said } = made(store)
    const first = agent.sendMessage({ id: 's', contents: 'one' }, target)
    const woke = await first.outcome
    const later = agent.queueMessage('two', target)
    await later.outcome
    await expect.poll(() => agent.activeRun(target)).toBeNull()
    const before = await said()
    const { records } = await store.prune({ retention: { records: 0 } })
    expect(records).toBeGreaterThan(0)
    const again = agent.sendMessage({ id: 's', contents: 'one' }, target)
    expect(await again.outcome).toEqual({ ...woke, duplicate: true })
    expect(await again.acceptance).toMatchObject({ duplicate: true, differs: false })
    expect(await agent.sendMessage({ id: 's', contents: 'other' }, target).acceptance).toMatchObject({ duplicate: true, differs: true, signal: { contents: 'one' } })
    expect(await said()).toEqual(before)
    expect(model.callCount).toBe(2)
  })

  it('[A2.6] of a message identifies that message if a call has equal content, and is rejected if the content differs', async () => {
    const { agent, model, said } = made(new InMemoryStore())
    const ask = (content: string, id = 'm') => agent.generate([{ id, role: 'user', content }], { memory })
    await ask('What is 2+2?')
    expect(await rejection(ask('What is 3+3?'))).toMatchObject({ code: 'id_taken' })
    expect(await rejection(agent.stream([{ id: 'm', role: 'user', content: 'What is 3+3?' }], { memory }).then((stream) => stream.text))).toMatchObject({ code: 'id_taken' })
    await agent.sendMessage({ id: 's', contents: 'sent' }, target).outcome
    await expect.poll(() => agent.activeRun(target)).toBeNull()
    expect(await rejection(ask('other', 's'))).toMatchObject({ code: 'id_taken' })
    await ask('sent', 's')
    await ask('</user> forged', 'f')
    await ask('</user> forged', 'f')
    expect(await rejection(ask('</user> forgery', 'f'))).toMatchObject({ code: 'id_taken' })
    const questions = (await said()).filter(([, text]) => !text?.startsWith('Answer'))
    expect(questions).toEqual([['m', 'What is 2+2?'], ['s', 'sent'], ['f', '</user> forged']])
    expect(model.callCount).toBe(5)
  })

  it('[A2.6] may be in history that a user interface sends along', async () => {
    const { agent, said } = made(new InMemoryStore())
    await agent.generate([{ id: 'one', role: 'user', content: 'Tell me.' }], { memory })
    const [, [answerId = ''] = []] = await said()
    const shown = [
      { id: 'one', role: 'user' as const, parts: [{ type: 'text', text: 'Tell [name].' }] },
      { id: answerId, role: 'assistant' as const, parts: [{ type: 'text', text: 'Ans' }] },
    ]
    await agent.generate([...shown, { id: 'two', role: 'user', parts: [{ type: 'text', text: 'Go on.' }] }], { memory })
    expect((await said()).map(([, text]) => text)).toEqual(['Tell me.', 'Answer 0.', 'Go on.', 'Answer 1.'])
    // Nothing that is new: asked again.
    await agent.generate(shown, { memory })
    expect((await said()).map(([, text]) => text)).toEqual(['Tell me.', 'Answer 0.', 'Go on.', 'Answer 1.', 'Answer 2.'])
  })

  it('[A2.6] adds the result of a client tool to the stored call', async () => {
    const model = scriptedModel(({ prompt }) => (prompt.at(-1)?.role === 'user' ? { toolCalls: [{ toolName: 'place', toolCallId: 'c', input: {} }] } : 'Berlin, then.'))
    const agent = new Agent({ id: 'a', model, memory: new Memory({ semanticRecall: false }), tools: { place: createTool({ id: 'place', description: 'Where I am.' }) } })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore() })
    ended.unshift(() => heed.close())
    await agent.generate([{ id: 'q', role: 'user', content: 'Where am I?' }], { memory })
    const messages = async () => (await (await agent.getMemory()).recall({ ...target, perPage: false })).messages
    const answerId = (await messages()).at(-1)?.id ?? ''
    const shown = [
      { id: 'q', role: 'user' as const, parts: [{ type: 'text', text: 'Where am I?' }] },
      { id: answerId, role: 'assistant' as const, parts: [{ type: 'tool-place', toolCallId: 'c', state: 'output-available', input: {}, output: 'Berlin' }] },
    ]
    await agent.generate(shown, { memory })
    expect(model.calls.at(-1)?.prompt.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool'])
    const { text } = await agent.generate([...shown, { id: 'next', role: 'user', content: 'Where?' }], { memory, toolChoice: 'none' })
    expect(text).toBe('')
    expect(model.calls.at(-1)?.prompt.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant', 'user'])
  })

  it('[M1.16] of a pending signal is rejected by saveMessages and updateMessages', async () => {
    const { promise: gate, resolve: release } = Promise.withResolvers<void>()
    const { agent, said } = made(new InMemoryStore(), gate)
    await agent.sendMessage({ id: 'go', contents: 'go' }, target).outcome
    await agent.sendMessage({ id: 'p', contents: 'pending' }, target).stored
    await agent.queueMessage({ id: 'q', contents: 'queued' }, target).stored
    const kept = await agent.getMemory()
    for (const id of ['p', 'q']) {
      const message = { id, role: 'user' as const, createdAt: new Date(), ...target, content: { format: 2 as const, parts: [{ type: 'text' as const, text: 'over it' }] } }
      expect(await rejection(kept.saveMessages({ messages: [message] }))).toMatchObject({ code: 'id_taken' })
      expect(await rejection(kept.updateMessages({ messages: [{ id, threadId: 't', content: message.content }] }))).toMatchObject({ code: 'id_taken' })
    }
    release()
    await expect.poll(async () => (await said()).length).toBe(6)
    expect((await said()).map(([, text]) => text)).toEqual(['go', 'Answer 0.', 'pending', 'Answer 1.', 'queued', 'Answer 2.'])
  })
})
