import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { silentLogger } from '../../base/logger.ts'
import type { Message } from '../../message/message.ts'
import type { TextEmbedder } from '../embedder.ts'
import { virtualClock, type VirtualClock } from '../../testing/virtual-clock.ts'
import type { RecallIndex } from '../../store/contract/recall.ts'
import { LibSQLStore } from '../../store/sqlite/store.ts'
import { openDatabases } from './databases.ts'
import { RecallEngine } from './engine.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-several-embedders-'))
afterAll(() => rmSync(folder, { recursive: true }))
const open: Array<{ close(): unknown }> = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

let files = 0
const newFile = () => `file:${join(folder, `${files++}.db`)}`

async function storeAt(url: string, clock?: VirtualClock): Promise<{ store: LibSQLStore; recall: RecallIndex }> {
  const store = new LibSQLStore({ url, ...(clock && { clock }) })
  open.push(store)
  const recall = await store.getStore('recall')
  if (!recall) throw new Error('no recall')
  return { store, recall }
}

let count = 0
async function say(store: LibSQLStore, ...texts: string[]): Promise<void> {
  await store.createThread({ id: 't', resourceId: 'r', now: 1 })
  const messages = texts.map((text): Message => ({
    id: `m${count++}`,
    role: 'user',
    createdAt: new Date(count),
    content: { format: 2, parts: [{ type: 'text', text }] },
  }))
  await store.saveMessages([{ scope: { threadId: 't', resourceId: 'r' }, messages }])
}

type Answer = (texts: readonly string[]) => Promise<number[][]>
const dogs: Answer = async (texts) => texts.map((text) => (/dog|hound|puppy/i.test(text) ? [1, 0.05] : [0.05, 1]))
const never: Answer = () => new Promise<never>(() => {})

/** Notes every text that it is given. */
function embedderOf(id: string, answer: Answer = dogs) {
  const embedder = {
    id, maxBatch: 16, answer, given: [] as string[],
    embed(texts: readonly string[]) {
      embedder.given.push(...texts)
      return embedder.answer(texts)
    },
  }
  return embedder
}

/** What another process does to the index: it names an embedder and makes all of its vectors. */
function processAt(url: string): { embedAll(id: string, now: number): void } {
  const engine = new RecallEngine(openDatabases(url.slice('file:'.length)))
  open.push(engine)
  const made = { hash: 'of-all', vector: Float32Array.of(1, 0.5) }
  return {
    embedAll(id, now) {
      engine.register(id, now)
      for (let { passages } = engine.readDue(id, 100, now); passages.length > 0; { passages } = engine.readDue(id, 100, now)) {
        engine.storeVectors(id, passages.map(({ passage, revision }) => ({ passage, revision, ...made })))
      }
    },
  }
}

const stateOf = async (recall: RecallIndex, { id }: TextEmbedder) => (await recall.status()).embedders.find((one) => one.id === id)
async function through(recall: RecallIndex, embedder: TextEmbedder): Promise<void> {
  await expect.poll(async () => {
    const { pending, rebuilding } = await recall.status()
    return { unindexed: pending + (rebuilding ? 1 : 0), ...(await stateOf(recall, embedder)) }
  }).toMatchObject({ unindexed: 0, pending: 0, complete: true })
}
const day = 86_400_000

describe('several embedders', () => {
  it('[K1.7] the former one makes no vectors during a reindex()', async () => {
    const url = newFile()
    const first = await storeAt(url)
    first.recall.embedWith(embedderOf('old'))
    await say(first.store, ...Array.from({ length: 40 }, (_, at) => `Our hound number${at} barked.`))
    await through(first.recall, { ...embedderOf('old') })
    await first.store.close()
    const { recall } = await storeAt(url)
    const old = embedderOf('old')
    const next = Object.assign(embedderOf('next', () => Promise.reject(new Error('down'))), { former: old })
    recall.embedWith(next)
    expect(await recall.search({ resourceId: 'r', text: 'puppy', limit: 1, embedder: next })).toMatchObject([{ reasons: { meaning: 1 } }])
    expect(old.given).toEqual(['puppy'])
    next.answer = dogs
    await recall.reindex()
    await through(recall, next)
    await recall.reindex()
    expect(old.given).toEqual(['puppy'])
    expect(await stateOf(recall, old)).toMatchObject({ complete: true, embedded: 40, pending: 0 })
  })

  it("[K1.14] a question is not passed to another user's embedder, whose vectors are complete while its own are not", async () => {
    const { store, recall } = await storeAt(newFile())
    await say(store, 'Our hound is old.', 'Taxes are due.')
    const other = embedderOf('other')
    recall.embedWith(other)
    await through(recall, other)
    const own = embedderOf('own', (texts) => (texts.includes('what is my diagnosis') ? dogs(texts) : never(texts)))
    await recall.search({ resourceId: 'r', text: 'what is my diagnosis', limit: 1, embedder: own })
    expect(own.given).toContain('what is my diagnosis')
    expect(other.given).not.toContain('what is my diagnosis')
  })

  it('[K1.6] two that never respond delay a search no longer than one: by ten seconds, and the next by one', async () => {
    const url = newFile()
    const clock = virtualClock(0)
    const first = await storeAt(url, clock)
    await say(first.store, 'Our hound is old.', 'Taxes are due.')
    first.recall.embedWith(embedderOf('old'))
    await through(first.recall, { ...embedderOf('old') })
    await first.store.close()
    const { recall } = await storeAt(url, clock)
    const old = embedderOf('old', never)
    const next = Object.assign(embedderOf('next', never), { former: old })
    for (const [searches, wait] of [10_000, 1_000].entries()) {
      let answered = false
      const found = recall.search({ resourceId: 'r', text: 'hound', limit: 1, embedder: next }).finally(() => {
        answered = true
      })
      await expect
        .poll(() => [old, next].map(({ given }) => given.filter((text) => text === 'hound').length))
        .toEqual([searches + 1, searches + 1])
      await clock.advance(wait - 1)
      expect(answered).toBe(false)
      await clock.advance(1)
      expect(await found).toMatchObject([{ text: 'Our hound is old.', reasons: { words: 1, meaning: 0 } }])
    }
  })

  it('[K1.15] one that a running process uses is kept, however long ago it started, and an unused one expires', async () => {
    const url = newFile()
    const clock = virtualClock()
    const { store, recall } = await storeAt(url, clock)
    await say(store, 'Our hound is old.', 'Taxes are due.')
    const kept = embedderOf('kept')
    recall.embedWith(kept)
    await through(recall, kept)
    const other = processAt(url)
    other.embedAll('gone', clock.now())
    await clock.advance(8 * day)
    await recall.status()
    other.embedAll('another', clock.now())
    other.embedAll('another', clock.now())
    expect((await recall.status()).embedders.map(({ id }) => id)).toEqual(['kept', 'another'])
    kept.given = []
    expect(await recall.search({ resourceId: 'r', text: 'puppy', limit: 1, embedder: kept })).toMatchObject([
      { text: 'Our hound is old.', reasons: { meaning: 1 } },
    ])
    await say(store, 'A dog came.')
    await through(recall, kept)
    expect(kept.given).toEqual(['puppy', 'A dog came.'])
  })

  it('[K1.15] a renewal that fails is logged, and retried within a day', async () => {
    const url = newFile()
    const clock = virtualClock()
    const first = await storeAt(url, clock)
    await say(first.store, 'Our hound is old.', 'Taxes are due.')
    first.recall.embedWith(embedderOf('old'))
    await through(first.recall, { ...embedderOf('old') })
    await first.store.close()
    const { recall } = await storeAt(url, clock)
    const next = Object.assign(embedderOf('next', () => Promise.reject(new Error('down'))), { former: embedderOf('old') })
    const logged: string[] = []
    recall.embedWith(next, { ...silentLogger, warn: (message) => void logged.push(message) })
    await recall.search({ resourceId: 'r', text: 'puppy', limit: 1, embedder: next })
    const index = new DatabaseSync(`${url.slice('file:'.length)}-recall`, { timeout: 60_000 })
    index.exec('ALTER TABLE embedders RENAME TO elsewhere')
    await clock.advance(day)
    await expect.poll(() => logged).toEqual([expect.stringContaining('renewed')])
    await clock.advance(60_000)
    await expect.poll(() => logged).toHaveLength(2)
    index.exec('ALTER TABLE elsewhere RENAME TO embedders')
    index.close()
    await clock.advance(120_000)
    await recall.status()
    expect(logged).toHaveLength(2)
  })

  it('[K1.15] one that expired makes its vectors again when it is used', async () => {
    const url = newFile()
    const { store, recall } = await storeAt(url)
    await say(store, 'Our hound is old.', 'Taxes are due.')
    const slept = embedderOf('slept')
    recall.embedWith(slept)
    await through(recall, slept)
    const other = processAt(url)
    other.embedAll('another', Date.now() + 8 * day)
    other.embedAll('another', Date.now() + 8 * day)
    expect(await stateOf(recall, slept)).toBeUndefined()
    await recall.search({ resourceId: 'r', text: 'puppy', limit: 1, embedder: slept })
    await through(recall, slept)
    expect(await recall.search({ resourceId: 'r', text: 'puppy', limit: 1, embedder: slept })).toMatchObject([
      { text: 'Our hound is old.', reasons: { meaning: 1 } },
    ])
  })
})

describe('the text of the previous message', () => {
  it.each(['deleted', 'changed'] as const)(
    '[K1.3] is in no vector once that message is %s, also while the embedder is down',
    async (how) => {
      const { store, recall } = await storeAt(newFile())
      await store.createThread({ id: 't', resourceId: 'r', now: 1 })
      const messages = ['Weather.', 'My hound is ill.', 'I see.', 'Taxes.', 'River.', 'Stone.'].map((text, at): Message => ({
        id: `p${at}`,
        role: 'user',
        createdAt: new Date(at),
        content: { format: 2, parts: [{ type: 'text', text }] },
      }))
      await store.saveMessages([{ scope: { threadId: 't', resourceId: 'r' }, messages }])
      const embedder = embedderOf('dogs')
      recall.embedWith(embedder)
      await through(recall, embedder)
      const pairs = async () =>
        Object.fromEntries(
          (await recall.search({ resourceId: 'r', text: 'puppy', limit: 10 })).map(({ text, reasons: { meaningOfPair } }) => [
            text,
            meaningOfPair,
          ]),
        )
      expect(await pairs()).toMatchObject({ 'I see.': 1, 'Taxes.': expect.closeTo(0.18, 1) })
      embedder.answer = async (texts) => (texts[0] === 'puppy' ? dogs(texts) : Promise.reject(new Error('down')))
      if (how === 'deleted') await store.deleteMessages({ threadId: 't' }, ['p1'])
      else
        await store.updateMessages([
          { scope: { threadId: 't' }, patches: [{ id: 'p1', content: { parts: [{ type: 'text', text: 'My car is red.' }] } }] },
        ])
      const now = await pairs()
      expect(now['I see.']).toBe(now['Taxes.'])
    },
  )
})
