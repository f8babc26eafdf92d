import { describe, expect, it } from 'vitest'
import type { ResourceMemory } from '../../src/index.ts'
import { conversation, ids, memoryOn, said, stores } from './kept.ts'

const forbidden = { code: 'thread_forbidden' }

describe.each(stores)('a memory of one resource, $name', ({ store }) => {
  async function two() {
    const source = store()
    const memory = memoryOn(source)
    for (const [threadId, resourceId] of [['mine', 'u'], ['theirs', 'v']] as const) {
      await memory.createThread({ threadId, resourceId })
      await memory.saveMessages({ threadId, messages: conversation(3).map((message) => ({ ...message, id: `${threadId}-${message.id}` })) })
    }
    const everything = async () => JSON.stringify([await source.getThread({ threadId: 'theirs' }), await source.listRows({ threadId: 'theirs' }, { limit: 100 })])
    return { memory, own: memory.forResource('u'), everything }
  }

  const attempts: Array<[string, (own: ResourceMemory) => Promise<unknown>]> = [
    ['getThreadById', (own) => own.getThreadById({ threadId: 'theirs' })],
    ['createThread of their id', (own) => own.createThread({ threadId: 'theirs' })],
    ['createThread for them', (own) => own.createThread({ resourceId: 'v' })],
    ['listThreads', (own) => own.listThreads({ filter: { resourceId: 'v' } })],
    ['updateThread', (own) => own.updateThread({ id: 'theirs', title: 'x' })],
    ['updateThread in their name', (own) => own.updateThread({ id: 'theirs', resourceId: 'v', title: 'x' })],
    ['deleteThread', (own) => own.deleteThread('theirs')],
    ['recall', (own) => own.recall({ threadId: 'theirs' })],
    ['recall in their name', (own) => own.recall({ threadId: 'theirs', resourceId: 'v' })],
    ['recall of several', (own) => own.recall({ threadId: ['mine', 'theirs'] })],
    ['recall with include', (own) => own.recall({ threadId: 'mine', include: [{ id: 'theirs-m0', threadId: 'theirs' }] })],
    ['saveMessages', (own) => own.saveMessages({ threadId: 'theirs', messages: ['x'] })],
    ['saveMessages that say so themselves', (own) => own.saveMessages({ messages: [said('x', { threadId: 'theirs' })] })],
    ['updateMessages', (own) => own.updateMessages({ threadId: 'theirs', messages: [{ id: 'theirs-m0' }] })],
    ['deleteMessages', (own) => own.deleteMessages({ threadId: 'theirs' })],
    ['deleteMessages in their name', (own) => own.deleteMessages({ threadId: 'theirs', resourceId: 'v' })],
    ['deleteMessages of its own in their name', (own) => own.deleteMessages({ threadId: 'mine', resourceId: 'v' })],
    ['cloneThread', (own) => own.cloneThread({ sourceThreadId: 'theirs' })],
    ['cloneThread for them', (own) => own.cloneThread({ sourceThreadId: 'mine', resourceId: 'v' })],
    ['getSourceThread', (own) => own.getSourceThread('theirs')],
    ['getCloneHistory', (own) => own.getCloneHistory('theirs')],
  ]

  it.each(attempts)('[X1.4] can\'t reach what belongs to another: %s', async (_, attempt) => {
    const { own, everything } = await two()
    const before = await everything()
    await expect(attempt(own)).rejects.toMatchObject(forbidden)
    expect(await everything()).toBe(before)
  })

  it.each(['mine', 'theirs'])('[M1.25] refuses a message in the name of another by name: thread %s', async (threadId) => {
    const { own, everything } = await two()
    const before = await everything()
    const refusal = { code: 'invalid_argument', details: { field: 'messages.resourceId' } }
    await expect(own.saveMessages({ messages: [said('x', { threadId, resourceId: 'v' })] })).rejects.toMatchObject(refusal)
    await expect(own.saveMessages({ threadId, messages: [said('x'), said('y', { resourceId: 'v' })] })).rejects.toMatchObject(refusal)
    await expect(own.updateMessages({ threadId, messages: [{ id: `${threadId}-m0`, resourceId: 'v', content: { metadata: { x: 1 } } }] })).rejects.toMatchObject(refusal)
    expect(await everything()).toBe(before)
  })

  it('[X1.4] finds no messages of another resource by their ids', async () => {
    const { memory, own, everything } = await two()
    const before = await everything()
    expect(await own.deleteMessages(['theirs-m0', 'mine-m0'])).toBe(1)
    await expect(own.updateMessages({ messages: [{ id: 'theirs-m0', content: { metadata: { x: 1 } } }] })).rejects.toMatchObject({ code: 'message_not_found' })
    expect(await everything()).toBe(before)
    await memory.cloneThread({ sourceThreadId: 'theirs', newThreadId: 'given', resourceId: 'u' })
    expect(await own.getSourceThread('given')).toBeNull()
    expect(ids(await own.getCloneHistory('given'))).toBe('given')
    expect(ids(await own.listClones('theirs'))).toBe('given')
  })

  it('[X1.4] does all the rest for its own', async () => {
    const { own } = await two()
    expect(ids((await own.listThreads({ perPage: false })).threads)).toBe('mine')
    await own.createThread({ threadId: 'second', metadata: { topic: 'tea' } })
    expect(ids((await own.listThreads({ filter: { metadata: { topic: 'tea' } } })).threads)).toBe('second')
    expect((await own.updateThread({ id: 'second', title: 'Tea' })).title).toBe('Tea')
    await own.saveMessages({ threadId: 'second', messages: [said('a', { resourceId: 'u' })] })
    expect(ids((await own.recall({ threadId: ['mine', 'second'], perPage: false })).messages)).toBe('mine-m0 a mine-m1 mine-m2')
    const { thread } = await own.cloneThread({ sourceThreadId: 'mine' })
    expect(thread.resourceId).toBe('u')
    expect(await own.deleteThread(thread.id)).toBe(true)
  })

  it('[X1.1] keeps working memory of its own, and reaches no other', async () => {
    const memory = memoryOn(store(), { workingMemory: { enabled: true } })
    for (const [threadId, resourceId] of [['mine', 'u'], ['theirs', 'v']] as const) await memory.createThread({ threadId, resourceId })
    await memory.updateWorkingMemory({ resourceId: 'v', workingMemory: 'theirs' })
    const own = memory.forResource('u')
    expect(await own.getWorkingMemory()).toBeNull()
    for (const workingMemory of ['one', 'two']) await own.updateWorkingMemory({ workingMemory })
    expect(await own.undoWorkingMemory({ threadId: 'mine' })).toMatchObject({ version: 3, workingMemory: 'one' })
    expect((await own.listWorkingMemoryVersions({ limit: 2 })).map(({ version }) => version)).toEqual([3, 2])
    for (const target of [{ resourceId: 'v' }, { threadId: 'theirs' }]) {
      await expect(own.getWorkingMemory(target)).rejects.toMatchObject(forbidden)
      await expect(own.updateWorkingMemory({ ...target, workingMemory: 'x' })).rejects.toMatchObject(forbidden)
      await expect(own.listWorkingMemoryVersions(target)).rejects.toMatchObject(forbidden)
      await expect(own.undoWorkingMemory(target)).rejects.toMatchObject(forbidden)
    }
    expect([await memory.getWorkingMemory({ resourceId: 'u' }), await memory.getWorkingMemory({ resourceId: 'v' })]).toEqual(['one', 'theirs'])
    await expect(memoryOn(store()).forResource('u').getWorkingMemory()).rejects.toMatchObject({ details: { option: 'workingMemory' } })
  })

  it('reads as many messages as the call sets', async () => {
    const { own } = await two()
    expect(ids((await own.recall({ threadId: 'mine', threadConfig: { lastMessages: 1 } })).messages)).toBe('mine-m2')
  })
})
