import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Agent, createTool, Heed, InMemoryStore, isHeedError, RequestContext } from 'heed'
import { HeedClient } from 'heed/client'
import { HeedEditor } from 'heed/editor'
import { serve } from 'heed/server'
import { scriptedModel } from 'heed/testing'

test('a draft is tried, published and rolled back, and two editors at once get a conflict', async () => {
  const look = createTool({ id: 'look', description: 'Looks.', execute: async () => 'seen' })
  const model = scriptedModel(() => 'Yes.')
  const guide = new Agent({ id: 'guide', instructions: 'From code.', model, tools: { look } })
  const editor = new HeedEditor()
  const heed = new Heed({ agents: { guide }, storage: new InMemoryStore(), editor })
  const said = async (options: { agentVersion?: number } = {}) => {
    await guide.generate('Go.', { ...options, memory: { thread: 't', resource: 'u' } })
    const call = model.calls.at(-1)
    return [call?.prompt[0]?.content, call?.tools?.length ?? 0]
  }
  assert.equal(heed.getEditor(), editor)
  const { version } = await editor.save('guide', { base: 0, by: 'ann', instructions: 'Edited.', tools: { look: false } })
  await assert.rejects(editor.save('guide', { base: 0, by: 'bob', instructions: 'Mine.' }), (error) => isHeedError(error) && error.code === 'edit_conflict')
  await assert.rejects(editor.save('guide', { base: 1, by: 'bob', tools: { shell: { description: 'x' } } }), /offers no tool 'shell'/)
  assert.deepEqual(await said(), ['From code.', 1])
  assert.deepEqual(await said({ agentVersion: version }), ['Edited.', 0])
  await editor.publish('guide', { version, expected: 0, by: 'ann' })
  assert.deepEqual(await said(), ['Edited.', 0])
  await editor.rollBack('guide', { expected: 1, by: 'bob' })
  assert.deepEqual(await said(), ['From code.', 1])
  await heed.close()
})

test('every call of the editor and of prompt blocks', async () => {
  const look = createTool({ id: 'look', description: 'Looks.', execute: async () => 'seen' })
  const model = scriptedModel(() => 'Yes.')
  const requestContextSchema = { type: 'object', properties: { plan: { type: 'string' } } } as const
  const guide = new Agent({ id: 'guide', instructions: 'From code.', model, tools: { look }, requestContextSchema })
  const locked = new Agent({ id: 'locked', model, editor: false })
  const editor = new HeedEditor()
  const heed = new Heed({ agents: { guide, locked }, storage: new InMemoryStore(), editor })
  const { prompts } = editor
  const pro = { operator: 'AND', conditions: [{ field: 'plan', operator: 'equals', value: 'pro' }] } as const
  const requestContext = new RequestContext({ plan: 'pro' })
  const said = async (options: { agentVersion?: number | 'draft'; requestContext?: RequestContext } = {}) => {
    await guide.generate('Go.', options)
    return [model.calls.at(-1)?.prompt[0]?.content, model.calls.at(-1)?.tools?.length ?? 0]
  }

  assert.equal((await prompts.save('tone', { base: 0, content: 'Be kind.', description: 'How we speak', by: 'ann', why: 'first' })).version, 1)
  assert.equal((await prompts.save('tone', { base: 1, content: 'Be kind.', description: 'How we speak', by: 'bob' })).created, false)
  await prompts.save('tone', { base: 1, content: "Be kind to {{plan || 'free'}} users.", by: 'ann' })
  assert.deepEqual((await prompts.compare('tone', { from: 1, to: 2 })).map(({ field }) => field), ['content', 'description'])
  await prompts.publish('tone', { version: 1, expected: 0, by: 'ann' })
  await prompts.publish('tone', { version: 2, expected: 1, by: 'ann' })
  assert.deepEqual((await prompts.rollBack('tone', { expected: 2, by: 'ann' })).version, 1)
  assert.equal((await prompts.clone('tone', { as: 'mood', version: 2, by: 'ann' })).blockId, 'mood')
  assert.deepEqual((await prompts.list()).blocks.map(({ id }) => id), ['mood', 'tone'])
  assert.equal((await prompts.listVersions('tone')).versions.length, 2)
  assert.equal((await prompts.listReleases('tone')).releases.length, 3)
  assert.equal((await prompts.getVersion('tone', 1))?.block.content, 'Be kind.')
  assert.deepEqual(await prompts.delete('mood', { by: 'ann', why: 'unused' }), [1])

  const instructions = [{ type: 'text', content: 'Help.' }, { type: 'prompt_block', content: 'They pay.', rules: pro }, { type: 'prompt_block_ref', id: 'tone' }] as const
  assert.equal((await editor.preview('guide', { instructions, requestContext, drafts: true })).text, 'Help.\n\nThey pay.\n\nBe kind to pro users.')
  await editor.save('guide', { base: 0, instructions, tools: { look: [{ rules: pro, override: false }] }, by: 'ann' })
  assert.deepEqual(await said(), ['From code.', 1])
  assert.deepEqual(await said({ agentVersion: 'draft', requestContext }), ['Help.\n\nThey pay.\n\nBe kind to pro users.', 0])
  await editor.publish('guide', { version: 1, expected: 0, by: 'ann' })
  assert.deepEqual(await said(), ['Help.\n\nBe kind.', 1])
  assert.deepEqual(await said({ requestContext }), ['Help.\n\nThey pay.\n\nBe kind.', 0])
  assert.deepEqual((await prompts.describe('tone')).agents, ['guide'])
  await assert.rejects(prompts.delete('tone', { by: 'ann' }), (error) => isHeedError(error) && error.code === 'edit_in_use')
  await assert.rejects(editor.save('guide', { base: 1, instructions: [{ type: 'text', content: '{{constructor.name}}' }], by: 'eve' }), /constructor/)
  await editor.save('guide', { base: 1, instructions: 'Unused.', by: 'ann' })
  assert.deepEqual(await editor.delete('guide', { version: 2, by: 'ann' }), [2])
  assert.equal((await editor.listVersions('guide', { deleted: true })).versions[0]?.deleted?.by, 'ann')
  assert.deepEqual((await editor.list()).map(({ id, latest }) => [id, latest]), [['guide', 1]])
  assert.equal((await editor.describe('guide')).release?.version, 1)
  assert.equal((await editor.getVersion('guide', 1))?.by, 'ann')
  assert.deepEqual((await editor.compare('guide', { from: 0, to: 1 })).map(({ field }) => field), ['instructions', 'tools.look'])
  assert.equal((await editor.rollBack('guide', { expected: 1, by: 'ann' })).version, 0)
  assert.equal((await editor.listReleases('guide')).releases.length, 2)
  await heed.close()
})

test('the client of a server has the same calls', async () => {
  const model = scriptedModel(() => 'Yes.')
  const heed = new Heed({ agents: { guide: new Agent({ id: 'guide', instructions: 'From code.', model }) }, storage: new InMemoryStore(), editor: new HeedEditor() })
  const server = await serve(heed, { port: 0, handleSignals: false })
  const client = new HeedClient({ baseUrl: server.url, retries: 0 })
  const [prompts, { editor }] = [client.prompts(), client.getAgent('guide')]
  await prompts.save('tone', { base: 0, content: 'Be kind.' })
  await prompts.publish('tone', { version: 1, expected: 0 })
  await editor.save({ base: 0, instructions: [{ type: 'prompt_block_ref', id: 'tone' }] })
  await editor.publish({ version: 1, expected: 0 })
  assert.equal((await editor.preview()).text, 'Be kind.')
  await client.getAgent('guide').generate('Go.')
  assert.equal(model.calls.at(-1)?.prompt[0]?.content, 'Be kind.')
  assert.deepEqual((await client.listEditedAgents()).map(({ id, latest }) => [id, latest]), [['guide', 1]])
  await server.close()
})
