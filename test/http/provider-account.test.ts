import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/index.ts'
import { apiKeys, principalScopes } from '../../src/http/server.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served } from './serving.ts'

const keys = { user: 'key-of-the-user-0000000', tenant: 'key-of-the-tenant-00000', operator: 'key-of-the-operator-000' }
const item = 'msg_of_another_tenant'
const own = { openai: { itemId: item } }

async function world(remote?: { options: ['providerOptions'] }) {
  const model = scriptedModel(() => 'Fine.')
  const guide = new Agent({ id: 'guide', model, ...(remote && { remote }) })
  const auth = apiKeys({
    [keys.user]: { id: 'user', resources: ['ada'], scopes: principalScopes.endUser }, [keys.tenant]: { id: 'tenant', resources: ['ada'], scopes: principalScopes.tenant },
    [keys.operator]: { id: 'operator', resources: '*' },
  })
  const { ask } = await served({ guide }, { auth })
  const as = async (who: keyof typeof keys, [path, body]: readonly [string, object]) => {
    const response = await ask(path, { method: 'POST', headers: { authorization: `Bearer ${keys[who]}`, 'content-type': 'application/json' }, body: JSON.stringify(body) })
    const text = await response.text()
    return { http: response.status, text, ...(text.startsWith('{') && (JSON.parse(text) as { code?: string; details?: { field?: string } })) }
  }
  return { as, model }
}

const scope = { threadId: 'one', resourceId: 'ada' }
const to = (message: unknown): [string, object] => ['/agents/guide/send-message?wait=outcome', { ...scope, message }]
const run = (...messages: object[]): [string, object] => ['/agents/guide/generate', { messages }]
const save = (part: object, more: object = {}, role = 'user'): [string, object] => ['/memory/save-messages', { messages: [{ id: 'm-1', role, ...scope, createdAt: '2026-01-01T00:00:00.000Z', content: { format: 2, parts: [part], ...more } }] }]
const chat = (part: object): [string, object] => ['/agents/guide/chat', { id: 'one', resourceId: 'ada', messages: [{ id: 'u-1', role: 'user', parts: [{ type: 'text', text: 'x' }, part] }] }]
const text = { type: 'text', text: 'x' }
const pdf = { type: 'file', mediaType: 'application/pdf' }
const id = 'file-OfAnotherTenant123'
const user = (content: unknown, more: object = {}) => ({ role: 'user', content, ...more })
const result = (output: object) => [
  user('x'), { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'c', toolName: 'look', input: {} }] },
  { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c', toolName: 'look', output }] },
]

const named: Record<string, [string, object]> = {
  'a sent message': to({ contents: 'x', providerOptions: own }),
  'a part of a sent message': to([{ ...text, providerOptions: own }]),
  'a part of a queued message': ['/agents/guide/queue-message', { ...scope, message: [{ ...text, providerMetadata: own }] }],
  'a signal': ['/agents/guide/signals', { ...scope, signal: { type: 'reactive', contents: 'x', providerOptions: own } }],
  'a state': ['/agents/guide/state-signals', { ...scope, state: { stateId: 's', cacheKey: 'k', contents: 'x', providerOptions: own } }],
  'a message of a schedule': ['/agents/guide/schedules', { ...scope, every: 3_600_000, message: { contents: 'x', providerOptions: own } }],
  'a message of a call': run(user('x', { providerOptions: own })),
  'a part of a call': run(user([{ ...text, providerOptions: own }])),
  'a part in the form of before': run(user([{ ...text, experimental_providerMetadata: own }])),
  'a result of a tool': run(...result({ type: 'text', value: 'x', providerOptions: own })),
  'a part of a result of a tool': run(...result({ type: 'content', value: [{ ...text, providerOptions: own }] })),
  'a part of a chat': chat({ ...text, providerMetadata: own }),
  'a saved part': save({ ...text, providerMetadata: own }),
  'a saved answer': save({ ...text, providerMetadata: own }, {}, 'assistant'),
  'a saved message': save(text, { providerMetadata: own }),
  'a changed message': ['/memory/messages/update', { messages: [{ id: 'm-1', content: { format: 2, parts: [{ ...text, providerMetadata: own }] } }] }],
}

const files: Record<string, [string, object]> = {
  'an id': to([{ ...pdf, data: id }]),
  'an id in a call': run(user([{ ...pdf, data: id }])),
  'an id of an image': run(user([{ type: 'image', image: id }])),
  'a reference': run(user([{ ...pdf, data: { type: 'reference', reference: { openai: id } } }])),
  'a reference without a type': run(user([{ ...pdf, data: { openai: id } }])),
  'a reference beside data': run(user([{ ...pdf, data: 'aGk=', providerReference: { openai: id } }])),
  'a reference in an answer': run({ role: 'assistant', content: [{ ...pdf, data: 'aGk=', reference: { openai: id } }] }, user('x')),
  'an id in a result': run(...result({ type: 'content', value: [{ type: 'file-id', fileId: id }] })),
  'an id in a chat': chat({ ...pdf, url: id }),
  'an id that is saved': save({ type: 'file', mimeType: 'application/pdf', data: id }),
  'an id in an attachment': run(user('x', { experimental_attachments: [{ url: id, contentType: 'application/pdf' }] })),
  'a bucket': run(user([{ ...pdf, data: 'gs://bucket/a.pdf' }])),
  'a file of the account': run(user([{ ...pdf, data: 'https://generativelanguage.googleapis.com/v1beta/files/a' }])),
}

describe('the account of the server at a provider', () => {
  it.each(Object.keys(named))('[H8.7] has no items that a limited principal can name: %s', async (door) => {
    const { as, model } = await world()
    const request = named[door] as [string, object]
    const { http, code, details } = await as('tenant', request)
    expect({ http, code, field: details?.field }).toEqual({ http: 403, code: 'forbidden', field: expect.stringMatching(/provider(?:Options|Metadata)$/i) })
    expect(model.calls).toEqual([])
  })

  it.each(Object.keys(files))('[H8.7] has no files that a limited principal can name: %s', async (door) => {
    const { as, model } = await world()
    const { http, code, details } = await as('tenant', files[door] as [string, object])
    expect({ http, code, field: details?.field }).toEqual({ http: 403, code: 'forbidden', field: expect.any(String) })
    expect(model.calls).toEqual([])
  })

  it('[H8.7] is reached by an operator, and by all for an agent whose author allows it', async () => {
    for (const [who, remote] of [['operator', undefined], ['user', { options: ['providerOptions'] as ['providerOptions'] }]] as const) {
      const { as, model } = await world(remote)
      expect(await as(who, to([{ ...text, providerOptions: own }]))).toMatchObject({ http: 200 })
      expect(JSON.stringify(model.calls)).toContain(item)
    }
  })

  it('[H8.7] is not reached by answers that a client sends back: they lose what they name', async () => {
    const { as, model } = await world()
    const answer = { role: 'assistant', content: [{ type: 'reasoning', text: 'hm', providerOptions: own }, { ...text, text: 'An answer.', providerOptions: own }], providerOptions: own }
    expect(await as('user', run(user('x'), answer, user('Go on.')))).toMatchObject({ http: 200 })
    const [, { messages }] = chat(text) as [string, { messages: object[] }]
    const streamed = { id: 'a-1', role: 'assistant', parts: [{ type: 'text', text: 'Hi.', providerMetadata: own }, { ...pdf, url: '', providerReference: { openai: id } }] }
    expect(await as('user', ['/agents/guide/chat', { id: 'two', resourceId: 'ada', messages: [streamed, ...messages] }])).toMatchObject({ http: 200 })
    expect(model.calls).toHaveLength(2)
    expect(JSON.stringify(model.calls)).toContain('An answer.')
    expect(JSON.stringify(model.calls)).not.toContain(item)
  })

  it('[H8.7] is no limit for files that are sent as bytes or addresses', async () => {
    const { as } = await world()
    for (const source of ['aGk=', 'data:application/pdf;base64,aGk=', { type: 'data', data: 'aGk=' }]) {
      expect(await as('user', to([{ ...pdf, data: source }]))).toMatchObject({ http: 200 })
    }
    expect(await as('user', run(user([{ type: 'image', image: 'https://example.com/a.png' }])))).toMatchObject({ http: 200 })
  })
})
