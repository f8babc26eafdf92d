import { describe, expect, it } from 'vitest'
import { Agent, createTool, type Message, type MessagePart } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { fileKind, openHeed } from '../thread/places.ts'

const place = fileKind()
const memory = { thread: 't', resource: 'u' }
const scope = { threadId: 't', resourceId: 'u' }

function open() {
  const model = scriptedModel(() => 'Yes.')
  const agent = new Agent({ id: 'a', model, tools: { look: createTool({ id: 'look', execute: () => 'seen' }) } })
  openHeed({ agent }, place.make().store())
  const create = async () => {
    const memory = await agent.getMemory()
    await memory.createThread(scope)
    return memory
  }
  const recall = async () => (await (await agent.getMemory()).recall({ ...scope, perPage: false })).messages
  return { agent, model, recall, create }
}

describe('[M1.22] the type of a message', () => {
  const forms: Array<[string, object]> = [
    ['with content that is a text', { role: 'user', content: 'Hi.' }],
    ['with content that is a list of parts', { role: 'user', content: [{ type: 'text', text: 'Hi.' }] }],
    ['with parts', { role: 'user', parts: [{ type: 'text', text: 'Hi.' }] }],
    ['as it is stored', { id: 'm1', role: 'user', createdAt: new Date(0), content: { format: 2, parts: [{ type: 'text', text: 'Hi.' }] } }],
  ]
  it.each(forms)('%s is kept, saved and as input', async (_, message) => {
    const saved = open()
    await (await saved.create()).saveMessages({ ...scope, messages: [{ ...message, type: 'note' } as never] })
    expect(await saved.recall()).toMatchObject([{ type: 'note' }])
    const asked = open()
    await asked.agent.generate([{ ...message, type: 'note' } as never], { memory })
    expect((await asked.recall())[0]).toMatchObject({ type: 'note' })
  })

  it.each(forms)('%s that is no text is rejected by name, and so are ids that are no texts', async (_, message) => {
    const own = await open().create()
    for (const field of ['type', 'threadId', 'resourceId'])
      await expect(own.saveMessages({ ...scope, messages: [{ ...message, [field]: 7 } as never] })).rejects.toMatchObject({ code: 'invalid_message', details: { field } })
  })
})

describe('[M1.22] the metadata of an input message', () => {
  it.each<[string, object]>([
    ['with content that is a text', { role: 'user', content: 'Hi.' }],
    ['with content that is a list of parts', { role: 'user', content: [{ type: 'text', text: 'Hi.' }] }],
    ['with parts and an id', { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hi.' }] }],
    ['with parts and no id', { role: 'user', parts: [{ type: 'text', text: 'Hi.' }] }],
  ])('%s is kept', async (_, message) => {
    const { agent, model, recall } = open()
    await agent.generate([{ ...message, metadata: { page: 'home', signal: { type: 'reactive' } } } as never], { memory })
    const [stored] = await recall()
    expect(stored).toMatchObject({ role: 'user', content: { metadata: { page: 'home' }, parts: [{ type: 'text', text: 'Hi.' }] } })
    expect(stored?.content.metadata).not.toHaveProperty('signal')
    expect(stored?.id).toBeTruthy()
    expect(JSON.stringify(model.calls[0]?.prompt)).not.toContain('home')
  })

  it('of saved messages too', async () => {
    const { create, recall } = open()
    const saved = { role: 'user', content: 'Hi.', metadata: { page: 'home' } }
    await (await create()).saveMessages({ ...scope, messages: [saved as never] } as never)
    expect(await recall()).toMatchObject([{ content: { metadata: { page: 'home' } } }])
  })

  it('that is not an object is refused', async () => {
    const { agent } = open()
    await expect(agent.generate([{ role: 'user', content: 'Hi.', metadata: 'home' } as never])).rejects.toMatchObject({ code: 'invalid_message' })
  })
})

describe('[M1.23] an assistant\'s message that was saved', () => {
  const text: MessagePart = { type: 'text', text: 'Saved.' }
  const call: MessagePart = { type: 'tool-invocation', toolInvocation: { toolCallId: 'c', toolName: 'look', args: {}, state: 'result', result: 'seen' } }
  const start: MessagePart = { type: 'step-start' }

  it.each<[string, MessagePart[]]>([
    ['a text', [text]], ['a text after a step-start', [start, text]], ['two steps', [call, start, text]], ['two steps with a step-start each', [start, call, start, text]],
  ])('is recalled with the parts that it was saved with: %s', async (_, parts) => {
    const { agent, create, recall, model } = open()
    const message: Message = { id: 'm', role: 'assistant', createdAt: new Date(1_000), ...scope, content: { format: 2, parts } }
    await (await create()).saveMessages({ messages: [{ id: 'q', role: 'user', createdAt: new Date(0), ...scope, content: { format: 2, parts: [{ type: 'text', text: 'Hi.' }] } }, message] })
    expect((await recall())[1]?.content.parts).toEqual(parts)
    await agent.generate('And?', { memory })
    expect((await recall())[1]?.content.parts).toEqual(parts)
    expect(JSON.stringify(model.calls[0]?.prompt)).toContain('Saved.')
  })

  it.each<[string, MessagePart[]]>([['a text', [text]], ['a text after a step-start', [start, text]], ['two steps', [call, start, text]]])('or with those that a call had as input: %s', async (_, parts) => {
    const { agent, recall } = open()
    const message: Message = { id: 'm', role: 'assistant', createdAt: new Date(1_000), content: { format: 2, parts } }
    await agent.generate([message, 'And?'], { memory })
    expect((await recall())[0]?.content.parts).toEqual(parts)
  })

  it('keeps its parts when a processor returns it', async () => {
    const { agent, create, recall } = open()
    await (await create()).saveMessages({ messages: [{ id: 'm', role: 'assistant', createdAt: new Date(1_000), ...scope, content: { format: 2, parts: [text] } }] })
    await agent.generate('And?', { memory, inputProcessors: [{ id: 'p', processInputStep: ({ messages }) => structuredClone(messages) }] })
    expect((await recall())[0]?.content.parts).toEqual([text])
  })
})
