import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Agent, createTool, Heed, InMemoryStore, isHeedError } from 'heed'
import { HeedEditor } from 'heed/editor'
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
