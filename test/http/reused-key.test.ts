import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/index.ts'
import type { ServeOptions } from '../../src/http/server.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

interface Told {
  http: number
  code?: string
  duplicate?: true
  record?: { id: string; coalescedCount: number }
  results?: Array<{ duplicate?: true; record: { id: string } }>
  [field: string]: unknown
}

async function world(options: ServeOptions = {}) {
  const agent = new Agent({ id: 'guide', model: scriptedModel(['Hello.'], { loop: true }), notifications: { deliveryPolicy: { default: 'persist' } } })
  const { ask, client } = await served({ guide: agent }, options)
  const send = async (path: string, json: object, key?: string): Promise<Told> => {
    const response = await ask(`/agents/guide/${path}`, { json: { ...thread, ...json }, headers: key === undefined ? {} : { 'idempotency-key': key } })
    return { ...((await response.json()) as object), http: response.status }
  }
  return { agent, send, client, guide: client.getAgent('guide') }
}

const one = { source: 'ci', kind: 'status', summary: 'One.', payload: { b: 1, a: [2] }, attributes: { branch: 'main', at: 3 }, metadata: { x: { y: 1 } } }
const reused = { http: 409, code: 'idempotency_key_reused' }

describe('one key for one thing', () => {
  it('[H6.5] a notification is answered as it is there, and another is refused', async () => {
    const { send, guide } = await world()
    const first = await send('notifications', { notification: one }, 'key-1')
    expect(first).toMatchObject({ http: 200, record: { id: 'key-1' } })
    expect(first.duplicate).toBeUndefined()
    const { attributes, ...rest } = one
    expect(await send('notifications', { notification: { attributes, ...rest, payload: { a: [2], b: 1 } } }, 'key-1')).toMatchObject({ http: 200, record: first.record, duplicate: true })
    for (const other of [{ summary: 'Two.' }, { priority: 'urgent' }, { payload: 5 }, { kind: 'x' }, { attributes: {} }, { dedupeKey: 'd' }]) {
      expect(await send('notifications', { notification: { ...one, ...other } }, 'key-1'), JSON.stringify(other)).toMatchObject(reused)
    }
    const { notifications } = await guide.notifications.list(thread)
    expect(notifications).toMatchObject([{ id: 'key-1', summary: 'One.', priority: 'medium', coalescedCount: 1 }])
  })

  it('[H6.5] a list of notifications is one thing, with its length', async () => {
    const { send, guide } = await world()
    const list = (...summaries: string[]) => send('notifications', { notifications: summaries.map((summary) => ({ ...one, summary })) }, 'key-1')
    await list('One.', 'Two.')
    expect((await list('One.', 'Two.')).results).toMatchObject([{ duplicate: true, record: { id: 'key-1' } }, { duplicate: true, record: { id: 'key-1:1' } }])
    for (const other of [['One.'], ['One.', 'Three.'], ['One.', 'Two.', 'Three.'], ['Two.', 'One.']]) expect(await list(...other), other.join()).toMatchObject(reused)
    expect((await guide.notifications.list(thread)).notifications).toHaveLength(2)
  })

  it('[H6.5] a notification that was counted on another, or replaced by a newer state, is still itself', async () => {
    const { send, guide } = await world()
    const counted = { ...one, dedupeKey: 'd' }
    await send('notifications', { notification: counted }, 'key-1')
    await send('notifications', { notification: counted }, 'key-2')
    expect(await send('notifications', { notification: counted }, 'key-2')).toMatchObject({ http: 200, record: { id: 'key-1', coalescedCount: 2 } })
    const state = (summary: string, key: string) => send('notifications', { notification: { ...one, summary, coalesceKey: 'c' } }, key)
    await state('Red.', 'key-3')
    await state('Green.', 'key-4')
    expect(await state('Red.', 'key-3')).toMatchObject({ http: 200, duplicate: true, record: { id: 'key-3', summary: 'Green.', coalescedCount: 2 } })
    expect(await send('notifications', { notification: one }, 'key-3')).toMatchObject(reused)
    expect((await guide.notifications.list(thread)).notifications).toHaveLength(2)
  })

  it('[H6.5] of different notifications at once under one key, one is there', async () => {
    const { send, guide } = await world()
    const told = await Promise.all(Array.from({ length: 8 }, (_, index) => send('notifications', { notification: { ...one, summary: `${index}` } }, 'key-1')))
    expect(told.filter(({ http }) => http === 200)).toHaveLength(1)
    expect(told.filter(({ code }) => code === 'idempotency_key_reused')).toHaveLength(7)
    expect((await guide.notifications.list(thread)).notifications).toMatchObject([{ summary: `${told.findIndex(({ http }) => http === 200)}` }])
  })

  it.each([
    ['of one length', (index: number) => [`${index}`, 'Same.', `${index}`]],
    ['of several lengths', (index: number) => ['Same.', ...Array.from({ length: index }, (_, at) => `${at}`)]],
  ])('[H6.5] of different lists %s at once under one key, one is there, and nothing of the others', async (_what, summaries) => {
    const all = Promise.withResolvers<void>()
    let waiting = 0
    // None of them looks for the key before all of them are here.
    const { send, guide } = await world({
      async requestContext() {
        if (++waiting === 8) all.resolve()
        await all.promise
        return {}
      },
    })
    const told = await Promise.all(Array.from({ length: 8 }, (_, index) => send('notifications', { notifications: summaries(index).map((summary) => ({ ...one, summary })) }, 'key-1')))
    expect(told.filter(({ http }) => http === 200)).toHaveLength(1)
    expect(told.filter(({ code }) => code === 'idempotency_key_reused')).toHaveLength(7)
    const { notifications } = await guide.notifications.list(thread)
    expect(notifications.map(({ summary }) => summary).toReversed()).toEqual(summaries(told.findIndex(({ http }) => http === 200)))
  })

  it('[H6.5] nothing is left of another list where the first of those that are there was counted on another', async () => {
    const { send, guide } = await world()
    const counted = { ...one, dedupeKey: 'd' }
    await send('notifications', { notification: counted }, 'key-0')
    const two = { ...one, summary: 'Two.' }
    expect(await send('notifications', { notifications: [counted, two] }, 'key-1')).toMatchObject({ http: 200 })
    for (const other of [[counted, one], [counted, two, one], [one, two], [counted]]) expect(await send('notifications', { notifications: other }, 'key-1')).toMatchObject(reused)
    expect(await send('notifications', { notifications: [counted, two] }, 'key-1')).toMatchObject({ http: 200 })
    expect((await guide.notifications.list(thread)).notifications).toHaveLength(2)
  })

  it('[H6.5] a schedule is answered as it is there, and another is refused', async () => {
    const { send, guide } = await world()
    const yearly = { message: 'Ring!', cron: '0 0 1 1 *' }
    const first = await send('schedules', yearly, 'key-1')
    const id = String(first.id)
    expect([first.http, id, first.duplicate]).toEqual([200, expect.stringMatching(/^key-[0-9a-f]{32}$/), undefined])
    await guide.schedules.pause({ id, resourceId: 'user-1' })
    expect(await send('schedules', yearly, 'key-1')).toMatchObject({ http: 200, id, createdAt: first.createdAt, duplicate: true })
    expect((await guide.schedules.get({ id })).status).toBe('paused')
    for (const other of [{ message: 'Rang!' }, { cron: '0 0 2 1 *' }, { timeZone: 'Europe/Zurich' }, { threadId: 'thread-2' }, { overlap: 'skip' }, { missed: 'all' }]) {
      expect(await send('schedules', { ...yearly, ...other }, 'key-1'), JSON.stringify(other)).toMatchObject(reused)
    }
    const told = await Promise.all(Array.from({ length: 8 }, (_, index) => send('schedules', { message: `${index}`, every: 3_600_000 }, 'key-2')))
    expect(told.filter(({ code }) => code === 'idempotency_key_reused')).toHaveLength(7)
  })

  it.each([
    ['send-message', { message: { contents: 'm', id: 'mine' } }],
    ['queue-message', { message: { contents: 'm', id: 'mine' } }],
    ['signals', { signal: { type: 'reactive', contents: 'm', id: 'mine' } }],
    ['state-signals', { state: { id: 'lane', cacheKey: 'k', contents: 'm', signalId: 'mine' } }],
    ['notifications', { notification: { ...one, id: 'mine' } }],
    ['notifications', { notifications: [{ ...one, id: 'key-1' }, { ...one, id: 'mine' }] }],
    ['schedules', { id: 'mine', message: 'm', every: 3_600_000 }],
  ])('[H6.5] %s: what has an id of its own is refused beside another key, and taken without one', async (path, body) => {
    const { agent, send } = await world()
    expect(await send(path, body, 'key-1')).toMatchObject({ http: 400, code: 'invalid_argument', details: { field: 'Idempotency-Key' } })
    expect(await agent.activeRun(thread)).toBeNull()
    expect((await send(path, body)).http).toBe(200)
  })

  it('[H6.5] the client sends what has an id by that, and repeats it', async () => {
    const { guide } = await world()
    const message = { contents: 'm', id: 'mine' }
    expect(await guide.sendMessage({ message, ...thread })).toMatchObject({ signal: { id: 'mine' } })
    expect(await guide.sendMessage({ message, ...thread })).toMatchObject({ signal: { id: 'mine' }, duplicate: true })
    expect(await guide.sendSignal({ signal: { type: 'reactive', contents: 'x', id: 'signal-1' }, ...thread })).toMatchObject({ signal: { id: 'signal-1' } })
    expect(await guide.sendStateSignal({ state: { id: 'lane', cacheKey: 'k', contents: 'x', signalId: 'signal-2' }, ...thread })).toMatchObject({ signal: { id: 'signal-2' } })
    expect(await guide.notifications.send({ notification: { ...one, id: 'n-1' }, ...thread })).toMatchObject({ record: { id: 'n-1' } })
    const all = await guide.notifications.sendAll({ notifications: [one, { ...one, id: 'n-2' }], ...thread })
    expect(all.map(({ record }) => record.id)).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), 'n-2'])
    expect(await guide.schedules.create({ id: 's-1', message: 'x', every: 3_600_000, ...thread })).toMatchObject({ id: 's-1' })
  })
})
