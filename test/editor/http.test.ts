import { expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { HeedClient, type PromptBlocksClient } from '../../src/client/index.ts'
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
  const clientOf = (who: string) => new HeedClient({ baseUrl: server.url, headers: { authorization: `Bearer ${keyOf(who)}` }, retries: 0 })
  const as = (who: string) => clientOf(who).getAgent('guide')
  const said = () => model.calls.at(-1)?.prompt[0]?.content
  const post = async (who: string, path: string, body: object) => {
    const headers = { authorization: `Bearer ${keyOf(who)}`, 'content-type': 'application/json' }
    const response = await fetch(`${server.url}/api/agents/guide${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return { http: response.status, ...((await response.json()) as object) }
  }
  return { as, clientOf, said, post, model }
}

function blockCalls(prompts: PromptBlocksClient): Array<() => Promise<unknown>> {
  return [
    () => prompts.list(), () => prompts.describe('tone'), () => prompts.save('tone', { base: 0, content: 'x' }), () => prompts.clone('tone', { as: 'x' }),
    () => prompts.publish('tone', { version: 1, expected: 0 }), () => prompts.rollBack('tone', { expected: 1 }), () => prompts.getVersion('tone', 1),
    () => prompts.listVersions('tone'), () => prompts.listReleases('tone'), () => prompts.compare('tone', { from: 1, to: 1 }),
    () => prompts.delete('tone'), () => prompts.delete('tone', { version: 1 }),
  ]
}

it('[O3.1] the editor and drafts are for principals with the scope edit, and for no others', async () => {
  const { as, clientOf, said } = await world()
  const refused = { code: 'forbidden', details: { scope: 'edit' } }
  await as('ann').editor.save({ base: 0, instructions: 'Draft.' })
  for (const who of ['user', 'tenant', 'plain', 'operates']) {
    const { editor } = as(who)
    const calls = [
      () => editor.describe(), () => editor.save({ base: 1, instructions: 'Mine.' }), () => editor.publish({ version: 1, expected: 0 }), () => editor.rollBack({ expected: 0 }),
      () => editor.getVersion(1), () => editor.listVersions(), () => editor.listReleases(), () => editor.compare({ from: 0, to: 1 }),
      () => as(who).generate('Go.', { agentVersion: 1 }), () => as(who).generate('Go.', { agentVersion: 'draft' }),
      () => editor.preview(), () => editor.delete(1), () => clientOf(who).listEditedAgents(),
      ...blockCalls(clientOf(who).prompts()),
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

it('[O4.13] over HTTP and in the client prompt blocks do what the calls of the editor do, with the principal as the author', async () => {
  const { as, clientOf, said, model } = await world({ requestContextSchema: z.object({ plan: z.string().optional() }) })
  const look = () => model.calls.at(-1)?.tools?.flatMap((tool) => ('description' in tool ? [tool.description] : []))[0]
  const [prompts, { editor }] = [clientOf('ann').prompts(), as('ann')]
  const rules = { operator: 'AND', conditions: [{ field: 'plan', operator: 'equals', value: 'pro' }] } as const
  expect(await prompts.save('tone', { base: 0, content: 'Be kind.', description: 'How we speak', why: 'first' })).toMatchObject({
    blockId: 'tone', version: 1, created: true, by: 'ann', why: 'first', block: { content: 'Be kind.', description: 'How we speak' }, createdAt: expect.stringMatching(/Z$/) as string,
  })
  await expect(prompts.save('tone', { base: 0, content: 'x' })).rejects.toMatchObject({ code: 'edit_conflict', details: { blockId: 'tone', by: 'ann' } })
  await prompts.save('tone', { base: 1, content: 'For {{plan}}.', rules })
  expect(await prompts.compare('tone', { from: 1, to: 2 })).toHaveLength(3)
  await expect(prompts.publish('none', { version: 1, expected: 0 })).rejects.toMatchObject({ code: 'unknown_version' })
  expect(await prompts.publish('tone', { version: 1, expected: 0, why: 'now' })).toMatchObject({ blockId: 'tone', release: 1, by: 'ann', why: 'now' })
  await clientOf('bob').prompts().publish('tone', { version: 2, expected: 1 })
  expect(await prompts.rollBack('tone', { expected: 2, to: 1, why: 'worse' })).toMatchObject({ release: 3, version: 1, restores: 1, why: 'worse' })
  const instructions = [{ type: 'text', content: 'Help.' }, { type: 'prompt_block', content: 'They pay.', rules }, { type: 'prompt_block_ref', id: 'tone' }] as const
  const pro = { requestContext: { plan: 'pro' } }
  expect(await as('bob').editor.preview({ instructions, ...pro })).toMatchObject({ text: 'Help.\n\nThey pay.\n\nBe kind.', isCode: false })
  // A limited principal does not say what instructions trust.
  expect(await editor.preview({ instructions, ...pro })).toMatchObject({ text: 'Help.\n\nBe kind.' })
  expect(await as('bob').editor.preview({ instructions, drafts: true, requestContext: { plan: 'pro' } })).toMatchObject({ text: 'Help.\n\nThey pay.\n\nFor pro.' })
  await editor.save({ base: 0, instructions, tools: { look: [{ rules, override: { description: 'Sees.' } }] } })
  expect(await editor.preview({ version: 'draft' })).toMatchObject({ text: 'Help.' })
  await editor.publish({ version: 1, expected: 0 })
  await as('user').generate('Go.', pro)
  expect(said()).toBe('Help.\n\nBe kind.')
  expect(look()).toBe('Looks.')
  await as('bob').generate('Go.', pro)
  expect(look()).toBe('Sees.')
  expect(said()).toBe('Help.\n\nThey pay.\n\nBe kind.')
  expect(await prompts.describe('tone')).toMatchObject({ id: 'tone', isDraft: true, agents: ['guide'], release: { release: 3 } })
  expect((await as('bob').explainPrompt('Go.')).edit).toEqual({ version: 1, release: 1, blocks: { tone: 1 } })
  expect(await clientOf('ann').listEditedAgents()).toMatchObject([{ id: 'guide', latest: 1, isDraft: false, release: { release: 1 } }])
  await expect(prompts.delete('tone')).rejects.toMatchObject({ code: 'edit_in_use' })
  expect(await prompts.clone('tone', { as: 'mood', version: 1, why: 'copied' })).toMatchObject({ blockId: 'mood', block: { content: 'Be kind.' } })
  expect(await prompts.list({ limit: 1 })).toMatchObject({ blocks: [{ id: 'mood' }], next: 'mood' })
  expect(await prompts.list({ after: 'mood' })).toMatchObject({ blocks: [{ id: 'tone' }] })
  expect(await prompts.delete('mood', { why: 'unused' })).toEqual([1])
  expect(await prompts.listVersions('mood', { deleted: true })).toMatchObject({ versions: [{ version: 1, deleted: { by: 'ann', why: 'unused' } }] })
  expect(await prompts.delete('tone', { version: 2 })).toEqual([2])
  await expect(prompts.getVersion('tone', 2)).rejects.toMatchObject({ code: 'unknown_version' })
  expect(await prompts.getVersion('tone', 1)).toMatchObject({ version: 1 })
  expect(await prompts.listVersions('tone', { before: 9, limit: 5 })).toMatchObject({ versions: [{ version: 1 }] })
  expect(await prompts.listReleases('tone', { before: 3, limit: 1 })).toMatchObject({ releases: [{ release: 2, by: 'bob' }], next: 2 })
  await editor.save({ base: 1, instructions: 'Draft.' })
  await as('ann').generate('Go.', { agentVersion: 'draft' })
  expect(said()).toBe('Draft.')
  expect(await editor.delete(2, { why: 'a mistake' })).toEqual([2])
  expect(await editor.listVersions({ deleted: true })).toMatchObject({ versions: [{ version: 2, deleted: { by: 'ann', why: 'a mistake' } }] })
  await expect(editor.delete(1)).rejects.toMatchObject({ code: 'edit_in_use' })
  const own = clientOf('ann').prompts({ agentId: 'guide' })
  expect(await own.describe('tone')).toMatchObject({ id: 'tone' })
  await expect(clientOf('ann').prompts({ agentId: 'nobody' }).list()).rejects.toMatchObject({ code: 'unknown_agent' })
})
