import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, expect, it } from 'vitest'
import type { TextEmbedder } from '../embedder.ts'
import { LibSQLStore } from '../../store/sqlite/store.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-pruned-'))
afterAll(() => rmSync(folder, { recursive: true }))

const embedder: TextEmbedder = {
  id: 'letters',
  maxBatch: 8,
  embed: async (texts) => texts.map((text) => [text.length, text.charCodeAt(0), 1]),
}
const now = 1_700_000_000_000
const day = 86_400_000

/** What the index beside the messages holds. */
function held(): { passages: number; vectors: number } {
  const database = new DatabaseSync(join(folder, 'a.db-recall'), { readOnly: true, timeout: 60_000 })
  try {
    const count = (table: string) => Number(database.prepare(`SELECT count(*) AS found FROM ${table}`).get()?.found)
    return { passages: count('passages'), vectors: count('vectors') }
  } finally {
    database.close()
  }
}

it('[M1.8] pruning removes messages from the index too: their terms, their vectors', async () => {
  const store = new LibSQLStore({ url: `file:${join(folder, 'a.db')}` })
  const recall = (await store.getStore('recall'))!
  recall.embedWith(embedder)
  for (const [threadId, ages] of [['old', [90, 80]], ['mixed', [90, 1]]] as const) {
    await store.createThread({ id: threadId, resourceId: 'r', now: now - 90 * day })
    const messages = ages.map((age) => ({
      id: `${threadId}-${age}`,
      role: 'user' as const,
      createdAt: new Date(now - age * day),
      content: { format: 2 as const, parts: [{ type: 'text' as const, text: `Telescope number ${age}.` }] },
    }))
    await store.saveMessages([{ scope: { threadId, resourceId: 'r' }, messages }])
  }
  const embedded = async () => {
    await expect.poll(async () => {
      const { pending, embedders: [first] } = await recall.status()
      return [pending, first?.pending, first?.complete]
    }).toEqual([0, 0, true])
  }
  await embedded()
  const found = async (text: string) =>
    (await recall.search({ resourceId: 'r', text, limit: 9 })).map(({ messageId }) => messageId).toSorted()
  expect(await found('telescope')).toEqual(['mixed-1', 'mixed-90', 'old-80', 'old-90'])
  expect(held()).toEqual({ passages: 4, vectors: 4 })

  expect(await store.prune({ retention: { messages: '30d' }, now })).toMatchObject({ messages: 3 })
  expect(await found('telescope')).toEqual(['mixed-1'])
  await embedded()
  await expect.poll(held).toEqual({ passages: 1, vectors: 1 })

  expect(await store.prune({ retention: { threads: '1d' }, now: Date.now() + 9 * day })).toMatchObject({ threads: 2 })
  expect(await found('telescope')).toEqual([])
  await expect.poll(held).toEqual({ passages: 0, vectors: 0 })
  await store.close()
})
