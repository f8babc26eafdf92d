import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Agent, createTool, Heed, HeedError, InMemoryStore, isHeedError, silentLogger } from 'heed'
import { HeedClient, HeedError as ClientError } from 'heed/client'
import { apiKeys, createHandler } from 'heed/server'
import { scriptedModel } from 'heed/testing'
import { served, thread } from './parts/serving.ts'

const auth = () => apiKeys({
  'a-long-random-key-1': { id: 'one', resources: ['user-1'] },
  'a-long-random-key-2': { id: 'two', resources: ['user-2'] },
})
const as = (name: 1 | 2) => ({ authorization: `Bearer a-long-random-key-${name}` })

test('a server asks who sends, and answers its client over HTTP and SSE', async () => {
  const agent = new Agent({ id: 'guide', model: scriptedModel(['Hello there.', 'And again.']) })
  const { server, client } = await served(agent, { auth: auth(), headers: as(1) })
  assert.equal((await fetch(`${server.url}/api/agents`)).status, 401)
  const chunks: string[] = []
  const watching = await client.getAgent('guide').subscribeToThread(thread)
  const seen = watching.processDataStream({
    onChunk(chunk) {
      if (chunk.type === 'text-delta') chunks.push(chunk.payload.text)
      if (chunk.type === 'finish') watching.unsubscribe()
    },
  })
  const answer = await client.getAgent('guide').sendMessage({ message: 'Hi.', ...thread, wait: 'outcome' })
  assert.equal(answer.accepted, true)
  await seen
  assert.equal(chunks.join(''), 'Hello there.')
  const stranger = new HeedClient({ baseUrl: server.url, headers: as(2) })
  await assert.rejects(stranger.getAgent('guide').sendMessage({ message: 'Hi.', ...thread }), { code: 'forbidden' })
  const { messages } = await client.memory().listMessages({ threadId: thread.threadId })
  assert.deepEqual(messages.map(({ role }) => role), ['signal', 'assistant'])
})

test('a schema of a request is used in a thread, and one that is too large is rejected', async () => {
  const agent = new Agent({ id: 'guide', model: scriptedModel(['{"city":"Rome"}']) })
  const { server } = await served(agent)
  const ask = async (schema: object) => {
    const body = JSON.stringify({ messages: 'Where?', structuredOutput: { schema } })
    return (await fetch(`${server.url}/api/agents/guide/generate`, { method: 'POST', body, headers: { 'content-type': 'application/json' } })).json()
  }
  const answer = (await ask({ type: 'object', properties: { city: { type: 'string' } } })) as { object?: unknown }
  assert.deepEqual(answer.object, { city: 'Rome' })
  const refusal = (await ask({ type: 'string', pattern: '^(a+)+$' })) as { code?: unknown }
  assert.equal(refusal.code, 'invalid_schema')
})

test('a handler answers requests without a server of its own', async () => {
  const agent = new Agent({ id: 'guide', model: scriptedModel(['Hello.']) })
  const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
  const handler = createHandler(heed, { auth: auth() })
  const client = new HeedClient({ baseUrl: 'http://heed.test', headers: as(1), fetch: (input, init) => handler(new Request(input, init)) })
  assert.deepEqual(await client.ready(), { status: 'ready' })
  const { outcome } = await client.getAgent('guide').sendMessage({ message: 'Hi.', ...thread, wait: 'outcome' })
  assert.ok(outcome)
  handler.close()
  await heed.close()
})

test('a call waits for approval, and goes on when the client approves', async () => {
  const pay = createTool({ id: 'pay', requireApproval: true, execute: async () => 'paid' })
  const model = scriptedModel([{ toolCalls: [{ toolName: 'pay', toolCallId: 'call-1', input: {} }] }, 'Done.'])
  const agent = new Agent({ id: 'guide', model, tools: { pay } })
  const { client } = await served(agent)
  const remote = client.getAgent('guide')
  const watching = await remote.subscribeToThread(thread)
  const types: string[] = []
  const seen = watching.processDataStream({
    async onChunk(chunk) {
      types.push(chunk.type)
      if (chunk.type === 'tool-call-approval') await remote.approveToolCall({ runId: chunk.runId, toolCallId: 'call-1' })
      if (chunk.type === 'text-end') watching.unsubscribe()
    },
  })
  await remote.sendMessage({ message: 'Pay.', ...thread })
  await seen
  assert.ok(types.includes('tool-result'), types.join(' '))
})

test('an error is the same class for every entry', () => {
  assert.equal(ClientError, HeedError)
  assert.ok(isHeedError(new ClientError('not_found', 'Nothing.')))
})
