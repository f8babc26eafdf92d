import { describe, expect, it } from 'vitest'
import { Agent, Memory, type AgentMessage } from '../../src/index.ts'
import { MessageHistory } from '../../src/processors/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { fileKind } from '../thread/places.ts'

const place = fileKind()
const open = async () => {
  const memory = new Memory({ storage: place.make().store() })
  await memory.createThread({ threadId: 't', resourceId: 'u' })
  return memory
}
const detailOf = (error: unknown) => (error as { details?: { field?: string; option?: string } }).details
const thrown = (call: () => unknown): unknown => {
  try {
    return call()
  } catch (error) {
    return detailOf(error)
  }
}

describe('[M1.25] what cannot take effect is rejected by name', () => {
  it('lastMessages beside window, in a memory, a call and a processor', async () => {
    const both = { lastMessages: 4, window: { low: 2, high: 4 } }
    expect(thrown(() => new Memory({ options: both }))).toMatchObject({ option: 'window' })
    expect(thrown(() => new MessageHistory(both))).toMatchObject({ option: 'window' })
    expect(thrown(() => new MessageHistory({ limit: 4, window: both.window }))).toMatchObject({ option: 'window' })
    expect(thrown(() => new Memory({ options: { window: { low: 1, high: 2, max: 3 } as never } }))).toMatchObject({ option: 'max' })
    expect(thrown(() => new Memory({ options: { window: { low: 1.5, high: 2 } } }))).toMatchObject({ option: 'window' })
    const agent = new Agent({ id: 'a', model: scriptedModel(() => 'ok'), memory: new Memory({ storage: place.make().store(), options: { window: both.window } }) })
    const ask = (options: object) => agent.generate('Go.', { memory: { thread: 't', resource: 'u', options } })
    await expect(ask(both)).rejects.toMatchObject({ details: { option: 'window' } })
    // Those of a call take the place of those of the memory.
    await ask({ lastMessages: 4 })
  })

  it('a page of a list that has one page', async () => {
    const memory = await open()
    await expect(memory.listThreads({ page: 1, perPage: false })).rejects.toMatchObject({ details: { field: 'page' } })
    await expect(memory.recall({ threadId: 't', page: 1, perPage: false })).rejects.toMatchObject({ details: { field: 'page' } })
    expect((await memory.listThreads({ page: 0, perPage: false })).threads).toHaveLength(1)
  })

  it('an exclusive bound without its time', async () => {
    const memory = await open()
    for (const side of ['start', 'end']) {
      await expect(memory.recall({ threadId: 't', filter: { dateRange: { [`${side}Exclusive`]: true } } })).rejects.toMatchObject({ details: { field: `filter.dateRange.${side}Exclusive` } })
    }
    await memory.recall({ threadId: 't', filter: { dateRange: { startExclusive: false } } })
  })

  it.each<[string, object]>([
    ['name', { role: 'user', content: 'Hi.', name: 'Ada' }],
    ['tags', { role: 'user', parts: [{ type: 'text', text: 'Hi.' }], tags: ['a'] }],
    ['metadata', { id: 'm', role: 'user', createdAt: new Date(), content: { format: 2, parts: [{ type: 'text', text: 'Hi.' }] }, metadata: { a: 1 } }],
    ['content.note', { id: 'm', role: 'user', createdAt: new Date(), content: { format: 2, parts: [{ type: 'text', text: 'Hi.' }], note: 'x' } }],
  ])('the field %s of a message', async (field, message) => {
    const memory = await open()
    await expect(memory.saveMessages({ threadId: 't', messages: [message as AgentMessage] })).rejects.toMatchObject({ code: 'invalid_message', details: { field } })
    const agent = new Agent({ id: 'a', model: scriptedModel(() => 'ok') })
    await expect(agent.generate([message as AgentMessage])).rejects.toMatchObject({ code: 'invalid_message', details: { field } })
    expect((await memory.recall({ threadId: 't' })).messages).toEqual([])
  })

  it('another resource of a message than that of the call', async () => {
    const memory = await open()
    const message = { id: 'm', role: 'user' as const, content: 'Hi.' }
    await expect(memory.saveMessages({ threadId: 't', resourceId: 'u', messages: [{ ...message, resourceId: 'v' }] })).rejects.toMatchObject({ details: { field: 'messages.resourceId' } })
    await expect(memory.saveMessages({ threadId: 't', messages: [message, { ...message, id: 'n', resourceId: 'u' }, { ...message, id: 'o', resourceId: 'v' }] })).rejects.toMatchObject({ details: { field: 'messages.resourceId' } })
    await memory.saveMessages({ threadId: 't', resourceId: 'u', messages: [{ ...message, resourceId: 'u' }] })
  })
})

it('[M1.19] the tool calls beside the content of an earlier format are saved', async () => {
  const memory = await open()
  const call = { toolCallId: 'c', toolName: 'look', args: { at: 1 }, state: 'result', result: 'seen' }
  await memory.saveMessages({ threadId: 't', messages: [{ id: 'm', role: 'assistant', content: 'Done.', toolInvocations: [call] } as AgentMessage] })
  const { messages } = await memory.recall({ threadId: 't' })
  expect(messages[0]?.content.parts).toMatchObject([{ type: 'tool-invocation', toolInvocation: call }, { type: 'step-start' }, { type: 'text', text: 'Done.' }])
})

it('[M1.26] a message that names its thread is deleted there alone', async () => {
  const memory = await open()
  await memory.createThread({ threadId: 'other', resourceId: 'u' })
  for (const threadId of ['t', 'other']) await memory.saveMessages({ threadId, messages: [{ id: 'm', role: 'user', content: 'Hi.' }] })
  const left = async () => Promise.all(['t', 'other'].map(async (threadId) => (await memory.recall({ threadId })).messages.length))
  await expect(memory.deleteMessages({ threadId: 't', messageIds: [{ id: 'm', threadId: 'other' }] })).rejects.toMatchObject({ details: { field: 'messageIds.threadId' } })
  expect(await memory.deleteMessages([{ id: 'm', threadId: 'other' }])).toBe(1)
  expect(await left()).toEqual([1, 0])
})

it('[M1.25] an unknown name in threadConfig of a list of messages', async () => {
  const memory = await open()
  await expect(memory.recall({ threadId: 't', threadConfig: { lastMessage: 3 } as never })).rejects.toMatchObject({ details: { option: 'lastMessage' } })
  await memory.saveMessages({ threadId: 't', messages: ['One.', 'Two.', 'Three.'] })
  expect((await memory.recall({ threadId: 't', threadConfig: { lastMessages: 2 } })).messages).toHaveLength(2)
})

describe('[M1.25] an option of threadConfig that cannot take effect is rejected by name', () => {
  const cases: Array<[field: string, args: object]> = [
    ['window', { threadConfig: { window: { low: 1, high: 2 } } }],
    ['workingMemory', { threadConfig: { workingMemory: { enabled: true } } }],
    ['generateTitle', { threadConfig: { generateTitle: true } }],
    ['semanticRecall', { threadConfig: { semanticRecall: { topK: 1 } } }],
    ['semanticRecall', { threadConfig: { semanticRecall: true } }],
    ['lastMessages', { perPage: 3, threadConfig: { lastMessages: 2 } }],
    ['lastMessages', { threadConfig: { lastMessages: false } }],
    ['window', { vectorSearchString: 'dogs', threadConfig: { window: { low: 1, high: 2 } } }],
    ['workingMemory', { vectorSearchString: 'dogs', threadConfig: { workingMemory: { enabled: true } } }],
    ['generateTitle', { vectorSearchString: 'dogs', threadConfig: { generateTitle: true } }],
    ['lastMessages', { vectorSearchString: 'dogs', threadConfig: { lastMessages: 2 } }],
    ['semanticRecall.maxTokens', { vectorSearchString: 'dogs', threadConfig: { semanticRecall: { maxTokens: 100 } } }],
    ['semanticRecall.maxWindowTokens', { vectorSearchString: 'dogs', threadConfig: { semanticRecall: { maxWindowTokens: 100 } } }],
    ['semanticRecall.topK', { vectorSearchString: 'dogs', perPage: 2, threadConfig: { semanticRecall: { topK: 1 } } }],
  ]

  it.each(cases)('%s: %j', async (field, args) => {
    const memory = await open()
    const refused = { code: 'invalid_argument', details: { field: `threadConfig.${field}` } }
    await expect(memory.recall({ threadId: 't', ...args })).rejects.toMatchObject(refused)
    await expect(memory.forResource('u').recall({ threadId: 't', ...args })).rejects.toMatchObject(refused)
  })

  it('but not one that switches off what does not happen', async () => {
    const memory = await open()
    const threadConfig = { workingMemory: { enabled: false }, generateTitle: false, readOnly: true }
    expect((await memory.recall({ threadId: 't', threadConfig: { ...threadConfig, semanticRecall: false } })).messages).toEqual([])
    expect((await memory.recall({ threadId: 't', vectorSearchString: 'dogs', threadConfig: { ...threadConfig, semanticRecall: true } })).hits).toEqual([])
  })
})

it.each([
  ['modelSettings.maxOutputTokens', { maxTokens: 5, modelSettings: { maxOutputTokens: 7 } }],
  ['modelSettings.temperature', { temperature: 0.5, modelSettings: { temperature: 0.1 } }],
  ['memory.thread', { threadId: 'a', memory: { thread: 't', resource: 'u' } }],
  ['memory.resource', { resourceId: 'v', memory: { thread: 't', resource: 'u' } }],
])('[G1.7] an option of a legacy method that is given in both forms is rejected by name: %s', async (option, given) => {
  const agent = new Agent({ id: 'a', model: scriptedModel(() => 'ok') })
  for (const call of [() => agent.generateLegacy('Hi.', given), () => agent.streamLegacy('Hi.', given)]) {
    await expect(call()).rejects.toMatchObject({ code: 'invalid_argument', details: { option } })
  }
  expect(() => new Agent({ id: 'b', defaultGenerateOptionsLegacy: given })).toThrow(expect.objectContaining({ details: { option } }))
})
