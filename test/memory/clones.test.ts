import { describe, expect, it } from 'vitest'
import { Agent, Heed, type Memory } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { conversation, instant, kept, memoryOn, sourceIds as ids, stores } from './kept.ts'

describe.each(stores)('clones, $name', ({ store }) => {
  async function filled(): Promise<Memory> {
    const memory = memoryOn(store())
    await memory.createThread({ threadId: 't', resourceId: 'u', title: 'Tea', metadata: { topic: 'tea' } })
    await memory.saveMessages({ threadId: 't', messages: conversation(8) })
    return memory
  }

  it('[M1.4] hold the messages of their source and go on by themselves', async () => {
    const memory = await filled()
    const { thread, clonedMessages } = await memory.cloneThread({ sourceThreadId: 't', title: 'Branch', metadata: { kind: 'branch' } })
    expect(ids(clonedMessages)).toBe('m0 m1 m2 m3 m4 m5 m6 m7')
    expect(thread).toMatchObject({ title: 'Branch', resourceId: 'u', metadata: { kind: 'branch', clone: { sourceThreadId: 't', lastMessageId: clonedMessages[7]?.id } } })
    await memory.deleteMessages(clonedMessages[0]?.id ?? '')
    await memory.saveMessages({ threadId: 't', messages: ['More.'] })
    expect((await memory.recall({ threadId: 't', perPage: false })).messages).toHaveLength(9)
    expect((await memory.recall({ threadId: thread.id, perPage: false })).messages).toHaveLength(7)
  })

  it('[M1.4] have messages with ids of their own: one is changed and deleted by its id alone, and its copies stay', async () => {
    const memory = await filled()
    const { thread, clonedMessages } = await memory.cloneThread({ sourceThreadId: 't', newThreadId: 'copy' })
    const { clonedMessages: again } = await memory.cloneThread({ sourceThreadId: thread.id, newThreadId: 'copy-2' })
    const all = [...(await memory.recall({ threadId: 't', perPage: false })).messages, ...clonedMessages, ...again]
    expect(new Set(all.map(({ id }) => id)).size).toBe(24)
    const left = async () => Promise.all(['t', 'copy', 'copy-2'].map(async (threadId) => (await memory.recall({ threadId, perPage: false })).messages.length))
    expect(await memory.deleteMessages('m1')).toBe(1)
    expect(await left()).toEqual([7, 8, 8])
    expect(await memory.deleteMessages('m1')).toBe(0)
    expect(await memory.deleteMessages([clonedMessages[1]?.id ?? '', again[2]?.id ?? ''])).toBe(2)
    expect(await left()).toEqual([7, 7, 7])
    await memory.updateMessages({ messages: [{ id: clonedMessages[3]?.id ?? '', content: { metadata: { seen: true } } }] })
    const seen = async (threadId: string) => (await memory.recall({ threadId, perPage: false })).messages.filter(({ content }) => content.metadata?.seen === true).length
    expect([await seen('t'), await seen('copy'), await seen('copy-2')]).toEqual([0, 1, 0])
  })

  it('[M1.4] give their messages as a list, or not at all', async () => {
    const memory = await filled()
    expect(Object.keys(await memory.cloneThread({ sourceThreadId: 't', newThreadId: 'unread', readMessages: false }))).toEqual(['thread'])
    expect(ids((await memory.recall({ threadId: 'unread', perPage: false })).messages)).toBe('m0 m1 m2 m3 m4 m5 m6 m7')
    const own = await memory.forResource('u').cloneThread({ sourceThreadId: 't' })
    expect(own.clonedMessages.map(({ threadId }) => threadId)).toEqual(Array.from({ length: 8 }, () => own.thread.id))
    await expect(memory.cloneThread({ sourceThreadId: 't', readMessages: 'no' as never })).rejects.toMatchObject({ details: { field: 'readMessages' } })
  })

  it('[M1.11] have what their source kept in mind, and go on by themselves', async () => {
    const memory = memoryOn(store(), { workingMemory: { scope: 'thread' } })
    await memory.createThread({ threadId: 't', resourceId: 'u' })
    for (const workingMemory of ['Name: S', 'Name: Sam']) await memory.updateWorkingMemory({ threadId: 't', workingMemory })
    await memory.cloneThread({ sourceThreadId: 't', newThreadId: 'copy' })
    await memory.cloneThread({ sourceThreadId: 't', newThreadId: 'theirs', resourceId: 'v' })
    const kept = (threadId: string) => memory.getWorkingMemory({ threadId })
    expect([await kept('copy'), await kept('theirs')]).toEqual(['Name: Sam', null])
    await memory.updateWorkingMemory({ threadId: 'copy', workingMemory: 'Name: Eve' })
    expect([await kept('t'), await kept('copy')]).toEqual(['Name: Sam', 'Name: Eve'])
    await memory.undoWorkingMemory({ threadId: 'copy', version: 1 })
    expect(await kept('copy')).toBe('Name: S')
  })

  it('[M1.5] take the newest, a span of time, or chosen messages', async () => {
    const memory = await filled()
    const cloned = async (options: object) => ids((await memory.cloneThread({ sourceThreadId: 't', options })).clonedMessages)
    const at = (minute: number) => new Date(instant.getTime() + minute * 60_000)
    expect(await cloned({ messageLimit: 3 })).toBe('m5 m6 m7')
    expect(await cloned({ messageFilter: { startDate: at(2), endDate: at(4) } })).toBe('m2 m3 m4')
    expect(await cloned({ messageFilter: { messageIds: ['m6', 'm1'] } })).toBe('m1 m6')
    expect(await cloned({ messageLimit: 1, messageFilter: { endDate: at(4) } })).toBe('m4')
  })

  it('have a title after their source\'s, an id of choice, and metadata of their origin', async () => {
    const memory = await filled()
    const { thread } = await memory.cloneThread({ sourceThreadId: 't', newThreadId: 'copy' })
    expect(thread).toMatchObject({ id: 'copy', title: 'Clone of Tea' })
    expect(memory.isClone(thread)).toBe(true)
    expect(memory.isClone(await memory.getThreadById({ threadId: 't' }))).toBe(false)
    const about = memory.getCloneMetadata(await memory.getThreadById({ threadId: 'copy' }))
    expect(about).toEqual({ sourceThreadId: 't', clonedAt: thread.createdAt, lastMessageId: expect.stringMatching(/^m7~/) as string })
    expect((await memory.getSourceThread('copy'))?.id).toBe('t')
    expect(await memory.getSourceThread('t')).toBeNull()
    await memory.cloneThread({ sourceThreadId: 'copy', newThreadId: 'copy-2' })
    await memory.cloneThread({ sourceThreadId: 't', newThreadId: 'other', resourceId: 'v' })
    expect(ids(await memory.listClones('t')).split(' ').toSorted()).toEqual(['copy', 'other'])
    expect(ids(await memory.listClones('t', 'v'))).toBe('other')
    expect(ids(await memory.getCloneHistory('copy-2'))).toBe('t copy copy-2')
    await memory.updateThread({ id: 't', metadata: { clone: { sourceThreadId: 'copy-2', clonedAt: instant.toISOString() } } })
    expect(ids(await memory.getCloneHistory('copy-2'))).toBe('t copy copy-2')
    await memory.deleteThread('copy')
    expect(ids(await memory.getCloneHistory('copy-2'))).toBe('copy-2')
  })

  it('are rejected when the id is taken, the source is missing, or an argument is invalid', async () => {
    const memory = await filled()
    await expect(memory.cloneThread({ sourceThreadId: 't', newThreadId: 't' })).rejects.toMatchObject({ code: 'thread_exists' })
    await expect(memory.cloneThread({ sourceThreadId: 'none' })).rejects.toMatchObject({ code: 'thread_not_found' })
    await expect(memory.cloneThread({ sourceThreadId: 't', options: { messageLimit: -1 } })).rejects.toMatchObject({ details: { field: 'options.messageLimit' } })
    await expect(memory.cloneThread({ sourceThreadId: 't', options: { limit: 1 } as never })).rejects.toMatchObject({ code: 'unsupported_option' })
    expect((await memory.listThreads({ perPage: false })).threads).toHaveLength(1)
  })

  it('are threads like any other, with the history of their source', async () => {
    const model = scriptedModel((call) => `${call.prompt.length} messages`)
    const agent = new Agent({ id: 'guide', model })
    kept(new Heed({ agents: { agent }, storage: store() }))
    const memory = await agent.getMemory()
    for (const word of ['One', 'Two']) await agent.generate(word, { memory: { thread: 't', resource: 'u' } })
    const { thread } = await memory.cloneThread({ sourceThreadId: 't' })
    const { text } = await agent.generate('Three', { memory: { thread: thread.id, resource: 'u' } })
    expect(text).toBe('5 messages')
    expect((await memory.recall({ threadId: 't' })).messages).toHaveLength(4)
  })
})
