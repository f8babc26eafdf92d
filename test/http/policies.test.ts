import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { Agent, createTool, Heed, InMemoryStore, silentLogger, type HeedConfig } from '../../src/index.ts'
import { apiKeys, principalScopes, serve, type Principal } from '../../src/http/server.ts'
import { CedarPolicies, type PolicyRequest, type PolicySet } from '../../src/policy/index.ts'
import { scriptedModel, type Script } from '../../src/testing/index.ts'
import { HeedEditor } from '../../src/editor/index.ts'
import { idle, soon } from '../thread/said.ts'
import { listed, request, type Names } from './every-route.ts'

const principals = {
  alice: { id: 'alice', resources: ['alice'], scopes: [...principalScopes.tenant, 'threads:read'] },
  bob: { id: 'bob', resources: ['bob'] },
  both: { id: 'both', resources: ['alice', 'bob'] },
  admin: { id: 'admin', resources: '*', scopes: [...principalScopes.operator, 'payments'] },
} satisfies Record<string, Principal>
type Who = keyof typeof principals
const keyOf = (who: Who) => `key-of-${who}-00000000000`

const forbid = (action: string, resource = 'resource', unless = '') => `forbid(principal${unless.includes('principal.') ? ' is Policy::User' : ''}, action == Policy::Action::"${action}", ${resource})${unless};`
const cedar = (policies: PolicySet, defaults?: PolicySet) => new CedarPolicies({ policies, logger: silentLogger, ...(defaults && { defaults }) })

const inputSchema = { type: 'object', properties: {} } as const
/** Calls one tool after the other, each in a step of its own, and then answers. */
function calling(...names: string[]): Script {
  return ({ prompt }) => {
    const done = prompt.filter(({ role }) => role === 'tool').length
    return done < names.length ? { toolCalls: [{ toolCallId: `call-${done}`, toolName: names[done] ?? '', input: {} }] } : 'Done.'
  }
}

/** A server whose Heed has these policies. */
async function guarded(policies: HeedConfig['policies'], script: Script = () => 'Hello.') {
  const ran: string[] = []
  const tool = (id: string) => createTool({ id, inputSchema, requireApproval: true, execute: async () => ({ ran: ran.push(id) }) })
  const model = scriptedModel(script)
  const agent = new Agent({ id: 'guide', model, tools: { pay: tool('pay'), look: tool('look') }, notifications: { deliveryPolicy: { default: 'persist' } } })
  const heed = new Heed({ agents: { guide: agent }, storage: new InMemoryStore(), editor: new HeedEditor(), logger: silentLogger, ...(policies && { policies }) })
  const auth = apiKeys(Object.fromEntries(Object.entries(principals).map(([who, principal]) => [keyOf(who as Who), principal])))
  const server = await serve(heed, { port: 0, handleSignals: false, auth })
  onTestFinished(() => server.close())
  const ask = (path: string, init: RequestInit = {}) => fetch(`${server.url}/api${path}`, init)
  const as = async (who: Who, path: string, json?: object, method = json ? 'POST' : 'GET') => {
    const response = await ask(path, {
      method, headers: { authorization: `Bearer ${keyOf(who)}`, ...(json && { 'content-type': 'application/json' }) }, ...(json && { body: JSON.stringify(json) }),
    })
    const text = await response.text()
    return { ...(text.startsWith('{') ? (JSON.parse(text) as object) : { text }), http: response.status } as { http: number; code?: string; [field: string]: unknown }
  }
  const suspended = (threadId: string) => soon(async () => (await agent.activeRun({ threadId }))?.status).toBe('suspended')
  return { agent, heed, model, ran, ask, as, suspended }
}

const denied = { http: 403, code: 'forbidden', error: 'The policies of this server deny this request.', retryable: false }
const own = { resourceId: 'alice', threadId: 'one' }
const userMessage = { id: 'm', role: 'user', parts: [{ type: 'text', text: 'Hi' }] }

/** Versions of an agent belong to no thread, and policies say nothing about them. */
const ofEditor = /^\/api\/(agents\/\{agentId\}\/(editor|versions|releases)|editor\/agents|prompt-blocks|stored\/agents)(\/|$)/

/** The scope that a route needs beyond those of an end user. */
function needed(path: string): string | undefined {
  if (ofEditor.test(path)) return 'edit'
  return /\/(metrics|tick|explain-prompt|processes|prompt|scores\/retry)$/.test(path) ? 'operate' : undefined
}

describe('policies of a Heed, over HTTP', () => {
  it('[V4.11] deny each request about a thread on every route, with one answer, and nothing is done', async () => {
    const { ask, as, heed, model } = await guarded(cedar({ secret_rule: forbid('read_thread') }, {}))
    await heed.getAgent('guide').sendMessage('Hi', own).outcome
    await soon(() => model.callCount).toBe(1)
    const names: Names = { ...own, runId: 'r', notificationId: 'n', scheduleId: 's', watchId: 'w', laneId: 'l', signalId: 'g' }
    const routes = (await listed(ask)).filter(({ operation }) => operation.security.length > 0)
    const open: string[] = []
    for (const { path, method, operation } of routes) {
      const { url, init } = request(path, method, operation, names)
      for (const who of ['alice', 'admin'] as const) {
        const body = init.body === undefined ? undefined : { ...(JSON.parse(init.body) as object), ...(path.endsWith('/chat') ? { messages: [userMessage] } : {}) }
        const answer = await as(who, url, body, init.method)
        if (answer.http !== 403) open.push(`${who} ${init.method} ${path}`)
        else expect(answer, `${method} ${path}`).toEqual(who === 'alice' && needed(path) ? expect.objectContaining({ details: { scope: needed(path) } }) : denied)
      }
    }
    const withoutThread = ['GET /api/agents', 'GET /api/agents/{agentId}', 'GET /api/agents/{agentId}/tools/{toolId}', 'GET /api/agents/{agentId}/voice/speakers', 'GET /api/agents/{agentId}/speakers', 'GET /api/agents/{agentId}/voice/listener', 'GET /api/memory/status', 'GET /api/memory/config', 'GET /api/memory/observational-memory', 'GET /api/workflows', 'GET /api/workflows/{workflowId}', 'GET /api/scores/scorers', 'GET /api/scores/scorers/{scorerId}', 'GET /api/me']
    expect(open).toEqual([...withoutThread.flatMap((route) => [`alice ${route}`, `admin ${route}`]), 'admin POST /api/tick', 'admin GET /api/metrics', 'admin GET /api/processes',
      ...routes.filter(({ path }) => ofEditor.test(path)).map(({ path, method }) => `admin ${method.toUpperCase()} ${path}`),
    ].toSorted((one, other) => open.indexOf(one) - open.indexOf(other)))
    expect(routes.length).toBeGreaterThan(60)
    expect(model.callCount).toBe(1)
    const memory = await heed.getAgent('guide').getMemory()
    expect(await memory.listThreads({})).toMatchObject({ threads: [{ id: 'one', resourceId: 'alice' }] })
  })

  it('[V4.5] [V4.11] that permit everything change no answer', async () => {
    const answers = await Promise.all([undefined, cedar({})].map(async (policies) => {
      const { ask, as } = await guarded(policies)
      const names: Names = { ...own, runId: 'r', notificationId: 'n', scheduleId: 's', watchId: 'w', laneId: 'l', signalId: 'g' }
      const statuses: Array<[string, number, unknown]> = []
      for (const { path, method, operation } of await listed(ask)) {
        if (/subscribe|events|stream|chat|watches$|channels|webhooks|observe|recover/.test(path)) continue
        const { url, init } = request(path, method, operation, names)
        const { http, code } = await as('alice', url, init.body === undefined ? undefined : (JSON.parse(init.body) as object), init.method)
        statuses.push([`${method} ${path}`, http, code])
      }
      return statuses
    }))
    expect(answers[1]).toEqual(answers[0])
    expect(answers[0]?.filter(([, status]) => status === 200).length).toBeGreaterThan(15)
  })

  it('[V4.5] [V4.11] scopes of a principal decide', async () => {
    const { as } = await guarded(cedar({ scoped: forbid('read_thread', 'resource', ' unless { principal.scopes.contains("threads:read") }') }))
    for (const who of ['alice', 'bob'] as const) expect(await as(who, '/agents/guide/send-message', { message: 'Hi', threadId: `of-${who}` })).toMatchObject({ http: 200 })
    expect(await as('alice', '/memory/threads/of-alice')).toMatchObject({ http: 200, id: 'of-alice' })
    expect(await as('bob', '/memory/threads/of-bob')).toEqual(denied)
    expect(await as('bob', '/memory/threads')).toEqual(denied)
    expect(await as('bob', '/agents/guide/threads/subscribe', { threadId: 'of-bob' })).toEqual(denied)
    expect(await as('bob', '/agents/guide/send-message', { message: 'Hi', threadId: 'of-bob' })).toMatchObject({ http: 200 })
  })

  it('[V4.6] [V4.11] the tenant is the resource that owns the thread, also for a principal of all resources', async () => {
    const policies = cedar({})
    await policies.savePolicies('alice', { closed: forbid('read_thread') })
    const { as } = await guarded(policies)
    for (const who of ['alice', 'bob'] as const) await as(who, '/agents/guide/send-message', { message: 'Hi', threadId: `of-${who}` })
    const reads = ['alice', 'bob'].flatMap((who) => [`/memory/threads/of-${who}`, `/agents/guide/threads/of-${who}/lanes`])
    expect(await Promise.all(reads.map(async (path) => (await as('admin', path)).http))).toEqual([403, 403, 200, 200])
    expect(await as('alice', '/memory/threads')).toEqual(denied)
    expect(await as('both', '/memory/threads?resourceId=bob')).toMatchObject({ http: 200 })
    expect(await as('both', '/memory/threads?resourceId=alice')).toEqual(denied)
    expect(await as('bob', '/memory/threads?resourceId=alice')).toMatchObject({ http: 403, error: "You may not access the resource 'alice'." })
    expect(await as('admin', '/memory/threads')).toMatchObject({ http: 200 })
    await policies.savePolicies('*', { closed: forbid('read_thread') })
    expect(await as('admin', '/memory/threads')).toEqual(denied)
    expect(await as('admin', '/memory/threads/of-bob')).toMatchObject({ http: 200 })
  })

  it('[V4.11] a rule about one thread holds on every way to it', async () => {
    const policies = cedar({ kept: forbid('send_signal', 'resource == Policy::Thread::"kept"'), unseen: forbid('read_thread', 'resource == Policy::Thread::"unseen"') })
    const { as, agent } = await guarded(policies)
    for (const threadId of ['kept', 'unseen', 'free']) {
      await agent.sendMessage({ id: `message-in-${threadId}`, contents: 'Hi' }, { threadId, resourceId: 'alice' }).outcome
      await idle(agent, { threadId })
    }
    const text = { format: 2, parts: [{ type: 'text', text: 'Mine.' }] }
    const owned = { role: 'user', resourceId: 'alice', createdAt: '2026-01-01T00:00:00Z', content: text }
    const saved = (threadId: string) => ({ messages: [{ id: 'first', ...owned, threadId: 'free' }, { id: 'second', ...owned, threadId }] })
    const ways: Array<[path: string, body: object, method?: string]> = [
      ['/memory/save-messages', saved('kept')],
      ['/memory/messages/update', { messages: [{ id: 'message-in-free', content: text }, { id: 'message-in-kept', content: text }] }],
      ['/memory/messages/update', { messages: [{ id: 'message-in-kept', threadId: 'kept', content: text }] }],
      ['/memory/messages/delete', { messageIds: ['message-in-kept'] }],
      ['/memory/messages/delete', { messageIds: { id: 'message-in-kept' } }],
      ['/memory/messages/delete', { messageIds: 'message-in-kept', threadId: 'kept' }],
      ['/memory/threads/kept/transfer?resourceId=alice', { resourceId: 'bob' }],
      ['/memory/threads/kept', { title: 'Mine' }, 'PATCH'],
      ['/memory/threads/unseen/clone', {}],
      ['/agents/guide/generate', { messages: 'Hi', memory: { thread: { id: 'kept' }, resource: 'alice' } }],
      ['/agents/guide/chat', { id: 'kept', resourceId: 'alice', messages: [userMessage] }],
      ['/agents/guide/queue-message', { message: 'Hi', threadId: 'kept', resourceId: 'alice' }],
      ['/agents/guide/schedules', { threadId: 'kept', resourceId: 'alice', message: 'Hi', every: 60_000 }],
    ]
    for (const who of ['both', 'admin'] as const) for (const [path, body, method] of ways) expect([path, await as(who, path, body, method)]).toEqual([path, denied])
    const include = encodeURIComponent(JSON.stringify([{ id: 'message-in-unseen', threadId: 'unseen' }]))
    expect(await as('alice', `/memory/threads/free/messages?include=${include}`)).toEqual(denied)
    expect(await as('alice', '/memory/save-messages', saved('free'))).toMatchObject({ http: 200 })
    const { messages } = await (await agent.getMemory()).recall({ threadId: 'kept' })
    expect(messages.map(({ id }) => id).at(0)).toBe('message-in-kept')
    expect(messages).toHaveLength(2)
  })

  it('[H4.4] [V4.11] a request that names two threads or resources is rejected: policies would be asked about one, and the route would use the other', async () => {
    const policies = cedar({ kept: forbid('send_signal', 'resource == Policy::Thread::"kept"') })
    await policies.savePolicies('bob', { closed: forbid('send_signal') })
    const { as, agent, model } = await guarded(policies)
    for (const [threadId, resourceId] of [['kept', 'alice'], ['free', 'alice'], ['of-bob', 'bob']] as const) {
      await agent.sendMessage('Hi', { threadId, resourceId }).outcome
      await idle(agent, { threadId })
    }
    const asked = model.callCount
    const kept = { threadId: 'free', memory: { thread: { id: 'kept' }, resource: 'alice' } }
    const foreign = { threadId: 'free', resourceId: 'alice', memory: { thread: 'free', resource: 'bob' } }
    const ways: Array<[field: string, path: string, body: object, method?: string]> = [
      ['threadId', '/agents/guide/generate', { messages: 'Hi', ...kept }],
      ['threadId', '/agents/guide/stream', { messages: 'Hi', ...kept }],
      ['resourceId', '/agents/guide/stream-until-idle', { messages: 'Hi', ...foreign }],
      ['resourceId', '/memory/threads?resourceId=alice', { threadId: 'new', resourceId: 'bob' }],
      ['resourceId', '/memory/threads/of-bob?resourceId=alice', { title: 'Mine', resourceId: 'bob' }, 'PATCH'],
      ['resourceId', '/memory/threads/of-bob/clone?resourceId=alice', { newThreadId: 'new', resourceId: 'bob' }],
      ['resourceId', '/memory/threads/of-bob/working-memory?resourceId=alice', { workingMemory: 'Mine', resourceId: 'bob' }],
      ['resourceId', '/memory/threads/of-bob/working-memory/undo?resourceId=alice', { resourceId: 'bob' }],
    ]
    for (const who of ['both', 'admin'] as const) for (const [field, path, body, method] of ways) {
      expect([path, await as(who, path, body, method)]).toMatchObject([path, { http: 400, code: 'invalid_argument', details: { field } }])
    }
    expect(model.callCount).toBe(asked)
    const memory = await agent.getMemory()
    expect((await memory.listThreads({})).threads.map(({ id, title }) => [id, title]).toSorted()).toEqual([['free', ''], ['kept', ''], ['of-bob', '']])
    expect(await as('both', '/memory/threads/free?resourceId=alice', { title: 'Trip', resourceId: 'alice' }, 'PATCH')).toMatchObject({ http: 200 })
  })

  it('[V4.11] a search from a thread reads all threads of the resource, and is asked about as such', async () => {
    const { as, agent } = await guarded(cedar({ only: forbid('read_thread', 'resource', ' unless { resource == Policy::Thread::"free" }') }))
    for (const [thread, text] of [['secret', 'The word is swordfish.'], ['free', 'Any swordfish today?']] as const) await agent.generate(text, { memory: { thread, resource: 'alice' } })
    const search = (config?: object) => as('alice', `/memory/search?searchQuery=swordfish&threadId=free${config ? `&memoryConfig=${encodeURIComponent(JSON.stringify(config))}` : ''}`)
    expect(await search()).toEqual(denied)
    expect(await search({ semanticRecall: { scope: 'resource' } })).toEqual(denied)
    const found = await search({ semanticRecall: { scope: 'thread' } })
    expect(found).toMatchObject({ http: 200, searchScope: 'thread' })
    expect(JSON.stringify(found)).not.toContain('The word is')
    const scope = `memoryConfig=${encodeURIComponent('{"semanticRecall":{"scope":"thread"}}')}`
    const explain = (more: string) => as('alice', `/memory/search/explanation?searchQuery=swordfish&threadId=free&${more}`)
    expect(await explain('')).toEqual(denied)
    expect(await explain(`${scope}&messageId=x&messageThreadId=secret`)).toEqual(denied)
    expect(await explain(scope)).toMatchObject({ http: 200 })
  })

  it('[V4.11] schedules, watches and runs are asked about by their threads', async () => {
    const asked: PolicyRequest[] = []
    const { as, agent, suspended } = await guarded({ authorize: async (one) => ({ allowed: asked.push(one) > 0, policyIds: [], revision: '' }) }, calling('pay'))
    await agent.schedule({ id: 's', threadId: 'one', resourceId: 'alice', message: 'Hi', every: 60_000 })
    await agent.awaitSignal({ description: 'x', expected_channels: ['sms'] }, { id: 'w', threadId: 'one', resourceId: 'alice' })
    const { outcome } = agent.sendMessage('Pay.', own)
    await suspended('one')
    const runId = (await outcome).runId ?? ''
    const paths: Array<[string, object?]> = [
      ['/agents/guide/schedules/s'], ['/agents/guide/watches/w'], ['/agents/guide/decline-tool-call-generate', { runId }],
    ]
    for (const [path, body] of paths) {
      asked.length = 0
      expect([path, (await as('admin', path, body)).http]).toEqual([path, 200])
      expect(asked[0]).toMatchObject({ tenant: 'alice', resource: { type: 'thread', id: 'one', resourceId: 'alice' }, principal: { type: 'user', id: 'admin', scopes: principals.admin.scopes } })
    }
    expect(asked[0]?.action).toBe('send_signal')
  })

  it.each<[string, NonNullable<HeedConfig['policies']>]>([
    ['fail', { authorize: () => Promise.reject(new Error('secret detail')) }],
    ['can not be loaded', new CedarPolicies({ engine: () => Promise.reject(new Error('secret detail')), logger: silentLogger })],
    ['answer something else', { authorize: () => Promise.resolve({ allowed: 1 } as never) }],
    ['can not evaluate a rule', cedar({ overflow: 'permit(principal, action, resource) when { 9223372036854775807 + 1 == 0 };' })],
  ])('[V4.3] [V4.11] that %s deny', async (_, policies) => {
    const { as, model } = await guarded(policies)
    expect(await as('alice', '/agents/guide/send-message', { message: 'Hi', threadId: 'one' })).toEqual(denied)
    expect(await as('alice', '/memory/threads/one')).toEqual(denied)
    expect(await as('alice', '/agents')).toMatchObject({ http: 200 })
    expect(model.callCount).toBe(0)
  })
})

describe('policies about approvals, over HTTP', () => {
  const onlyPayments = ' unless { principal.scopes.contains("payments") }'
  const guardPay = { payments: forbid('approve_tool', 'resource == Policy::Tool::"pay"', onlyPayments) }

  it('[V4.12] decide by the tool that waits: on each route, by thread and by run, and a decline is a send', async () => {
    const { as, agent, ran, suspended } = await guarded(cedar(guardPay), calling('pay', 'look'))
    await agent.sendMessage('Go.', own).stored
    await suspended('one')
    const { runId, toolCalls: [waiting] } = (await agent.listSuspendedRuns({})).runs[0] ?? { toolCalls: [] }
    const { id: approvalId, digest } = waiting?.request ?? {}
    const byThread = [{}, { toolCallId: 'call-0' }, { approvalId, digest }].map((more) => ({ threadId: 'one', approved: true, ...more }))
    for (const body of byThread) expect(await as('alice', '/agents/guide/send-tool-approval', body)).toEqual(denied)
    for (const path of ['approve-tool-call', 'approve-tool-call-generate']) for (const more of [{}, { approvalId, digest }])
      expect(await as('alice', `/agents/guide/${path}`, { runId, ...more })).toEqual(denied)
    expect(await as('alice', '/agents/guide/send-stream-resume', { threadId: 'one', resumeData: {} })).toEqual(denied)
    expect(await as('alice', '/agents/guide/resume-stream', { runId, resumeData: {} })).toEqual(denied)
    expect(ran).toEqual([])
    expect(await as('admin', '/agents/guide/send-tool-approval', { ...own, approved: true })).toMatchObject({ http: 200, decided: { by: 'admin', approved: true } })
    await soon(() => ran).toEqual(['pay'])
    await suspended('one')
    expect(await as('alice', '/agents/guide/send-tool-approval', { threadId: 'one', approved: true, approvalId: (await agent.listSuspendedRuns({})).runs[0]?.toolCalls[0]?.request?.id, digest: (await agent.listSuspendedRuns({})).runs[0]?.toolCalls[0]?.request?.digest })).toMatchObject({ http: 200 })
    await soon(() => ran).toEqual(['pay', 'look'])
    await agent.sendMessage('Again.', { ...own, threadId: 'two' }).stored
    await suspended('two')
    expect(await as('alice', '/agents/guide/send-tool-approval', { threadId: 'two', approved: false })).toMatchObject({ http: 200, decided: { approved: false } })
    expect(ran).toEqual(['pay', 'look'])
  })

  it('[V4.12] decide about the request that they were asked about: not about the next one of the thread', async () => {
    const rules = cedar(guardPay)
    let meanwhile: (() => Promise<void>) | undefined
    const { as, agent, ran, suspended } = await guarded({
      async authorize(one) {
        const decision = await rules.authorize(one)
        await (one.principal.type === 'user' ? meanwhile?.() : undefined)
        return decision
      },
    }, calling('look', 'pay'))
    await agent.sendMessage('Go.', own).stored
    await suspended('one')
    const { runId } = (await agent.listSuspendedRuns({})).runs[0] ?? {}
    // While the policies are asked about `look`, it is approved, and the thread waits for `pay`.
    meanwhile = async () => {
      meanwhile = undefined
      await agent.sendToolApproval({ ...own, approved: true })
      await soon(() => ran).toEqual(['look'])
      await soon(async () => (await agent.listSuspendedRuns({})).runs[0]?.toolCalls[0]?.toolName).toBe('pay')
    }
    expect(await as('alice', '/agents/guide/send-tool-approval', { threadId: 'one', approved: true })).toMatchObject({ http: 409, code: 'run_not_suspended' })
    expect(ran).toEqual(['look'])
    // The policies are asked while no call is suspended: they do not answer for a call that suspends later.
    await agent.sendToolApproval({ ...own, approved: true })
    await soon(() => ran).toEqual(['look', 'pay'])
    await idle(agent, own)
    meanwhile = async () => {
      meanwhile = undefined
      await agent.sendMessage('Again.', { ...own, threadId: 'fresh' }).stored
      await suspended('fresh')
    }
    await (await agent.getMemory()).createThread({ threadId: 'fresh', resourceId: 'alice' })
    expect(await as('alice', '/agents/guide/send-tool-approval', { threadId: 'fresh', approved: true })).toMatchObject({ http: 409 })
    expect(ran).toEqual(['look', 'pay'])
    expect(await as('alice', '/agents/guide/approve-tool-call', { runId })).toMatchObject({ http: 409, code: 'run_not_suspended' })
  })

  it('[V4.12] a repeated decision is answered as the first one was', async () => {
    const { as, agent, ran, suspended } = await guarded(cedar({}), calling('look'))
    await agent.sendMessage('Go.', own).stored
    await suspended('one')
    const { request: { id: approvalId, digest } = {} } = (await agent.listSuspendedRuns({})).runs[0]?.toolCalls[0] ?? {}
    const decide = () => as('alice', '/agents/guide/send-tool-approval', { threadId: 'one', approved: true, approvalId, digest })
    expect(await decide()).toMatchObject({ http: 200 })
    await idle(agent, own)
    expect(await decide()).toMatchObject({ http: 409, details: { decided: { approved: true, by: 'alice' } } })
    expect(ran).toEqual(['look'])
  })

  it('[V4.12] of a run without a thread are asked too', async () => {
    const { as, ran } = await guarded(cedar(guardPay), calling('pay'))
    const { runId } = await as('alice', '/agents/guide/generate', { messages: 'Pay.' })
    expect(await as('alice', '/agents/guide/approve-tool-call-generate', { runId })).toEqual(denied)
    expect(ran).toEqual([])
    expect(await as('alice', '/agents/guide/decline-tool-call-generate', { runId })).toMatchObject({ http: 200, text: 'Done.' })
  })

  it('[V4.12] [V4.14] see what tainted the call', async () => {
    const rule = forbid('approve_tool', 'resource == Policy::Tool::"pay"', ' unless { context.tainted_by.isEmpty() }')
    const { as, agent, ran, suspended } = await guarded(cedar({ rule }), calling('pay'))
    await agent.sendMessage('Pay.', own).stored
    await suspended('one')
    expect(await as('alice', '/agents/guide/send-tool-approval', { threadId: 'one', approved: true })).toMatchObject({ http: 200 })
    await soon(() => ran).toEqual(['pay'])
    await agent.sendSignal({ type: 'notification', contents: 'Pay.', metadata: { taintedBy: ['web'] } }, { ...own, threadId: 'two' }).stored
    await suspended('two')
    expect(await as('alice', '/agents/guide/send-tool-approval', { threadId: 'two', approved: true })).toEqual(denied)
    expect(await as('alice', '/agents/guide/send-tool-approval', { threadId: 'two', approved: false })).toMatchObject({ http: 200 })
    expect(ran).toEqual(['pay'])
  })
})

it('[V4.11] policies are not asked about what concerns no thread', async () => {
  const authorize = vi.fn(async () => ({ allowed: true, policyIds: [], revision: '' }))
  const { as } = await guarded({ authorize })
  for (const path of ['/agents', '/agents/guide', '/memory/status', '/metrics', '/health', '/openapi.json']) await as('admin', path)
  expect(authorize).not.toHaveBeenCalled()
  await as('admin', '/memory/threads')
  expect(authorize).toHaveBeenCalledOnce()
})
