import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { Agent, Memory } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

const model = scriptedModel(['Hello.'], { loop: true })
const world = () => served({ guide: new Agent({ id: 'guide', model, memory: new Memory() }) })
const stored = { id: 'm', role: 'user', ...thread, content: { format: 2, parts: [{ type: 'text', text: 'Hi' }] } }
const none = 'yesterday'
const to = `agentId=guide&resourceId=${thread.resourceId}`
const memory = { thread: thread.threadId, resource: thread.resourceId }

describe('a time that is none', () => {
  const routes: Array<[string, string, object]> = [
    ['a signal', '/agents/guide/signals', { signal: { type: 'reactive', contents: 'x', createdAt: none }, ...thread }],
    ['a message', '/agents/guide/send-message', { message: { contents: 'x', createdAt: none }, ...thread }],
    ['a queued message', '/agents/guide/queue-message', { message: { contents: 'x', createdAt: none }, ...thread }],
    ['a question to a thread', '/agents/guide/generate', { messages: [{ role: 'user', content: 'x', createdAt: none }], memory }],
    ['a question without one', '/agents/guide/stream', { messages: [{ role: 'user', content: 'x', createdAt: none }] }],
    ['a message of a display', '/agents/guide/generate', { messages: [{ id: 'u', role: 'user', parts: [{ type: 'text', text: 'x' }], createdAt: none }], memory }],
    ['what a message of a display says beside it', '/agents/guide/generate', { messages: [{ id: 'u', role: 'user', parts: [{ type: 'text', text: 'x' }], metadata: { createdAt: none } }], memory }],
    ['a message to save', `/memory/save-messages?${to}`, { messages: [{ ...stored, createdAt: none }] }],
    ['a change of a message', `/memory/messages/update?${to}`, { messages: [{ id: 'kept', threadId: thread.threadId, createdAt: none }] }],
    ['a schedule', '/agents/guide/schedules', { message: 'x', at: none, ...thread }],
    ['the signal of a schedule', '/agents/guide/schedules', { signal: { type: 'reactive', contents: 'x', createdAt: none }, every: 3_600_000, ...thread }],
    ['what a copy is made of', `/memory/threads/${thread.threadId}/clone?${to}`, { options: { messageFilter: { startDate: none } } }],
  ]
  it.each(routes)('[H4.1] of %s is refused by name, and nothing is written', async (_what, path, json) => {
    const { ask, client } = await world()
    await client.memory({ agentId: 'guide', resourceId: thread.resourceId }).createThread({ threadId: thread.threadId })
    const kept = { ...stored, id: 'kept', createdAt: '2026-01-31T12:00:00.000Z' }
    expect((await ask(`/memory/save-messages?${to}`, { json: { messages: [kept] } })).status).toBe(200)
    const answer = await ask(path, { json })
    expect(answer.status).toBe(400)
    const { code, error, details } = (await answer.json()) as { code: string; error: string; details: { field: string } }
    expect(code).toMatch(/^invalid_/)
    expect(details.field).toMatch(/createdAt|at$|startDate/)
    expect(error).toContain(details.field)
    const { messages } = await client.memory({ agentId: 'guide', resourceId: thread.resourceId }).listMessages({ threadId: thread.threadId })
    expect(messages).toMatchObject([kept])
  })

  it('[H4.1] is accepted as null and as a time', async () => {
    const { ask } = await world()
    for (const createdAt of [null, '2026-01-31T12:00:00Z']) {
      expect((await ask('/agents/guide/generate', { json: { messages: [{ role: 'user', content: 'x', createdAt }], memory } })).status).toBe(200)
    }
  })
})

describe('a body that is packed', () => {
  it.each(['gzip', 'br', 'GZIP', 'gzip, gzip'])('[H4.1] is refused by what it says: %s', async (encoding) => {
    const { ask } = await world()
    const body = gzipSync(JSON.stringify({ message: 'x', ...thread }))
    for (const path of ['/agents/guide/send-message', `/memory/save-messages?${to}`]) {
      const answer = await ask(path, { method: 'POST', body, headers: { 'content-type': 'application/json', 'content-encoding': encoding } })
      expect(answer.status).toBe(415)
      expect(await answer.json()).toMatchObject({ code: 'unsupported_media_type', error: expect.stringContaining('without Content-Encoding') as string, details: { field: 'Content-Encoding' } })
    }
  })

  it('[H4.1] is not one that says so', async () => {
    const { ask } = await world()
    expect((await ask('/agents/guide/send-message', { json: { message: 'x', ...thread }, headers: { 'content-encoding': 'identity' } })).status).toBe(200)
  })
})
