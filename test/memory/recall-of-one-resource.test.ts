import { expect, it } from 'vitest'
import { InMemoryStore, Memory } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { dogs } from './dogs.ts'

it.each([['InMemoryStore', () => new InMemoryStore()], ['LibSQLStore', () => new LibSQLStore({ url: ':memory:' })]] as const)('a memory of one resource says how far recall is and indexes again, in an %s', async (_, make) => {
  const storage = make()
  const memory = new Memory({ storage, embedder: dogs }).forResource('ada')
  await memory.createThread({ threadId: 't' })
  await memory.saveMessages({ threadId: 't', messages: [{ id: 'm', role: 'user', content: 'Our hound is old.' }] })
  await memory.reindex()
  const { hits } = await memory.recall({ threadId: 't', vectorSearchString: 'a puppy' })
  expect(hits).toMatchObject([{ messageId: 'm', reasons: { meaning: 1 } }])
  expect(await memory.recallStatus()).toMatchObject({ pending: 0, embedders: [{ id: 'test/dogs', complete: true, failing: 0 }] })
  await storage.close()
})
