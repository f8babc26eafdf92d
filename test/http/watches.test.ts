import { describe, expect, it, onTestFinished } from 'vitest'
import type { Clock } from '../../src/base/clock.ts'
import { Channel, directChannel } from '../../src/channel/index.ts'
import { HeedClient } from '../../src/client/index.ts'
import { WatchedThread } from '../../src/client/react/index.ts'
import { apiKeys, serve } from '../../src/http/server.ts'
import { Agent, Heed, InMemoryStore, silentLogger } from '../../src/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { soon } from '../thread/said.ts'

const keys = { ada: 'key-of-ada-000000000000', bob: 'key-of-bob-000000000000' }
const code = { type: 'string', pattern: '^[0-9]{6}$', maxLength: 6 } as const
const watch = { description: 'the code of the bank', expected_channels: ['sms'], result_schema: code }
const here = { threadId: 'login' }

/** A server for two tenants, with a phone of the first one. */
async function world({ clock }: { clock?: Clock } = {}) {
  const phone = directChannel({ kind: 'sms' })
  const judging = scriptedModel(() => ({ toolCalls: [{ toolName: 'complete_task', input: { result: '482913' } }] }))
  const model = scriptedModel(() => 'Noted.')
  const heed = new Heed({
    agents: Object.fromEntries(['guide', 'other'].map((id) => [id, new Agent({ id, model, watches: { model: judging } })])),
    storage: new InMemoryStore(clock ? { clock } : {}), ...(clock && { clock }), logger: silentLogger,
    channels: [new Channel({ id: 'phone', adapter: phone, resourceId: 'ada' })],
  })
  const auth = apiKeys({ [keys.ada]: { id: 'ada', resources: ['ada'] }, [keys.bob]: { id: 'bob', resources: ['bob'] } })
  const server = await serve(heed, { port: 0, handleSignals: false, auth })
  onTestFinished(() => server.close())
  const client = (key: string) => new HeedClient({ baseUrl: server.url, headers: { authorization: `Bearer ${key}` } })
  const deliver = (providerId: string, text: string) => phone.deliver({ providerId, sender: { address: '+15550100', verified: true }, text })
  return { url: server.url, ada: client(keys.ada).getAgent('guide'), adaOther: client(keys.ada).getAgent('other'), bob: client(keys.bob).getAgent('guide'), deliver, model }
}

describe('watches over HTTP', () => {
  it('[V1.23] a client waits for a message, and reads which messages were considered and why', async () => {
    const { ada, deliver, model } = await world()
    const open = await ada.awaitSignal({ ...here, watch })
    expect(open).toMatchObject({ state: 'open', resourceId: 'ada', threadId: 'login', agentId: 'guide', description: watch.description })
    expect(await ada.listWatches({ state: 'open' })).toMatchObject({ watches: [{ id: open.id }], more: false })
    const before = await ada.getWatch({ id: open.id })
    expect(before).toMatchObject({ remainingEvaluations: before.maxEvaluations, candidates: [] })
    expect(before.remainingMs).toBeGreaterThan(0)
    await deliver('1', 'Your code is 482913.')
    await soon(() => model.callCount).toBe(1)
    expect(await ada.getWatch({ id: open.id })).toMatchObject({
      state: 'ended', reason: 'matched', remainingMs: 0, candidates: [{ state: 'matched', kind: 'sms', channelId: 'phone', value: '482913' }],
    })
    expect(await ada.listWatches({ state: 'open' })).toEqual({ watches: [], more: false })
    expect(await ada.listWatches({ threadId: 'login', limit: 1 })).toMatchObject({ watches: [{ id: open.id }] })
    expect(await ada.listWatches({ after: open.id })).toMatchObject({ watches: [] })
  })

  it('[V1.23] a repeated request registers the same watch, and a cancelled one ends once', async () => {
    const { ada, model } = await world()
    const [first, again] = [await ada.awaitSignal({ ...here, id: 'w', watch }), await ada.awaitSignal({ ...here, id: 'w', watch })]
    expect(again).toEqual(first)
    expect(await ada.cancelWatch({ id: 'w' })).toMatchObject({ state: 'ended', reason: 'cancelled' })
    await soon(() => model.callCount).toBe(1)
    expect(await ada.cancelWatch({ id: 'w' })).toMatchObject({ state: 'ended', reason: 'cancelled' })
    expect(model.callCount).toBe(1)
  })

  it('[V1.23] [H1.2] registrations with one Idempotency-Key are one watch, also at once; another watch or thread under it is rejected', async () => {
    const { url } = await world()
    const register = (key: string | undefined, body: object, agent = 'guide') => fetch(`${url}/api/agents/${agent}/watches`, {
      method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json', authorization: `Bearer ${keys.ada}`, ...(key === undefined ? {} : { 'idempotency-key': key }) },
    })
    const both = await Promise.all([register('k1', { ...here, watch }), register('k1', { ...here, watch })])
    const [first, second] = (await Promise.all(both.map((response) => response.json()))) as [{ id: string }, { id: string }]
    expect(second).toEqual(first)
    expect(await (await register('k2', { ...here, watch })).json()).not.toMatchObject({ id: first.id })
    for (const other of [{ ...here, watch: { ...watch, description: 'another' } }, { threadId: 'other', watch }, { ...here, watch: { ...watch, exclusive: true } }]) {
      const refused = await register('k1', other)
      expect([refused.status, await refused.json()]).toMatchObject([409, { code: 'idempotency_key_reused' }])
    }
    const others = [{ max_evaluations: 3 }, { expires_in_minutes: 5 }, { expires_at: new Date(Date.now() + 60_000).toISOString() }, { look_back_seconds: 30 }, { mode: 'continuous' }]
    for (const changed of others) {
      const refused = await register('k1', { ...here, watch: { ...watch, ...changed } })
      expect([changed, refused.status, await refused.json()]).toMatchObject([changed, 409, { code: 'idempotency_key_reused' }])
    }
    const relative = { ...watch, max_evaluations: 3, expires_in_minutes: 5, look_back_seconds: 30 }
    const [one, again] = [await register('k4', { ...here, watch: relative }), await register('k4', { ...here, watch: relative })]
    expect(await again.json()).toEqual(await one.json())
    for (const given of ['max_evaluations', 'expires_in_minutes', 'look_back_seconds']) {
      const { [given as keyof typeof relative]: _, ...without } = relative
      expect([given, (await register('k4', { ...here, watch: without })).status]).toEqual([given, 409])
    }
    expect((await register('k3', { ...here, id: 'named', watch })).status).toBe(400)
    expect(await (await register('named', { ...here, id: 'named', watch })).json()).toMatchObject({ id: 'named' })
    expect((await register('not a key', { ...here, watch })).status).toBe(400)
    const elsewhere = await register('k1', { ...here, watch }, 'other')
    expect([elsewhere.status, await elsewhere.json()]).toMatchObject([409, { code: 'idempotency_key_reused' }])
  })

  it('[V1.39] [H1.2] a request that is repeated with its key when the watch is over is answered with that watch', async () => {
    const clock = virtualClock(Date.now())
    const { url } = await world({ clock })
    const register = (expiresAt: Date) => fetch(`${url}/api/agents/guide/watches`, {
      method: 'POST', body: JSON.stringify({ ...here, watch: { ...watch, expires_at: expiresAt.toISOString() } }),
      headers: { 'content-type': 'application/json', authorization: `Bearer ${keys.ada}`, 'idempotency-key': 'late' },
    })
    const expiresAt = new Date(clock.now() + 60_000)
    const first = (await (await register(expiresAt)).json()) as { id: string }
    await clock.advance(120_000)
    const again = await register(expiresAt)
    expect([again.status, await again.json()]).toMatchObject([200, { id: first.id, state: 'ended', reason: 'expired', expiresAt: expiresAt.toISOString() }])
    const another = await register(new Date(clock.now() + 60_000))
    expect([another.status, await another.json()]).toMatchObject([409, { code: 'idempotency_key_reused' }])
  })

  it('[V1.25] a client reads why each message did or did not match', async () => {
    const { ada, bob, deliver, model } = await world()
    const { id } = await ada.awaitSignal({ ...here, watch })
    await deliver('1', 'Your code is 482913.')
    await soon(() => model.callCount).toBe(1)
    expect(await ada.explain({ watchId: id })).toMatchObject({ id, state: 'ended', more: false, messages: [{ reason: 'matched', value: '482913', kind: 'sms', score: 0 }] })
    expect(await ada.explain({ watchId: id, limit: 1, after: 99 })).toMatchObject({ messages: [] })
    await expect(bob.explain({ watchId: id })).rejects.toMatchObject({ code: 'not_found' })
  })

  it('[V1.26] a client that subscribes with watches receives their events, and its view and page stay as they are', async () => {
    const { ada, deliver } = await world()
    const subscription = await ada.subscribeToThread({ ...here, watches: true })
    const page = new WatchedThread(ada, here)
    const stop = page.subscribe(() => {})
    await soon(() => page.getSnapshot().connection).toBe('live')
    const events: unknown[] = []
    const reading = subscription.processDataStream({
      onChunk: (chunk) => {
        if (chunk.type === 'data-watch' && 'data' in chunk) events.push(chunk.data)
        if (events.length === 3) subscription.unsubscribe()
      },
    })
    const { id } = await ada.awaitSignal({ ...here, watch })
    await deliver('1', 'Your code is 482913.')
    await reading
    const wanted = [{ event: 'registered', watchId: id }, { event: 'judged', verdict: 'matched' }, { event: 'ended', reason: 'matched' }]
    expect(events).toMatchObject(wanted)
    await soon(() => page.getSnapshot().watches).toMatchObject(wanted)
    expect(JSON.stringify(page.getSnapshot().messages)).not.toContain('data-watch')
    stop()
  })

  it('[V1.23] [H3.2] another tenant, and another agent, find no watch, list none and end none', async () => {
    const { ada, adaOther, bob } = await world()
    await ada.awaitSignal({ ...here, id: 'w', watch })
    for (const stranger of [bob, adaOther]) {
      expect(await stranger.listWatches()).toEqual({ watches: [], more: false })
      await expect(stranger.getWatch({ id: 'w' })).rejects.toMatchObject({ code: 'not_found' })
      await expect(stranger.cancelWatch({ id: 'w' })).rejects.toMatchObject({ code: 'not_found' })
    }
    for (const refused of [bob.listWatches({ resourceId: 'ada' }), bob.getWatch({ id: 'w', resourceId: 'ada' }), bob.awaitSignal({ ...here, resourceId: 'ada', watch })])
      await expect(refused).rejects.toMatchObject({ code: expect.stringMatching(/^(forbidden|not_found)$/) as string })
    expect(await ada.getWatch({ id: 'w' })).toMatchObject({ state: 'open' })
  })

  it('what a watch may not expect is rejected by name', async () => {
    const { ada } = await world()
    await expect(ada.awaitSignal({ ...here, watch: { description: 'anything' } })).rejects.toMatchObject({ code: 'invalid_argument', message: expect.stringContaining('expected_') as string })
    await expect(ada.awaitSignal({ ...here, watch: { ...watch, result_schema: { type: 'string' } } })).rejects.toMatchObject({ code: 'invalid_argument' })
  })
})
