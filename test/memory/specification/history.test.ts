import { beforeEach, describe, expect, it } from 'vitest'
import { Agent, Heed, Memory, silentLogger, toUIMessages } from '../../../src/index.ts'
import { LibSQLStore } from '../../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { ids, kept, said } from '../kept.ts'
import { newFile } from '../../new-file.ts'

const described = { thread: { id: 'thread-1', title: 'About a bill', metadata: { category: 'billing' } }, resource: 'user-4' }

describe('every call about history', () => {
  it('an agent with lastMessages; a thread with its title and metadata, in generate and in stream', async () => {
    const agent = new Agent({ id: 'desk', model: scriptedModel(() => 'Yes.'), memory: new Memory({ options: { lastMessages: 10 } }) })
    const heed = kept(new Heed({ agents: { desk: agent }, storage: kept(new LibSQLStore({ id: 'app', url: `file:${newFile()}` })), logger: silentLogger }))
    await agent.generate('Good day', { memory: described })
    await (await agent.stream('Again', { memory: { ...described, thread: { ...described.thread, id: 'thread-2' } } })).text
    const memory = await heed.getAgent('desk').getMemory()
    for (const threadId of ['thread-1', 'thread-2']) {
      expect(await memory.getThreadById({ threadId })).toMatchObject({ id: threadId, title: 'About a bill', metadata: { category: 'billing' }, resourceId: 'user-4' })
    }
  })

  it('shows the model as many messages as are configured, of all that are stored', async () => {
    const model = scriptedModel(() => 'Yes.')
    const agent = new Agent({ id: 'desk', model, memory: new Memory({ window: { low: 4, high: 4 }, semanticRecall: false, storage: kept(new LibSQLStore({ url: ':memory:' })) }) })
    for (let turn = 0; turn < 12; turn += 1) await agent.generate(`${turn}`, { memory: described })
    // Four messages, and the question.
    expect(model.calls.at(-1)?.prompt.filter(({ role }) => role !== 'system')).toHaveLength(5)
    expect((await (await agent.getMemory()).recall({ threadId: 'thread-1', perPage: false })).messages).toHaveLength(24)
  })
})

describe('every call that reads threads', () => {
  let memory: Memory
  beforeEach(async () => {
    memory = new Memory({ storage: kept(new LibSQLStore({ url: `file:${newFile()}` })) })
    for (let n = 0; n < 25; n += 1) await memory.createThread({ threadId: `t${n}`, resourceId: n < 20 ? 'user-1' : 'user-2', metadata: { status: n % 2 === 0 ? 'active' : 'over' } })
  })

  it('all of a resource; page by page; by metadata, in order; one by id', async () => {
    const all = await memory.listThreads({ filter: { resourceId: 'user-1' }, perPage: false })
    expect(all.threads).toHaveLength(20)
    expect(all.hasMore).toBe(false)
    const first = await memory.listThreads({ filter: { resourceId: 'user-1' }, page: 0, perPage: 10 })
    const last = await memory.listThreads({ filter: { resourceId: 'user-1' }, page: 1, perPage: 10 })
    expect([first.hasMore, last.hasMore]).toEqual([true, false])
    expect(new Set([...first.threads, ...last.threads].map(({ id }) => id)).size).toBe(20)
    const active = await memory.listThreads({ filter: { resourceId: 'user-1', metadata: { status: 'active' } }, orderBy: { field: 'createdAt', direction: 'DESC' } })
    expect(active.threads).toHaveLength(10)
    expect(active.threads[0]).toMatchObject({ id: 't18', metadata: { status: 'active' } })
    const [thread] = active.threads
    expect(Object.keys(thread ?? {})).toEqual(expect.arrayContaining(['id', 'resourceId', 'title', 'metadata', 'createdAt', 'updatedAt']))
    expect(await memory.getThreadById({ threadId: 't3' })).toMatchObject({ id: 't3', resourceId: 'user-1' })
    expect(await memory.getThreadById({ threadId: 'nobody' })).toBeNull()
  })
})

describe('every call that reads, copies and removes messages', () => {
  let memory: Memory
  const chat = { threadId: 'thread-1' }
  beforeEach(async () => {
    memory = new Memory({ storage: kept(new LibSQLStore({ url: `file:${newFile()}` })) })
    await memory.createThread({ ...chat, resourceId: 'user-1', title: 'A talk' })
    const messages = Array.from({ length: 120 }, (_, n) => said(`m${n}`, { role: n % 2 === 0 ? 'user' : 'assistant', createdAt: new Date(Date.UTC(2025, 0, 1 + 3 * n)) }))
    await memory.saveMessages({ ...chat, messages })
  })

  it('all; by page; by date; by id; by id with neighbors', async () => {
    expect((await memory.recall({ ...chat, perPage: false })).messages).toHaveLength(120)
    const page = await memory.recall({ ...chat, page: 0, perPage: 50 })
    expect([page.messages.length, page.hasMore, page.page, page.perPage]).toEqual([50, true, 0, 50])
    const spring = await memory.recall({ ...chat, filter: { dateRange: { start: new Date('2025-01-01'), end: new Date('2025-06-01') } }, perPage: false })
    expect([spring.messages.length, spring.messages.at(-1)?.id]).toEqual([51, 'm50'])
    expect(ids((await memory.recall({ ...chat, include: [{ id: 'm12' }] })).messages)).toBe('m12')
    const several = await memory.recall({ ...chat, include: [{ id: 'm12' }, { id: 'm45', withPreviousMessages: 3, withNextMessages: 1 }] })
    expect(ids(several.messages)).toBe('m12 m42 m43 m44 m45 m46')
  })

  it('a date range alone gives the newest page of it', async () => {
    const { messages, hasMore } = await memory.recall({ ...chat, filter: { dateRange: { start: new Date('2025-01-01'), end: new Date('2025-06-01') } } })
    expect([messages.at(-1)?.id, hasMore]).toEqual(['m50', true])
  })

  it('for a display', async () => {
    const { messages } = await memory.recall({ ...chat, perPage: 2 })
    expect(toUIMessages(messages)).toMatchObject([{ id: 'm118', role: 'user', parts: [{ type: 'text', text: 'm118' }] }, { id: 'm119', role: 'assistant' }])
  })

  it('a clone, of all or some, and where it comes from', async () => {
    const { thread, clonedMessages } = await memory.cloneThread({ sourceThreadId: 'thread-1', title: 'Another way' })
    expect(thread).toMatchObject({ title: 'Another way', resourceId: 'user-1' })
    expect(clonedMessages).toHaveLength(120)
    expect(memory.getCloneMetadata(thread)).toMatchObject({ sourceThreadId: 'thread-1', clonedAt: expect.any(Date), lastMessageId: clonedMessages.at(-1)?.id })
    const some = await memory.cloneThread({ sourceThreadId: 'thread-1', newThreadId: 'mine', options: { messageLimit: 3, messageFilter: { startDate: new Date('2025-01-01'), endDate: new Date('2025-02-01') } } })
    expect([some.thread.id, ids(some.clonedMessages).replaceAll(/~\w+/g, '')]).toEqual(['mine', 'm8 m9 m10'])
    expect(ids(await memory.listClones('thread-1'))).toBe(`${thread.id} mine`)
    expect((await memory.getSourceThread('mine'))?.id).toBe('thread-1')
    expect(ids(await memory.getCloneHistory('mine'))).toBe('thread-1 mine')
  })

  it('deleting by id, by several, and all of a thread', async () => {
    expect(await memory.deleteMessages('m0')).toBe(1)
    expect(await memory.deleteMessages(['m1', 'm2'])).toBe(2)
    expect(await memory.deleteMessages([{ id: 'm3' }])).toBe(1)
    expect(await memory.deleteMessages(chat)).toBe(116)
    expect((await memory.recall({ ...chat, perPage: false })).messages).toEqual([])
    expect(await memory.getThreadById(chat)).not.toBeNull()
  })
})
