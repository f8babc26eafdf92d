import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Agent, Heed, Memory, silentLogger } from 'heed'
import { fastembed, localEmbedder } from 'heed/embed'
import { LibSQLStore } from 'heed/libsql'
import { scriptedModel } from 'heed/testing'
import { newFile } from './parts/folder.ts'
import { until } from './parts/until.ts'

test('what fits is recalled from another thread, by text and by the vectors of the local embedder', async () => {
  const model = scriptedModel(['Noted.'], { loop: true })
  const memory = new Memory({ embedder: localEmbedder() })
  const agent = new Agent({ id: 'clerk', model, memory })
  const heed = new Heed({ agents: { agent }, storage: new LibSQLStore({ url: newFile() }), logger: silentLogger })
  await agent.generate('My dog is very old.', { memory: { thread: 'home', resource: 'user-7' } })
  await agent.generate('The invoice is due on Friday.', { memory: { thread: 'home', resource: 'user-7' } })
  const store = await agent.getMemory()
  await until(async () => {
    const { messages } = await store.recall({ threadId: 'home', resourceId: 'user-7', vectorSearchString: 'Our aged hound', perPage: 1 })
    return ['My dog is very old.', 'The invoice is due on Friday.'].map((text) => JSON.stringify(messages).includes(text))
  }, [true, false])
  await agent.generate('Where is my dog?', { memory: { thread: 'other', resource: 'user-7' } })
  assert.match(JSON.stringify(model.calls.at(-1)?.prompt), /recalled-messages.*My dog is very old/)
  await heed.close()
  await fastembed.close()
})

test('the local embedder is one for the process', async () => {
  assert.equal(localEmbedder(), fastembed)
  const { embeddings: [one, same] } = await fastembed.doEmbed({ values: ['A dog.', 'A dog.'] })
  assert.equal(one?.length, 384)
  assert.deepEqual(one, same)
  await fastembed.close()
})
