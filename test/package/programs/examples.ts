import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Agent, Heed, InMemoryStore, Memory } from 'heed'
import { scriptedModel } from 'heed/testing'
import { newFolder } from './parts/folder.ts'
import { calls, guarded, memories, reads, storages, writes } from './parts/memory-examples.ts'
import { agents, browserState, inbox, reminder, sends, subscribeAndSend } from './parts/signal-examples.ts'
import { until } from './parts/until.ts'

const thread = { resourceId: 'user-7', threadId: 'trip-1' }

test('every form of an agent and of a memory can be constructed', async () => {
  assert.deepEqual(agents.map(({ id }) => id), ['one', 'two', 'three', 'four', 'five'])
  assert.equal(memories.length, 16)
  assert.equal(guarded(newFolder()).id, 'guarded')
  const { heed } = storages(newFolder())
  await reads(heed)
  await heed.close()
})

test('the calls of the pages run', async () => {
  const model = scriptedModel(() => 'Fine.')
  const memory = new Memory({ workingMemory: { enabled: true } })
  const agent = new Agent({ id: 'guide', model, memory, inputProcessors: [reminder, browserState] })
  const heed = new Heed({ agents: { agent }, storage: new InMemoryStore() })
  await subscribeAndSend(agent)
  await until(async () => await agent.activeRun(thread), null)
  await writes(memory)
  await calls(agent)
  // The last call decides a tool call, and none waits.
  await assert.rejects(sends(agent), { code: 'run_not_suspended' })
  await until(async () => await agent.activeRun(thread), null)
  await heed.close()
  const notified = await inbox(new InMemoryStore())
  await notified.start()
  await notified.close()
})
