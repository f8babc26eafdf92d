import { expect, it, onTestFinished } from 'vitest'
import { Agent, Heed, InMemoryStore, Memory, silentLogger } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { registerSdk } from './sdk.ts'
import { dogs } from '../memory/dogs.ts'

it('[K2.13] the span of a recall says how much was found, how well it fits and by what, and no words', async () => {
  const { spans, flush } = await registerSdk()
  const agent = new Agent({ id: 'clerk', model: scriptedModel(() => 'ok'), memory: new Memory({ embedder: dogs }) })
  const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
  onTestFinished(() => heed.close())
  const say = (text: string, thread: string, resource = 'user-7') => agent.generate(text, { memory: { thread, resource } })
  await say('My hound is called Rex.', 'one')
  await say('The name of a puppy?', 'two')
  await say('Which hound is Rex?', 'three')
  await say('Nothing was said before.', 'four', 'user-8')
  await flush()
  const searches = spans.filter(({ name }) => name === 'search_memory')
  const byThread = Object.fromEntries(searches.map(({ attributes }) => [attributes['gen_ai.conversation.id'], attributes]))
  expect(byThread.two).toMatchObject({ 'heed.recall.kinds': ['vectors'], 'heed.recall.found': expect.any(Number), 'heed.recall.best_score': expect.any(Number), 'heed.recall.duration_ms': expect.any(Number) })
  expect(byThread.three).toMatchObject({ 'heed.recall.kinds': ['words', 'vectors'] })
  expect(byThread.four).toMatchObject({ 'heed.recall.count': 0, 'heed.recall.found': 0, 'heed.recall.kinds': [] })
  expect(byThread.four).not.toHaveProperty('heed.recall.best_score')
  expect(Number(byThread.three?.['heed.recall.best_score'])).toBeGreaterThan(0)
  expect(Number(byThread.three?.['heed.recall.count'])).toBeGreaterThanOrEqual(Number(byThread.three?.['heed.recall.found']))
  expect(JSON.stringify(searches.map(({ name, attributes, events }) => ({ name, attributes, events: events.map((event) => event.attributes) })))).not.toMatch(/Rex|hound|puppy/)
})
