import { expect } from 'vitest'
import type { Memory, ResourceMemory } from '../../../src/index.ts'
import { rejects, type Probe } from '../probe.ts'
import { heed } from '../walked.ts'

type Either = Memory | ResourceMemory
/** The two classes: of all resources, and of one. */
const kinds: Record<string, (memory: Memory) => Either> = { Memory: (memory) => memory, ResourceMemory: (memory) => memory.forResource('u') }

const schema = { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } } as const
const at = { threadId: 't', resourceId: 'u' }
const days = ['2026-01-01', '2026-02-01', '2026-03-01', '2026-04-01'].map((day) => new Date(day))
const animals = ['cats', 'dogs', 'fish', 'birds']

/** A memory with two threads of one resource, one of another, and four messages. */
async function filled(): Promise<Memory> {
  const memory = new heed.Memory({ storage: new heed.InMemoryStore(), workingMemory: { enabled: true, scope: 'thread', schema } })
  await memory.createThread({ ...at, title: 'Alpha', metadata: { n: 1 } })
  await memory.createThread({ threadId: 'second', resourceId: 'u', title: 'Beta', metadata: { n: 2 } })
  await memory.createThread({ threadId: 'other', resourceId: 'v' })
  const messages = days.map((createdAt, index) => ({ id: `m-${index}`, role: 'user' as const, createdAt, content: `Text ${index} about ${animals[index]}` }))
  await memory.saveMessages({ messages, ...at })
  return memory
}

const forbidden = { code: expect.stringMatching(/^(thread_forbidden|resource_forbidden|invalid_argument)$/) as string }

const shownFor: Record<string, (memory: Either, all: Memory) => Promise<void>> = {
  async createThread(memory) {
    expect(await memory.createThread({ threadId: 'x', resourceId: 'u', title: 'T', metadata: { n: 1 } })).toMatchObject({ id: 'x', title: 'T', metadata: { n: 1 }, resourceId: 'u' })
    await expect(memory.createThread({ threadId: 't', resourceId: 'v' })).rejects.toMatchObject(forbidden)
  },
  async getThreadById(memory) {
    expect(await memory.getThreadById({ threadId: 't' })).toMatchObject({ id: 't' })
    if (memory instanceof heed.Memory) await expect(memory.getThreadById({ threadId: 't', resourceId: 'v' })).rejects.toMatchObject(forbidden)
  },
  async listThreads(memory, all) {
    const ids = async (args: object) => (await memory.listThreads(args)).threads.map(({ id }) => id)
    const up = { orderBy: { field: 'createdAt', direction: 'ASC' } } as const
    expect(await ids({ filter: { resourceId: 'u' }, ...up })).toEqual(['t', 'second'])
    expect(await ids({ resourceId: 'u', ...up })).toEqual(['t', 'second'])
    if (memory !== all) for (const args of [{ resourceId: 'v' }, { filter: { resourceId: 'v' } }]) await expect(ids(args)).rejects.toMatchObject(forbidden)
    await all.updateThread({ id: 't', title: 'Gamma' })
    expect(await ids({ resourceId: 'u', orderBy: { field: 'updatedAt', direction: 'ASC' } })).toEqual(['second', 't'])
    expect(await ids({ filter: { metadata: { n: 2 } } })).toEqual(['second'])
    expect(await ids({ filter: { parentId: 't' } })).toEqual([])
    const page = await memory.listThreads({ resourceId: 'u', ...up, page: 1, perPage: 1, total: true })
    expect([page.threads.map(({ id }) => id), page.total]).toEqual([['second'], 2])
    expect((await memory.listThreads({ resourceId: 'u', total: false })).total).toBeUndefined()
    const { nextCursor = '' } = await memory.listThreads({ resourceId: 'u', ...up, perPage: 1 })
    expect(await ids({ resourceId: 'u', ...up, perPage: 1, cursor: nextCursor })).toEqual(['second'])
    await rejects(() => ids({ children: 'yes' }), 'children')
  },
  async updateThread(memory) {
    expect(await memory.updateThread({ id: 't', title: 'Gamma', metadata: { m: 3 } })).toMatchObject({ title: 'Gamma', metadata: { n: 1, m: 3 } })
    await expect(memory.updateThread({ id: 't', resourceId: 'v', title: 'x' })).rejects.toMatchObject(forbidden)
  },
  async deleteThread(memory) {
    if (memory instanceof heed.Memory) await expect(memory.deleteThread({ threadId: 't', resourceId: 'v' })).rejects.toMatchObject(forbidden)
    expect(await memory.deleteThread({ threadId: 't' })).toBe(true)
  },
  async transferThread(memory) {
    if (!(memory instanceof heed.Memory)) return
    await expect(memory.transferThread({ threadId: 't', resourceId: 'w', from: 'v' })).rejects.toMatchObject(forbidden)
    await memory.transferThread({ threadId: 't', resourceId: 'w' })
    expect(await memory.getThreadById({ threadId: 't', resourceId: 'w' })).toMatchObject({ resourceId: 'w' })
  },
  async seekMessages(memory) {
    const ids = async (args: object) => (await memory.seekMessages({ threadId: 't', ...args })).messages.map(({ id }) => id)
    expect(await ids({ around: 'm-1', perPage: 1 })).toEqual(['m-1'])
    expect(await ids({ before: 'm-1' })).toEqual(['m-0'])
    expect(await ids({ after: 'm-2' })).toEqual(['m-3'])
    expect(await ids({ at: 2, perPage: 1 })).toEqual(['m-2'])
    await expect(memory.seekMessages({ ...at, resourceId: 'v', around: 'm-1' })).rejects.toMatchObject(forbidden)
  },
  async saveMessages(memory) {
    const messages = [{ role: 'user' as const, content: 'x' }]
    expect((await memory.saveMessages({ ...at, messages })).messages).toHaveLength(1)
    await expect(memory.saveMessages({ messages, threadId: 't', resourceId: 'v' })).rejects.toMatchObject(forbidden)
  },
  async updateMessages(memory) {
    const moved = new Date('2026-05-01')
    const [changed] = await memory.updateMessages({ messages: [{ id: 'm-0', content: { parts: [{ type: 'text', text: 'Changed' }] }, createdAt: moved }], threadId: 't' })
    expect([JSON.stringify(changed?.content), changed?.createdAt]).toEqual([expect.stringContaining('Changed'), moved])
    const patch = (one: object, more = {}) => memory.updateMessages({ messages: [{ id: 'm-1', ...one }] as never, ...more })
    await rejects(() => patch({ role: 'assistant' }), 'role')
    expect(await patch({ type: 'note' })).toMatchObject([{ type: 'note' }])
    for (const one of [{ threadId: 'none' }, { resourceId: 'other' }]) await expect(patch({ content: { content: 'x' }, ...one })).rejects.toBeInstanceOf(Error)
    for (const more of [{ threadId: 'none' }, { resourceId: 'v' }]) await expect(patch({ content: { content: 'x' } }, more)).rejects.toBeInstanceOf(Error)
  },
  async deleteMessages(memory) {
    expect(await memory.deleteMessages([{ id: 'm-0', threadId: 'second' }])).toBe(0)
    for (const wrong of [{ threadId: 'second', messageIds: [{ id: 'm-0', threadId: 't' }] }, { threadId: 't', resourceId: 'v' }])
      await expect(memory.deleteMessages(wrong as never)).rejects.toBeInstanceOf(Error)
    expect(await memory.deleteMessages([{ id: 'm-0', threadId: 't' }])).toBe(1)
    expect(await memory.deleteMessages({ threadId: 't', messageIds: [{ id: 'm-1' }] } as never)).toBe(1)
    expect(await memory.deleteMessages({ threadId: 't', messageIds: ['m-2'] })).toBe(1)
    expect((await memory.recall({ threadId: 't', perPage: false })).messages.map(({ id }) => id)).toEqual(['m-3'])
  },
  async cloneThread(memory) {
    const copy = { sourceThreadId: 't', title: 'Copy', metadata: { copy: true } }
    const texts = async (options: object) =>
      (await memory.cloneThread({ ...copy, options })).clonedMessages.map(({ content }) => JSON.stringify(content.parts).match(/Text \d/)?.[0])
    expect(await texts({ messageLimit: 1 })).toEqual(['Text 3'])
    expect(await texts({ messageFilter: { startDate: days[2] } })).toEqual(['Text 2', 'Text 3'])
    expect(await texts({ messageFilter: { endDate: days[1] } })).toEqual(['Text 0', 'Text 1'])
    expect(await texts({ messageFilter: { messageIds: ['m-0'] } })).toEqual(['Text 0'])
    const unread = await memory.cloneThread({ ...copy, newThreadId: 'd', readMessages: false })
    expect(unread).toMatchObject({ thread: { id: 'd', title: 'Copy', metadata: { copy: true } } })
    expect('clonedMessages' in unread).toBe(false)
    if (memory instanceof heed.Memory) expect((await memory.cloneThread({ ...copy, resourceId: 'w' })).thread.resourceId).toBe('w')
    else await expect(memory.cloneThread({ ...copy, resourceId: 'w' })).rejects.toMatchObject(forbidden)
  },
  async 'working memory'(memory) {
    await memory.updateWorkingMemory({ ...at, workingMemory: { a: 1, b: 2 } })
    await memory.updateWorkingMemory({ ...at, workingMemory: {}, delete: ['b'], expectedVersion: 1 })
    expect(await memory.getWorkingMemory(at)).toEqual({ a: 1 })
    expect(await memory.getWorkingMemory({ threadId: 'second', resourceId: 'u' })).toBeNull()
    await memory.updateWorkingMemory({ ...at, workingMemory: { b: 3 }, replace: true })
    expect(await memory.getWorkingMemory(at)).toEqual({ b: 3 })
    await expect(memory.updateWorkingMemory({ ...at, workingMemory: {}, expectedVersion: 1 })).rejects.toMatchObject({ code: 'working_memory_conflict' })
    const versions = async (more: object) => (await memory.listWorkingMemoryVersions({ ...at, ...more })).map(({ version }) => version)
    expect([await versions({ limit: 1 }), await versions({ before: 3 })]).toEqual([[3], [2, 1]])
    await expect(memory.undoWorkingMemory({ ...at, version: 1, expectedVersion: 1 })).rejects.toMatchObject({ code: 'working_memory_conflict' })
    await memory.undoWorkingMemory({ ...at, version: 1 })
    expect(await memory.getWorkingMemory(at)).toEqual({ a: 1, b: 2 })
    const wrong = { threadId: 't', resourceId: 'v' }
    for (const call of [
      () => memory.getWorkingMemory(wrong), () => memory.updateWorkingMemory({ ...wrong, workingMemory: {} }), () => memory.listWorkingMemoryVersions(wrong),
      () => memory.undoWorkingMemory({ ...wrong, version: 1 }),
    ]) await expect(call()).rejects.toMatchObject(forbidden)
  },
  async reindex(memory) {
    const progress: unknown[] = []
    await memory.reindex({ onProgress: (one) => void progress.push(one) })
    expect(progress.length).toBeGreaterThan(0)
  },
}

/** `listMessages()` is another name of `recall()`. */
const reads: Record<string, (memory: Either) => Memory['recall']> = {
  recall: (memory) => (args) => memory.recall(args),
  listMessages: (memory) => (args) => memory.listMessages(args),
}

const readFor: Record<string, (read: Memory['recall']) => Promise<void>> = {
  async 'pages and order'(read) {
    const ids = async (args: object) => (await read({ ...at, ...args })).messages.map(({ id }) => id)
    expect(await ids({ perPage: false })).toEqual(['m-0', 'm-1', 'm-2', 'm-3'])
    expect(await ids({ orderBy: { field: 'createdAt', direction: 'DESC' } })).toEqual(['m-3', 'm-2', 'm-1', 'm-0'])
    await rejects(() => ids({ orderBy: { field: 'updatedAt' } }), 'field')
    const page = await read({ ...at, page: 1, perPage: 2, total: true })
    expect([page.messages.map(({ id }) => id), page.total]).toEqual([['m-0', 'm-1'], 4])
    expect((await read({ ...at, total: false })).total).toBeUndefined()
    const newest = await read({ ...at, perPage: 2 })
    expect(await ids({ perPage: 2, cursor: newest.nextCursor ?? '' })).toEqual(['m-0', 'm-1'])
    expect(await ids({ threadConfig: { lastMessages: 1 } })).toEqual(['m-3'])
    await expect(read({ threadId: 't', resourceId: 'v' })).rejects.toMatchObject(forbidden)
  },
  async 'a range of dates, and included messages'(read) {
    const ids = async (args: object) => (await read({ threadId: 't', perPage: false, ...args })).messages.map(({ id }) => id)
    expect(await ids({ filter: { dateRange: { start: days[1], end: days[2] } } })).toEqual(['m-1', 'm-2'])
    expect(await ids({ filter: { dateRange: { start: days[1], startExclusive: true, end: days[3], endExclusive: true } } })).toEqual(['m-2'])
    expect(await ids({ perPage: 0, include: [{ id: 'm-1', withPreviousMessages: 1, withNextMessages: 1 }] })).toEqual(['m-0', 'm-1', 'm-2'])
    expect(await ids({ perPage: 0, include: [{ id: 'm-1', threadId: 't' }] })).toEqual(['m-1'])
    await expect(ids({ perPage: 0, include: [{ id: 'm-1', threadId: 'second' }] })).resolves.toEqual([])
  },
  async 'a search, and options that it does not use'(read) {
    const ids = async (threadConfig: object) => (await read({ ...at, perPage: 1, vectorSearchString: 'dogs', threadConfig })).messages.map(({ id }) => id)
    expect(await ids({ semanticRecall: { messageRange: 0 } })).toEqual(['m-1'])
    for (const [name, value] of Object.entries({ window: { low: 1, high: 2 }, workingMemory: { enabled: true }, generateTitle: true }))
      await rejects(() => ids({ [name]: value }), name)
    // A search writes nothing, whatever these say: their values are checked.
    for (const name of ['readOnly', 'save']) await rejects(() => ids({ [name]: 'yes' }), name)
    // A whole window is refused since a search has no run, half of one as no window.
    expect(await ids({ window: { low: 1, high: 2 } }).catch(({ message }: Error) => message)).toContain('has no run')
  },
}

/** Why a search finds messages, or does not. */
async function explained(memory: Either): Promise<void> {
  const explain = async (args: object) => (await memory.explainRecall({ ...at, perPage: 1, vectorSearchString: 'dogs', ...args })).messages
  const missing = async (args: object) => (await explain({ message: { id: 'm-1' }, ...args }))[0]?.missing
  expect((await explain({})).map(({ messageId }) => messageId)).toEqual(['m-1'])
  expect(await explain({ message: { id: 'm-1', threadId: 't' } })).toMatchObject([{ found: true, rank: 1 }])
  await expect(explain({ message: { id: 'm-1', threadId: 'second' } })).rejects.toMatchObject({ code: 'not_found' })
  expect(await missing({ vectorSearchString: 'horses' })).toBe('unrelated')
  expect(await missing({ filter: { dateRange: { start: days[2] } } })).toBe('filter')
  expect(await missing({ filter: { dateRange: { end: days[0] } } })).toBe('filter')
  expect(await missing({ filter: { dateRange: { start: days[1], startExclusive: true } } })).toBe('filter')
  expect(await missing({ filter: { dateRange: { end: days[1], endExclusive: true } } })).toBe('filter')
  const [second, ...none] = await explain({ perPage: 5, message: { id: 'm-0' } })
  expect([second?.found, none]).toEqual([true, []])
  expect(await missing({ message: { id: 'm-0' } })).toBe('rank')
  expect(await missing({ threadConfig: { semanticRecall: { filter: { role: 'assistant' } } } })).toBe('filter')
  for (const [name, value] of Object.entries({ window: { low: 1, high: 2 }, workingMemory: { enabled: true }, generateTitle: true }))
    await rejects(() => explain({ threadConfig: { [name]: value } }), name)
  for (const name of ['readOnly', 'save', 'lastMessages']) await rejects(() => explain({ threadConfig: { [name]: 'yes' } }), name)
  expect(await explain({ threadConfig: { window: { low: 1, high: 2 } } }).catch(({ message }: Error) => message)).toContain('has no run')
  await expect(explain({ resourceId: 'v' })).rejects.toMatchObject(forbidden)
  await rejects(() => explain({ limit: 1 }), 'limit')
  await rejects(() => explain({ message: { id: 'm-0', at: 1 } }), 'at')
}

/** Names that they do not have. */
const unknown: Probe = {
  title: 'Memory: unknown names are rejected',
  async run() {
    const memory = await filled()
    const copy = { sourceThreadId: 't' }
    for (const [call, name] of [
      [() => memory.createThread({ ...at, kind: 1 } as never), 'kind'], [() => memory.listThreads({ limit: 1 } as never), 'limit'],
      [() => memory.listThreads({ filter: { title: 'x' } } as never), 'title'], [() => memory.listThreads({ orderBy: { field: 'title' } } as never), 'field'],
      [() => memory.updateThread({ id: 'a', name: 'x' } as never), 'name'], [() => memory.cloneThread({ ...copy, name: 'x' } as never), 'name'],
      [() => memory.cloneThread({ ...copy, options: { limit: 1 } } as never), 'limit'], [() => memory.getThreadById({ threadId: 'a', id: 1 } as never), 'id'],
      [() => memory.recall({ ...at, limit: 1 } as never), 'limit'], [() => memory.recall({ ...at, filter: { role: 'user' } } as never), 'role'],
      [() => memory.saveMessages({ messages: [], thread: 't' } as never), 'thread'], [() => memory.updateMessages({ messages: [], thread: 't' } as never), 'thread'],
      [() => memory.reindex({ progress: 1 } as never), 'progress'], [() => memory.getWorkingMemory({ ...at, scope: 'x' } as never), 'scope'],
      [() => memory.updateWorkingMemory({ ...at, workingMemory: {}, merge: true } as never), 'merge'],
      [() => memory.listWorkingMemoryVersions({ ...at, after: 1 } as never), 'after'], [() => memory.undoWorkingMemory({ ...at, to: 1 } as never), 'to'],
    ] as const) await rejects(call, name)
  },
}

/** Every option of every method of a memory, of both classes. */
export const memories: Probe[] = [unknown, ...Object.entries(kinds).flatMap(([kind, of]) => [
  ...Object.entries(shownFor).map(([what, show]) => ({
    title: `${kind}: ${what}`,
    async run() {
      const all = await filled()
      await show(of(all), all)
    },
  })),
  { title: `${kind}.explainRecall`, run: async () => explained(of(await filled())) },
  ...Object.entries(reads).flatMap(([method, read]) => Object.entries(readFor).map(([what, show]) => ({
    title: `${kind}.${method}: ${what}`,
    run: async () => show(read(of(await filled()))),
  }))),
])]
