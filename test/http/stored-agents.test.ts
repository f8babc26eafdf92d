import { expect, it, onTestFinished } from 'vitest'
import { HeedEditor } from '../../src/editor/index.ts'
import { apiKeys, createHandler, principalScopes } from '../../src/http/server.ts'
import { Agent, createTool, Heed, InMemoryStore, silentLogger } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

const look = createTool({ id: 'look', description: 'Looks.', execute: () => 'seen' })

/** A server with an agent that may be edited and one that may not, and its answers to an editor and to a tenant. */
function open() {
  const model = scriptedModel(() => 'Hello.')
  const agents = { guide: new Agent({ id: 'guide', model, instructions: 'As in code.', tools: { look } }), fixed: new Agent({ id: 'fixed', model, editor: false }) }
  const heed = new Heed({ agents, storage: new InMemoryStore(), editor: new HeedEditor(), logger: silentLogger })
  const keys = { 'the-key-of-an-editor': { id: 'ann', resources: '*' as const, scopes: principalScopes.operator }, 'the-key-of-a-tenant': { id: 'tenant', resources: ['ada'], scopes: principalScopes.tenant } }
  const handler = createHandler(heed, { auth: apiKeys(keys) })
  onTestFinished(async () => {
    handler.close()
    await heed.close()
  })
  const tell = async (method: string, path: string, json?: object, key = 'the-key-of-an-editor', headers: Record<string, string> = {}) => {
    const response = await handler(new Request(`http://localhost/api/stored/agents${path}`, {
      method, headers: { authorization: `Bearer ${key}`, ...(json ? { 'content-type': 'application/json' } : {}), ...headers }, ...(json ? { body: JSON.stringify(json) } : {}),
    }))
    return { ...(await response.json() as Record<string, unknown>), http: response.status }
  }
  const prompt = async () => {
    await agents.guide.generate('Hi')
    return JSON.stringify(model.calls.at(-1)?.prompt)
  }
  return { heed, tell, prompt }
}

it('[O3.4] drafts are stored, published, compared, restored and deleted by the routes of existing clients, as by the editor', async () => {
  const { heed, tell, prompt } = open()
  expect(await tell('GET', '/guide')).toMatchObject({ http: 404, code: 'unknown_version' })
  expect(await tell('PATCH', '/guide', { instructions: 'x' })).toMatchObject({ http: 404 })
  expect(await tell('POST', '', { id: 'nobody', instructions: 'x' })).toMatchObject({ http: 404, code: 'unknown_agent' })
  expect(await tell('POST', '', { id: 'fixed', instructions: 'x' })).toMatchObject({ http: 403, code: 'edit_locked' })
  expect(await tell('POST', '', { id: 'guide', memory: {} })).toMatchObject({ http: 400, code: 'invalid_argument' })
  // What code owns is left out, and named.
  expect(await tell('POST', '', { id: 'guide', name: 'Other', model: 'x/y', instructions: 'Be brief.' })).toMatchObject({ http: 200, id: 'guide', status: 'draft', resolvedVersionId: '1', stripped: ['name', 'model'] })
  expect(await tell('POST', '', { id: 'guide', instructions: 'Again.' })).toMatchObject({ http: 409, code: 'edit_conflict' })
  expect(await prompt()).toContain('As in code.')
  expect(await tell('GET', '/guide')).toMatchObject({ status: 'draft', instructions: 'As in code.' })
  expect(await tell('PATCH', '/guide', { tools: { look: { description: 'Looks closely.' } }, changeMessage: 'Clearer.' })).toMatchObject({ instructions: 'Be brief.', tools: { look: { description: 'Looks closely.' } }, resolvedVersionId: '2' })
  expect(await tell('POST', '/guide/versions/2/activate')).toEqual({ http: 200, success: true, message: 'Runs get version 2.', activeVersionId: '2' })
  expect(await prompt()).toContain('Be brief.')
  expect(await tell('GET', '/guide')).toMatchObject({ status: 'published', activeVersionId: '2' })
  expect(await tell('PATCH', '/guide', { instructions: 'Be polite.', autoPublish: true })).toMatchObject({ activeVersionId: '3' })
  expect(await prompt()).toContain('Be polite.')
  expect((await heed.getEditor().listReleases('guide')).releases).toMatchObject([{ version: 3, by: 'ann' }, { version: 2, by: 'ann' }])
  expect(await tell('GET', '/guide/versions/compare?from=2&to=3')).toMatchObject({ diffs: [{ field: 'instructions', previousValue: 'Be brief.', currentValue: 'Be polite.' }], fromVersion: { versionNumber: 2 }, toVersion: { id: '3' } })
  expect(await tell('POST', '/guide/versions/1/restore')).toMatchObject({ id: '4', versionNumber: 4, instructions: 'Be brief.', changeMessage: 'Restores version 1.', by: 'ann' })
  expect(await tell('GET', '/guide?status=draft')).toMatchObject({ instructions: 'Be brief.', resolvedVersionId: '4', activeVersionId: '3' })
  expect(await tell('POST', '/guide/versions', { changeMessage: 'The same.' })).toMatchObject({ versionNumber: 4 })
  expect(await tell('GET', '/guide/versions?page=1&perPage=3')).toMatchObject({ versions: [{ id: '1' }], total: 4, page: 1, perPage: 3, hasMore: false })
  expect(await tell('GET', '/guide/versions?perPage=2&orderBy[direction]=ASC')).toMatchObject({ versions: [{ id: '1' }, { id: '2', changeMessage: 'Clearer.' }], hasMore: true })
  expect(await tell('DELETE', '/guide/versions/3')).toMatchObject({ http: 409, code: 'edit_in_use' })
  expect(await tell('DELETE', '/guide/versions/1')).toMatchObject({ success: true })
  expect(await tell('GET', '/guide/versions/1')).toMatchObject({ http: 404, code: 'unknown_version' })
  expect(await tell('DELETE', '/guide')).toMatchObject({ http: 409, code: 'edit_in_use' })
  expect(await tell('GET', '?perPage=1')).toMatchObject({ agents: [{ id: 'guide', activeVersionId: '3' }], total: 1, hasMore: false })
  await heed.getEditor().publish('guide', { version: 0, expected: 2, by: 'ann' })
  expect(await tell('DELETE', '/guide')).toMatchObject({ success: true })
  expect(await tell('GET', '')).toMatchObject({ agents: [], total: 0 })
})

it('[O3.4] these routes need the scope edit, and no page of another origin reaches them', async () => {
  const { tell } = open()
  for (const [method, path, json] of [['GET', ''], ['POST', '', { id: 'guide' }], ['PATCH', '/guide', {}], ['DELETE', '/guide'], ['POST', '/guide/versions/1/activate']] as const)
    expect([path, await tell(method, path, json, 'the-key-of-a-tenant')]).toMatchObject([path, { http: 403, details: { scope: 'edit' } }])
  expect(await tell('POST', '/guide/versions/1/activate', undefined, undefined, { origin: 'https://evil.example' })).toMatchObject({ http: 403, details: { field: 'Origin' } })
})
