import { randomUUID } from 'node:crypto'
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv } from 'ajv'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { Channel, directChannel } from '../../src/channel/index.ts'
import { HeedEditor } from '../../src/editor/index.ts'
import { serve } from '../../src/http/server.ts'
import { Agent, createTool, Heed, HeedError, Memory, silentLogger } from '../../src/index.ts'
import { WebhookSignals } from '../../src/sources/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { CompositeVoice } from '../../src/voice/index.ts'
import { createStep, createWorkflow } from '../../src/workflow/index.ts'
import { said } from '../channel/answering.ts'
import { secret, standard } from '../sources/signing.ts'
import { soon } from '../thread/said.ts'
import { toneSpeech, toneTranscription } from '../voice/voices.ts'
import { calls, typedClient, type Waiting, type World } from './calls.ts'
import { document, generateTypes, routes } from './document.ts'

const scope = { threadId: 'thread-1', resourceId: 'user-1' }
const pay = createTool({ id: 'pay', requireApproval: true, inputSchema: z.object({ to: z.string() }), execute: () => 'paid' })
const ask = createTool({ id: 'ask', inputSchema: z.object({}), suspendSchema: z.object({}), resumeSchema: z.object({ yes: z.boolean() }), execute: (_input, { resumeData, suspend }) => (resumeData ? 'answered' : suspend({})) })

/** What the agent does is what its last message says. */
const model = () => scriptedModel(({ options: { prompt } }) => {
  if (prompt.some(({ role }) => role === 'tool')) return 'Done.'
  const last = JSON.stringify(prompt.findLast((message) => message.role === 'user' && /Pay|Hang|Ask/.test(JSON.stringify(message))) ?? '')
  if (last.includes('Pay')) return { toolCalls: [{ toolName: 'pay', input: { to: 'Ada' } }] }
  if (last.includes('Hang')) return { text: 'Never', hang: true }
  return last.includes('Ask') ? { toolCalls: [{ toolName: 'ask', input: {} }] } : 'Hello.'
})

const asking = () => createWorkflow({ id: 'asking' })
  .then(createStep({ id: 'ask', execute: ({ resumeData, suspend }) => (resumeData === undefined ? suspend('?') : resumeData) }))
  .waitForEvent('paid').commit()

interface Parts {
  file: string
  /** What is sent to the thread before the call. */
  message?: string
}

function parts({ file }: Parts) {
  const phone = directChannel({ kind: 'sms', send: async () => Promise.reject(new HeedError('provider_error', 'Blocked.', { details: { status: 403, maybeSent: false } })) })
  const shop = new WebhookSignals({ id: 'shop', secret })
  const used = model()
  const agent = new Agent({
    id: 'guide', model: used, tools: { pay, ask }, notifications: { deliveryPolicy: { default: 'persist', priorities: { medium: 'persist' } } },
    memory: new Memory({ workingMemory: { enabled: true, scope: 'thread' } }), voice: new CompositeVoice({ input: toneTranscription(), output: toneSpeech() }),
  })
  const channel = new Channel({ id: 'phone', adapter: phone, resourceId: 'user-1', mode: 'message', agent })
  const storage = new LibSQLStore({ url: `file:${file}` })
  const editor = new HeedEditor()
  const heed = new Heed({ agents: { guide: agent }, workflows: { asking: asking() }, storage, sources: [shop], channels: [channel], logger: silentLogger, editor })
  return { phone, shop, agent, heed, storage, editor, model: used }
}

const folder = mkdtempSync(join(tmpdir(), 'heed-openapi-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

type Made = Pick<World, 'runId' | 'toolCallId' | 'notificationId' | 'replyId'>

/** Files with a thread that has something of everything, by what it is pending on: made once, and copied for each call. */
const prepared = new Map<Waiting | undefined, Promise<{ file: string; made: Made }>>()

function prepare(waiting: Waiting | undefined) {
  const known = prepared.get(waiting) ?? furnished(waiting)
  prepared.set(waiting, known)
  return known
}

async function furnished(waiting: Waiting | undefined): Promise<{ file: string; made: Made }> {
  const file = join(folder, `${waiting ?? 'plain'}.db`)
  if (waiting === 'parked') await park(file)
  const { phone, shop, agent, heed, storage, editor } = parts({ file })
  await heed.start()
  await editor.save('guide', { base: 0, by: 'ann', instructions: 'Edited.' })
  await editor.save('guide', { base: 1, by: 'ann', instructions: 'Unused.' })
  await editor.publish('guide', { version: 1, expected: 0, by: 'ann' })
  for (const [base, content] of ['Be kind.', 'Be nice.'].entries()) await editor.prompts.save('tone', { base, content, by: 'ann' })
  for (const [expected, version] of [1, 1].entries()) await editor.prompts.publish('tone', { version, expected, by: 'ann' })
  await editor.prompts.save('unused', { base: 0, content: 'x', by: 'ann' })
  if (waiting === 'parked') await soon(() => storage.countRuns({ status: ['parked'] })).toBe(1)
  else await agent.sendMessage({ contents: 'Hi', id: 'sent-1' }, scope).outcome
  await soon(() => agent.activeRun(scope)).toBeNull()
  const ids = waiting === 'parked' ? { notificationId: 'none', replyId: 'none' } : await furnish({ agent, phone, heed })
  await shop.subscribe({ ...scope, agentId: 'guide', externalId: 'order-7' })
  if (waiting === 'Pay' || waiting === 'Ask') {
    await agent.generate(waiting, { memory: { thread: scope.threadId, resource: scope.resourceId } })
    await agent.queueMessage({ contents: 'Later.', id: 'queued-1' }, scope).stored
  }
  const { runs: [run] } = await agent.listSuspendedRuns(scope)
  await heed.close()
  return { file, made: { runId: run?.runId ?? 'none', toolCallId: run?.toolCalls[0]?.toolCallId ?? 'none', ...ids } }
}

/** A server on a copy of a prepared file. */
async function world(waiting: Waiting | undefined) {
  const { file: original, made } = await prepare(waiting)
  const file = join(folder, `${randomUUID()}.db`)
  copyFileSync(original, file)
  const { heed } = parts({ file })
  const server = await serve(heed, { port: 0, handleSignals: false })
  onTestFinished(() => server.close())
  const asked: Array<{ request: string; response: Response }> = []
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, init)
    const response = await globalThis.fetch(request)
    // The client reads the response.
    asked.push({ request: `${request.method} ${new URL(request.url).pathname}`, response: response.clone() })
    return response
  }
  const { body, headers } = standard(JSON.stringify({ resource: 'order-7', kind: 'paid', summary: 'Paid.' }))
  const webhook = { body: body as string, headers: headers as Record<string, string> }
  const at: World = { client: typedClient(server.url, fetch), ...made, webhook }
  return { at, asked }
}

/** A run that ten processes left, one after the other. */
async function park(file: string): Promise<void> {
  const { agent, heed, model: used } = parts({ file })
  await agent.sendMessage('Hang', scope).outcome
  await soon(() => used.callCount).toBe(1)
  await heed.close()
  const database = new DatabaseSync(file, { timeout: 60_000 })
  database.exec('UPDATE heed_runs SET attempts = 10')
  database.close()
}

async function furnish({ agent, phone, heed }: Pick<ReturnType<typeof parts>, 'agent' | 'phone' | 'heed'>) {
  const { record } = await agent.sendNotificationSignal({ source: 'mail', kind: 'new', summary: 'x' }, scope)
  await agent.schedule({ ...scope, id: 's-1', cron: '0 0 * * *', message: 'Look.' })
  await agent.awaitSignal({ description: 'A letter.', expected_channels: ['sms'] }, { ...scope, id: 'w-1' })
  await agent.sendStateSignal({ id: 'lane-1', cacheKey: 'k', contents: 'x' }, { ...scope, ifIdle: { behavior: 'persist' } })
  const order = heed.getWorkflow('asking').createRun({ runId: 'order-1', resourceId: scope.resourceId })
  await order.start({ inputData: { n: 1 } })
  // It came early: a run that is resumed ends.
  await order.sendEvent('paid', undefined, { id: 'e-0' })
  const memory = await agent.getMemory()
  await memory.cloneThread({ sourceThreadId: scope.threadId, newThreadId: 'copy-1' })
  for (const workingMemory of ['# One', '# Two']) await memory.updateWorkingMemory({ ...scope, workingMemory })
  await phone.deliver(said('1'))
  await soon(async () => (await heed.channels.listReplies({ state: 'dead' })).replies.length).toBe(1)
  return { notificationId: record.id, replyId: (await heed.channels.listReplies({ state: 'dead' })).replies[0]?.id ?? '' }
}

interface Operation {
  responses: Record<string, { content?: Record<string, { schema: object }> }>
}

const { paths } = document as { paths: Record<string, Record<string, Operation>> }
const ajv = new Ajv({ allErrors: true, strict: false })
ajv.addSchema(document, 'document')

/** What the document says about an answer, and what is wrong with it. */
function flaws(operation: Operation | undefined, response: Response, text: string): unknown {
  const listed = operation?.responses[String(response.status)] ?? operation?.responses.default
  const type = response.headers.get('content-type')?.split(';')[0] ?? ''
  const schema = (listed?.content?.[type] ?? listed?.content?.[type.replace(/\/.*/, '/*')])?.schema
  if (!schema) return `${response.status} ${type} is not in the document`
  if (type !== 'application/json') return undefined
  const check = ajv.compile('$ref' in schema ? { $ref: `document${String(schema.$ref)}` } : schema)
  return check(JSON.parse(text)) ? undefined : { errors: check.errors, text }
}

/** Streams are read up to their first frame. */
async function textOf(copy: Response): Promise<string> {
  if (!/^text\/(event-stream|plain)/.test(copy.headers.get('content-type') ?? '')) return copy.text()
  const reader = copy.body?.pipeThrough(new TextDecoderStream()).getReader()
  const value = (await reader?.read())?.value ?? ''
  await reader?.cancel()
  return value
}

const every = Object.entries(calls).flatMap(([path, methods]) => Object.entries(methods).map(([method, call]) => [`${method.toUpperCase()} ${path}`, path, method, call] as const))
/** Routes that answer no request, or none without what only a provider has. */
const refused: Record<string, number> = { 'POST /api/workflows/{workflowId}/runs/{runId}/restart': 409, 'POST /api/workflows/{workflowId}/restart': 409, 'POST /api/scores': 404, 'GET /api/scores/scorers/{scorerId}': 404, 'POST /api/stored/agents': 409, 'DELETE /api/stored/agents/{agentId}': 409, 'DELETE /api/stored/agents/{agentId}/versions/{version}': 409, 'POST /api/workflows/{workflowId}/restart-async': 409, 'GET /api/memory/observational-memory': 400, 'POST /api/channels/{channelId}': 401, 'GET /api/agents/{agentId}/threads/{threadId}/voice': 426 }

describe('a client that is generated from the document', () => {
  it('[H5.5] has the types that are in the tree: npm run openapi writes them', async () => {
    expect(readFileSync(new URL('paths.ts', import.meta.url), 'utf8')).toBe(await generateTypes())
  })

  it('[H5.5] has a document that a validator accepts', async () => {
    const { valid, errors } = await new Validator().validate(structuredClone(document))
    expect([valid, errors]).toEqual([true, undefined])
  })

  it('[H5.5] has a call for every route', () => {
    expect(every.map(([name]) => name).toSorted()).toEqual(routes.map(({ method, path }) => `${method} /api${path.replaceAll(/:(\w+)/g, '{$1}')}`).toSorted())
  })

  it.each(every)('[H5.5] %s: works, and its answer is what the document says', async (name, path, method, call) => {
    const { at, asked } = await world(typeof call === 'function' ? undefined : call.waiting)
    const { response: told } = await (typeof call === 'function' ? call : call.ask)(at)
    // It is a copy: it ends when both are cancelled.
    told.body?.cancel().catch(() => {})
    expect(asked.map(({ request }) => request)).toEqual([expect.stringMatching(new RegExp(`^${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`)) as string])
    const response = asked[0]?.response ?? told
    const text = await textOf(response)
    expect([name, response.status, text]).toEqual([name, refused[name] ?? 200, text])
    expect(flaws(paths[path]?.[method], response, text)).toBeUndefined()
  })
})
