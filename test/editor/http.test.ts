import { expect, it, onTestFinished } from 'vitest'
import { HeedClient } from '../../src/client/index.ts'
import { HeedEditor } from '../../src/editor/index.ts'
import { apiKeys, principalScopes, serve, type Principal } from '../../src/http/server.ts'
import { Agent, createTool, Heed, InMemoryStore, silentLogger, type AgentConfig } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

const principals: Record<string, Omit<Principal, 'id'>> = {
  ann: { resources: ['alice'], scopes: ['edit', 'run', 'read', 'send'] },
  bob: { resources: '*', scopes: principalScopes.operator },
  admin: { resources: '*' },
  user: { resources: ['alice'], scopes: principalScopes.endUser },
  tenant: { resources: ['alice'], scopes: principalScopes.tenant },
  plain: { resources: ['alice'] },
  operates: { resources: '*', scopes: ['operate', 'run'] },
}
const keyOf = (who: string) => `key-of-${who}-0000000000000000`

async function world(config: Partial<AgentConfig> = {}, editor: HeedEditor | undefined = new HeedEditor()) {
  const model = scriptedModel(() => 'Yes.')
  const look = createTool({ id: 'look', description: 'Looks.', execute: async () => 'seen' })
  const agent = new Agent({ id: 'guide', instructions: 'From code.', model, tools: { look }, ...config })
  const heed = new Heed({ agents: { guide: agent }, storage: new InMemoryStore(), logger: silentLogger, ...(editor && { editor }) })
  const auth = apiKeys(Object.fromEntries(Object.entries(principals).map(([id, principal]) => [keyOf(id), { id, ...principal }])))
  const server = await serve(heed, { port: 0, handleSignals: false, auth })
  onTestFinished(() => server.close())
  const as = (who: string) => new HeedClient({ baseUrl: server.url, headers: { authorization: `Bearer ${keyOf(who)}` }, retries: 0 }).getAgent('guide')
  const said = () => model.calls.at(-1)?.prompt[0]?.content
  const post = async (who: string, path: string, body: object) => {
    const headers = { authorization: `Bearer ${keyOf(who)}`, 'content-type': 'application/json' }
    const response = await fetch(`${server.url}/api/agents/guide${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return { http: response.status, ...((await response.json()) as object) }
  }
  return { as, said, post, model }
}

it('[O3.1] the editor and drafts are for principals with the scope edit, and for no others', async () => {
  const { as, said } = await world()
  const refused = { code: 'forbidden', details: { scope: 'edit' } }
  await as('ann').editor.save({ base: 0, instructions: 'Draft.' })
  for (const who of ['user', 'tenant', 'plain', 'operates']) {
    const { editor } = as(who)
    const calls = [
      () => editor.describe(), () => editor.save({ base: 1, instructions: 'Mine.' }), () => editor.publish({ version: 1, expected: 0 }), () => editor.rollBack({ expected: 0 }),
      () => editor.getVersion(1), () => editor.listVersions(), () => editor.listReleases(), () => editor.compare({ from: 0, to: 1 }),
      () => as(who).generate('Go.', { agentVersion: 1 }),
    ]
    for (const call of calls) await expect(call()).rejects.toMatchObject(refused)
  }
  await expect(as('user').sendMessage({ message: 'Go.', threadId: 't', resourceId: 'alice', ifIdle: { streamOptions: { agentVersion: 1 } } })).rejects.toMatchObject(refused)
  await as('user').generate('Go.')
  expect(said()).toBe('From code.')
  for (const who of ['ann', 'bob', 'admin']) {
    expect(await as(who).editor.describe()).toMatchObject({ latest: { version: 1 }, release: null })
    await as(who).generate('Go.', { agentVersion: 1 })
    expect(said()).toBe('Draft.')
  }
})

it('[O3.2] the author is the principal, whatever the request says', async () => {
  const { as, post } = await world()
  for (const overrides of [{ by: 'root' }, { base: 7 }, { why: 'x' }, { requestContext: {} }]) {
    expect(await post('ann', '/versions', { base: 0, overrides: { instructions: 'x', ...overrides } })).toMatchObject({ http: 400, code: 'unsupported_option' })
  }
  expect(await post('ann', '/versions', { base: 0, by: 'root', overrides: {} })).toMatchObject({ http: 400 })
  expect(await as('ann').editor.save({ base: 0, instructions: 'Edited.', why: 'kinder' })).toMatchObject({ by: 'ann', why: 'kinder' })
  expect(await post('bob', '/releases', { version: 1, expected: 0, by: 'root' })).toMatchObject({ http: 400 })
  expect(await as('bob').editor.publish({ version: 1, expected: 0, why: 'now' })).toMatchObject({ by: 'bob', why: 'now' })
  expect(await as('admin').editor.rollBack({ expected: 1, why: 'worse' })).toMatchObject({ by: 'admin', why: 'worse' })
})

it('[O3.3] over HTTP and in the client a draft is saved, compared, published and rolled back; errors have their codes', async () => {
  const { as, said, post } = await world()
  const { editor } = as('ann')
  const draft = { base: 0, instructions: 'Edited.', tools: { look: { description: 'Sees.' } }, model: 'openai/gpt-5.5' }
  expect(await editor.save(draft as never)).toMatchObject({ version: 1, created: true, stripped: ['model'], createdAt: expect.stringMatching(/Z$/) as string })
  expect(await post('bob', '/versions', { base: 0, overrides: { instructions: 'Mine.' } })).toMatchObject({ http: 409, code: 'edit_conflict', details: { latest: 1, by: 'ann' } })
  expect(await post('bob', '/versions', { base: 1, overrides: { tools: { shell: false } } })).toMatchObject({ http: 400, details: { field: 'tools.shell' } })
  expect(await post('bob', '/versions', JSON.parse('{ "base": 1, "overrides": { "tools": { "__proto__": false } } }') as object)).toMatchObject({ http: 400 })
  expect(await post('bob', '/releases', { version: 7, expected: 0 })).toMatchObject({ http: 404, code: 'unknown_version' })
  expect(await editor.compare({ from: 0, to: 1 })).toEqual([
    { field: 'instructions', from: null, to: 'Edited.' }, { field: 'tools.look', from: null, to: { description: 'Sees.' } },
  ])
  const rules = [{ version: 0, resources: ['carol'] }, { version: 0, context: { plan: ['free'] }, percent: 10 }]
  expect(await editor.publish({ version: 1, expected: 0, rules })).toMatchObject({ release: 1, rules })
  const memory = { thread: 't', resource: 'alice' }
  await as('ann').generate('Go.', { memory })
  expect(said()).toBe('Edited.')
  expect((await as('ann').listRuns({ threadId: 't' })).runs).toMatchObject([{ edit: { version: 1, release: 1 } }])
  expect((await as('bob').explainPrompt('Go.', { memory })).edit).toEqual({ version: 1, release: 1 })
  expect((await as('bob').explainPrompt('Go.', { agentVersion: 0 })).edit).toEqual({ version: 0 })
  expect(await editor.getVersion(1)).toMatchObject({ version: 1, by: 'ann' })
  await expect(editor.getVersion(2)).rejects.toMatchObject({ code: 'unknown_version' })
  expect(await editor.rollBack({ expected: 1, to: 0 })).toMatchObject({ release: 2, version: 0, restores: 0 })
  await editor.save({ base: 1, instructions: 'Next.' })
  expect(await editor.listVersions({ limit: 1 })).toMatchObject({ versions: [{ version: 2 }], next: 2 })
  expect(await editor.listVersions({ before: 2, limit: 5 })).toMatchObject({ versions: [{ version: 1 }] })
  expect(await editor.listReleases({ before: 2, limit: 5 })).toMatchObject({ releases: [{ release: 1 }] })
  expect(await editor.describe()).toMatchObject({ isDraft: true, editable: { instructions: true, tools: 'membership' }, code: { instructions: ['From code.'] } })
})

it('[O3.3] a locked agent and a server without an editor answer edit_locked', async () => {
  const locked = await world({ editor: false })
  await expect(locked.as('ann').editor.describe()).rejects.toMatchObject({ code: 'edit_locked' })
  const model = scriptedModel(() => 'Yes.')
  const heed = new Heed({ agents: { guide: new Agent({ id: 'guide', model }) }, storage: new InMemoryStore(), logger: silentLogger })
  const server = await serve(heed, { port: 0, handleSignals: false })
  onTestFinished(() => server.close())
  const remote = new HeedClient({ baseUrl: server.url, retries: 0 }).getAgent('guide')
  await expect(remote.editor.describe()).rejects.toMatchObject({ code: 'edit_locked' })
  await expect(remote.generate('Go.', { agentVersion: 1 })).rejects.toMatchObject({ code: 'edit_locked' })
})
