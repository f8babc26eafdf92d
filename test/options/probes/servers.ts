import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { expect, onTestFinished } from 'vitest'
import type { HandlerOptions, ServeOptions } from '../../../src/http/server.ts'
import { open, rejects, thread, type Probe } from '../probe.ts'
import { heed, server, sources, testing } from '../walked.ts'

const { apiKeys, createHandler, jwt, serve } = server
const { Agent, Heed, InMemoryStore, silentLogger } = heed
const { GitHubSignals, WebhookSignals } = sources
const { scriptedModel, virtualClock } = testing

function handling(options: HandlerOptions, model = scriptedModel(() => 'Fine.')) {
  const clock = virtualClock()
  const heed = new Heed({ agents: { guide: new Agent({ id: 'guide', model }) }, storage: new InMemoryStore({ clock }), logger: silentLogger, clock })
  const handler = createHandler(heed, options)
  onTestFinished(async () => {
    handler.close()
    await heed.close()
  })
  const ask = (path: string, init?: RequestInit) => handler(new Request(`http://localhost${path}`, init))
  const post = (path: string, body: unknown) => ask(path, { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })
  return { ask, post, clock, model }
}

const base64 = (value: unknown) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

export const servers: Probe[] = [
  {
    title: 'the options of a handler, with cross-origin requests and limits',
    async run() {
      expect((await handling({}).ask('/api/agents')).status).toBe(401)
      const { ask, post, clock, model } = handling({
        auth: () => ({ id: 'ada', resources: ['ada'] }), prefix: '/v1', maxBodyBytes: 200, rateLimit: { requests: 3, perMs: 1_000 },
        requestContext: ({ given }) => ({ plan: `${String(given.plan)}!` }), cors: { origin: ['https://a.example'], credentials: true, allowHeaders: ['x-mine'], maxAge: 7 },
      })
      expect([(await ask('/api/agents')).status, (await ask('/v1/agents')).status]).toEqual([404, 200])
      expect((await post('/v1/agents/guide/generate', { messages: 'x'.repeat(300) })).status).toBe(413)
      expect((await post('/v1/agents/guide/generate', { messages: 'Hi.', requestContext: { plan: 'gold' } })).status).toBe(200)
      expect(model.callCount).toBe(1)
      expect((await ask('/v1/agents')).status).toBe(429)
      await clock.advance(1_000)
      expect((await ask('/v1/agents')).status).toBe(200)
      const preflight = await ask('/v1/agents', { method: 'OPTIONS', headers: { origin: 'https://a.example', 'access-control-request-method': 'GET' } })
      expect(Object.fromEntries(preflight.headers)).toMatchObject({
        'access-control-allow-origin': 'https://a.example', 'access-control-allow-credentials': 'true', 'access-control-max-age': '7', 'access-control-allow-headers': expect.stringContaining('x-mine'),
      })
      for (const [options, name] of [
        [{ auth: 'loca' }, 'auth'], [{ prefix: 'v1' }, 'prefix'], [{ prefix: '/v1/' }, 'prefix'], [{ requestContext: {} }, 'requestContext'], [{ maxBodyBytes: 0 }, 'maxBodyBytes'],
        [{ heartbeatMs: -1 }, 'heartbeatMs'], [{ stallMs: 'x' }, 'stallMs'], [{ lingerMs: -1 }, 'lingerMs'], [{ rateLimit: { requests: 0 } }, 'requests'], [{ limits: { streams: 0 } }, 'limits.streams'], [{ limits: { stream: 1 } }, 'stream'], [{ limits: { threads: 0 } }, 'limits.threads'], [{ limits: { requests: { reads: { requests: 1 } } } }, 'reads'], [{ limits: { failedLogins: { requests: 1 } } }, 'failedLogins'], [{ rateLimit: { requests: 1, perMs: 0 } }, 'perMs'],
        [{ cors: {} }, 'origin'], [{ cors: { origin: 7 } }, 'origin'], [{ cors: { origin: '*', credentials: true } }, 'credentials'], [{ cors: { origin: '*', credentials: 1 } }, 'credentials'],
        [{ cors: { origin: '*', allowHeaders: 'x' } }, 'allowHeaders'], [{ cors: { origin: '*', maxAge: -1 } }, 'maxAge'],
      ] as const) await rejects(() => handling(options as never), name)
    },
  },
  {
    title: 'the options of a server, and the options of both that concern time',
    async run() {
      const heed = () => new Heed({ storage: new InMemoryStore(), logger: silentLogger })
      const before = process.listenerCount('SIGTERM')
      const server = await serve(heed(), { port: 0, hostname: '127.0.0.1', handleSignals: true, prefix: '/v1', cors: { origin: '*' }, maxBodyBytes: 9, heartbeatMs: 9_000, stallMs: 9_000, lingerMs: 0, rateLimit: { requests: 1 }, requestContext: () => ({}) })
      expect(process.listenerCount('SIGTERM')).toBe(before + 1)
      expect((await fetch(`${server.url}/v1/agents`, { headers: { origin: 'https://a.example' } })).headers.get('access-control-allow-origin')).toBe('https://a.example')
      expect((await fetch(`${server.url}/v1/agents`)).status).toBe(429)
      await server.close()
      expect(process.listenerCount('SIGTERM')).toBe(before)
      const quiet = await serve(heed(), { port: 0, handleSignals: false, auth: () => null })
      expect([(await fetch(`${quiet.url}/api/agents`)).status, process.listenerCount('SIGTERM')]).toEqual([401, before])
      await quiet.close()
      for (const [options, name] of [[{ port: 70_000 }, 'port'], [{ port: '4111' }, 'port'], [{ hostname: '' }, 'hostname'], [{ hostname: '0.0.0.0' }, 'auth'], [{ handleSignals: 1 }, 'handleSignals']] as const) {
        const one = heed()
        onTestFinished(() => one.close())
        await rejects(() => serve(one, options as ServeOptions), name)
      }
    },
  },
  {
    title: 'the principals of API keys, and the options of tokens',
    async run() {
      const key = 'k'.repeat(16)
      const { ask } = handling({ auth: apiKeys({ [key]: { id: 'ada', resources: ['a'] }, [`o${key}`]: { id: 'op', resources: [], operator: true } }) })
      const status = async (path: string, token: string) => (await ask(path, { headers: { authorization: `Bearer ${token}` } })).status
      expect([await status('/api/metrics', key), await status('/api/metrics', `o${key}`), await status('/api/memory/threads?resourceId=b', key), await status('/api/memory/threads?resourceId=a', key)]).toEqual([403, 200, 403, 200])
      for (const [principal, name] of [[{ resources: '*' }, 'id'], [{ id: 'a' }, 'resources'], [{ id: 'a', resources: '*', operator: 1 }, 'operator']] as const) await rejects(() => apiKeys({ [key]: principal as never }), name)

      const { publicKey, privateKey } = generateKeyPairSync('ed25519')
      const keys = [{ ...(publicKey.export({ format: 'jwk' }) as object), kid: 'one' }]
      const token = (claims: object) => {
        const text = `${base64({ alg: 'EdDSA', kid: 'one' })}.${base64({ sub: 'ada', iss: 'issuer', aud: 'heed', exp: Math.floor(Date.now() / 1_000) + 60, ...claims })}`
        return `${text}.${sign(null, Buffer.from(text), privateKey).toString('base64url')}`
      }
      const known = (claims: object, more: object = {}) =>
        jwt({ jwks: { keys }, issuer: 'issuer', audience: 'heed', ...more })(new Request('http://localhost', { headers: { authorization: `Bearer ${token(claims)}` } }))
      expect(await known({})).toEqual({ id: 'ada', resources: ['ada'] })
      expect([await known({ iss: 'x' }), await known({ aud: 'x' }), await known({ exp: 1 })]).toEqual([null, null, null])
      expect(await known({ exp: Math.floor(Date.now() / 1_000) - 20 }, { toleranceSeconds: 600 })).not.toBeNull()
      expect(await known({}, { principal: () => ({ id: 'x', resources: '*' }) })).toEqual({ id: 'x', resources: '*' })
      const scoped = async (claims: object) => (await known(claims, { scopes: 'scope' }))?.scopes
      expect([await scoped({ scope: 'read  send' }), await scoped({ scope: ['run'] }), await scoped({}), await scoped({ scope: 7 })]).toEqual([['read', 'send'], ['run'], [], 7])
      for (const more of [{ scopes: '' }, { scopes: 'scope', principal: () => null }]) await rejects(() => known({}, more), 'scopes')
      for (const [more, name] of [[{ jwks: {} }, 'jwks'], [{ issuer: undefined }, 'issuer'], [{ audience: '' }, 'audience'], [{ principal: 1 }, 'principal'], [{ toleranceSeconds: -1 }, 'toleranceSeconds']] as const)
        await rejects(() => jwt({ jwks: { keys }, issuer: 'issuer', audience: 'heed', ...more } as never), name)
    },
  },
  {
    title: 'the options of sources',
    async run() {
      const secret = `whsec_${Buffer.from('a'.repeat(32)).toString('base64')}`
      const shop = new WebhookSignals({ id: 'shop', name: 'The shop', secret, externalIds: ({ type }) => type, notification: ({ data }) => ({ kind: 'order', summary: JSON.stringify(data) }) })
      const hub = new GitHubSignals({ id: 'hub', secret: 'a'.repeat(32) })
      const storage = new InMemoryStore()
      open({ notifications: { deliveryPolicy: { default: 'persist' } } }, undefined, { sources: [shop, hub], storage })
      expect([shop.id, shop.name, hub.id]).toEqual(['shop', 'The shop', 'hub'])
      const target = { ...thread, agentId: 'guide' }
      await shop.subscribe({ ...target, externalId: 'paid', metadata: { m: 1 } })
      await shop.subscribe({ ...target, threadId: 'thread-2', externalId: 'sent' })
      expect((await shop.listSubscriptions({ externalId: 'paid' })).subscriptions[0]?.metadata).toEqual({ m: 1 })
      const ids = async (query: object) => (await shop.listSubscriptions(query)).subscriptions.map(({ externalId }) => externalId)
      expect([await ids({ threadId: 'thread-2' }), await ids({ externalId: 'paid' }), await ids({ resourceId: 'other' })]).toEqual([['sent'], ['paid'], []])
      const first = await shop.listSubscriptions({ limit: 1 })
      expect([first.more, await ids({ after: first.subscriptions[0] })]).toEqual([true, first.subscriptions[0]?.externalId === 'paid' ? ['sent'] : ['paid']])
      await rejects(() => shop.subscribe({ ...target, agentId: 'none', externalId: 'x' }), 'none')
      const body = JSON.stringify({ type: 'paid', data: { n: 7 } })
      const at = Math.floor(Date.now() / 1_000)
      const signed = createHmac('sha256', Buffer.from(secret.slice(6), 'base64')).update(`e-1.${at}.${body}`).digest('base64')
      const headers = new Headers({ 'webhook-id': 'e-1', 'webhook-timestamp': String(at), 'webhook-signature': `v1,${signed}` })
      expect((await shop.handleWebhook({ headers, body })).status).toBeLessThan(300)
      await expect(shop.handleWebhook({ headers, body: '{}' })).rejects.toMatchObject({ code: 'unauthorized' })
      const told = { kind: 'k', summary: 'direct', priority: 'low', payload: { p: 1 }, dedupeKey: 'd', coalesceKey: 'c', attributes: { a: 1 }, metadata: { m: 2 } } as const
      expect(await shop.deliver({ id: 'e-2', externalIds: ['paid'], notification: told })).toBe(1)
      const { notifications } = (await (await storage.getStore('notifications'))?.listNotifications({ ...thread, limit: 10 })) ?? { notifications: [] }
      expect(notifications.toReversed()).toMatchObject([{ summary: body, kind: 'order' }, { ...told, attributes: expect.objectContaining({ a: 1 }) }])
      expect([await shop.unsubscribe({ threadId: 'thread-2', resourceId: 'other' }), await shop.unsubscribe({ threadId: 'thread-2', externalId: 'paid' }), await shop.unsubscribe({ ...thread, threadId: 'thread-2' })]).toEqual([0, 0, 1])
      await rejects(() => shop.listSubscriptions({ limit: 0 }), 'limit')
    },
  },
]
