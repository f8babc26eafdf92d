import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Agent, Heed, InMemoryStore, Memory, silentLogger, type Processor } from 'heed'
import { MessageHistory, ModerationProcessor, RegexFilter, TokenLimiter, UnicodeNormalizer, WorkingMemory } from 'heed/processors'
import { scriptedModel } from 'heed/testing'
import { served, thread } from './parts/serving.ts'
import { until } from './parts/until.ts'

test('built-in processors and those of the user change a run that a server serves', async () => {
  const model = scriptedModel(['Write to ada@example.com.'], { loop: true })
  const shout: Processor = { id: 'shout', processInput: ({ messages }) => messages }
  const agent = new Agent({
    id: 'guide', model, memory: new Memory(),
    inputProcessors: [new UnicodeNormalizer(), shout, new TokenLimiter({ limit: 10_000 })],
    outputProcessors: [new RegexFilter({ presets: ['pii'], strategy: 'redact' })],
  })
  const { client } = await served(agent)
  await client.getAgent('guide').sendMessage({ message: 'Who?', ...thread, wait: 'outcome' })
  const stored = () => client.memory({ agentId: 'guide', resourceId: thread.resourceId }).listMessages({ threadId: thread.threadId })
  await until(async () => (await stored()).messages.length, 2)
  const { messages } = await stored()
  assert.ok(!JSON.stringify(messages).includes('ada@example.com'), JSON.stringify(messages))
})

test('a processor that refuses ends the run with its reason', async () => {
  const judge = new Agent({ id: 'judge', model: scriptedModel(() => JSON.stringify({ categories: [{ name: 'violence', score: 1 }] })) })
  const inputProcessors = [new ModerationProcessor({ judge })]
  const agent = new Agent({ id: 'guide', model: scriptedModel(['Fine.'], { loop: true }), inputProcessors })
  const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
  const result = await agent.generate('Fight!')
  assert.ok(result.tripwire, JSON.stringify(result.text))
  await heed.close()
})

test("memory's own processors, set by hand, find the memory of the agent", async () => {
  const model = scriptedModel(['One.', 'Two.'])
  const memory = new Memory({ options: { workingMemory: { enabled: true }, semanticRecall: false } })
  const agent = new Agent({ id: 'guide', model, memory, inputProcessors: [new MessageHistory(), new WorkingMemory()] })
  const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
  await agent.generate('First.', { memory: { thread: 't', resource: 'r' } })
  await agent.generate('Second.', { memory: { thread: 't', resource: 'r' } })
  assert.match(JSON.stringify(model.calls[1]?.prompt), /First\..*One\..*Second\./)
  await heed.close()
})
