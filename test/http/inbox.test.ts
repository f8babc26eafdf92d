import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/index.ts'
import { apiKeys } from '../../src/http/server.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

const guide = () => new Agent({ id: 'guide', model: scriptedModel(['Noted.'], { loop: true }), notifications: { deliveryPolicy: { default: 'persist' } } })
const ci = { source: 'github', kind: 'ci-status', summary: 'CI failed on main.', payload: { tests: 3 } }

describe('notifications over HTTP', () => {
  it('[H1.3] are sent, listed, read and marked', async () => {
    const { client } = await served({ guide: guide() })
    const { notifications } = client.getAgent('guide')
    const sent = await notifications.send({ ...thread, notification: ci })
    expect(sent).toMatchObject({ accepted: true, record: { status: 'pending', summary: ci.summary }, decision: { action: 'persist' } })
    const several = await notifications.sendAll({ ...thread, notifications: [{ ...ci, source: 'email' }, { ...ci, source: 'slack', priority: 'low' }] })
    expect(several.map(({ record }) => record.source)).toEqual(['email', 'slack'])
    const list = await notifications.list({ ...thread, status: ['pending', 'seen'], priority: ['medium'], limit: 1 })
    expect([list.notifications.map(({ source }) => source), list.more, list.counts]).toEqual([['email'], true, { pending: 3 }])
    expect(await notifications.get({ ...thread, id: sent.record.id })).toMatchObject({ payload: { tests: 3 } })
    expect(await notifications.mark({ ...thread, ids: [sent.record.id, 'nothing'], status: 'dismissed' })).toMatchObject([{ id: sent.record.id, status: 'dismissed' }])
    expect((await notifications.list({ ...thread, search: 'ci failed' })).counts).toEqual({ pending: 2, dismissed: 1 })
    expect(await notifications.retry({ ...thread, ids: [sent.record.id] })).toBe(0)
    await expect(notifications.get({ ...thread, id: 'nothing' })).rejects.toMatchObject({ code: 'not_found' })
  })

  it('[H1.2] are one under one key, also after their delivery', async () => {
    const model = scriptedModel(['Noted.'], { loop: true })
    const { ask } = await served({ guide: new Agent({ id: 'guide', model }) })
    const send = async (body: object, key = 'key-1') => (await ask('/agents/guide/notifications', { json: { ...thread, ...body }, headers: { 'idempotency-key': key } })).json() as Promise<{ record: { id: string }; results?: Array<{ record: { id: string } }> }>
    const answers = await Promise.all([send({ notification: ci }), send({ notification: ci })])
    answers.push(await send({ notification: ci }))
    expect(answers.map(({ record }) => record.id)).toEqual(['key-1', 'key-1', 'key-1'])
    for (let times = 0; times < 2; times++) expect((await send({ notifications: [ci, ci] }, 'key-2')).results?.map(({ record }) => record.id)).toEqual(['key-2', 'key-2:1'])
    await expect.poll(async () => (await (await ask('/agents/guide/active-threads')).json() as { threads: [] }).threads).toEqual([])
    const { messages } = (await (await ask('/memory/threads/thread-1/messages?resourceId=user-1')).json()) as { messages: Array<{ role: string }> }
    expect(messages.filter(({ role }) => role === 'signal')).toHaveLength(3)
  })

  it('[H3.2] show nothing of another resource, and let it mark nothing', async () => {
    const auth = apiKeys({ 'a-long-random-key-1': { id: 'one', resources: ['user-1'] }, 'a-long-random-key-2': { id: 'two', resources: ['user-2'] } })
    const { ask } = await served({ guide: guide() }, { auth })
    const as = (name: 1 | 2) => ({ authorization: `Bearer a-long-random-key-${name}` })
    await ask('/agents/guide/send-message?wait=outcome', { json: { message: 'Hi', ...thread }, headers: as(1) })
    const sent = (await (await ask('/agents/guide/notifications', { json: { threadId: 'thread-1', notification: ci }, headers: as(1) })).json()) as { record: { id: string } }
    const path = '/agents/guide/threads/thread-1/notifications'
    expect(await (await ask(path, { headers: as(2) })).json()).toEqual({ notifications: [], more: false, counts: {} })
    expect((await ask(`${path}/${sent.record.id}`, { headers: as(2) })).status).toBe(404)
    // Like the inbox of a thread that does not exist: see told.test.ts.
    expect(await (await ask(`${path}/mark`, { json: { ids: [sent.record.id], status: 'archived' }, headers: as(2) })).json()).toEqual({ notifications: [] })
    expect((await ask('/agents/guide/notifications', { json: { threadId: 'thread-1', notification: ci }, headers: as(2) })).status).toBe(403)
    expect(await (await ask(`${path}/${sent.record.id}`, { headers: as(1) })).json()).toMatchObject({ status: 'pending' })
  })
})
