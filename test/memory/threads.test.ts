import { describe, expect, it } from 'vitest'
import { Agent, Heed, Memory, silentLogger, type ListThreadsArgs } from '../../src/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { ids, kept, memoryOn, stores } from './kept.ts'

describe.each(stores)('threads, $name', ({ store }) => {
  it('are created once, read, and answered as they are the second time', async () => {
    const memory = memoryOn(store())
    const made = await memory.createThread({ threadId: 't', resourceId: 'u', title: 'Tea', metadata: { topic: 'tea', tags: ['a'] } })
    expect(made).toMatchObject({ id: 't', resourceId: 'u', title: 'Tea', metadata: { topic: 'tea', tags: ['a'] } })
    expect(await memory.createThread({ threadId: 't', resourceId: 'u' })).toEqual(made)
    expect(await memory.createThread({ threadId: 't', resourceId: 'u', title: 'Tea', metadata: { tags: ['a'] } })).toEqual(made)
    expect(await memory.getThreadById({ threadId: 't' })).toEqual(made)
    expect(await memory.getThreadById({ threadId: 't', resourceId: 'u' })).toEqual(made)
    expect(await memory.getThreadById({ threadId: 'none' })).toBeNull()
    expect((await memory.createThread({ resourceId: 'u' })).id).toMatch(/^[\da-f-]{36}$/)
    await expect(memory.createThread({ threadId: 't', resourceId: 'v' })).rejects.toMatchObject({ code: 'thread_forbidden' })
  })

  it('go by the clock of their Heed, and so do messages and clones, also through a scoped memory', async () => {
    const clock = virtualClock(Date.UTC(2001, 0, 1))
    const agent = new Agent({ id: 'a', model: scriptedModel(() => 'Yes.'), memory: new Memory() })
    kept(new Heed({ agents: { agent }, storage: store(), clock, logger: silentLogger }))
    const memory = await agent.getMemory()
    const now = new Date(clock.now())
    for (const [name, one] of [['whole', memory], ['scoped', memory.forResource('u')]] as const) {
      expect(await one.createThread({ threadId: name, resourceId: 'u' })).toMatchObject({ createdAt: now })
      expect((await one.saveMessages({ threadId: name, messages: ['Hello.'] })).messages).toMatchObject([{ createdAt: now }])
      const { thread } = await one.cloneThread({ sourceThreadId: name })
      expect([thread.createdAt, memory.getCloneMetadata(thread)?.clonedAt]).toEqual([now, now])
    }
  })

  it('[M1.3] keep what ten writers at once write, and lose a key that is set to null', async () => {
    const memory = memoryOn(store())
    const made = await memory.createThread({ threadId: 't', resourceId: 'u', metadata: { gone: 1 } })
    await Promise.all(Array.from({ length: 10 }, (_, index) => memory.updateThread({ id: 't', metadata: { [`k${index}`]: index } })))
    const thread = await memory.updateThread({ id: 't', title: 'Named', metadata: { gone: null } })
    expect(thread.metadata).toEqual(Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`k${index}`, index])))
    expect(thread).toMatchObject({ title: 'Named', createdAt: made.createdAt })
    await expect(memory.updateThread({ id: 't', resourceId: 'v', title: 'x' })).rejects.toMatchObject({ code: 'thread_forbidden' })
    await expect(memory.updateThread({ id: 'none', title: 'x' })).rejects.toMatchObject({ code: 'thread_not_found' })
  })

  it('are listed by page, by cursor and all at once, filtered and ordered', async () => {
    const source = store()
    const memory = memoryOn(source)
    for (let index = 0; index < 7; index++) {
      await source.createThread({ id: `t${index}`, resourceId: index === 6 ? 'v' : 'u', metadata: { status: index % 2 ? 'active' : 'done' }, now: 1000 + (index >> 1) })
    }
    const filter = { resourceId: 'u' }
    expect(ids((await memory.listThreads({ filter, perPage: false })).threads)).toBe('t5 t4 t3 t2 t1 t0')
    expect(await memory.listThreads({ filter, page: 1, perPage: 4, total: true })).toMatchObject({ page: 1, perPage: 4, hasMore: false, total: 6, threads: [{ id: 't1' }, { id: 't0' }] })
    expect(await memory.listThreads({ filter, page: 0, perPage: 4 })).toMatchObject({ hasMore: true })
    expect(await memory.listThreads({ filter })).not.toHaveProperty('total')
    expect(ids((await memory.listThreads({ filter: { ...filter, metadata: { status: 'active' } }, orderBy: { field: 'createdAt', direction: 'ASC' } })).threads)).toBe('t1 t3 t5')
    expect(ids((await memory.listThreads({ perPage: false })).threads)).toBe('t6 t5 t4 t3 t2 t1 t0')

    const paged: string[] = []
    for (let cursor: string | undefined, more = true; more;) {
      const page = await memory.listThreads({ filter, perPage: 2, ...(cursor === undefined ? {} : { cursor }) })
      paged.push(ids(page.threads))
      cursor = page.nextCursor
      more = page.hasMore
    }
    expect(paged).toEqual(['t5 t4', 't3 t2', 't1 t0'])
  })

  it('reject a cursor of another list, and invalid arguments, by name', async () => {
    const memory = memoryOn(store())
    for (const threadId of ['a', 'b']) await memory.createThread({ threadId, resourceId: 'u' })
    const { nextCursor } = await memory.listThreads({ filter: { resourceId: 'u' }, perPage: 1 })
    expect(nextCursor).toBeTypeOf('string')
    await expect(memory.listThreads({ filter: { resourceId: 'v' }, perPage: 1, cursor: nextCursor ?? '' })).rejects.toMatchObject({ code: 'invalid_cursor' })
    await expect(memory.listThreads({ perPage: 1, cursor: 'nonsense' })).rejects.toMatchObject({ code: 'invalid_cursor' })
    await expect(memory.recall({ threadId: 'a', cursor: nextCursor ?? '' })).rejects.toMatchObject({ code: 'invalid_cursor' })

    const wrong: Array<[string, object]> = [
      ['perPage', { perPage: 0 }], ['page', { page: -1 }], ['page', { page: 1.5 }], ['orderBy.field', { orderBy: { field: 'title' } }],
      ['orderBy.direction', { orderBy: { direction: 'down' } }], ['filter.resourceId', { filter: { resourceId: '' } }], ['filter.metadata.k', { filter: { metadata: { k: {} } } }],
      ['filter.metadata.k', { filter: { metadata: { k: Number.NaN } } }],
    ]
    for (const [field, args] of wrong) await expect(memory.listThreads(args as ListThreadsArgs), field).rejects.toMatchObject({ code: 'invalid_argument', details: { field } })
    await expect(memory.listThreads({ perpage: 3 } as ListThreadsArgs)).rejects.toMatchObject({ code: 'unsupported_option', details: { option: 'perpage' } })
    await expect(memory.createThread({ resourceId: '' })).rejects.toMatchObject({ details: { field: 'resourceId' } })
    await expect(memory.createThread({ resourceId: 'u', metadata: { f: Number.POSITIVE_INFINITY } })).rejects.toMatchObject({ details: { field: 'metadata' } })
    const circle: Record<string, never> = {}
    Object.assign(circle, { circle })
    await expect(memory.updateThread({ id: 'a', metadata: circle })).rejects.toMatchObject({ details: { field: 'metadata' } })
    expect((await memory.getThreadById({ threadId: 'a' }))?.metadata).toEqual({})
  })

  it('are deleted with all they hold', async () => {
    const memory = memoryOn(store())
    await memory.createThread({ threadId: 't', resourceId: 'u' })
    await expect(memory.deleteThread({ threadId: 't', resourceId: 'v' })).rejects.toMatchObject({ code: 'thread_forbidden' })
    expect(await memory.deleteThread('t')).toBe(true)
    expect(await memory.deleteThread('t')).toBe(false)
    expect(await memory.recall({ threadId: 't' })).toMatchObject({ messages: [], hasMore: false })
  })

  it('[M1.7] are transferred, and are then the other\'s alone', async () => {
    const memory = memoryOn(store())
    await memory.createThread({ threadId: 't', resourceId: 'u' })
    await expect(memory.transferThread({ threadId: 't', resourceId: 'w', from: 'v' })).rejects.toMatchObject({ code: 'thread_forbidden' })
    expect(await memory.transferThread({ threadId: 't', resourceId: 'v', from: 'u' })).toMatchObject({ resourceId: 'v' })
    await expect(memory.getThreadById({ threadId: 't', resourceId: 'u' })).rejects.toMatchObject({ code: 'thread_forbidden' })
    expect(ids((await memory.listThreads({ filter: { resourceId: 'v' } })).threads)).toBe('t')
  })
})
