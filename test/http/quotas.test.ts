import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { apiKeys, createHandler, type ServerLimits } from '../../src/http/server.ts'
import { Agent, createTool, Heed, InMemoryStore, Memory, silentLogger, type Storage } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { idle, soon } from '../thread/said.ts'
import { served } from './serving.ts'

const keys = { ada: 'key-of-ada-0000000000', bob: 'key-of-bob-0000000000', root: 'key-of-an-operator-00', two: 'key-of-two-0000000000' }
const auth = apiKeys({ [keys.ada]: { id: 'ada', resources: ['ada'] }, [keys.bob]: { id: 'bob', resources: ['bob'] }, [keys.two]: { id: 'two', resources: ['ada', 'ada2'] }, [keys.root]: { id: 'root', resources: '*' } })

async function world(limits: ServerLimits, storage?: Storage, options: Partial<ConstructorParameters<typeof Agent>[0]> = {}) {
  const agent = new Agent({ id: 'guide', model: scriptedModel(['Hello.'], { loop: true }), notifications: { deliveryPolicy: { default: 'persist' } }, ...options })
  const { ask, server } = await served({ guide: agent }, { auth, limits, ...(storage && { storage }) })
  const as = async (who: keyof typeof keys, path: string, json?: object, method = json ? 'POST' : 'GET') => {
    const response = await ask(path, { method, headers: { authorization: `Bearer ${keys[who]}`, ...(json && { 'content-type': 'application/json' }) }, ...(json && { body: JSON.stringify(json) }) })
    const body = (await response.json().catch(() => ({}))) as Record<string, unknown>
    return { ...body, http: response.status, retryAfter: response.headers.get('retry-after') }
  }
  return { as, agent, server }
}

const send = (threadId: string, message = 'Hi') => ['/agents/guide/send-message?wait=outcome', { message, threadId }] as const
const exceeded = (quota: string, of = 'resource') => ({ http: 403, code: 'quota_exceeded', retryable: false, retryAfter: null, details: { quota, of } })

describe('what a principal may store', () => {
  it('[H7.7] so many threads, at every route that creates one, whichever way; what exists still works, and a deleted one makes room', async () => {
    const { as, agent } = await world({ threadsPerResource: 2 })
    expect(await as('ada', ...send('one'))).toMatchObject({ http: 200 })
    expect(await as('ada', '/memory/threads', { threadId: 'two' })).toMatchObject({ http: 200 })
    const chat = { id: 'three', messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'Hi' }] }] }
    const doors: Array<readonly [string, object]> = [
      send('three'), ['/memory/threads', { threadId: 'three' }], ['/agents/guide/generate', { messages: 'Hi', memory: { thread: 'three', resource: 'ada' } }],
      ['/agents/guide/stream', { messages: 'Hi', memory: { thread: 'three', resource: 'ada' } }], ['/agents/guide/queue-message', { message: 'Hi', threadId: 'three' }],
      ['/memory/threads/one/clone', { newThreadId: 'three' }], ['/agents/guide/signals', { signal: { type: 'user-message', contents: 'Hi' }, threadId: 'three' }],
      ['/agents/guide/watches', { threadId: 'three', watch: { description: 'x', expected_channels: ['sms'] } }],
      ['/agents/guide/state-signals', { threadId: 'three', state: { stateId: 's', cacheKey: 'k', contents: 'x' } }],
    ]
    for (const door of doors) expect([door[0], await as('ada', ...door)]).toMatchObject([door[0], exceeded('threads')])
    // A chat answers with the failure in its stream.
    await as('ada', '/agents/guide/chat', chat)
    expect(await as('ada', '/memory/threads/three')).toMatchObject({ http: 404 })
    expect(await as('ada', ...send('one'))).toMatchObject({ http: 200 })
    expect(await as('bob', ...send('of-bob'))).toMatchObject({ http: 200 })
    expect(await as('root', '/agents/guide/send-message', { message: 'Hi', threadId: 'of-root', resourceId: 'ada' })).toMatchObject({ http: 200 })
    await idle(agent, { threadId: 'one', resourceId: 'ada' })
    for (const threadId of ['one', 'of-root']) await as('ada', `/memory/threads/${threadId}`, undefined, 'DELETE')
    expect(await as('ada', ...send('three'))).toMatchObject({ http: 200 })
  })

  it('[H7.7] so many bytes, at every route that stores, and deleting makes room', async () => {
    const { as, agent } = await world({ bytesPerResource: 20_000 })
    const long = 'x'.repeat(8_000)
    expect(await as('ada', ...send('one', long))).toMatchObject({ http: 200 })
    expect(await as('ada', ...send('one', long))).toMatchObject({ http: 200 })
    await idle(agent, { threadId: 'one', resourceId: 'ada' })
    const message = { id: 'm', role: 'user', createdAt: '2020-01-01T00:00:00Z', threadId: 'one', resourceId: 'ada', content: { format: 2, parts: [{ type: 'text', text: long }] } }
    const doors: Array<readonly [string, object, string?]> = [
      send('one', long), send('two', long), ['/memory/save-messages', { messages: [message] }], ['/memory/threads/one', { metadata: { long } }, 'PATCH'],
      ['/memory/threads', { threadId: 'two', metadata: { long } }], ['/memory/threads/one/clone', {}],
      ['/agents/guide/notifications', { threadId: 'one', notification: { source: 'x', kind: 'x', summary: 'x', payload: long } }],
      ['/agents/guide/schedules', { threadId: 'one', cron: '0 0 * * *', message: long }],
    ]
    for (const door of doors) expect([door[0], await as('ada', ...door)]).toMatchObject([door[0], exceeded('bytes')])
    expect(await as('bob', ...send('of-bob', long))).toMatchObject({ http: 200 })
    await as('ada', '/memory/threads/one', undefined, 'DELETE')
    expect(await as('ada', ...send('two', long))).toMatchObject({ http: 200 })
  })

  it('[H7.7] so many bytes of working memory, with its versions, and of watches; nothing is stored above', async () => {
    const memory = new Memory({ workingMemory: { enabled: true, scope: 'resource' } })
    const storage = new InMemoryStore()
    const { as } = await world({ bytesPerResource: 14_500 }, storage, { memory, watches: true })
    const workingMemory = (text: string) => text.repeat(7_000)
    const path = '/memory/threads/one/working-memory'
    const last = async () => ((await as('ada', path)) as { workingMemory?: unknown }).workingMemory
    expect(await as('ada', '/memory/threads', { threadId: 'one' })).toMatchObject({ http: 200 })
    for (const text of ['a', 'b']) expect(await as('ada', path, { workingMemory: workingMemory(text) })).toMatchObject({ http: 200 })
    const stored = [await last(), await storage.getUsage('ada')]
    const watch = { description: 'x'.repeat(900), expected_channels: ['sms'] }
    const doors: Array<readonly [string, object, string?]> = [
      [path, { workingMemory: workingMemory('c') }], [`${path}/undo`, {}], ['/memory/threads/one', { metadata: { workingMemory: workingMemory('d') } }, 'PATCH'],
      ['/memory/threads', { threadId: 'two', metadata: { workingMemory: workingMemory('e') } }], ['/agents/guide/watches', { threadId: 'one', watch }],
    ]
    for (const door of doors) expect([door[0], await as('ada', ...door)]).toMatchObject([door[0], exceeded('bytes')])
    expect([await last(), await storage.getUsage('ada')]).toEqual(stored)
    expect(await as('ada', path, { workingMemory: 'short' })).toMatchObject({ http: 200 })
    expect(await as('bob', '/agents/guide/watches', { threadId: 'of-bob', watch })).toMatchObject({ http: 200 })
  })

  it('[H7.7] requests that arrive together store no more than one after the other, and the numbers are true after a restart', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'heed-quota-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const storage = () => new LibSQLStore({ url: `file:${join(folder, 'heed.db')}` })
    const first = await world({ threadsPerResource: 3 }, storage())
    const create = (index: number) => first.as('ada', '/memory/threads', { threadId: `t${index}` })
    const answers = await Promise.all(Array.from({ length: 12 }, (_, index) => (index % 2 === 0 ? first.as('ada', ...send(`t${index}`)) : create(index))))
    expect(answers.map(({ http }) => http).toSorted()).toEqual([...Array.from({ length: 3 }, () => 200), ...Array.from({ length: 9 }, () => 403)])
    await first.server.close()
    const second = await world({ threadsPerResource: 3 }, storage())
    expect(await second.as('ada', ...send('new'))).toMatchObject(exceeded('threads'))
    expect(((await second.as('ada', '/memory/threads?resourceId=ada')) as { total?: number }).total).toBe(3)
  })

  it('[H7.7] a run that has begun is not cut off, nor are the agents that it calls', async () => {
    const helper = new Agent({ id: 'helper', model: scriptedModel(['Found.'], { loop: true }) })
    const look = createTool({ id: 'look', inputSchema: { type: 'object', properties: {} } as const, execute: () => 'x'.repeat(5_000) })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'look', input: {} }] }, 'Done.'])
    const agent = new Agent({ id: 'guide', model, tools: { look }, agents: { helper } })
    const { ask } = await served({ guide: agent }, { auth, limits: { threadsPerResource: 1, bytesPerResource: 2_000 } })
    const headers = { authorization: `Bearer ${keys.ada}` }
    const answer = await ask('/agents/guide/generate', { json: { messages: 'Look.', memory: { thread: 'one', resource: 'ada' } }, headers })
    expect([answer.status, ((await answer.json()) as { text: string }).text]).toEqual([200, 'Done.'])
    expect((await ask('/agents/guide/send-message', { json: { message: 'More.', threadId: 'one' }, headers })).status).toBe(403)
  })

  it('[H7.8] a thread that is transferred counts with its schedules and their bytes', async () => {
    const storage = new InMemoryStore()
    const { as } = await world({ schedulesPerResource: 2, bytesPerResource: 5_000 }, storage)
    const schedule = (threadId: string, message: string) => as('two', '/agents/guide/schedules', { threadId, resourceId: 'ada2', cron: '0 0 * * *', message })
    const transfer = (threadId: string) => as('two', `/memory/threads/${threadId}/transfer?resourceId=ada2`, { resourceId: 'ada' })
    for (const threadId of ['t1', 't2']) await as('two', '/memory/threads', { threadId, resourceId: 'ada2' })
    for (const [threadId, text] of [['t1', 'x'.repeat(1_500)], ['t2', 'y']] as const) expect(await schedule(threadId, text)).toMatchObject({ http: 200 })
    for (const id of ['a', 'b']) expect(await as('ada', '/agents/guide/schedules', { id, threadId: 'one', cron: '0 0 * * *', message: 'x'.repeat(1_800) })).toMatchObject({ http: 200 })
    const before = await storage.getUsage('ada')
    expect(await transfer('t2')).toMatchObject(exceeded('schedules'))
    expect(await transfer('t1')).toMatchObject(exceeded('bytes'))
    expect(await storage.getUsage('ada')).toEqual(before)
    for (const id of ['a', 'b']) await as('ada', `/agents/guide/schedules/${id}`, undefined, 'DELETE')
    expect([await transfer('t1'), await transfer('t2')]).toMatchObject([{ http: 200 }, { http: 200 }])
  })

  it('[H7.7] in all, also for operators', async () => {
    const { as } = await world({ threads: 2, bytes: 1_000_000 })
    expect(await as('ada', ...send('one'))).toMatchObject({ http: 200 })
    expect(await as('bob', ...send('two'))).toMatchObject({ http: 200 })
    expect(await as('ada', ...send('three'))).toMatchObject(exceeded('threads', 'all'))
    expect(await as('root', '/memory/threads', { threadId: 'four', resourceId: 'x' })).toMatchObject(exceeded('threads', 'all'))
  })

  it('[H7.8] so many schedules, also if they are asked for together; a removed one makes room', async () => {
    const { as } = await world({ schedulesPerResource: 3, schedules: 5 })
    const create = (who: keyof typeof keys, id: string, more = {}) => as(who, '/agents/guide/schedules', { id, threadId: 'one', cron: '0 0 * * *', message: 'Look.', ...more })
    const answers = await Promise.all(Array.from({ length: 10 }, (_, index) => create('ada', `s${index}`)))
    expect(answers.filter(({ http }) => http === 200)).toHaveLength(3)
    expect(answers.filter(({ http }) => http !== 200)[0]).toMatchObject(exceeded('schedules'))
    const made = answers.findIndex(({ http }) => http === 200)
    // To replace one is to have no more.
    expect(await create('ada', `s${made}`, { cron: '0 1 * * *' })).toMatchObject({ http: 200 })
    await as('ada', `/agents/guide/schedules/s${made}`, undefined, 'DELETE')
    expect(await create('ada', 'again')).toMatchObject({ http: 200 })
    for (const id of ['r1', 'r2']) expect(await create('root', id, { threadId: 'of-root', resourceId: 'x' })).toMatchObject({ http: 200 })
    expect(await create('root', 'r3', { threadId: 'of-root', resourceId: 'x' })).toMatchObject(exceeded('schedules', 'all'))
  })

  it('[H7.13] so many open watches, also if they are asked for together; an ended one makes room, and a repeat is no further one', async () => {
    const { as } = await world({ watchesPerResource: 3, watches: 5 }, undefined, { watches: true })
    const watch = { description: 'the code', expected_channels: ['sms'] }
    const register = (who: keyof typeof keys, id: string, more = {}) => as(who, '/agents/guide/watches', { id, threadId: 'one', watch, ...more })
    const answers = await Promise.all(Array.from({ length: 10 }, (_, index) => register('ada', `w${index}`)))
    expect(answers.filter(({ http }) => http === 200)).toHaveLength(3)
    expect(answers.filter(({ http }) => http !== 200)[0]).toMatchObject(exceeded('watches'))
    const made = answers.findIndex(({ http }) => http === 200)
    expect(await register('ada', `w${made}`)).toMatchObject({ http: 200, id: `w${made}` })
    expect(await as('ada', `/agents/guide/watches/w${made}`, undefined, 'DELETE')).toMatchObject({ http: 200, state: 'ended' })
    expect(await register('ada', 'again')).toMatchObject({ http: 200 })
    for (const id of ['r1', 'r2']) expect(await register('root', id, { threadId: 'of-root', resourceId: 'x' })).toMatchObject({ http: 200 })
    expect(await register('root', 'r3', { threadId: 'of-root', resourceId: 'x' })).toMatchObject(exceeded('watches', 'all'))
  })

  it('[H7.13] by default 100 watches of a resource, whichever its keys are; the limit of an agent has its own code', async () => {
    const { as } = await world({}, undefined, { watches: true })
    const register = (threadId: string) => as('ada', '/agents/guide/watches', { threadId, watch: { description: 'x', expected_channels: ['sms'] } })
    for (let made = 0; made < 100; made++) expect((await register('one')).http).toBe(200)
    expect(await register('one')).toMatchObject({ ...exceeded('watches'), details: { limit: 100 } })
    expect(await register('two')).toMatchObject(exceeded('watches'))
    expect(await as('two', '/agents/guide/watches', { threadId: 'two', resourceId: 'ada', watch: { description: 'x', expected_channels: ['sms'] } })).toMatchObject(exceeded('watches'))
    expect(await as('ada', '/memory/threads/two')).toMatchObject({ http: 404 })
    const few = await world({}, undefined, { watches: { maxOpen: 1 } })
    const own = () => few.as('ada', '/agents/guide/watches', { threadId: 'one', watch: { description: 'x', expected_channels: ['sms'] } })
    expect([await own(), await own()]).toMatchObject([{ http: 200 }, { http: 403, code: 'too_many_watches', details: { limit: 1 } }])
  })
})

describe('how often a principal may ask', () => {
  it('[H7.9] by the scope of the route, so that reads leave room for sends, told when to come back', async () => {
    const { as } = await world({ requests: { read: { requests: 2, perMs: 3_600_000 }, run: { requests: 1, perMs: 60_000 } } })
    const list = (who: keyof typeof keys) => as(who, '/memory/threads?resourceId=ada')
    expect([(await list('ada')).http, (await list('ada')).http]).toEqual([200, 200])
    expect(await list('ada')).toMatchObject({ http: 429, retryAfter: '1800', code: 'rate_limited', retryable: true })
    expect((await as('ada', ...send('one'))).http).toBe(200)
    expect((await as('ada', '/agents/guide/generate', { messages: 'Hi' })).http).toBe(200)
    expect((await as('ada', '/agents/guide/generate', { messages: 'Hi' })).http).toBe(429)
    await soon(async () => (await list('root')).http).toBe(200)
    for (let index = 0; index < 3; index++) expect((await list('root')).http).toBe(200)
  })

  it('[H7.9] by default 600 runs a minute; false takes every limit away', async () => {
    const refused = async (limits: ServerLimits) => {
      // Its time stands still.
      const clock = virtualClock()
      const agent = new Agent({ id: 'guide', model: scriptedModel([]) })
      const heed = new Heed({ agents: { guide: agent }, storage: new InMemoryStore({ clock }), logger: silentLogger, clock })
      const handler = createHandler(heed, { auth, limits })
      onTestFinished(async () => {
        handler.close()
        await heed.close()
      })
      const headers = { authorization: `Bearer ${keys.ada}`, 'content-type': 'application/json' }
      const retry = () => handler(new Request('http://localhost/api/agents/guide/threads/t/retry', { method: 'POST', body: '{}', headers }))
      const statuses = []
      for (let index = 0; index < 602; index++) statuses.push((await retry()).status)
      return statuses.filter((status) => status === 429).length
    }
    expect([await refused({}), await refused({ requests: false })]).toEqual([2, 0])
  })
})
