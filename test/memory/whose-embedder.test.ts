import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { InMemoryStore, Memory, type AnyEmbeddingModel } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-whose-embedder-'))
afterAll(() => rmSync(folder, { recursive: true }))
let files = 0

function noting(given: string[]): AnyEmbeddingModel {
  return {
    specificationVersion: 'v4', provider: 'test', modelId: 'noting', maxEmbeddingsPerCall: 16,
    async doEmbed({ values }) {
      given.push(...values)
      return { embeddings: values.map((text) => (/hound|puppy/.test(text) ? [1, 0.05] : [0.05, 1])) }
    },
  }
}

describe.each(['file', 'memory'])('two memories on one storage (%s)', (kind) => {
  it('[K1.14] the one without an embedder uses no other\'s, and finds by terms', async () => {
    const storage = kind === 'file' ? new LibSQLStore({ url: `file:${join(folder, `${files++}.db`)}` }) : new InMemoryStore()
    const given: string[] = []
    const withOne = new Memory({ storage, embedder: noting(given) })
    const without = new Memory({ storage })
    await withOne.createThread({ threadId: 't', resourceId: 'ada' })
    await withOne.saveMessages({ messages: ['Our hound is old.', 'Taxes are due.'].map((text, at) => (
      { id: `m${at}`, threadId: 't', resourceId: 'ada', role: 'user' as const, createdAt: new Date(at), content: { format: 2 as const, parts: [{ type: 'text' as const, text }] } }
    )) })
    await expect.poll(async () => (await withOne.recall({ threadId: 't', vectorSearchString: 'a puppy' })).hits?.[0]).toMatchObject({ messageId: 'm0', reasons: { words: 0, meaning: 1 } })
    expect(given).toContain('a puppy')
    const { hits } = await without.recall({ threadId: 't', vectorSearchString: 'which hound' })
    expect(hits?.[0]).toMatchObject({ messageId: 'm0', reasons: { words: 1, meaning: 0 } })
    expect(given).not.toContain('which hound')
    await storage.close()
  })
})
