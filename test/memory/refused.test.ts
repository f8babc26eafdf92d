import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent, Heed, Memory, silentLogger, type WorkingMemoryOptions } from '../../src/index.ts'
import { LibSQLStore, LibSQLVector } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { conversation, ids, kept, memoryOn, said, stores } from './kept.ts'

/** What a program in JavaScript, or a request, may pass whatever the types say. */
const untyped = (value: unknown) => value as never
const circle: Record<string, unknown> = {}
circle.itself = circle
const ofField = (field: string) => ({ name: 'HeedError', code: 'invalid_argument', details: { field } })

describe.each(stores)('invalid arguments of a memory, $name', ({ store }) => {
  async function filled(workingMemory?: WorkingMemoryOptions) {
    const memory = memoryOn(store(), workingMemory && { workingMemory })
    for (const [threadId, resourceId] of [['t', 'u'], ['o', 'v']] as const) await memory.createThread({ threadId, resourceId })
    await memory.saveMessages({ threadId: 't', messages: conversation(4) })
    await memory.saveMessages({ threadId: 'o', messages: [said('theirs')] })
    return memory
  }

  const changes: Array<[string, unknown, object]> = [
    ['parts that are none', { content: { parts: [1, null, { foo: 1 }] } }, { code: 'invalid_message', details: { index: 0, part: 0 } }],
    ['a text part without text', { content: { parts: [{ type: 'text' }] } }, { code: 'invalid_message' }],
    ['metadata that is a text', { content: { metadata: 'x' } }, ofField('messages.content.metadata')],
    ['a field of content that nothing has', { content: { foo: 1 } }, { code: 'unsupported_option', details: { option: 'foo' } }],
    ['another format', { content: { format: 7 } }, ofField('messages.content.format')],
    ['files without a url', { content: { experimental_attachments: [{}] } }, ofField('messages.content.experimental_attachments')],
    ['another role', { role: 'assistant' }, { code: 'invalid_message' }],
    ['a circle', { content: { metadata: circle } }, { code: 'invalid_message' }],
    ['a bigint', { content: { metadata: { n: 1n } } }, { code: 'invalid_message' }],
    ['a resource that is no text', { resourceId: 7 }, ofField('messages.resourceId')],
  ]
  it.each(changes)('updateMessages() with %s changes nothing', async (_, change, error) => {
    const memory = await filled()
    const before = (await memory.recall({ threadId: 't' })).messages
    const messages = [{ id: 'm2', content: { metadata: { pinned: true } } }, { id: 'm0', ...(change as object) }].toReversed()
    await expect(memory.updateMessages({ messages: untyped(messages) })).rejects.toMatchObject(error)
    expect((await memory.recall({ threadId: 't' })).messages).toEqual(before)
  })

  it('updateMessages() takes a message as it was read, and parts in the forms that saveMessages() takes', async () => {
    const memory = await filled()
    const { messages: [first] } = await memory.recall({ threadId: 't', include: [{ id: 'm0' }] })
    if (!first) throw new Error('m0 was to be there.')
    const [changed] = await memory.updateMessages({ messages: [{ ...first, content: { ...first.content, parts: untyped([{ type: 'image', image: 'https://x.test/a.png' }]) } }] })
    expect(changed?.content.parts).toMatchObject([{ type: 'file', data: 'https://x.test/a.png' }])
  })

  it('updateMessages() with the resource of a message is rejected when the thread belongs to another', async () => {
    const memory = await filled()
    const change = { id: 'theirs', content: { metadata: { x: 1 } } }
    await expect(memory.updateMessages({ messages: [{ ...change, resourceId: 'u' }] })).rejects.toMatchObject({ code: 'thread_forbidden' })
    await expect(memory.updateMessages({ messages: [{ ...change, threadId: 'o', resourceId: 'u' }] })).rejects.toMatchObject({ code: 'thread_forbidden' })
    expect(await memory.updateMessages({ messages: [{ ...change, resourceId: 'v' }] })).toMatchObject([{ id: 'theirs', content: { metadata: { x: 1 } } }])
  })

  it('threads that are named twice are read once', async () => {
    const memory = await filled()
    const page = await memory.recall({ threadId: ['t', 't'], page: 0, perPage: 2, total: true })
    expect([ids(page.messages), page.total, page.hasMore]).toEqual(['m2 m3', 4, true])
    const next = await memory.recall({ threadId: ['t', 't'], perPage: 2, cursor: page.nextCursor ?? '' })
    expect([ids(next.messages), next.hasMore]).toEqual(['m0 m1', false])
  })

  const calls: Array<[string, (memory: Memory) => Promise<unknown>, object]> = [
    ['deleteMessages() of ids that are no list', (memory) => memory.deleteMessages(untyped({ threadId: 't', messageIds: 'm1' })), ofField('messageIds')],
    ['listThreads() of a page beyond counting', (memory) => memory.listThreads({ page: Number.MAX_SAFE_INTEGER }), ofField('page')],
    ['recall() of a page beyond counting', (memory) => memory.recall({ threadId: 't', page: Number.MAX_SAFE_INTEGER, perPage: 2 }), ofField('page')],
    ['recall() in an order that is a text', (memory) => memory.recall(untyped({ threadId: 't', orderBy: 'DESC' })), ofField('orderBy')],
    ['listThreads() in an order that is a text', (memory) => memory.listThreads(untyped({ orderBy: 'createdAt' })), ofField('orderBy')],
    ['createThread() with a Map in metadata', (memory) => memory.createThread({ resourceId: 'u', metadata: untyped({ deep: { map: new Map([[1, 2]]) } }) }), ofField('metadata')],
  ]
  it.each(calls)('%s', async (_, call, error) => {
    const memory = await filled()
    await expect(call(memory)).rejects.toMatchObject(error)
    expect(ids((await memory.recall({ threadId: 't' })).messages)).toBe('m0 m1 m2 m3')
  })

  const target = { resourceId: 'u' }
  const schema = z.object({ name: z.string().optional() })
  const notes: Array<[string, WorkingMemoryOptions, (memory: Memory) => Promise<unknown>, object]> = [
    ['an update without anything', { schema }, (memory) => memory.updateWorkingMemory(untyped(target)), ofField('workingMemory')],
    ['an update of a template without anything', {}, (memory) => memory.updateWorkingMemory(untyped(target)), ofField('workingMemory')],
    ['a circle', { schema: { type: 'object', properties: {} } }, (memory) => memory.updateWorkingMemory({ ...target, workingMemory: untyped(circle) }), ofField('workingMemory')],
    ['an update for a version that is none', { schema }, (memory) => memory.updateWorkingMemory({ ...target, workingMemory: {}, expectedVersion: untyped('1') }), ofField('expectedVersion')],
    ['versions before what is none', {}, (memory) => memory.listWorkingMemoryVersions({ ...target, before: untyped({}) }), ofField('before')],
    ['a way back to what is no version', {}, (memory) => memory.undoWorkingMemory({ ...target, version: untyped({}) }), ofField('version')],
    ['delete with a template', {}, (memory) => memory.updateWorkingMemory({ ...target, workingMemory: 'x', delete: ['name'] }), ofField('delete')],
    ['replace with a template', {}, (memory) => memory.updateWorkingMemory({ ...target, workingMemory: 'x', replace: false }), ofField('replace')],
  ]
  it.each(notes)('working memory: %s', async (_, options, call, error) => {
    const memory = await filled(options)
    await expect(call(memory)).rejects.toMatchObject(error)
    expect(await memory.getWorkingMemory(target)).toBeNull()
  })
})

describe.each(stores)('working memory in the metadata of a thread, $name', ({ store }) => {
  it('is measured together with the present value, and rejected with the thread', async () => {
    const storage = store()
    const memory = memoryOn(storage, { workingMemory: { schema: z.object({ a: z.string().optional(), b: z.string().optional() }), maxLength: 60 } })
    await memory.createThread({ threadId: 't', resourceId: 'u', metadata: { workingMemory: { a: 'x'.repeat(30) } } })
    const metadata = { kept: true, workingMemory: { b: 'y'.repeat(30) } }
    const tooLarge = { code: 'working_memory_too_large', details: { maxLength: 60 } }
    await expect(memory.createThread({ threadId: 'new', resourceId: 'u', metadata })).rejects.toMatchObject(tooLarge)
    await expect(memory.updateThread({ id: 't', title: 'Other', metadata })).rejects.toMatchObject(tooLarge)
    const agent = new Agent({ id: 'a', model: scriptedModel(() => 'Noted.'), memory })
    kept(new Heed({ agents: { agent }, storage, logger: silentLogger }))
    await expect(agent.generate('Hello', { memory: { thread: { id: 'asked', metadata }, resource: 'u' } })).rejects.toMatchObject(tooLarge)
    expect((await memory.listThreads()).threads).toMatchObject([{ id: 't', title: '', metadata: {} }])
    expect(await memory.getWorkingMemory({ resourceId: 'u' })).toEqual({ a: 'x'.repeat(30) })
  })
})

describe('an invalid storage', () => {
  it.each([{}, 'file:x', null, 7])('is rejected by a memory: %j', (storage) => {
    expect(() => new Memory({ storage: untyped(storage) })).toThrow(expect.objectContaining(ofField('storage')))
  })

  it('is rejected on its own', () => {
    expect(() => new LibSQLStore(untyped({}))).toThrow(expect.objectContaining(ofField('url')))
    expect(() => new LibSQLVector(untyped({}))).toThrow(expect.objectContaining(ofField('url')))
    expect(() => new LibSQLStore(untyped({ url: ':memory:', syncUrl: 'x' }))).toThrow(expect.objectContaining({ code: 'unsupported_option', details: { option: 'syncUrl' } }))
    expect(() => new LibSQLStore({ url: ':memory:', busyTimeout: -1 })).toThrow(expect.objectContaining(ofField('busyTimeout')))
    expect(() => new LibSQLStore(untyped(undefined))).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
  })
})
