import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/index.ts'
import { apiKeys } from '../../src/http/server.ts'
import { HeedClient } from '../../src/client/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served } from './serving.ts'

const keys = { one: 'a-long-random-key-1', two: 'a-long-random-key-2' }
const auth = apiKeys({ [keys.one]: { id: 'one', resources: ['user-1'] }, [keys.two]: { id: 'two', resources: ['user-2'] } })
const as = (name: keyof typeof keys) => ({ authorization: `Bearer ${keys[name]}` })

/** Ten messages in each of two threads of one resource, and in one of another. */
async function world() {
  const { ask, server } = await served({ guide: new Agent({ id: 'guide', model: scriptedModel([]) }) }, { auth })
  const memoryOf = (name: keyof typeof keys) => new HeedClient({ baseUrl: server.url, headers: as(name) }).memory()
  for (const [name, threadId, resourceId] of [['one', 'a', 'user-1'], ['one', 'b', 'user-1'], ['two', 'c', 'user-2']] as const) {
    await memoryOf(name).createThread({ threadId })
    const messages = Array.from({ length: 10 }, (_, index) => ({
      id: `${threadId}${index}`, role: 'user' as const, threadId, resourceId, createdAt: new Date(1_000 * index), content: { format: 2 as const, parts: [{ type: 'text' as const, text: `Secret ${index}` }] },
    }))
    await memoryOf(name).saveMessages({ messages })
  }
  const list = async (search: Record<string, string>, who: keyof typeof keys = 'one') => {
    const response = await ask(`/memory/threads/${who === 'one' ? 'a' : 'c'}/messages?${new URLSearchParams(search)}`, { headers: as(who) })
    const body = (await response.json()) as { messages?: Array<{ id: string }>; code?: string }
    return { status: response.status, code: body.code, ids: body.messages?.map(({ id }) => id), body }
  }
  return { list, memory: memoryOf('one') }
}

describe('messages that are named', () => {
  it('[H6.4] come with their neighbors beside the page, or alone', async () => {
    const { list, memory } = await world()
    const include = [{ id: 'a2', withPreviousMessages: 1, withNextMessages: 2 }]
    expect((await list({ perPage: '1', include: JSON.stringify(include) })).ids).toEqual(['a1', 'a2', 'a3', 'a4', 'a9'])
    expect((await list({ include: JSON.stringify(include) })).ids).toEqual(['a1', 'a2', 'a3', 'a4'])
    expect((await memory.listMessages({ threadId: 'a', perPage: 1, include })).messages.map(({ id }) => id)).toEqual(['a1', 'a2', 'a3', 'a4', 'a9'])
    expect((await memory.listMessages({ threadId: 'a', include: [{ id: 'b5', threadId: 'b' }] })).messages.map(({ id }) => id)).toEqual(['b5'])
    expect((await list({})).ids).toHaveLength(10)
  })

  it('[H6.4] of another resource are answered like those of a missing thread', async () => {
    const { list } = await world()
    for (const more of [{}, { perPage: '2' }] as Array<Record<string, string>>) {
      const own = await list({ ...more, include: JSON.stringify([{ id: 'a2' }]) }, 'two')
      const foreign = await list({ ...more, include: JSON.stringify([{ id: 'a2', threadId: 'a', withPreviousMessages: 5 }]) }, 'two')
      const none = await list({ ...more, include: JSON.stringify([{ id: 'a2', threadId: 'nowhere', withPreviousMessages: 5 }]) }, 'two')
      expect(foreign).toEqual(none)
      expect([own.ids, foreign.status, foreign.ids]).toEqual([none.ids, 200, more.perPage ? ['c8', 'c9'] : []])
    }
  })

  it.each([
    ['5'], ['[5]'], ['{"messages":5}'], ['not json'], ['[{}]'], ['[{"id":""}]'], ['[{"id":"a2","withNextMessages":-1}]'], ['[{"id":"a2","withNextMessages":"1"}]'], ['[{"id":"a2","with":1}]'], ['[{"id":"a2","withNextMessages":1001}]'],
    [JSON.stringify(Array.from({ length: 101 }, () => ({ id: 'a2' })))],
  ])('[H6.4] [H4.1] include=%s is refused by name', async (include) => {
    const { list } = await world()
    expect(await list({ include })).toMatchObject({ status: 400, code: 'invalid_argument' })
  })

  it.each([['{"dateRange":5}'], ['{"dateRange":{"start":5}}'], ['{"dateRange":{"start":"soon"}}'], ['5']])('[H4.1] filter=%s is refused by name', async (filter) => {
    const { list } = await world()
    expect(await list({ filter })).toMatchObject({ status: 400, code: 'invalid_argument' })
    expect((await list({ filter: '{"dateRange":{"start":"1970-01-01T00:00:08Z"}}' })).ids).toEqual(['a8', 'a9'])
  })
})
