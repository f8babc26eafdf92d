import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import type { Message } from '../../message/message.ts'
import type { TextEmbedder } from '../embedder.ts'
import { virtualClock } from '../../testing/virtual-clock.ts'
import { InMemoryStore } from '../../store/sqlite/in-memory.ts'
import type { RecallIndex, RecallProgress } from '../../store/contract/recall.ts'
import { LibSQLStore } from '../../store/sqlite/store.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-embedders-'))
afterAll(() => rmSync(folder, { recursive: true }))
const open: Array<{ close(): Promise<void> }> = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((store) => store.close()))
})

let files = 0
type Kind = 'file' | 'memory' | 'InMemoryStore'
type Store = LibSQLStore | InMemoryStore
async function storeOf(kind: Kind, clock?: ReturnType<typeof virtualClock>): Promise<{ store: Store; recall: RecallIndex }> {
  const more = clock && { clock }
  const store =
    kind === 'InMemoryStore'
      ? new InMemoryStore({ ...more })
      : new LibSQLStore({ url: kind === 'memory' ? ':memory:' : `file:${join(folder, `${files++}.db`)}`, ...more })
  open.push(store)
  const recall = await store.getStore('recall')
  if (!recall) throw new Error('no recall')
  return { store, recall }
}

async function say(store: Store, ...texts: string[]): Promise<void> {
  await store.createThread({ id: 't', resourceId: 'r', now: 1 })
  const messages = texts.map((text, at): Message => ({
    id: `m${at}`,
    role: 'user',
    createdAt: new Date(1_700_000_000_000 + at),
    content: { format: 2, parts: [{ type: 'text', text }] },
  }))
  await store.saveMessages([{ scope: { threadId: 't', resourceId: 'r' }, messages }])
}

function edit(store: Store, id: string, text: string) {
  return store.updateMessages([{ scope: { threadId: 't' }, patches: [{ id, content: { parts: [{ type: 'text', text }] } }] }])
}

/** Dogs point one way, bread another, all else between. */
function vectorOf(text: string, dimension = 3): number[] {
  const vector = new Array<number>(dimension).fill(0.01)
  vector[0] = /dog|hound|puppy/i.test(text) ? 1 : 0.01
  vector[1] = /bread|loaf/i.test(text) ? 1 : 0.01
  return vector
}

function embedderOf(answer: (texts: readonly string[]) => Promise<number[][]> | number[][], id = 'test/dogs'): TextEmbedder {
  return { id, maxBatch: 16, embed: async (texts) => answer(texts) }
}

async function embedded(recall: RecallIndex) {
  await expect.poll(async () => {
    const { pending, rebuilding, embedders: [embedder] } = await recall.status()
    return { unindexed: pending + (rebuilding ? 1 : 0), ...embedder }
  }).toMatchObject({ unindexed: 0, complete: true, pending: 0 })
}

const best = async (recall: RecallIndex, text: string) =>
  (await recall.search({ resourceId: 'r', text, limit: 1 })).map(({ messageId, score, reasons: { meaning, words } }) => ({
    messageId,
    score,
    meaning,
    words,
  }))[0]

describe.each(['file', 'memory'] as const)('vectors that arrive late, in a %s', (kind) => {
  it('[K1.3] are discarded when the message was changed meanwhile', async () => {
    const { store, recall } = await storeOf(kind)
    const gates: Array<() => void> = []
    let held = true
    const asked: string[] = []
    recall.embedWith(embedderOf(async (texts) => {
      asked.push(...texts)
      if (held && texts[0] !== 'fresh') await new Promise<void>((resolve) => gates.push(resolve))
      return texts.map((text) => vectorOf(text))
    }))
    await say(store, 'Our hound is old.', 'The weather.', 'Taxes.')
    await expect.poll(() => gates.length).toBe(1)
    await edit(store, 'm0', 'Our bread is fresh.')
    expect(await best(recall, 'fresh')).toMatchObject({ messageId: 'm0' })
    held = false
    for (const release of gates) release()
    await embedded(recall)
    expect(asked).toContain('Our bread is fresh.')
    expect(await best(recall, 'a loaf')).toMatchObject({ messageId: 'm0', meaning: 1 })
    expect(await best(recall, 'a puppy')).not.toMatchObject({ messageId: 'm0' })
  })

  it('[K1.3] of other messages stay: of a thread with an edited message only that one is embedded again', async () => {
    const { store, recall } = await storeOf(kind)
    const asked: string[] = []
    recall.embedWith(embedderOf((texts) => {
      asked.push(...texts)
      return texts.map((text) => vectorOf(text))
    }))
    await say(store, 'Our hound is old.', 'It sleeps.')
    await embedded(recall)
    asked.length = 0
    await edit(store, 'm0', 'Our bread is fresh.')
    await expect.poll(() => asked).toEqual(['Our bread is fresh.'])
    await embedded(recall)
    expect(asked).toEqual(['Our bread is fresh.'])
  })
})

describe.each(['file', 'memory', 'InMemoryStore'] as const)('an embedder that returns invalid vectors, in a %s', (kind) => {
  it.each([
    ['no numbers', (texts: readonly string[]) => texts.map(() => [Number.NaN, 1, 1])],
    ['too few vectors', () => []],
    ['no vectors at all', (texts: readonly string[]) => texts.map(() => undefined as never)],
    ['empty vectors', (texts: readonly string[]) => texts.map(() => [])],
  ])('[K1.6] with %s is reported by name, until it returns valid ones', async (_, rubbish) => {
    const { store, recall } = await storeOf(kind)
    let answer: (texts: readonly string[]) => number[][] = rubbish
    recall.embedWith(embedderOf((texts) => answer(texts)))
    await say(store, 'Our hound is called Rex.', 'Taxes are due in May.')
    const found = await best(recall, 'hound')
    expect(found).toMatchObject({ messageId: 'm0', words: 1, meaning: 0 })
    expect(found?.score).toBeGreaterThan(0.2)
    await expect
      .poll(async () => (await recall.status()).embedders[0])
      .toMatchObject({ errorCode: 'provider_error', error: expect.stringContaining("Embedder 'test/dogs'") })
    answer = (texts) => texts.map((text) => vectorOf(text))
    await embedded(recall)
    expect(await best(recall, 'puppy')).toMatchObject({ messageId: 'm0', meaning: 1 })
    expect((await recall.status()).embedders[0]).not.toHaveProperty('error')
  })

  it('[K1.6] with vectors of another length is reported by name, searches use terms, and reindex() repairs it', async () => {
    const { store, recall } = await storeOf(kind)
    let dimension = 3
    recall.embedWith(embedderOf((texts) => texts.map((text) => vectorOf(text, dimension))))
    await say(store, 'Our hound is called Rex.', 'Taxes are due in May.')
    await embedded(recall)
    expect(await best(recall, 'puppy')).toMatchObject({ messageId: 'm0', meaning: 1 })
    dimension = 8
    expect(await best(recall, 'hound')).toMatchObject({ messageId: 'm0', words: 1, meaning: 0 })
    expect((await recall.status()).embedders).toMatchObject([
      { errorCode: 'dimension_changed', error: expect.stringContaining('reindex()') },
    ])
    await recall.reindex()
    expect((await recall.status()).embedders[0]).not.toHaveProperty('error')
    expect(await best(recall, 'puppy')).toMatchObject({ messageId: 'm0', meaning: 1 })
    expect((await recall.status()).embedders[0]).not.toHaveProperty('error')
    expect((await recall.status()).embedders).toMatchObject([{ dimension: 8, complete: true, embedded: 2, pending: 0 }])
  })

  it('[K1.6] with vectors of another length is repaired by reindex() also while vectors are being made', async () => {
    const { store, recall } = await storeOf(kind)
    let dimension = 3
    const gates: Array<() => void> = []
    let held = false
    recall.embedWith(embedderOf(async (texts) => {
      if (held) await new Promise<void>((resolve) => gates.push(resolve))
      return texts.map((text) => vectorOf(text, dimension))
    }))
    await say(store, 'Our hound is called Rex.', 'Taxes are due in May.')
    await embedded(recall)
    expect(await best(recall, 'puppy')).toMatchObject({ messageId: 'm0', meaning: 1 })
    dimension = 8
    held = true
    await edit(store, 'm1', 'Taxes are due in June.')
    await expect.poll(() => gates.length).toBe(1)
    const reindexed = recall.reindex()
    await expect.poll(async () => (await recall.status()).embedders[0]?.pending).toBe(2)
    held = false
    for (const release of gates) release()
    await reindexed
    expect(await best(recall, 'puppy')).toMatchObject({ messageId: 'm0', meaning: 1 })
    expect((await recall.status()).embedders[0]).toMatchObject({ complete: true, pending: 0, failing: 0 })
  })

  it('[K1.6] that never responds delays a search by ten seconds, the next ones by one, and after a minute by ten again', async () => {
    const clock = virtualClock(0)
    const { store, recall } = await storeOf(kind, clock)
    let asked = 0
    recall.embedWith(embedderOf((texts) => {
      if (texts.includes('hound')) asked += 1
      return new Promise<never>(() => {})
    }))
    await say(store, 'Our hound is called Rex.', 'Taxes are due in May.')
    let searches = 0
    for (const wait of [10_000, 1_000, 1_000, 10_000]) {
      let answered = false
      const found = best(recall, 'hound').finally(() => {
        answered = true
      })
      searches += 1
      await expect.poll(() => asked).toBe(searches)
      await clock.advance(wait - 1)
      expect(answered).toBe(false)
      await clock.advance(1)
      expect(await found).toMatchObject({ messageId: 'm0', words: 1, meaning: 0 })
      expect((await recall.status()).embedders).toMatchObject([{ errorCode: 'unreachable' }])
      if (searches === 3) await clock.advance(60_000)
    }
  })

  it('[K1.6] is replaced by the last one that was given with its id', async () => {
    const { store, recall } = await storeOf(kind)
    recall.embedWith(embedderOf(() => Promise.reject(new Error('the key was revoked'))))
    await say(store, 'Our hound is called Rex.', 'Taxes are due in May.')
    expect(await best(recall, 'hound')).toMatchObject({ messageId: 'm0' })
    recall.embedWith(embedderOf((texts) => texts.map((text) => vectorOf(text))))
    await embedded(recall)
    expect(await best(recall, 'puppy')).toMatchObject({ messageId: 'm0', meaning: 1 })
  })
})

describe.each(['file', 'memory'] as const)('reindex(), in a %s', (kind) => {
  async function indexed(
    answer: (texts: readonly string[]) => Promise<number[][]> | number[][] = (texts) => texts.map((text) => vectorOf(text)),
  ) {
    const { store, recall } = await storeOf(kind)
    await say(store, ...Array.from({ length: 250 }, (_, at) => `Remark number ${at}.`))
    await expect.poll(async () => (await recall.status()).pending).toBe(0)
    recall.embedWith(embedderOf(answer))
    return recall
  }

  const isGrowing = (all: readonly RecallProgress[]) =>
    all.every(({ done, total }, at) => total === 250 && done <= total && done >= (all[at - 1]?.done ?? 0))

  it('[K1.8] reports indexed messages and then embedded passages, up to all, with a new embedder and a complete one', async () => {
    const recall = await indexed()
    for (let round = 0; round < 2; round += 1) {
      const seen: RecallProgress[] = []
      await recall.reindex({ onProgress: (progress) => seen.push(progress) })
      const { words = [], vectors = [] } = Object.groupBy(seen, ({ embedder }) => (embedder === undefined ? 'words' : 'vectors'))
      expect(words.length).toBeGreaterThanOrEqual(2)
      expect(vectors.length).toBeGreaterThanOrEqual(2)
      expect(seen).toEqual([...words, ...vectors])
      expect([isGrowing(words), isGrowing(vectors)]).toEqual([true, true])
      expect(vectors.at(-1)).toEqual({ done: 250, total: 250, embedder: 'test/dogs' })
      expect(new Set(vectors.map(({ done }) => done)).size).toBeGreaterThanOrEqual(2)
      expect((await recall.status()).embedders).toMatchObject([{ complete: true, embedded: 250, pending: 0, failing: 0 }])
    }
  })

  it('[K1.8] continues when onProgress throws, and rejects with its error when all is done', async () => {
    const recall = await indexed()
    let calls = 0
    const broke = new Error('the display broke')
    await expect(recall.reindex({ onProgress: ({ embedder }) => {
      if (embedder === undefined) return
      calls += 1
      throw broke
    } })).rejects.toBe(broke)
    expect(calls).toBe(1)
    const { embedders: [embedder] } = await recall.status()
    expect(embedder).toMatchObject({ complete: true, embedded: 250 })
    expect(embedder).not.toHaveProperty('error')
  })

  it('[K1.8] reports to each of two callers at once', async () => {
    const recall = await indexed()
    const [one, other]: [RecallProgress[], RecallProgress[]] = [[], []]
    await Promise.all([recall.reindex({ onProgress: (now) => one.push(now) }), recall.reindex({ onProgress: (now) => other.push(now) })])
    for (const seen of [one, other]) expect(seen.at(-1)).toEqual({ done: 250, total: 250, embedder: 'test/dogs' })
  })
})
