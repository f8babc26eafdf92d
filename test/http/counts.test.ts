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
