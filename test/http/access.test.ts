import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent, createTool, Heed, InMemoryStore, Memory } from '../../src/index.ts'
import { apiKeys, createHandler, serve, type Principal } from '../../src/http/server.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { listed, request, type Names } from './every-route.ts'
import { served, thread } from './serving.ts'

const key = { one: 'a-long-random-key-1', two: 'a-long-random-key-2' }
const auth = apiKeys({ [key.one]: { id: 'one', resources: ['user-1'] }, [key.two]: { id: 'two', resources: ['user-2'] } })
const as = (name: keyof typeof key) => ({ authorization: `Bearer ${key[name]}` })
const guide = () => new Agent({ id: 'guide', model: scriptedModel(['Hello.'], { loop: true }) })

describe('who may ask', () => {
  it('[H3.1] refuses to serve beyond this machine without auth', async () => {
    const heed = new Heed({ agents: { guide: guide() }, storage: new InMemoryStore() })
    await expect(serve(heed, { hostname: '0.0.0.0', port: 0 })).rejects.toMatchObject({ code: 'invalid_argument' })
    await heed.close()
  })

  it('[H3.1] closes a handler that has no auth, and an open one to other names than this machine', async () => {
    const heed = new Heed({ agents: { guide: guide() }, storage: new InMemoryStore() })
    const status = async (handler: (request: Request) => Promise<Response>, url: string) => (await handler(new Request(url))).status
    expect(await status(createHandler(heed), 'http://localhost/api/agents')).toBe(401)
    expect(await status(createHandler(heed, { auth: 'local' }), 'http://localhost/api/agents')).toBe(200)
    expect(await status(createHandler(heed, { auth: 'local' }), 'http://evil.example/api/agents')).toBe(401)
    expect(await status(createHandler(heed, { auth: () => null }), 'http://localhost/api/agents')).toBe(401)
    expect(await status(createHandler(heed), 'http://anywhere/api/health')).toBe(200)
    await heed.close()
  })

  it('[H3.2] refuses another resource on every route and method, changes nothing of it, and tells nothing on reads', async () => {
    const pay = createTool({ id: 'pay', requireApproval: true, inputSchema: z.object({ to: z.string() }), execute: () => 'paid' })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'pay', input: { to: 'Secret' } }] }, 'Hello.'], { loop: true })
    const memory = new Memory({ workingMemory: { enabled: true, scope: 'thread' } })
    const agent = new Agent({ id: 'guide', model, tools: { pay }, memory, notifications: { deliveryPolicy: { default: 'persist' } } })
    const { ask } = await served({ guide: agent }, { auth })
    const mine = async (path: string, json: object) => {
      const response = await ask(path, { json, headers: as('one') })
      expect(response.status, path).toBe(200)
      return (await response.json()) as { record: { id: string }; outcome: { runId: string } }
    }
    const { outcome: { runId } } = await mine('/agents/guide/send-message?wait=outcome', { message: { contents: 'Secret', id: 'sig-1' }, ...thread })
    await expect.poll(() => agent.activeRun(thread)).toMatchObject({ runId, status: 'suspended' })
    const { record: { id: notificationId } } = await mine('/agents/guide/notifications', { ...thread, notification: { source: 'Secret', kind: 'x', summary: 'Secret' } })
    await mine('/agents/guide/schedules', { ...thread, id: 'schedule-1', message: 'Secret', cron: '0 0 1 1 *' })
    await mine('/agents/guide/watches', { ...thread, id: 'watch-1', watch: { description: 'Secret', expected_channels: ['sms'] } })
    await mine('/agents/guide/state-signals', { ...thread, state: { id: 'lane-1', cacheKey: 'k', contents: 'Secret' }, ifActive: { behavior: 'persist' } })
    await mine('/agents/guide/queue-message', { ...thread, message: { contents: 'Secret', id: 'sig-2' } })
    await mine('/memory/threads/thread-1/working-memory', { workingMemory: 'Secret', resourceId: 'user-1' })

    const owned = (await listed(ask)).filter(({ path }) => namesOwner(path))
    const own: Names = { threadId: 'thread-1', resourceId: 'user-1', runId, notificationId, scheduleId: 'schedule-1', watchId: 'watch-1', laneId: 'lane-1', signalId: 'sig-1' }
    const absent: Names = { ...own, threadId: 'thread-none', resourceId: 'user-2', runId: 'run-none', notificationId: 'n-none', scheduleId: 's-none', watchId: 'w-none', laneId: 'l-none', signalId: 'sig-none' }
    const tell = async ({ path, method, operation }: (typeof owned)[number], names: Names, who: keyof typeof key) => {
      const { url, init } = request(path, method, operation, names)
      const response = await ask(url, { ...init, headers: { ...init.headers, ...as(who) } })
      const streams = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
      if (streams) await response.body?.cancel()
      // The time that a watch has left differs with each read.
      return { status: response.status, text: streams ? '' : (await response.text()).replace(/"remainingMs":\d+/, '') }
    }
    const reads = owned.filter(({ method, path }) => method === 'get' && !/\/subscribe$|^\/api\/events$/.test(path))
    const look = () => Promise.all(reads.map(async (read) => [read.path, await tell(read, own, 'one')]))
    const before = await look()
    expect(before.filter(([, told]) => JSON.stringify(told).includes('Secret')).length).toBeGreaterThan(8)

    for (const operation of owned) {
      const where = `${operation.method} ${operation.path}`
      for (const resourceId of ['user-1', 'user-2']) {
        const { status, text } = await tell(operation, { ...own, resourceId }, 'two')
        expect(text, where).not.toContain('Secret')
        // Lists of one's own are empty, nothing runs, and what is watched is silent (see unseen.test.ts); everything else is refused.
        const isWatched = /\/(subscribe|ticket)$|^\/api\/events$/.test(operation.path)
        const isMemory = operation.path.endsWith('/working-memory') && operation.method === 'get'
        if (isWatched || isMemory) expect(status, where).toBe(resourceId === 'user-1' ? 403 : 200)
        else if (status === 204) expect([resourceId, operation.path], where).toEqual(['user-2', '/api/agents/{agentId}/chat/{threadId}/stream'])
        else if (status < 400 && operation.method === 'get') {
          const { pagination, ...told } = JSON.parse(text) as { pagination?: { total: number } }
          // Counts of workflows are by the workflow, and there is none.
          const none = operation.path.endsWith('/active-run') ? null : operation.path.endsWith('/run-counts') ? undefined : []
          expect([resourceId, pagination?.total ?? 0, Object.values(told)[0]], where).toEqual(['user-2', 0, none])
        }
        // What would change nothing of a missing thread changes nothing of another's, and is answered alike.
        else if (status < 400) expect([resourceId, operation.path, (await tell(operation, absent, 'two')).text], where).toEqual(['user-2', expect.stringMatching(/abort$|mark$|notifications\/retry$|threads\/\{threadId\}$/), text])
        if (resourceId === 'user-1' || !isRead(operation)) continue
        const other = await tell(operation, absent, 'two')
        expect([status, renamed(text, own)], where).toEqual([other.status, renamed(other.text, absent)])
      }
    }
    expect(await look()).toEqual(before)
    expect(owned.length).toBeGreaterThan(50)
  })

  it('keeps what concerns everybody for operators', async () => {
    const operator: Principal = { id: 'ops', resources: [], operator: true }
    const both = apiKeys({ [key.one]: operator, [key.two]: { id: 'two', resources: ['user-2'] } })
    const { ask } = await served({ guide: guide() }, { auth: both })
    expect((await ask('/metrics', { headers: as('two') })).status).toBe(403)
    const metrics = await ask('/metrics', { headers: as('one') })
    expect(await metrics.text()).toMatch(/heed_http_requests_total\{method="GET",status="403"\} 1/)
    expect((await ask('/tick', { json: {}, headers: as('two') })).status).toBe(403)
    expect(await (await ask('/tick', { json: {}, headers: as('one') })).json()).toMatchObject({ threads: 0 })
  })
})

const nameless = /\/(?:health|ready|me|metrics|openapi\.json|tick)$|\/agents(?:\/\{agentId\})?$|\/memory\/(?:status|config)$|^\/api\/(workflows(\/\{workflowId\})?|scores\/scorers(\/\{scorerId\})?)$|\/(?:speakers|listener)$/

/** Everything but what concerns the whole server, or the agents themselves. */
function namesOwner(path: string): boolean {
  return !nameless.test(path)
}

/** Whether it is for looking: GET, and the runs that are watched by a POST. */
function isRead({ method, path }: { method: string; path: string }): boolean {
  return method === 'get' || path.endsWith('/observe')
}

function renamed(text: string, names: Names): string {
  return Object.values(names).reduce((result, name) => result.replaceAll(name, '…'), text)
}
