import { request } from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createHandler } from '../../src/http/server.ts'
import { Agent, Heed, InMemoryStore, Memory, silentLogger } from '../../src/index.ts'
import { apiKeys } from '../../src/http/auth/principal.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { thrownBy } from '../agent/asking.ts'
import { served, thread } from './serving.ts'

const tenantKey = 'a-key-of-one-tenant'
const operatorKey = 'a-key-of-an-operator'
const auth = apiKeys({ [tenantKey]: { id: 'ada', resources: ['user-1'] }, [operatorKey]: { id: 'root', resources: '*' } })
const as = (key: string) => ({ headers: { authorization: `Bearer ${key}` } })
const guide = (answers: string[] = ['Hello.']) => new Agent({ id: 'guide', model: scriptedModel(answers, { loop: true }), memory: new Memory() })

/** Each definition refers twice to the next. */
const doubling = {
  $ref: '#/$defs/d0',
  $defs: Object.fromEntries(Array.from({ length: 40 }, (_, level) =>
    [`d${level}`, level === 39 ? { type: 'object', properties: { a: { type: 'string' } } } : { anyOf: [{ $ref: `#/$defs/d${level + 1}` }, { $ref: `#/$defs/d${level + 1}` }] }])),
}
const wide = { type: 'object', properties: Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`p${index}`, { type: 'string' }])) }
const backtracking = { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } }

describe('a schema in a request', () => {
  it.each([['40 nested choices', doubling], ['20,000 properties', wide], ['a pattern that backtracks', backtracking]])('[H7.1] with %s is refused at every door, and nothing is stored', async (_, schema) => {
    const { ask, client } = await served({ guide: guide(['{}']) })
    const memory = { thread: thread.threadId, resource: thread.resourceId }
    const doors: Array<[string, object]> = [
      ['generate', { messages: 'Hi', memory, structuredOutput: { schema } }],
      ['stream', { messages: 'Hi', memory, structuredOutput: { schema } }],
      ['generate', { messages: 'Hi', memory, clientTools: { pick: { description: 'x', inputSchema: schema } } }],
      ['send-message', { message: 'Hi', ...thread, ifIdle: { streamOptions: { clientTools: { pick: { description: 'x', inputSchema: schema } } } } }],
    ]
    for (const [door, json] of doors) {
      const answer = await ask(`/agents/guide/${door}`, { json })
      expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([400, 'invalid_schema'])
    }
    const { threads } = await client.memory({ agentId: 'guide', resourceId: thread.resourceId }).listThreads()
    expect(threads).toEqual([])
  })

  it('[H7.2] of usual size works as before', async () => {
    const { ask } = await served({ guide: guide(['{"city":"Rome"}']) })
    const schema = { type: 'object', properties: { city: { type: 'string', pattern: '^[A-Z][a-z]+$' } }, required: ['city'], additionalProperties: false }
    const answer = await ask('/agents/guide/generate', { json: { messages: 'Where?', structuredOutput: { schema } } })
    expect(await answer.json()).toMatchObject({ object: { city: 'Rome' } })
  })
})

describe('limits of a server', () => {
  it('[H7.3] failed logins of one address end in 429, also for a right key, and other addresses are not affected', async () => {
    const { server, ask } = await served({ guide: guide() }, { auth, limits: { failedLogins: { requests: 3, perMs: 60_000 } } })
    expect((await ask('/agents', as(tenantKey))).status).toBe(200)
    for (let attempt = 0; attempt < 3; attempt++) expect((await ask('/agents', as('a-key-that-is-wrong'))).status).toBe(401)
    for (const key of ['a-key-that-is-wrong', tenantKey]) {
      const answer = await ask('/agents', as(key))
      expect([answer.status, Number(answer.headers.get('retry-after')) > 0]).toEqual([429, true])
    }
    const other = await new Promise<number | undefined>((resolve, reject) => {
      request(`${server.url}/api/agents`, { localAddress: '127.0.0.2', ...as(tenantKey) }, (response) => resolve(response.resume().statusCode)).on('error', reject).end()
    })
    expect(other).toBe(200)
  })

  it('[H7.3] a handler, which knows no addresses and has no WebSockets, rejects limits of both by name', async () => {
    const heed = new Heed({ storage: new InMemoryStore(), logger: silentLogger })
    for (const [name, value] of Object.entries({ failedLogins: { requests: 3 }, voiceSessions: 1, voiceSessionsPerPrincipal: 1, voiceMessageBytes: 1, voiceIdleMs: 1, voiceMs: 1 }))
      expect(thrownBy(() => createHandler(heed, { limits: { [name]: value } }))).toMatchObject({ code: 'unsupported_option', details: { option: `limits.${name}` } })
    createHandler(heed, { limits: { failedLogins: false } as object }).close()
    await heed.close()
  })

  it('[H7.4] event streams of a tenant are limited, those of an operator only in all, and a closed one makes room', async () => {
    const { server } = await served({ guide: guide() }, { auth, limits: { streamsPerPrincipal: 2, streams: 4 } })
    const open = async (key: string) => {
      const abort = new AbortController()
      const path = `${server.url}/api/agents/guide/threads/${thread.threadId}/subscribe?resourceId=user-1`
      const { status, headers } = await fetch(path, { ...as(key), signal: abort.signal })
      return { status, retryAfter: headers.get('retry-after'), close: () => abort.abort() }
    }
    const first = await open(tenantKey)
    expect([first.status, (await open(tenantKey)).status]).toEqual([200, 200])
    expect(await open(tenantKey)).toMatchObject({ status: 429, retryAfter: '5' })
    first.close()
    await expect.poll(async () => (await open(tenantKey)).status).toBe(200)
    expect([(await open(operatorKey)).status, (await open(operatorKey)).status, (await open(operatorKey)).status]).toEqual([200, 200, 429])
  })

  it('[H7.4] requests that arrive together open no more streams than one after the other', async () => {
    const go = Promise.withResolvers<void>()
    let waiting = 0
    const slow = async () => {
      waiting += 1
      await go.promise
      return { id: 'ada', resources: ['user-1'] }
    }
    const { server } = await served({ guide: guide() }, { auth: slow, limits: { streamsPerPrincipal: 3 } })
    const asked = Array.from({ length: 20 }, async () => (await fetch(`${server.url}/api/agents/guide/threads/t/subscribe?resourceId=user-1`)).status)
    await expect.poll(() => waiting).toBe(20)
    go.resolve()
    expect((await Promise.all(asked)).toSorted()).toEqual([...Array.from({ length: 3 }, () => 200), ...Array.from({ length: 17 }, () => 429)])
  })

  it('[H7.4] a stream that is refused starts no run', async () => {
    const model = scriptedModel(['Hello.'], { loop: true })
    const { server, ask } = await served({ guide: new Agent({ id: 'guide', model }) }, { auth, limits: { streamsPerPrincipal: 1 } })
    await fetch(`${server.url}/api/agents/guide/threads/t/subscribe?resourceId=user-1`, as(tenantKey))
    expect((await ask('/agents/guide/stream', { json: { messages: 'Hi' }, ...as(tenantKey) })).status).toBe(429)
    expect(model.calls).toEqual([])
  })

  it('[H7.5] schedules of a tenant have a shortest interval, those of an operator do not', async () => {
    const { ask } = await served({ guide: guide() }, { auth, limits: { scheduleMs: 3_600_000 } })
    const create = async (timing: object, key: string) => {
      const answer = await ask('/agents/guide/schedules', { json: { message: 'Look.', ...thread, ...timing }, ...as(key) })
      return [answer.status, ((await answer.json()) as { code?: string }).code]
    }
    for (const timing of [{ every: 60_000 }, { cron: '* * * * *' }, { cron: '*/30 * * * *' }]) {
      expect(await create(timing, tenantKey)).toEqual([400, 'invalid_argument'])
      expect(await create(timing, operatorKey)).toEqual([200, undefined])
    }
    for (const timing of [{ every: 3_600_000 }, { cron: '0 * * * *' }, { at: '2099-01-01T00:00:00Z' }]) expect(await create(timing, tenantKey)).toEqual([200, undefined])
  })

  it.each(['0-21 0-49 * * * *', '10,21 49 0 * * *', '21 49 0 * * *'])('[H7.5] also where the next two occurrences are far apart and later ones are not: %s', async (cron) => {
    const clock = virtualClock(new Date('2030-01-01T00:49:20Z'))
    const heed = new Heed({ agents: { guide: guide() }, storage: new InMemoryStore({ clock }), logger: silentLogger, clock })
    const handler = createHandler(heed, { auth })
    onTestFinished(async () => {
      handler.close()
      await heed.close()
    })
    const headers = { authorization: `Bearer ${tenantKey}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ message: 'Look.', ...thread, cron, timeZone: 'UTC' })
    const answer = await handler(new Request('http://localhost/api/agents/guide/schedules', { method: 'POST', headers, body }))
    const { details } = (await answer.json()) as { details?: { field?: string } }
    expect([answer.status, details?.field]).toEqual(cron.startsWith('21') ? [200, undefined] : [400, 'cron'])
  })

  it('[H7.6] requests without a principal to one route leave room for another', async () => {
    const { ask } = await served({ guide: guide() }, { auth, rateLimit: { requests: 2, perMs: 60_000 } })
    const statuses = async (path: string) => [(await ask(path)).status, (await ask(path)).status, (await ask(path)).status]
    expect(await statuses('/openapi.json')).toEqual([200, 200, 429])
    const answer = await ask('/webhooks/none', { json: {} })
    expect(answer.status).not.toBe(429)
  })
})
