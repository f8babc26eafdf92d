import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Agent, Heed, silentLogger } from 'heed'
import { PgStore, PgVector, PostgresStore } from 'heed/pg'
import { scriptedModel } from 'heed/testing'

test('both names are one class, which refuses options by name', () => {
  assert.equal(PgStore, PostgresStore)
  assert.throws(() => new PostgresStore({}), { code: 'invalid_argument' })
  const store = new PostgresStore({ connectionString: 'postgresql://me:secret@db.example/app', schemaName: 'heed' })
  assert.equal(store.place, 'postgresql://db.example:5432/app/heed')
})

test('PgVector is a vector store, which refuses options by name', async () => {
  assert.throws(() => new PgVector({}), { code: 'invalid_argument' })
  const vector = new PgVector({ connectionString: 'postgresql://me:secret@127.0.0.1:1/app' })
  await assert.rejects(vector.listIndexes(), { code: 'store_failed' })
  await vector.close()
})

test('a server that is not there is named, without the password', async () => {
  const storage = new PostgresStore({ connectionString: 'postgresql://me:secret@127.0.0.1:1/app' })
  await assert.rejects(storage.open(), (error: Error & { code: string }) => {
    assert.equal(error.code, 'store_failed')
    assert.match(error.message, /127\.0\.0\.1:1\/app can't be reached/)
    assert.doesNotMatch(error.message, /secret/)
    return true
  })
  await storage.close()
})

test('an agent takes it as its storage', async () => {
  const agent = new Agent({ id: 'guide', model: scriptedModel(['Hi.']) })
  const heed = new Heed({ agents: { agent }, storage: new PostgresStore({ host: '127.0.0.1', port: 1, database: 'app' }), logger: silentLogger })
  await assert.rejects(agent.generate('Hello.', { memory: { thread: 't', resource: 'r' } }), { code: 'store_failed' })
  await heed.close()
})
