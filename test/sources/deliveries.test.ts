import { describe, expect, it, onTestFinished } from 'vitest'
import { Agent, Heed, InMemoryStore, silentLogger, type Logger } from '../../src/index.ts'
import { WebhookSignals } from '../../src/sources/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { listening, persist, storages, thread } from './listening.ts'
import { secret, standard } from './signing.ts'

const order = JSON.stringify({ type: 'order.paid', resource: 'order-7' })
const guide = { agentId: 'guide', externalId: 'order-7' }

describe.each(storages)('deliveries, %s', (_, storage) => {
  it('[E1.5] takes the very same bytes again after a failure, and refuses them once they are stored', async () => {
    const { webhook, post, inbox } = await listening({ storage: storage() })
    await webhook.subscribe({ ...thread, ...guide })
    const { deliver } = webhook
    webhook.deliver = () => Promise.reject(new Error('the disk is full'))
    const request = standard(order)
    expect((await post('shop', request)).status).toBe(500)
    webhook.deliver = deliver
    expect(await post('shop', request)).toEqual({ status: 200, body: { delivered: 1 } })
    expect(await inbox()).toHaveLength(1)
    expect((await post('shop', request)).status).toBe(401)
  })

  it('[E1.2] takes an attempt that was signed earlier and comes later as the same event', async () => {
    const { webhook, post, inbox } = await listening({ storage: storage() })
    await webhook.subscribe({ ...thread, ...guide })
    const at = Date.now()
    const early = standard(order, { at: at - 3_000 })
    expect([(await post('shop', standard(order, { at }))).status, (await post('shop', early)).status, (await post('shop', early)).status]).toEqual([200, 200, 401])
    expect(await inbox()).toHaveLength(1)
  })

  it('[E1.8] subscribes only agents that are here, and threads of the resource that asks', async () => {
    const { webhook, agent } = await listening({ storage: storage() })
    await agent.generate('Hi', { memory: { thread: 'a', resource: 'user-1' } })
    await expect(webhook.subscribe({ ...thread, externalId: 'order-7', agentId: 'gone' })).rejects.toMatchObject({ code: 'unknown_agent' })
    await expect(webhook.subscribe({ ...guide, threadId: 'a', resourceId: 'user-2' })).rejects.toMatchObject({ code: 'thread_forbidden' })
    await expect(webhook.subscribe({ ...thread, ...guide, externalId: '' })).rejects.toMatchObject({ code: 'invalid_argument', details: { field: 'externalId' } })
    expect((await webhook.listSubscriptions()).subscriptions).toEqual([])
  })

  it('[E1.3] notifies every other thread when one can never be notified, and names none to the sender', async () => {
    const place = storage()
    const { webhook, post, inbox, agent } = await listening({ storage: place })
    await agent.generate('Hi', { memory: { thread: 'a', resource: 'user-1' } })
    // As they could be left from before these checks.
    await (await place.getStore('subscriptions'))?.putSubscription({ ...guide, sourceId: 'shop', threadId: 'a', resourceId: 'user-2', metadata: {}, now: 1 })
    await webhook.subscribe({ ...guide, threadId: 'b', resourceId: 'user-2' })
    expect(await post('shop', standard(order))).toEqual({ status: 200, body: { delivered: 1 } })
    expect(await inbox({ threadId: 'b', resourceId: 'user-2' })).toHaveLength(1)
    expect(await inbox({ threadId: 'a' })).toEqual([])
  })

  it('[E1.5] answers no 2xx while a thread could still be notified, notifies all others meanwhile, and each once', async () => {
    const place = storage()
    const told: unknown[] = []
    const logger: Logger = { ...silentLogger, error: (message, fields) => void told.push([message, fields]) }
    const { webhook, post, inbox } = await listening({ storage: place, logger })
    const threads = ['a', 'b', 'c'].map((threadId) => ({ threadId, resourceId: 'user-1' }))
    for (const one of threads) await webhook.subscribe({ ...one, ...guide })
    const notifications = await place.getStore('notifications')
    const ingest = notifications?.ingest
    if (!notifications || !ingest) throw new Error('no inbox')
    notifications.ingest = (items) => (items.some(({ threadId }) => threadId === 'a') ? Promise.reject(new Error('thread a of user-1: the disk is full')) : ingest.call(notifications, items))
    const request = standard(order)
    const answer = await post('shop', request)
    expect(answer.status).toBe(503)
    expect(JSON.stringify(answer.body)).not.toMatch(/user-1|thread a|"a"/)
    expect(told[0]).toMatchObject(['threads could not be notified of an event', { threadIds: ['a'] }])
    expect(await Promise.all(threads.map(async (one) => (await inbox(one)).length))).toEqual([0, 1, 1])
    notifications.ingest = ingest
    expect(await post('shop', request)).toEqual({ status: 200, body: { delivered: 3 } })
    expect(await Promise.all(threads.map(async (one) => (await inbox(one)).length))).toEqual([1, 1, 1])
  })

  it('[E1.5] keeps what is for an agent of another process, which decides about it', async () => {
    const place = storage()
    const { post, inbox } = await listening({ storage: place })
    await (await place.getStore('subscriptions'))?.putSubscription({ sourceId: 'shop', externalId: 'order-7', ...thread, agentId: 'elsewhere', metadata: {}, now: 1 })
    expect(await post('shop', standard(order))).toEqual({ status: 200, body: { delivered: 1 } })
    expect(await inbox()).toMatchObject([{ agentId: 'elsewhere', status: 'pending' }])
    const agent = new Agent({ id: 'elsewhere', model: scriptedModel(['Noted.']), notifications: persist })
    const other = new Heed({ agents: { agent }, storage: place, logger: silentLogger, clock: virtualClock(Date.now() + 60_000) })
    onTestFinished(() => other.close())
    await agent.sendNotificationSignal({ source: 's', kind: 'k', summary: 'x' }, { threadId: 't2', resourceId: 'user-1' })
    await expect.poll(async () => (await other.tick(), inbox())).toMatchObject([{ agentId: 'elsewhere', deliveryAction: 'persist' }])
  })

  it('[E1.8] a deleted thread receives no event, and no event creates it again', async () => {
    const { webhook, post, inbox, agent } = await listening({ storage: storage(), notifications: {}, webhook: { notification: () => ({ kind: 'paid', summary: 'Paid.', priority: 'urgent' }) } })
    await agent.generate('Hi', { memory: { thread: 't1', resource: 'user-1' } })
    await webhook.subscribe({ ...thread, ...guide })
    const memory = await agent.getMemory()
    await memory.deleteThread('t1')
    expect((await webhook.listSubscriptions()).subscriptions).toEqual([])
    expect(await post('shop', standard(order))).toEqual({ status: 200, body: { delivered: 0 } })
    expect(await memory.getThreadById({ threadId: 't1' })).toBeNull()
    expect(await inbox()).toEqual([])
  })

  it('[E1.8] a thread that is transferred receives events under its new resource', async () => {
    const { webhook, post, inbox, agent } = await listening({ storage: storage() })
    await agent.generate('Hi', { memory: { thread: 't1', resource: 'user-1' } })
    await webhook.subscribe({ ...thread, ...guide })
    await (await agent.getMemory()).transferThread({ threadId: 't1', resourceId: 'user-2' })
    expect(await post('shop', standard(order))).toEqual({ status: 200, body: { delivered: 1 } })
    expect(await inbox({ threadId: 't1', resourceId: 'user-2' })).toHaveLength(1)
  })
})

describe('what a webhook may look like', () => {
  it('[E1.3] finds what an event is about where Standard Webhooks recommends to put it', async () => {
    const { webhook, post } = await listening()
    await webhook.subscribe({ ...thread, ...guide })
    expect((await post('shop', standard(JSON.stringify({ type: 'order.paid', timestamp: '2026-01-01T00:00:00Z', data: { resource: 'order-7' } })))).body).toEqual({ delivered: 1 })
  })

  it('[E1.2] reads CloudEvents with any JSON as data, whatever the case of their media type, and with long ids', async () => {
    const { webhook, post, inbox } = await listening({ webhook: { acceptUnsignedHeaders: true } })
    await webhook.subscribe({ ...thread, ...guide })
    const binary = { 'ce-specversion': '1.0', 'ce-source': '/s', 'ce-type': 't', 'ce-subject': 'order-7' }
    const envelope = (id: string, type: string) => JSON.stringify({ specversion: '1.0', id, source: '/s', type, subject: 'order-7' })
    const media = 'Application/CloudEvents+JSON; charset=utf-8'
    const requests = [
      standard('[1]', { id: 'a', 'ce-id': '1', ...binary }), standard('"x"', { id: 'b', 'ce-id': '2', ...binary }), standard(envelope('3', 't'), { id: 'c', 'content-type': media }),
      standard(envelope('x'.repeat(2_000), 't'), { id: 'd', 'content-type': media }), standard(envelope('x'.repeat(2_000), 't'), { id: 'e', 'content-type': media }), standard(envelope('5', 't'.repeat(300)), { id: 'f', 'content-type': media }),
      standard(JSON.stringify({ type: '', resource: 'order-7' }), { id: 'g' }),
    ]
    for (const request of requests) expect(await post('shop', request)).toEqual({ status: 200, body: { delivered: 1 } })
    expect((await inbox()).map(({ payload }) => payload)).toEqual(expect.arrayContaining([[1], 'x']))
    expect(await inbox()).toHaveLength(6)
  })

  it('[E1.1] refuses a secret that is no key: any sender could sign with what is left of it', () => {
    for (const wrong of ['whsec_!!!!!!!!!!!!!!!!', 'whsec_c2VjcmV0LXNlY3JldA==', 'whsec_====================', [secret, 'whsec_????????????????']]) {
      expect(() => new WebhookSignals({ secret: wrong })).toThrow(expect.objectContaining({ code: 'invalid_argument', details: { option: 'secret' } }))
    }
    expect(new WebhookSignals({ secret: 'a-secret-without-the-prefix' }).id).toBe('webhook')
    expect(() => new Heed({ storage: new InMemoryStore(), sources: [new WebhookSignals({ secret })] })).not.toThrow()
  })
})
