import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/index.ts'
import { apiKeys } from '../../src/http/server.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served } from './serving.ts'

const key = 'key-of-the-tenant-00000'
const scope = { threadId: 'one', resourceId: 'ada' }
const list = <T>(count: number, item: (index: number) => T) => Array.from({ length: count }, (_, index) => item(index))
const keys = (count: number, value: unknown = 1) => Object.fromEntries(list(count, (index) => [`k${index}`, value]))
const user = (content: unknown = 'x') => ({ role: 'user', content })
const saved = (index: number) => ({ id: `m${index}`, role: 'user', ...scope, content: 'x' })
const tool = { description: 'x', inputSchema: { type: 'object', properties: {} } }

/** A door, the field that has too much, and a body with so many entries. */
const doors: Record<string, [path: string, field: string, most: number, body: (count: number) => object]> = {
  'metadata of a thread': ['/memory/threads', 'metadata', 1_000, (count) => ({ metadata: keys(count) })],
  'a list in metadata': ['/memory/threads', 'metadata', 1_000, (count) => ({ metadata: { a: list(count - 1, () => 'x') } })],
  'metadata of the thread of a run': ['/agents/guide/generate', 'memory.thread.metadata', 1_000, (count) => ({ messages: 'x', memory: { thread: { id: 'two', metadata: keys(count) } } })],
  'metadata of a message': ['/agents/guide/send-message', 'message.metadata', 1_000, (count) => ({ ...scope, message: { contents: 'x', metadata: keys(count) } })],
  'attributes of a message': ['/agents/guide/send-message', 'message.attributes', 1_000, (count) => ({ ...scope, message: { contents: 'x', attributes: keys(count, 'x') } })],
  'messages of a run': ['/agents/guide/generate', 'messages', 1_000, (count) => ({ messages: list(count, () => user()) })],
  'parts of a message': ['/agents/guide/generate', 'messages.content', 10_000, (count) => ({ messages: [user(list(count, () => ({ type: 'text', text: 'x' })))] })],
  'saved messages': ['/memory/save-messages', 'messages', 1_000, (count) => ({ messages: list(count, saved) })],
  'changed messages': ['/memory/messages/update', 'messages', 1_000, (count) => ({ messages: list(count, (index) => ({ id: `m${index}` })) })],
  'deleted messages': ['/memory/messages/delete', 'messageIds', 1_000, (count) => ({ messageIds: list(count, (index) => `m${index}`) })],
  'tools of a client': ['/agents/guide/generate', 'clientTools', 128, (count) => ({ messages: 'x', clientTools: keys(count, tool) })],
  'active tools': ['/agents/guide/generate', 'activeTools', 128, (count) => ({ messages: 'x', activeTools: list(count, (index) => `t${index}`) })],
  'marked notifications': ['/agents/guide/threads/one/notifications/mark', 'ids', 1_000, (count) => ({ status: 'seen', ids: list(count, (index) => `n${index}`) })],
}

async function world() {
  const model = scriptedModel(() => 'Fine.')
  const { ask } = await served({ guide: new Agent({ id: 'guide', model }) }, { auth: apiKeys({ [key]: { id: 'ada', resources: ['ada'] } }) })
  const post = async (path: string, body: object) => {
    const response = await ask(path, { method: 'POST', headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' }, body: JSON.stringify(body) })
    return { http: response.status, text: await response.text() }
  }
  return { post, model }
}

/** A door, the field whose text is too long, and a body with a text. */
const longTexts: Record<string, [path: string, field: string, body: (text: string) => object]> = {
  'a message': ['/agents/guide/send-message', 'message', (text) => ({ ...scope, message: text })],
  'an attribute': ['/agents/guide/send-message', 'message.attributes.a', (text) => ({ ...scope, message: { contents: 'x', attributes: { a: text } } })],
  'the name of an attribute': ['/agents/guide/send-message', 'message.attributes', (text) => ({ ...scope, message: { contents: 'x', attributes: { [text]: 'x' } } })],
  'messages of a run': ['/agents/guide/generate', 'messages.content', (text) => ({ messages: [user(text.slice(0, 600_000)), user(text.slice(600_000))] })],
  'the result of a tool': ['/agents/guide/generate', 'messages.content.output.value', (text) => ({ messages: [user(), { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c', toolName: 't', output: { type: 'text', value: text } }] }] })],
  'a description in a schema': ['/agents/guide/generate', 'structuredOutput.schema.description', (text) => ({ messages: 'x', structuredOutput: { schema: { type: 'object', description: text, properties: {} } } })],
  'a saved message': ['/memory/save-messages', 'messages.content', (text) => ({ messages: [{ id: 'm', role: 'user', ...scope, content: text }] })],
  metadata: ['/memory/threads', 'metadata.a', (text) => ({ metadata: { a: text } })],
  'a title': ['/memory/threads', 'title', (text) => ({ title: text })],
  'the summary of a notification': ['/agents/guide/notifications', 'notification.summary', (text) => ({ ...scope, notification: { source: 's', kind: 'k', summary: text } })],
  'the payload of a notification': ['/agents/guide/notifications', 'notification.payload.a', (text) => ({ ...scope, notification: { source: 's', kind: 'k', summary: 'x', payload: { a: text } } })],
  'the message of a schedule': ['/agents/guide/schedules', 'message', (text) => ({ ...scope, cron: '0 0 1 1 *', message: text })],
}

describe('a request with long texts', () => {
  it('[H4.3] is refused by the name of the field at every door, and nothing of it is stored or run', async () => {
    const { post, model } = await world()
    for (const [door, [path, field, body]] of Object.entries(longTexts)) {
      const { http, text } = await post(path, body('x'.repeat(1_000_001)))
      expect([door, http, JSON.parse(text)]).toMatchObject([door, 400, { code: 'invalid_argument', error: expect.stringContaining('more than 1000000 characters') as string, details: { field } }])
    }
    expect(model.calls).toEqual([])
  })

  it('[H4.3] may have files of any size, and as many characters as allowed', async () => {
    const { post } = await world()
    const file = { type: 'file', mediaType: 'image/png', data: 'AAAA'.repeat(500_000) }
    expect(await post('/agents/guide/generate', { messages: [user([{ type: 'text', text: 'x'.repeat(999_000) }, file])] })).toMatchObject({ http: 200 })
  })

  it('[H4.2] takes no long stop of the event loop, also where a thread has many of them', async () => {
    const { post, model } = await world()
    const message = '<ѕystem-reminde'.repeat(20_000)
    expect(await post('/memory/threads', { threadId: 'one' })).toMatchObject({ http: 200 })
    for (let count = 0; count < 8; count++) {
      const content = { format: 2, parts: [{ type: 'text', text: message }] }
      expect(await post('/memory/save-messages', { messages: [{ id: `m${count}`, role: 'user', createdAt: '2026-01-01T00:00:00Z', ...scope, content }] })).toMatchObject({ http: 200, text: expect.any(String) as string })
    }
    let longest = 0
    let last = process.threadCpuUsage().user
    const watching = setInterval(() => {
      const now = process.threadCpuUsage().user
      longest = Math.max(longest, (now - last) / 1_000)
      last = now
    }, 1)
    expect(await post('/agents/guide/generate', { messages: 'Hi', memory: { thread: 'one', resource: 'ada' } })).toMatchObject({ http: 200 })
    clearInterval(watching)
    expect(JSON.stringify(model.calls.at(-1)?.prompt).length).toBeGreaterThan(8 * message.length)
    expect(longest).toBeLessThan(250)
  })
})

describe('a request with too many entries', () => {
  it.each(Object.keys(doors))('[H4.3] is refused by the name of the field, and one with as many as allowed is not: %s', async (door) => {
    const { post, model } = await world()
    const [path, field, most, body] = doors[door] as [string, string, number, (count: number) => object]
    const { http, text } = await post(path, body(most + 1))
    expect([http, text.slice(0, 300)]).toEqual([400, expect.stringContaining(field)])
    expect(JSON.parse(text)).toMatchObject({ code: 'invalid_argument' })
    expect(model.calls).toEqual([])
    const allowed = await post(path, body(most))
    expect(allowed.http === 400 ? allowed.text : '').not.toMatch(/more than|must NOT have more/)
  })

  it('[H4.3] is refused for all of its values together, and data may have any names', async () => {
    const { post } = await world()
    const notification = (payload: object) => ({ ...scope, notification: { source: 's', kind: 'k', summary: 'x', payload } })
    expect(await post('/agents/guide/notifications', notification(keys(50_001)))).toMatchObject({ http: 400, text: expect.stringContaining('more than 50000 values') })
    expect(await post('/agents/guide/notifications', notification({ ids: list(1_001, () => 'x') }))).toMatchObject({ http: 200 })
  })
})
