import { describe, expect, it, onTestFinished } from 'vitest'
import { HeedClient } from '../../src/client/index.ts'
import { apiKeys, createHandler, jwt } from '../../src/http/server.ts'
import { Agent, createTool, Heed, InMemoryStore, Memory, silentLogger, type AgentConfig } from '../../src/index.ts'
import { MessageHistory, ModerationProcessor, PIIDetector, RegexFilter, SemanticRecall } from '../../src/processors/index.ts'
import { GitHubSignals, WebhookSignals } from '../../src/sources/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel, virtualClock, type Script } from '../../src/testing/index.ts'
import { createStep, createWorkflow } from '../../src/workflow/index.ts'

const thread = { resourceId: 'ada', threadId: 'trip' }
const url = ':memory:'

function open(config: Partial<AgentConfig> = {}, script: Script = () => 'Fine.') {
  const agent = new Agent({ id: 'guide', model: scriptedModel(script), memory: new Memory(), ...config })
  const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
  onTestFinished(() => heed.close())
  return { agent, heed }
}

function serving() {
  const { agent, heed } = open()
  const key = 'k'.repeat(20)
  const handler = createHandler(heed, { auth: apiKeys({ [key]: { id: 'all', resources: '*' } }) })
  onTestFinished(() => handler.close())
  const ask = (path: string) => handler(new Request(`http://heed/api${path}`, { headers: { authorization: `Bearer ${key}` } }))
  const client = new HeedClient({ baseUrl: 'http://heed', retries: 0, headers: { authorization: `Bearer ${key}` }, fetch: (input, init) => handler(new Request(input, init)) })
  const post = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const answer = await handler(new Request(`http://heed/api${path}`, { method: 'POST', headers, body: JSON.stringify(body) }))
    return [answer.status, await answer.json()] as const
  }
  return { agent, ask, post, client }
}

/** The name that an error gives what it rejects. */
async function rejectedName(call: () => unknown): Promise<unknown> {
  const error = await (async () => call())().then(() => undefined, (thrown: unknown) => thrown)
  expect(error).toMatchObject({ name: 'HeedError' })
  const { field, option } = (error as { details?: { field?: string; option?: string } }).details ?? {}
  return field ?? option
}

describe('two values for one thing', () => {
  it('[M1.27] listThreads rejects two resources, in a memory, in a client, and in a query', async () => {
    const { agent, ask, client } = serving()
    const memory = await agent.getMemory()
    await memory.createThread({ threadId: 'secret', resourceId: 'bob' })
    const both = { resourceId: 'ada', filter: { resourceId: 'bob' } }
    expect(await rejectedName(() => memory.listThreads(both))).toBe('resourceId')
    expect(await rejectedName(() => client.memory().listThreads(both))).toBe('resourceId')
    expect(await rejectedName(() => client.memory({ resourceId: 'ada' }).listThreads({ resourceId: 'bob' }))).toBe('resourceId')
    expect(await rejectedName(() => client.memory({ resourceId: 'ada' }).listThreads({ filter: { resourceId: 'bob' } }))).toBe('resourceId')
    const answer = await ask('/memory/threads?agentId=guide&resourceId=bob&resourceId=ada')
    expect([answer.status, await answer.json()]).toMatchObject([400, { details: { field: 'resourceId' } }])
    const same = { resourceId: 'bob', filter: { resourceId: 'bob' } }
    expect([(await memory.listThreads(same)).threads.length, (await client.memory({ resourceId: 'bob' }).listThreads(same)).threads.length]).toEqual([1, 1])
    expect((await ask('/memory/threads?agentId=guide&resourceId=bob&resourceId=bob')).status).toBe(200)
  })

  it('[H5.18] a parameter of a query has one value, unless it is a list', async () => {
    const { agent, ask } = serving()
    await agent.sendNotificationSignal({ source: 's', kind: 'k', summary: 'One.' }, thread)
    expect((await ask('/agents/guide/threads/notifications?threadId=trip&status=pending&status=delivered')).status).not.toBe(400)
    for (const query of ['page=0&page=1', 'orderBy[field]=createdAt&orderBy[field]=updatedAt', 'metadata={}&metadata={"a":1}'])
      expect([query, (await ask(`/memory/threads?agentId=guide&resourceId=ada&${query}`)).status]).toEqual([query, 400])
  })

  it('[R6.15] a decision has one reason, and no data for a tool that does not run', async () => {
    const tools = { look: createTool({ id: 'look', requireApproval: true, execute: () => 1 }) }
    const { agent } = open({ tools }, [{ toolCalls: [{ toolName: 'look' }] }, 'Fine.'])
    await agent.generate('Look.', { memory: { thread: 'trip', resource: 'ada' } })
    const decline = (more: object) => () => agent.sendToolApproval({ ...thread, approved: false, ...more })
    expect(await rejectedName(decline({ declineContext: { reason: 'No.', message: 'Never.' } }))).toBe('declineContext.message')
    expect(await rejectedName(decline({ resumeData: { yes: true } }))).toBe('resumeData')
    expect(await decline({ declineContext: { message: 'No.' } })()).toMatchObject({ decided: { approved: false, reason: 'No.' } })
  })
})

describe('a value that can have no effect', () => {
  it('[H5.18] the query names another agent than the path, or a resource of no thread', async () => {
    const { post } = serving()
    expect(await post('/agents/guide/generate?agentId=porter', { messages: 'Hi.' })).toMatchObject([400, { details: { field: 'agentId' } }])
    expect(await post('/agents/guide/generate?resourceId=ada', { messages: 'Hi.' })).toMatchObject([400, { details: { field: 'threadId' } }])
    expect(await post('/agents/guide/generate?resourceId=bob', { messages: 'Hi.', threadId: 'trip', resourceId: 'ada' })).toMatchObject([400, { details: { field: 'resourceId' } }])
    expect(await post('/agents/guide/generate?agentId=guide&resourceId=ada', { messages: 'Hi.', threadId: 'trip', resourceId: 'ada' })).toMatchObject([200, { text: 'Fine.' }])
  })

  it('[G1.13] what is about output, of a processor that checks input alone', async () => {
    const judge = { generate: async () => ({ object: {} }) }
    const phases = ['input'] as const
    expect(await rejectedName(() => new RegexFilter({ presets: ['pii'], phases, holdBack: 64 }))).toBe('holdBack')
    expect(await rejectedName(() => new PIIDetector({ judge, phases, hold: true } as never))).toBe('hold')
    expect(await rejectedName(() => new ModerationProcessor({ judge, phases, thoughts: true } as never))).toBe('thoughts')
    expect(() => new PIIDetector({ judge, phases, hold: false } as never)).not.toThrow()
  })

  it('[G1.12] of a source and of a clock', async () => {
    expect(await rejectedName(() => new WebhookSignals({ id: 5, secret: `whsec_${'a'.repeat(40)}` } as never))).toBe('id')
    expect(await rejectedName(() => new GitHubSignals({ id: '', secret: 'a'.repeat(32) }))).toBe('id')
    expect(await rejectedName(() => virtualClock().advance('5' as never))).toBe('advance()')
  })

  it.each([
    ['ifActive', { ifActive: null }], ['ifIdle', { ifIdle: [] }], ['ifActive.attributes', { ifActive: { behavior: 'discard', attributes: { now: 1 } } }],
    ['ifIdle.attributes', { ifIdle: { behavior: 'discard', attributes: { now: 1 } } }],
  ])('[A3.10] %s of a send: %j', async (name, options) => {
    expect(await rejectedName(() => open().agent.sendMessage('Hi.', { ...thread, ...options } as never))).toBe(name)
  })

  it.each([
    ['storage', {}], ['storage', null], ['bus', {}], ['logger', {}], ['logger', null], ['clock', {}], ['agents', []], ['workflows', 'w'], ['sources', {}], ['channels', {}],
  ])('[G1.12] %s of a Heed: %j', async (name, value) => {
    expect(await rejectedName(() => new Heed({ [name]: value } as never))).toBe(name)
  })

  it.each([
    ['description', 5], ['timeoutMs', '5'], ['idempotent', 'yes'], ['strict', 'yes'], ['inputExamples', {}], ['inputExamples', [{ city: 'Bern' }]],
    ['providerOptions', { cacheControl: true }],
  ])('[G1.12] %s of a tool: %j', async (name, value) => {
    expect(await rejectedName(() => createTool({ id: 'look', execute: () => 1, [name]: value } as never))).toBe(name)
  })

  it('[G1.12] of a store: a token for a file, and what is no client', async () => {
    expect(await rejectedName(() => new LibSQLStore({ url, authToken: 'secret' }))).toBe('authToken')
    expect(await rejectedName(() => new LibSQLStore({ url: 'file:./x.db', authToken: 'secret' }))).toBe('authToken')
    expect(await rejectedName(() => new LibSQLStore({ url, client: {} } as never))).toBe('client')
    expect(() => new LibSQLStore({ url: 'libsql://db.example', authToken: 'secret' })).not.toThrow()
  })

  it.each(['https://app.example.com/', 'app.example.com', 'https://app.example.com/page', 'HTTPS://app.example.com', 'https://app.example.com:443'])(
    '[H3.16] %s is no origin that a browser sends', async (origin) => {
      const { heed } = open()
      expect(await rejectedName(() => createHandler(heed, { cors: { origin } }))).toBe('cors.origin')
      expect(await rejectedName(() => createHandler(heed, { cors: { origin: ['https://a.example', origin] } }))).toBe('cors.origin')
      for (const valid of ['*', 'https://app.example.com', 'http://localhost:5173', 'capacitor://localhost', 'chrome-extension://abcdef'])
        createHandler(heed, { cors: { origin: valid } }).close()
    },
  )

  it('[G1.12] of a server, a client and a stream', async () => {
    const { heed } = open()
    expect(await rejectedName(() => createHandler(heed, null as never))).toBe('The server')
    const issuer = { jwks: 'https://a.example/keys', issuer: 'i', audience: 'a' }
    expect(await rejectedName(() => jwt({ ...issuer, toleranceSeconds: '5' } as never))).toBe('toleranceSeconds')
    expect(await rejectedName(() => jwt({ ...issuer, maxKeyAgeSeconds: '5' } as never))).toBe('maxKeyAgeSeconds')
    expect(await rejectedName(() => jwt({ ...issuer, jwks: 'ftp://a.example' }))).toBe('jwks')
    const client = { baseUrl: 'http://heed' }
    expect(await rejectedName(() => new HeedClient({ ...client, retries: '3' } as never))).toBe('retries')
    expect(await rejectedName(() => new HeedClient({ ...client, timeoutMs: '3' } as never))).toBe('timeoutMs')
    expect(await rejectedName(() => new HeedClient({ ...client, apiPrefix: 'api' }))).toBe('apiPrefix')
    const stream = serving().client.getAgent('guide').watchThread({ threadId: 'trip', resourceId: 'ada' })
    onTestFinished(() => stream.unsubscribe())
    expect(await rejectedName(() => stream.processDataStream({} as never))).toBe('onChunk')
    for (const reconnect of [{ delayMs: 'x' }, { maxRetries: -1 }, { onLost: 'x' }] as object[])
      expect(await rejectedName(() => stream.chunks(reconnect as never).next())).toBe(`reconnect.${Object.keys(reconnect)[0]}`)
  })

  it('[G1.12] of a processor of memory', async () => {
    expect(await rejectedName(() => new MessageHistory(null as never))).toBe('MessageHistory')
    expect(await rejectedName(() => new SemanticRecall(null as never))).toBe('SemanticRecall')
  })
})

describe('values without an effect', () => {
  it('[G1.12] a tool without execute rejects what is about its execution; workflows and steps reject a description that is no text', async () => {
    for (const more of [{ timeoutMs: 5 }, { idempotent: true }, { suspendSchema: { type: 'object' } }])
      expect(await rejectedName(() => createTool({ id: 'ask', ...more } as never))).toBe(Object.keys(more)[0])
    expect(createTool({ id: 'ask', resumeSchema: { type: 'object' } }).id).toBe('ask')
    const schemas = { inputSchema: { type: 'object' }, outputSchema: { type: 'object' } } as const
    expect(await rejectedName(() => createWorkflow({ id: 'order', ...schemas, description: 5 as never }))).toBe("description of workflow 'order'")
    expect(await rejectedName(() => createStep({ id: 'pay', ...schemas, description: 5 as never, execute: async () => ({}) }))).toBe("description of step 'pay'")
  })
})
