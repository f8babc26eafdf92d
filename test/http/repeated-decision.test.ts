import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { HeedClient } from '../../src/client/index.ts'
import { Agent, createTool, Heed, silentLogger } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel, type ScriptedStep } from '../../src/testing/index.ts'
import { harmfulProxy, seeded, type Fate } from './proxy.ts'
import { served, thread } from './serving.ts'

interface Told {
  runId: string
  toolCallId?: string
  code?: string
}

async function serving(...turns: ScriptedStep[]) {
  const folder = mkdtempSync(join(tmpdir(), 'heed-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const url = `file:${join(folder, 'heed.db')}`
  const paid: unknown[] = []
  const pay = createTool({ id: 'pay', requireApproval: true, execute: (input) => (paid.push(input), 'paid') })
  const ask = createTool({ id: 'ask', execute: (_input, { resumeData, suspend }) => (resumeData === undefined ? suspend({ question: 'Which?' }) : { said: resumeData }) })
  const model = scriptedModel(turns)
  const guide = new Agent({ id: 'guide', model, tools: { pay, ask } })
  const { ask: request, server } = await served({ guide }, { storage: new LibSQLStore({ url }) })
  const post = async (route: string, json: object, key?: string): Promise<Told & { status: number }> => {
    const response = await request(`/agents/guide/${route}`, { json: { ...thread, ...json }, ...(key === undefined ? {} : { headers: { 'idempotency-key': key } }) })
    return { status: response.status, ...((await response.json()) as Told) }
  }
  const quiet = async () => {
    await expect.poll(async () => (await guide.activeRun(thread))?.status).toBeUndefined()
  }
  const suspended = async () => {
    await expect.poll(async () => (await guide.activeRun(thread))?.status).toBe('suspended')
  }
  return { post, model, guide, paid, quiet, suspended, url, server }
}

const clientTools = { weather: { description: 'Weather', inputSchema: { type: 'object', properties: { city: { type: 'string' } } } } }
const weather = { toolCalls: [{ toolName: 'weather', toolCallId: 'call-2', input: { city: 'Bern' } }] }
const result = (value: string) => [{ role: 'tool', content: [{ type: 'tool-result', toolCallId: 'call-2', toolName: 'weather', output: { type: 'json', value } }] }]

describe('a decision that is made again under its key', () => {
  it('[H1.6] is the first, while its run goes on and when it is over; another under that key is refused', async () => {
    const { post, model, paid, quiet, suspended } = await serving({ toolCalls: [{ toolName: 'pay', toolCallId: 'call-1', input: { sum: 3 } }] }, 'Paid.')
    await post('send-message', { message: 'Pay.' })
    await suspended()
    const decision = { toolCallId: 'call-1', approved: true }
    const told = await Promise.all(Array.from({ length: 4 }, () => post('send-tool-approval', decision, 'key-1')))
    expect(told.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    await quiet()
    expect(await post('send-tool-approval', decision, 'key-1')).toEqual(told[0])
    expect(await post('send-tool-approval', { ...decision, approved: false }, 'key-1')).toMatchObject({ status: 409, code: 'idempotency_key_reused' })
    expect(await post('send-tool-approval', decision, 'key-2')).toMatchObject({ status: 409, code: 'run_not_suspended' })
    expect([paid, model.callCount]).toEqual([[{ sum: 3 }], 2])
  })

  it('[H1.6] the same of data for a call that waits for it', async () => {
    const { post, model, quiet, suspended } = await serving({ toolCalls: [{ toolName: 'ask', toolCallId: 'call-1', input: {} }] }, 'Thank you.')
    await post('send-message', { message: 'Ask me.' })
    await suspended()
    const resume = { toolCallId: 'call-1', resumeData: { a: 1, b: 2 } }
    const first = await post('send-stream-resume', resume, 'key-1')
    await quiet()
    expect(await post('send-stream-resume', { ...resume, resumeData: { b: 2, a: 1 } }, 'key-1')).toEqual(first)
    expect(await post('send-stream-resume', { ...resume, resumeData: { a: 2 } }, 'key-1')).toMatchObject({ status: 409, code: 'idempotency_key_reused' })
    expect(model.callCount).toBe(2)
  })

  it('[H1.6] what tools of the caller answered is one turn, also at once', async () => {
    const { post, model, guide, quiet } = await serving(weather, 'Sunny.')
    await post('send-message', { message: 'Weather?', ifIdle: { streamOptions: { clientTools } } })
    await quiet()
    const answer = { toolCallId: 'call-2', approved: true, messages: result('sun'), streamOptions: { clientTools } }
    const told = await Promise.all(Array.from({ length: 4 }, () => post('send-tool-approval', answer, 'key-1')))
    await quiet()
    told.push(await post('send-tool-approval', answer, 'key-1'))
    expect(new Set(told.map((one) => JSON.stringify(one))).size).toBe(1)
    expect(told[0]).toMatchObject({ status: 200, toolCallId: 'call-2' })
    expect(await post('send-tool-approval', { ...answer, messages: result('rain') }, 'key-1')).toMatchObject({ status: 409, code: 'idempotency_key_reused' })
    await quiet()
    expect(model.callCount).toBe(2)
    expect(await guide.explain({ ...thread, signalId: 'key-1' })).toMatchObject({ state: 'consumed', runId: told[0]?.runId })
    const { messages } = await (await guide.getMemory()).recall({ ...thread, perPage: false })
    const parts = messages.flatMap(({ role, content }) => (role === 'assistant' ? content.parts : []))
    expect(parts.flatMap((part) => (part.type === 'text' ? part.text : []))).toEqual(['Sunny.'])
    expect(parts.filter((part) => part.type === 'tool-invocation' && part.toolInvocation.state === 'result')).toHaveLength(1)
  })

  it('[H1.6] results of the caller\'s tools are used by the next process when the server ends before its turn', async () => {
    const { post, guide, quiet, url, server } = await serving(weather, { text: ['Let me '], hang: true })
    await post('send-message', { message: 'Weather?', ifIdle: { streamOptions: { clientTools } } })
    await quiet()
    await post('send-message', { message: 'While you wait: hello.' })
    await expect.poll(async () => (await guide.activeRun(thread))?.status).toBe('running')
    const { runId } = await post('send-tool-approval', { toolCallId: 'call-2', approved: true, messages: result('sun') }, 'key-1')
    await server.close()
    const next = new Agent({ id: 'guide', model: scriptedModel(['Hello.', 'Sunny.']) })
    const heed = new Heed({ agents: { guide: next }, storage: new LibSQLStore({ url }), logger: silentLogger })
    onTestFinished(() => heed.close())
    await heed.start()
    await expect.poll(async () => (await next.explain({ ...thread, signalId: 'key-1' }))?.run?.status).toBe('finished')
    expect(await next.explain({ ...thread, signalId: 'key-1' })).toMatchObject({ runId })
  })
})

describe('a client whose answers are lost', () => {
  async function behind(fates: Fate[], ...turns: ScriptedStep[]) {
    const serves = await serving(...turns)
    const { hostname, port } = new URL(serves.server.url)
    const proxy = await harmfulProxy(() => ({ host: hostname, port: Number(port) }), seeded(3), fates)
    proxy.heal()
    onTestFinished(() => proxy.close())
    return { ...serves, proxy, client: new HeedClient({ baseUrl: proxy.url, retries: 5 }) }
  }

  it('[H1.6] decides once', async () => {
    const { client, post, paid, quiet, suspended } = await behind(['answer lost', 'answer lost'], { toolCalls: [{ toolName: 'pay', toolCallId: 'call-1', input: {} }] }, 'Paid.')
    await post('send-message', { message: 'Pay.' })
    await suspended()
    expect(await client.getAgent('guide').sendToolApproval({ ...thread, toolCallId: 'call-1', approved: true })).toMatchObject({ accepted: true, toolCallId: 'call-1' })
    await quiet()
    expect(paid).toHaveLength(1)
  })

  it('[H1.7] copies nothing twice and calls no model twice', async () => {
    const { client, post, guide, model, quiet } = await behind(['answer lost', 'answer lost'], 'Hello.', 'Again.', 'And again.')
    await post('send-message', { message: 'Hi.' })
    await quiet()
    const memory = client.memory({ resourceId: thread.resourceId })
    await expect(memory.cloneThread({ sourceThreadId: thread.threadId })).rejects.toMatchObject({ code: 'unreachable' })
    await expect(client.getAgent('guide').generate('Hi?')).rejects.toMatchObject({ code: 'unreachable' })
    expect((await (await guide.getMemory()).listThreads({ filter: { resourceId: thread.resourceId } })).threads).toHaveLength(2)
    expect(model.callCount).toBe(2)
  })
})
