import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Agent, Heed, InMemoryStore, Memory, silentLogger, type AnyEmbeddingModel } from 'heed'
import { DuckDBVector } from 'heed/duckdb'
import { LanceDBVector } from 'heed/lancedb'
import { LibSQLVector } from 'heed/libsql'
import { scriptedModel, vectorConformance } from 'heed/testing'
import { newFile } from './parts/folder.ts'

const embedder: AnyEmbeddingModel = {
  specificationVersion: 'v4', provider: 'test', modelId: 'dogs', maxEmbeddingsPerCall: 16,
  doEmbed: async ({ values }) => ({ embeddings: values.map((text) => (/dog|hound/i.test(text) ? [1, 0.1] : [0.1, 1])) }),
}

test('a memory has its vectors in a vector store', async () => {
  for (const vector of [new DuckDBVector(), new LanceDBVector({ uri: newFile().replace(/^file:/, '') })]) {
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Noted.'], { loop: true }), memory: new Memory({ embedder, vector }) })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
    await agent.generate('A hound.', { memory: { thread: 'home', resource: 'ada' } })
    const memory = await agent.getMemory()
    await memory.reindex()
    const { hits, incomplete } = await memory.recall({ threadId: 'home', vectorSearchString: 'dog', perPage: 1 })
    assert.deepEqual([hits?.[0]?.text, hits?.[0]?.reasons.meaning, incomplete], ['A hound.', 1, undefined])
    assert.deepEqual(await vector.listIndexes(), ['heed_recall_2'])
    await heed.close()
    await vector.close()
  }
})

describe('LibSQLVector keeps what recall relies on', () => {
  const store = new LibSQLVector({ url: ':memory:' })
  for (const { name, run } of vectorConformance) test(name, () => run({ store: async () => store }))
})
