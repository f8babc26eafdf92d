import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Agent } from 'heed'
import { scriptedModel } from 'heed/testing'
import { weather } from './heed.ts'

test('the guide looks up the weather and answers', async () => {
  const script = scriptedModel([{ toolCalls: [{ toolName: 'weather', input: { city: 'Oslo' } }] }, 'Take a coat: 14 degrees.'])
  const tested = new Agent({ id: 'tested', model: script, tools: { weather } })
  const { text, toolResults } = await tested.generate('What do I wear in Oslo?')
  assert.equal(text, 'Take a coat: 14 degrees.')
  assert.deepEqual(toolResults.map(({ result }) => result), [{ city: 'Oslo', celsius: 14 }])
})
