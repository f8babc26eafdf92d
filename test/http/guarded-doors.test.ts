import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { Agent, createTool, Memory, type Message, type Processor } from '../../src/index.ts'
import { apiKeys, principalScopes } from '../../src/http/server.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel, type Script } from '../../src/testing/index.ts'
import { idle, soon } from '../thread/said.ts'
import { serving } from './serving.ts'

const word = 'xyzzy'
const own = { threadId: 'one', resourceId: 'alice' }
const keys = { tenant: 'key-of-the-tenant-00000', operator: 'key-of-the-operator-000' }

/** How often a guardrail has seen the word, and what replaces it: tests that share a server tell their own texts by it. */
const seen = { count: 0, gone: '[gone]' }
const sees = (text: string) => {
  if (text.includes(word)) seen.count++
  return text.includes(word)
}

/** A guardrail as a program writes it: it looks at the messages, and knows no door. */
const refuse: Processor = {
  id: 'no-magic',
  processInput: ({ messages, abort }) => (sees(JSON.stringify(messages)) ? abort('magic words are not allowed') : undefined),
}
const redact: Processor = {
  id: 'redact-magic',
  processInput({ messages }) {
    const text = JSON.stringify(messages)
    sees(text)
    return JSON.parse(text.replaceAll(word, seen.gone), (key, value: unknown) => (key === 'createdAt' ? new Date(value as string) : value)) as Message[]
  },
}

/** Every value in every table of the file. */
function stored(file: string): string {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all().map(({ name }) => String(name))
    return tables.map((name) => JSON.stringify(database.prepare(`SELECT * FROM "${name}"`).all(), (_, value: unknown) => (value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : typeof value === 'bigint' ? String(value) : value))).join('\n')
  } finally {
    database.close()
  }
}

const folder = mkdtempSync(join(tmpdir(), 'heed-doors-'))
const shared = new Map<Processor, ReturnType<typeof world>>()
afterAll(async () => {
  for (const opened of shared.values()) await (await opened).close()
  rmSync(folder, { recursive: true, force: true })
})

async function world(guard: Processor, script: Script = () => '{"a":"x"}') {
  const file = join(folder, `${randomUUID()}.db`)
  const model = scriptedModel(script)
  const memory = new Memory({ options: { workingMemory: { enabled: true, scope: 'thread' }, semanticRecall: false } })
  const pay = createTool({ id: 'pay', inputSchema: { type: 'object', properties: {} } as const, requireApproval: true, execute: async () => 'paid' })
  const ask = createTool({ id: 'ask', inputSchema: { type: 'object', properties: {} } as const, execute: async (_, { suspend, resumeData }) => resumeData ?? suspend?.({}) })
  const guide = new Agent({
    id: 'guide', model, memory, tools: { pay, ask }, inputProcessors: [guard], watches: true,
    remote: { options: ['instructions', 'system', 'clientTools', 'structuredOutput'] }, notifications: { deliveryPolicy: { default: 'persist' } },
  })
  // On the same storage, and without guardrails.
  const open = new Agent({ id: 'open', model: scriptedModel(() => 'Fine.'), memory })
  const auth = apiKeys({ [keys.tenant]: { id: 'tenant', resources: ['alice'], scopes: principalScopes.tenant }, [keys.operator]: { id: 'operator', resources: '*' } })
  const { ask: fetched, server } = await serving({ guide, open }, { auth, storage: new LibSQLStore({ url: `file:${file}` }) })
  const as = async (who: keyof typeof keys, path: string, json?: object, method = json ? 'POST' : 'GET') => {
    const response = await fetched(path, { method, headers: { authorization: `Bearer ${keys[who]}`, ...(json && { 'content-type': 'application/json' }) }, ...(json && { body: JSON.stringify(json) }) })
    return { http: response.status, text: await response.text() }
  }
  return { guide, as, dump: () => stored(file), model, calls: () => JSON.stringify(model.calls), close: () => server.close() }
}

/** A server that tests with the same guardrail share, without the threads and calls of an earlier test. */
async function emptied(guard: Processor, gone = '[gone]') {
  const opened = shared.get(guard) ?? world(guard)
  shared.set(guard, opened)
  const here = await opened
  for (const threadId of ['one', 'new']) await here.as('operator', `/memory/threads/${threadId}?resourceId=alice`, undefined, 'DELETE')
  const earlier = here.model.calls.length
  seen.gone = gone
  return { ...here, calls: () => JSON.stringify(here.model.calls.slice(earlier)) }
}

/** A server of the test's own. */
async function ownWorld(guard: Processor, script: Script) {
  const here = await world(guard, script)
  onTestFinished(here.close)
  return here
}

const createdAt = '2026-01-01T00:00:00.000Z'
const saved = (part: object, role = 'user', id = 'm-9') => ({ messages: [{ id, role, createdAt, ...own, content: { format: 2, parts: [part] } }] })
const text = { type: 'text', text: `Say ${word}.` }
const toolPart = (field: object) => ({ type: 'tool-invocation', toolInvocation: { state: 'result', toolCallId: 'c', toolName: 'look', args: {}, result: {}, ...field } })
const toolMessages = [{ role: 'tool', content: [{ type: 'tool-result', toolCallId: 'call-1', toolName: 'look', output: { type: 'json', value: { page: [`Say ${word}.`] } } }] }]
const notification = (field: object) => ({ ...own, notification: { source: 's', kind: 'k', summary: 'Mail.', ...field } })
const every = { every: 3_600_000 }
const quiet = { ifIdle: { behavior: 'persist' } }
const inMemory = { memory: { thread: 'one', resource: 'alice' } }

/** Path and body of a request that brings a text to where a model reads it, now or later, without being input of a run. */
const doors: Record<string, [path: string, body: object, method?: string]> = {
  'a saved message': ['/memory/save-messages', saved(text)],
  'a saved message, for an agent without guardrails on the same storage': ['/memory/save-messages?agentId=open', saved(text)],
  'a saved answer': ['/memory/save-messages', saved(text, 'assistant')],
  'a saved reasoning': ['/memory/save-messages', saved({ type: 'reasoning', reasoning: word }, 'assistant')],
  'the result of a saved call': ['/memory/save-messages', saved(toolPart({ result: { deep: [{ [word]: 1 }] } }), 'assistant')],
  'the input of a saved call': ['/memory/save-messages', saved(toolPart({ args: { q: word } }), 'assistant')],
  'the name of a saved file': ['/memory/save-messages', saved({ type: 'file', filename: `${word}.txt`, mimeType: 'text/plain', data: 'aGk=' })],
  'a changed message': ['/memory/messages/update', { messages: [{ id: 'm-1', content: { format: 2, parts: [text] } }] }],
  'working memory': ['/memory/threads/one/working-memory', { workingMemory: `Likes ${word}.` }],
  'working memory in metadata': ['/memory/threads', { threadId: 'new', metadata: { workingMemory: word } }],
  'the title of a new thread': ['/memory/threads', { threadId: 'new', title: word }],
  'metadata of a new thread': ['/memory/threads', { threadId: 'new', metadata: { about: { [word]: [word] } } }],
  'the title of a thread': ['/memory/threads/one', { title: word }, 'PATCH'],
  'metadata of a thread': ['/memory/threads/one', { metadata: { about: word } }, 'PATCH'],
  'the title of a clone': ['/memory/threads/one/clone', { newThreadId: 'new', title: word }],
  'the title of the thread of a run': ['/agents/guide/generate', { messages: 'Hi', memory: { thread: { id: 'new', title: word }, resource: 'alice' } }],
  'the title of the thread of a send': ['/agents/guide/send-message', { message: 'Hi', threadId: 'new', ifIdle: { streamOptions: { memory: { thread: { title: word } } } } }],
  instructions: ['/agents/guide/generate', { messages: 'Hi', instructions: `Say ${word}.`, ...inMemory }],
  'a system option': ['/agents/guide/generate', { messages: 'Hi', system: [{ role: 'system', content: word }] }],
  'the description of a client tool': ['/agents/guide/generate', { messages: 'Hi', clientTools: { page: { description: word, inputSchema: { type: 'object', properties: { a: { type: 'string', description: 'x' } } } } } }],
  'the schema of a client tool': ['/agents/guide/generate', { messages: 'Hi', clientTools: { page: { description: 'x', inputSchema: { type: 'object', properties: { [word]: { type: 'string', description: word } } } } } }],
  'the schema of an output': ['/agents/guide/generate', { messages: 'Hi', structuredOutput: { schema: { type: 'object', properties: { a: { type: 'string', description: word } } } } }],
  'the result of a tool in messages': ['/agents/guide/generate', { messages: toolMessages, ...inMemory }],
  'the result of a tool in an approval': ['/agents/guide/send-tool-approval', { ...own, approved: true, messages: toolMessages }],
  'the summary of a notification': ['/agents/guide/notifications', notification({ summary: word })],
  'the payload of a notification': ['/agents/guide/notifications', notification({ payload: { id: word } })],
  'attributes of a notification': ['/agents/guide/notifications', notification({ attributes: { who: word } })],
  'the source of a notification': ['/agents/guide/notifications', notification({ source: word })],
  'one of several notifications': ['/agents/guide/notifications', { ...own, notifications: [{ source: 's', kind: 'k', summary: 'x' }, { source: 's', kind: word, summary: 'y' }] }],
  'a signal': ['/agents/guide/signals', { ...own, ...quiet, signal: { type: 'notification', contents: word } }],
  'attributes of a signal': ['/agents/guide/signals', { ...own, ...quiet, signal: { type: 'notification', contents: 'x', attributes: { who: word } } }],
  'attributes of a branch of a send': ['/agents/guide/send-message', { ...own, message: 'Hi', ifIdle: { attributes: { who: word } } }],
  'attributes of a message': ['/agents/guide/send-message', { ...own, message: { contents: 'Hi', attributes: { who: word } } }],
  'the state of a lane': ['/agents/guide/state-signals', { ...own, ...quiet, state: { stateId: 'lane', cacheKey: 'k', contents: word, value: { word } } }],
  'a message that is only stored': ['/agents/guide/send-message', { ...own, ...quiet, message: word }],
  'the name of a sent file': ['/agents/guide/send-message', { ...own, message: [{ type: 'file', filename: `${word}.txt`, mediaType: 'text/plain', data: 'aGk=' }, { type: 'text', text: 'Hi' }] }],
  'a message of a schedule': ['/agents/guide/schedules', { ...own, ...every, message: word }],
  'a signal of a schedule': ['/agents/guide/schedules', { ...own, ...every, signal: { type: 'notification', contents: 'x', attributes: { who: word } } }],
  'the description of a watch': ['/agents/guide/watches', { ...own, watch: { description: word, expected_channels: ['sms'] } }],
  'the result schema of a watch': ['/agents/guide/watches', { ...own, watch: { description: 'x', expected_channels: ['sms'], result_schema: { type: 'object', additionalProperties: false, required: ['a'], properties: { a: { type: 'boolean', description: word } } } } }],
}

const tool = (inputSchema: object) => ({ messages: 'Hi', clientTools: { page: { description: 'x', inputSchema } } })
const output = (schema: object) => ({ messages: 'Hi', structuredOutput: { schema } })
const having = (a: object, more: object = {}) => ({ type: 'object', properties: { a }, ...more })

/** Schemas with a text anywhere: a model reads them as a whole. */
const schemas: Record<string, object> = {
  'a pattern': tool(having({ type: 'string', pattern: word })),
  'a pattern of an alias': { messages: 'Hi', clientTools: { page: { description: 'x', parameters: having({ type: 'string', pattern: word }) } } },
  'a format': tool(having({ type: 'string', format: word })),
  'an $id': tool(having({ type: 'string' }, { $id: `http://${word}/` })),
  'a $schema': tool(having({ type: 'string' }, { $schema: `http://${word}` })),
  'a default': tool(having({ type: 'object', default: { id: word } })),
  'a constant': tool(having({ const: { status: word } })),
  'a value': tool(having({ enum: [{ mode: word }, { [word]: 1 }] })),
  'an example': tool(having({ type: 'object', examples: [{ [word]: 1 }] })),
  'a pattern of names': tool(having({}, { patternProperties: { [word]: {} } })),
  'a name that needs others': tool(having({}, { dependentRequired: { [word]: ['a'] } })),
  'a name that others need': tool(having({}, { dependentRequired: { a: [word] } })),
  'an unknown keyword': tool(having({ [word]: 1 })),
  'a media type': tool(having({ type: 'string', mediaType: word })),
  'options': tool(having({ type: 'string', options: word })),
  'a type within an unknown keyword': tool(having({ 'x-a': { type: word } })),
  'a type within a keyword': tool(having({ items: [{ type: word }] })),
  'a pattern of an output': output(having({ type: 'string', pattern: word })),
  'a default of an output': output(having({ type: 'object', default: { id: word } })),
  'a pattern of names of an output': output({ type: 'object', patternProperties: { [word]: {} } }),
}

/** Of a message that a run reads: the run decides about it, and the request is answered as ever. */
const runDoors: Record<string, [path: string, body: object]> = {
  'a message': ['/agents/guide/send-message', { ...own, message: word }],
  'a message that waits': ['/agents/guide/queue-message', { ...own, message: word }],
  'a message of a call': ['/agents/guide/generate', { messages: word, ...inMemory }],
  'a message of a stream': ['/agents/guide/stream', { messages: [{ role: 'user', content: [{ type: 'text', text: word }] }], ...inMemory }],
  'a message of a chat': ['/agents/guide/chat', { id: 'one', messages: [{ id: 'u-1', role: 'user', parts: [{ type: 'text', text: word }] }] }],
}

const before = async ({ as }: Awaited<ReturnType<typeof world>>) => {
  expect(await as('tenant', '/memory/threads', { threadId: 'one', title: 'Trip' })).toMatchObject({ http: 200 })
  const first = await as('tenant', '/memory/save-messages', saved({ type: 'text', text: 'Hi' }, 'user', 'm-1'))
  expect(first).toMatchObject({ http: 200 })
}

/** Runs the agent on the threads, so that a model reads what was stored. */
async function readAll({ as, guide }: Awaited<ReturnType<typeof world>>) {
  await idle(guide, own)
  for (const thread of ['one', 'new']) expect(await as('tenant', '/agents/guide/generate', { messages: 'Go on.', memory: { thread, resource: 'alice' } })).toMatchObject({ http: 200 })
}

describe('a text of a limited principal', () => {
  it.each(Object.keys(doors))('[H8.5] that a guardrail refuses is stored nowhere and read by no model: %s', async (door) => {
    const here = await emptied(refuse)
    await before(here)
    const [path, body, method] = doors[door] as [string, object, string?]
    const { http, text: answer } = await here.as('tenant', path, body, method)
    expect({ http, ...(JSON.parse(answer) as object) }).toMatchObject({ http: 422, code: 'tripwire', details: { processorId: 'no-magic', reason: 'magic words are not allowed' } })
    await readAll(here)
    expect(here.dump()).not.toContain(word)
    expect(here.calls()).not.toContain(word)
  })

  it.each(Object.keys(doors))('[H8.5] that a guardrail changes is stored as it was left: %s', async (door) => {
    const gone = `[gone: ${door}]`
    const here = await emptied(redact, gone)
    await before(here)
    const [path, body, method] = doors[door] as [string, object, string?]
    const { http, text: answer } = await here.as('tenant', path, body, method)
    // A schema of a caller is used with a deadline, which a busy machine may miss.
    if (door !== 'the schema of an output') expect({ http, answer: answer.slice(0, 300) }).toEqual({ http: 200, answer: expect.any(String) })
    await readAll(here)
    expect(here.dump()).not.toContain(word)
    expect(here.calls()).not.toContain(word)
    expect(here.dump() + here.calls()).toContain(gone)
  })

  it.each(Object.keys(schemas))('[H8.5] is read by no model that a guardrail keeps from it, wherever a schema has it: %s', async (place) => {
    const here = await emptied(refuse)
    const path = '/agents/guide/generate'
    const { http, text: answer } = await here.as('tenant', path, schemas[place])
    expect({ http, ...(JSON.parse(answer) as object) }).toMatchObject({ http: 422, code: 'tripwire', details: { processorId: 'no-magic' } })
    const other = await emptied(redact)
    const { http: status, text: changed } = await other.as('tenant', path, schemas[place])
    if (status === 422) expect(JSON.parse(changed)).toMatchObject({ code: 'tripwire', details: { keyword: expect.any(String) } })
    expect(here.calls() + other.calls()).not.toContain(word)
  })

  it('[H8.5] is a pattern, reference or type of a schema, which a guardrail may refuse and not change', async () => {
    const here = await emptied(redact)
    for (const place of ['a pattern', 'a format', 'an $id', 'a pattern of names', 'a pattern of an output']) {
      expect([place, await here.as('tenant', '/agents/guide/generate', schemas[place])]).toMatchObject([place, { http: 422 }])
    }
    expect(here.calls()).toBe('[]')
  })

  it.each(Object.keys(runDoors))('[H8.5] that enters a run is checked by the run, once: %s', async (door) => {
    const [path, body] = runDoors[door] as [string, object]
    for (const guard of [refuse, redact]) {
      const here = await emptied(guard)
      await before(here)
      seen.count = 0
      expect(await here.as('tenant', path, body)).toMatchObject({ http: 200 })
      await readAll(here)
      expect(seen.count).toBe(1)
      expect(here.dump()).not.toContain(word)
      expect(here.calls()).not.toContain(word)
    }
  })

  it('[H8.5] that decides about a call is checked: the reason of a decline, and the data of a resume', async () => {
    const script = (toolName: string): Script => ({ prompt }) => (prompt.at(-1)?.role === 'tool' ? 'Fine.' : { toolCalls: [{ toolName, input: {} }] })
    const decisions: Array<[tool: string, path: string, body: (runId: string) => object]> = [
      ['pay', 'send-tool-approval', () => ({ ...own, approved: false, declineContext: { reason: word, message: word } })],
      ['pay', 'decline-tool-call', (runId) => ({ runId, reason: word })],
      ['pay', 'decline-tool-call-generate', (runId) => ({ runId, reason: word })],
      ['ask', 'send-stream-resume', () => ({ ...own, resumeData: { answer: word } })],
      ['ask', 'resume-stream', (runId) => ({ runId, resumeData: { [word]: 1 } })],
      ['ask', 'send-tool-approval', () => ({ ...own, approved: true, resumeData: word })],
    ]
    for (const [tool, path, body] of decisions) for (const guard of [refuse, redact]) {
      const here = await ownWorld(guard, script(tool))
      expect(await here.as('tenant', '/agents/guide/send-message', { ...own, message: 'Go.' })).toMatchObject({ http: 200 })
      await soon(async () => (await here.guide.activeRun(own))?.status).toBe('suspended')
      const { runId = '' } = (await here.guide.activeRun(own)) ?? {}
      expect([path, await here.as('tenant', `/agents/guide/${path}`, body(runId))]).toMatchObject([path, { http: guard === refuse ? 422 : 200 }])
      if (guard === refuse) expect((await here.guide.activeRun(own))?.status).toBe('suspended')
      else await idle(here.guide, own)
      expect(here.dump()).not.toContain(word)
      expect(here.calls()).not.toContain(word)
    }
  })

  it('[H8.5] is checked for limited principals: what an operator writes is the program’s', async () => {
    const here = await emptied(refuse)
    await before(here)
    expect(await here.as('operator', '/memory/threads/one/working-memory?resourceId=alice', { workingMemory: word })).toMatchObject({ http: 200 })
    expect(here.dump()).toContain(word)
  })
})
