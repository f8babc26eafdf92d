import { expect, it } from 'vitest'
import { z } from 'zod'
import { Agent, createTool, Memory } from '../../src/index.ts'
import { apiKeys } from '../../src/http/server.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { listed, request, type Names } from './every-route.ts'
import { soon } from '../thread/said.ts'
import { served } from './serving.ts'

const keys = { alice: 'key-of-alice-0000000000', bob: 'key-of-bob-000000000000' }
const auth = apiKeys({
  [keys.alice]: { id: 'alice', resources: ['alice'] }, [keys.bob]: { id: 'bob', resources: ['bob'] },
})

/**
 * Routes that may create a thread, a schedule or a watch under an id that the caller chose: ids are global, so that an id which another
 * resource has is reported as taken, without its owner.
 */
const taken = new Set([
  'post /agents/{agentId}/send-message', 'post /agents/{agentId}/queue-message', 'post /agents/{agentId}/signals', 'post /agents/{agentId}/state-signals',
  'post /agents/{agentId}/notifications', 'post /agents/{agentId}/schedules', 'post /agents/{agentId}/watches', 'post /agents/{agentId}/generate',
  'post /agents/{agentId}/stream', 'post /agents/{agentId}/stream-until-idle', 'post /agents/{agentId}/chat', 'post /memory/threads',
])

async function world() {
  const pay = createTool({ id: 'pay', requireApproval: true, inputSchema: z.object({}), execute: () => 'paid' })
  const model = scriptedModel([{ toolCalls: [{ toolName: 'pay', input: {} }] }, 'Hello.'], { loop: true })
  const memory = new Memory({ workingMemory: { enabled: true, scope: 'thread' } })
  const agent = new Agent({ id: 'guide', model, tools: { pay }, memory, notifications: { deliveryPolicy: { default: 'persist' } } })
  const { ask } = await served({ guide: agent }, { auth })
  const tell = async (who: keyof typeof keys, url: string, init: RequestInit = {}) => {
    const response = await ask(url, { ...init, headers: { ...(init.headers as object), authorization: `Bearer ${keys[who]}` } })
    const streams = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
    if (streams) await response.body?.cancel()
    return { status: response.status, text: streams ? '(stream)' : await response.text() }
  }
  const post = async (path: string, json: object) => {
    const { status, text } = await tell('alice', path, { method: 'POST', body: JSON.stringify(json), headers: { 'content-type': 'application/json' } })
    expect(status, path).toBe(200)
    return JSON.parse(text) as { record: { id: string }; outcome: { runId: string } }
  }
  const thread = { threadId: 'thread-1', resourceId: 'alice' }
  const { outcome: { runId } } = await post('/agents/guide/send-message?wait=outcome', { message: { contents: 'Secret', id: 'sig-1' }, ...thread })
  await soon(() => agent.activeRun(thread)).toMatchObject({ runId, status: 'suspended' })
  const { record: { id: notificationId } } = await post('/agents/guide/notifications', { ...thread, notification: { source: 'Secret', kind: 'x', summary: 'Secret' } })
  await post('/agents/guide/schedules', { ...thread, id: 'schedule-1', message: 'Secret', cron: '0 0 1 1 *' })
  await post('/agents/guide/watches', { ...thread, id: 'watch-1', watch: { description: 'Secret', expected_channels: ['sms'] } })
  await post('/agents/guide/state-signals', { ...thread, state: { id: 'lane-1', cacheKey: 'k', contents: 'Secret' }, ifActive: { behavior: 'persist' } })
  await post('/agents/guide/queue-message', { ...thread, message: { contents: 'Secret', id: 'sig-2' } })
  const theirs: Names = { threadId: 'thread-1', runId, notificationId, scheduleId: 'schedule-1', watchId: 'watch-1', laneId: 'lane-1', signalId: 'sig-1', replyId: 'r-1' }
  return { ask, tell, theirs }
}

/** What the answer says once ids, times and signatures are left out. */
function said({ status, text }: { status: number; text: string }, names: Names): string {
  const named = Object.values(names).reduce((result, name) => result.replaceAll(name, '…'), text)
  return `${status} ${named.replaceAll(/"(ticket|expiresAt|url)":"[^"]*"/g, '"$1":"…"')}`
}

it('[H3.13] what another resource has is answered for like what does not exist, on every route that cannot create it', async () => {
  const { ask, tell, theirs } = await world()
  const told: Array<[string, string, string]> = []
  let made = 0
  const routes = (await listed(ask)).filter(({ operation: { security } }) => security.length > 0)
  // Those that create something last: lists of one's own stay empty until then.
  const isLast = ({ path, method }: (typeof routes)[number]) => taken.has(`${method} ${path.slice('/api'.length)}`)
  for (const { path, method, operation } of routes.toSorted((one, other) => Number(isLast(one)) - Number(isLast(other)))) {
    const none = Object.fromEntries(Object.keys(theirs).map((name) => [name, `${name}-none-${made++}`]))
    const asked = async (names: Names) => {
      // Where a send may name a run or a thread, it names the thread.
      const { runId: _, ...thread } = names
      const { url, init } = request(path, method, operation, { ...(path.endsWith('signals') && method === 'post' ? thread : names), resourceId: 'bob' })
      const given = init.body ? (JSON.parse(init.body) as { messages?: object[] }) : undefined
      const more = path.endsWith('/chat') ? { id: names.threadId, messages: [{ id: names.signalId, role: 'user', parts: [{ type: 'text', text: 'Hi' }] }] }
        : path.endsWith('/save-messages') ? { messages: given?.messages?.map((message) => ({ ...message, createdAt: '2026-01-01T00:00:00.000Z' })) } : {}
      return said(await tell('bob', url, { ...init, ...(given ? { body: JSON.stringify({ ...given, ...more }) } : {}) }), names)
    }
    told.push([`${method} ${path.slice('/api'.length)}`, await asked(theirs), await asked(none)])
  }
  for (const [route, other, absent] of told) {
    expect(other, route).not.toMatch(/Secret|alice/)
    if (!taken.has(route)) {
      expect(other, route).toBe(absent)
      continue
    }
    expect(other, route).toMatch(/^403 .*"code":"thread_forbidden"/)
    expect(absent, route).toMatch(/^200 /)
  }
  expect(told.filter(([route]) => taken.has(route))).toHaveLength(taken.size)
  expect(told.length).toBeGreaterThan(70)
})

it('[H3.13] a run, a schedule, a watch, messages and a new thread of another resource are no different', async () => {
  const { tell, theirs: { runId = '' } } = await world()
  const asked = async (path: string, json: object) => tell('bob', path, { method: 'POST', body: JSON.stringify(json), headers: { 'content-type': 'application/json' } })
  const signal = { type: 'notification', contents: 'x' }
  const state = { id: 'lane-1', cacheKey: 'k', contents: 'x' }
  for (const [path, body] of [['send-message', { message: 'Hi' }], ['queue-message', { message: 'Hi' }], ['signals', { signal }], ['state-signals', { state, threadId: 'mine' }]] as const) {
    const answers = await Promise.all([runId, 'no-run'].map(async (id) => said(await asked(`/agents/guide/${path}`, { ...body, runId: id }), { id })))
    expect([path, answers[0]]).toEqual([path, answers[1]])
    expect(answers[0]).toMatch(/^409 .*no_active_run/)
  }
  const ids: Array<[string, object]> = [
    ['/agents/guide/schedules', { threadId: 'mine', id: 'schedule-1', message: 'x', cron: '0 0 1 1 *' }],
    ['/agents/guide/watches', { threadId: 'mine', id: 'watch-1', watch: { description: 'x', expected_channels: ['sms'] } }],
  ]
  await asked('/memory/threads', { threadId: 'mine' })
  ids.push(['/memory/threads/mine/clone', { newThreadId: 'thread-1' }])
  for (const [path, body] of ids) {
    const { status, text } = await asked(path, body)
    // A schedule or a watch is one of its own, with another id: that of the other resource stays unseen.
    const isOwn = !path.endsWith('/clone') && (JSON.parse(text) as { resourceId?: string }).resourceId === 'bob'
    expect([path, status >= 400 || isOwn, /Secret|alice/.test(text)]).toEqual([path, true, false])
  }
})

it('[H8.1] the prompt of an agent, with its instructions, is for operators', async () => {
  const { tell } = await world()
  for (const who of ['alice', 'bob'] as const) for (const threadId of ['thread-1', 'none'])
    expect(await tell(who, '/agents/guide/explain-prompt', { method: 'POST', body: JSON.stringify({ messages: 'Hi', memory: { thread: threadId, resource: who } }), headers: { 'content-type': 'application/json' } }))
      .toMatchObject({ status: 403, text: expect.stringContaining('"scope":"operate"') as string })
})
