import { describe, expect, it } from 'vitest'
import { Agent, createTool, Heed, type Memory, type RecallArgs } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { conversation, ids, instant, kept, memoryOn, said, stores } from './kept.ts'

describe.each(stores)('recall, $name', ({ store }) => {
  async function filled(length = 25): Promise<Memory> {
    const memory = memoryOn(store())
    await memory.createThread({ threadId: 't', resourceId: 'u' })
    await memory.saveMessages({ threadId: 't', messages: conversation(length) })
    return memory
  }
  const recalled = async (memory: Memory, args: Partial<RecallArgs>) => ids((await memory.recall({ threadId: 't', ...args })).messages)
  const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => `m${from + index}`).join(' ')

  it('returns the newest page in chronological order, a page, or all', async () => {
    const memory = await filled()
    expect(await recalled(memory, {})).toBe(range(15, 24))
    expect(await recalled(memory, { perPage: false })).toBe(range(0, 24))
    expect(await recalled(memory, { page: 0, perPage: 4 })).toBe(range(21, 24))
    expect(await recalled(memory, { page: 1, perPage: 4 })).toBe(range(17, 20))
    expect(await recalled(memory, { page: 6, perPage: 4 })).toBe('m0')
    expect(await recalled(memory, { page: 7, perPage: 4 })).toBe('')
    expect(await recalled(memory, { page: 1, perPage: 4, orderBy: { field: 'createdAt', direction: 'ASC' } })).toBe(range(4, 7))
    expect(await recalled(memory, { perPage: 3, orderBy: { direction: 'DESC' } })).toBe('m24 m23 m22')
    expect(await recalled(memory, { perPage: 0 })).toBe('')
    expect(await memory.recall({ threadId: 't', page: 5, perPage: 4, total: true })).toMatchObject({ page: 5, perPage: 4, hasMore: true, total: 25 })
    expect(await memory.listMessages({ threadId: 't', page: 6, perPage: 4 })).toMatchObject({ hasMore: false })
    expect(await recalled(memory, { threadConfig: { lastMessages: 2 } })).toBe('m23 m24')
    expect(await recalled(memory, { resourceId: 'u', perPage: 1 })).toBe('m24')
    await expect(memory.recall({ threadId: 't', resourceId: 'v' })).rejects.toMatchObject({ code: 'thread_forbidden' })
  })

  it('pages through a thread by cursor, in either direction, while it grows', async () => {
    const memory = await filled(10)
    for (const [direction, expected] of [[undefined, 'm6 m7 m8 m9|m2 m3 m4 m5|m0 m1'], ['ASC', 'm0 m1 m2 m3|m4 m5 m6 m7|m8 m9 new'], ['DESC', 'new m9 m8 m7|m6 m5 m4 m3|m2 m1 m0']] as const) {
      const pages: string[] = []
      for (let cursor: string | undefined, more = true; more;) {
        const page: Awaited<ReturnType<Memory['recall']>> = await memory.recall({
          threadId: 't', perPage: 4, ...(direction && { orderBy: { direction } }), ...(cursor !== undefined && { cursor }),
        })
        pages.push(ids(page.messages))
        cursor = page.nextCursor
        more = page.hasMore
        if (pages.length === 1 && direction === undefined) await memory.saveMessages({ threadId: 't', messages: [said('new')] })
      }
      expect(pages.join('|')).toBe(expected)
    }
  })

  it('continues from the position of a deleted message, and rejects a cursor of another thread or order', async () => {
    const memory = await filled(6)
    const { nextCursor = '' } = await memory.recall({ threadId: 't', perPage: 2 })
    await memory.deleteMessages('m4')
    expect(await recalled(memory, { perPage: 2, cursor: nextCursor })).toBe('m2 m3')
    await memory.createThread({ threadId: 'o', resourceId: 'u' })
    for (const args of [{ threadId: 'o' }, { threadId: 't', orderBy: { direction: 'ASC' } }, { threadId: 't', filter: { dateRange: { start: instant } } }] as RecallArgs[]) {
      await expect(memory.recall({ ...args, cursor: nextCursor })).rejects.toMatchObject({ code: 'invalid_cursor' })
    }
  })

  it('finds messages of a span of time, its ends included or not', async () => {
    const memory = await filled()
    const at = (minute: number) => new Date(instant.getTime() + minute * 60_000)
    const span = (dateRange: object, more: Partial<RecallArgs> = {}) => recalled(memory, { perPage: false, filter: { dateRange }, ...more })
    expect(await span({ start: at(3), end: at(6) })).toBe(range(3, 6))
    expect(await span({ start: at(3), end: at(6), startExclusive: true, endExclusive: true })).toBe(range(4, 5))
    expect(await span({ start: at(20) })).toBe(range(20, 24))
    expect(await span({ end: at(20) }, { perPage: 2 })).toBe('m19 m20')
    expect(await span({ end: at(20) }, { perPage: 2, page: 1 })).toBe('m17 m18')
    expect(await span({ start: at(99) })).toBe('')
  })

  it('finds messages by id, with their neighbors, and nothing else', async () => {
    const memory = await filled()
    expect(await recalled(memory, { include: [{ id: 'm3' }] })).toBe('m3')
    expect(await recalled(memory, { include: [{ id: 'm3' }, { id: 'm20', withPreviousMessages: 3, withNextMessages: 1 }] })).toBe('m3 m17 m18 m19 m20 m21')
    expect(await recalled(memory, { include: [{ id: 'm1', withPreviousMessages: 5, withNextMessages: 1 }, { id: 'm2', withNextMessages: 1 }] })).toBe('m0 m1 m2 m3')
    expect(await recalled(memory, { include: [{ id: 'm0' }], perPage: 2 })).toBe('m0 m23 m24')
    expect(await recalled(memory, { include: [{ id: 'unknown' }] })).toBe('')
    await memory.createThread({ threadId: 'o', resourceId: 'v' })
    await memory.saveMessages({ threadId: 'o', messages: [said('theirs')] })
    expect(await recalled(memory, { include: [{ id: 'theirs', threadId: 'o' }] })).toBe('theirs')
    await expect(memory.recall({ threadId: 't', resourceId: 'u', include: [{ id: 'theirs', threadId: 'o' }] })).rejects.toMatchObject({ code: 'thread_forbidden' })
  })

  it('[D1.2] keeps the order of messages of one instant everywhere: pages, cursors, peers, clones', async () => {
    const memory = memoryOn(store())
    await memory.createThread({ threadId: 't', resourceId: 'u' })
    await memory.saveMessages({ threadId: 't', messages: ['d', 'a', 'e', 'b', 'c'].map((id) => said(id)) })
    expect(await recalled(memory, {})).toBe('d a e b c')
    expect(await recalled(memory, { perPage: 2, page: 1 })).toBe('a e')
    expect(await recalled(memory, { include: [{ id: 'e', withPreviousMessages: 1, withNextMessages: 1 }] })).toBe('a e b')
    expect(await recalled(memory, { perPage: 2, filter: { dateRange: { start: instant, end: instant } } })).toBe('b c')
    const { thread } = await memory.cloneThread({ sourceThreadId: 't', options: { messageLimit: 3 } })
    expect((await recalled(memory, { threadId: thread.id })).replaceAll(/~\w+/g, '')).toBe('e b c')
  })

  it('reads several threads by time, each in its own order', async () => {
    const memory = memoryOn(store())
    for (const threadId of ['a', 'b']) await memory.createThread({ threadId, resourceId: 'u' })
    const at = (id: string, minute: number) => said(id, { createdAt: new Date(instant.getTime() + minute * 60_000) })
    await memory.saveMessages({ threadId: 'a', messages: [at('a1', 1), at('a2', 3), at('a3', 3), at('a4', 5)] })
    await memory.saveMessages({ threadId: 'b', messages: [at('b1', 2), at('b2', 3), at('b3', 1)] })
    const both = (args: Partial<RecallArgs>) => recalled(memory, { threadId: ['a', 'b'], ...args })
    expect(await both({ perPage: false })).toBe('a1 b1 a2 a3 b2 b3 a4')
    const pages = [await both({ perPage: 3 }), await both({ perPage: 3, page: 1 }), await both({ perPage: 3, page: 2 })]
    expect(pages.toReversed().join(' ').trim().split(' ').toSorted().join(' ')).toBe('a1 a2 a3 a4 b1 b2 b3')
    expect((await memory.recall({ threadId: ['a', 'b'], perPage: 3, page: 2 })).hasMore).toBe(false)
    expect((await memory.recall({ threadId: ['a', 'b'], perPage: 3 })).hasMore).toBe(true)
    await expect(memory.recall({ threadId: ['a', 'b'], cursor: 'x' })).rejects.toMatchObject({ details: { field: 'cursor' } })
  })

  it('gives an answer of several steps as one message, whatever page it is on', async () => {
    const look = createTool({ id: 'look', execute: () => 'rain' })
    const model = scriptedModel((call) => (call.prompt.at(-1)?.role === 'tool' ? 'It rains.' : { toolCalls: [{ toolName: 'look' }] }))
    const agent = new Agent({ id: 'guide', model, tools: { look } })
    const heed = kept(new Heed({ agents: { agent }, storage: store() }))
    const memory = await agent.getMemory()
    for (let turn = 0; turn < 3; turn++) await agent.generate(`Weather ${turn}?`, { memory: { thread: 't', resource: 'u' } })
    const { messages } = await memory.recall({ threadId: 't', perPage: false })
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant', 'user', 'assistant'])
    const paged = [await memory.recall({ threadId: 't', perPage: 2, page: 2 }), await memory.recall({ threadId: 't', perPage: 2, page: 1 }), await memory.recall({ threadId: 't', perPage: 2 })]
    expect(paged.flatMap((page) => page.messages)).toEqual(messages)
    const [answer] = (await memory.recall({ threadId: 't', include: [{ id: messages[3]?.id ?? '' }] })).messages
    expect(answer).toEqual(messages[3])
    expect(answer?.content.parts.map(({ type }) => type)).toEqual(['step-start', 'tool-invocation', 'step-start', 'text'])
    await heed.close()
  })

  it('rejects invalid arguments by name', async () => {
    const memory = await filled(1)
    const wrong: Array<[string, object]> = [
      ['threadId', { threadId: '' }], ['threadId', { threadId: [] }], ['perPage', { perPage: -1 }], ['page', { page: 0.5 }], ['include.id', { include: [{}] }],
      ['include.withNextMessages', { include: [{ id: 'a', withNextMessages: -1 }] }], ['orderBy.field', { orderBy: { field: 'id' } }],
      ['filter.dateRange.start', { filter: { dateRange: { start: new Date('never') } } }], ['cursor', { cursor: 'x', page: 1 }],
    ]
    for (const [field, args] of wrong) await expect(memory.recall({ threadId: 't', ...args } as RecallArgs), field).rejects.toMatchObject({ code: 'invalid_argument', details: { field } })
    await expect(memory.recall({ threadId: 't', vectorSearchString: '' })).rejects.toMatchObject({ code: 'invalid_argument' })
    await expect(memory.recall({ threadId: 't', perpage: 1 } as RecallArgs)).rejects.toMatchObject({ code: 'unsupported_option' })
  })
})
