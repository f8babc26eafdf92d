import { describe, expect, it, onTestFinished } from 'vitest'
import type { Message } from '../../../src/message/message.ts'
import type { TextEmbedder } from '../../../src/recall/embedder.ts'
import type { RecallIndex } from '../../../src/store/contract/recall.ts'
import type { SqlStore } from '../../../src/store/sql/store.ts'
import { LibSQLStore } from '../../../src/store/sqlite/store.ts'

/** A database of a test. Its stores are closed after the test. */
interface RecallPlace {
  open(): SqlStore
  /** Whether another store finds what one that was closed has stored. */
  outlivesStores: boolean
  /** How many messages are many. */
  many?: number
}

export async function opened(place: Pick<RecallPlace, 'open'>): Promise<{ store: SqlStore; recall: RecallIndex }> {
  const store = place.open()
  const recall = await store.getStore('recall')
  if (!recall) throw new Error('no recall')
  return { store, recall }
}

let count = 0
function message(text: string, id = `m${count++}`): Message {
  return { id, role: 'user', createdAt: new Date(1_700_000_000_000 + count), content: { format: 2, parts: [{ type: 'text', text }] } }
}

export async function say(store: SqlStore, threadId: string, resourceId: string, ...texts: string[]): Promise<string[]> {
  await store.createThread({ id: threadId, resourceId, now: 1 })
  const messages = texts.map((text) => message(text))
  await store.saveMessages([{ scope: { threadId, resourceId }, messages }])
  return messages.map(({ id }) => id)
}

/** Texts about the same thing point the same way. */
const topics = ['dog puppy hound pet', 'car vehicle automobile drive', 'bread bakery loaf flour']
function topicVector(text: string): number[] {
  const vector = topics.map((topic) => topic.split(' ').filter((word) => text.toLowerCase().includes(word)).length)
  return [...vector, 0.1]
}

export function topicEmbedder(id = 'topics'): TextEmbedder & { calls: number; broken: false | 'down' | 'rubbish' } {
  return {
    id,
    maxBatch: 8,
    calls: 0,
    broken: false,
    async embed(texts) {
      this.calls += 1
      if (this.broken === 'down') throw new Error('connection refused')
      if (this.broken === 'rubbish') return texts.map(() => [Number.NaN, 1])
      return texts.map(topicVector)
    },
  }
}

export async function embedded(recall: RecallIndex, id = 'topics') {
  await expect.poll(async () => {
    const { pending, rebuilding, embedders } = await recall.status()
    return { unindexed: pending + (rebuilding ? 1 : 0), ...embedders.find((one) => one.id === id) }
  }).toMatchObject({ unindexed: 0, complete: true, pending: 0 })
}

/** What recall does on every database. */
export function recallSuite(where: string, place: () => RecallPlace | Promise<RecallPlace>): void {
  describe(`recall ${where}`, () => {
    it('[K1.1] finds what was just committed, by its terms, in any form of the words', async () => {
      const { store, recall } = await opened(await place())
      const [, wanted] = await say(
        store,
        't',
        'r',
        'Nice weather today.',
        'We danced at the wedding of Ada in June.',
        'The invoices are due.',
      )
      const [hit] = await recall.search({ resourceId: 'r', text: 'who was dancing at weddings?', limit: 3 })
      expect(hit).toMatchObject({ messageId: wanted, threadId: 't', resourceId: 'r', text: 'We danced at the wedding of Ada in June.' })
      expect(hit?.score).toBeGreaterThan(0.2)
      expect(hit?.reasons.words).toBe(1)
    })

    it('[K1.1] finds the last of many that were just committed', async () => {
      const at = await place()
      const { store, recall } = await opened(at)
      await recall.status()
      const ids = await say(store, 't', 'r', ...Array.from({ length: at.many ?? 3_000 }, (_, nth) => `Remark number ${nth}.`), 'The gazelle jumps.')
      expect(await recall.search({ resourceId: 'r', text: 'gazelle', limit: 1 })).toMatchObject([{ messageId: ids.at(-1) }])
    })

    it('[K2.21] explains a hit, and a message that is not found', async () => {
      const { store, recall } = await opened(await place())
      const [wanted = '', other = ''] = await say(store, 't', 'r', 'We danced at the wedding of Ada.', 'The wedding was in June.')
      const query = { resourceId: 'r', text: 'who danced at the wedding?', limit: 1 }
      const hits = await recall.search({ ...query, explain: true })
      expect(hits.explained).toMatchObject([{ threadId: 't', messageId: wanted, text: 'We danced at the wedding of Ada.', rank: 1 }])
      expect(hits.explained?.[0]?.reasons.reduce((sum, { points }) => sum + points, 0)).toBeCloseTo(hits[0]?.score ?? 9, 6)
      const explain = async (messageId: string) => (await recall.search({ ...query, explain: { threadId: 't', messageId } })).explained
      expect(await explain(other)).toMatchObject([{ messageId: other, text: 'The wedding was in June.', rank: 2, missing: 'rank' }])
      expect(await explain('none')).toEqual([])
      expect((await recall.search(query)).explained).toBeUndefined()
    })

    it('[K1.2] searches one resource alone, or one thread', async () => {
      const { store, recall } = await opened(await place())
      await say(store, 'theirs', 'them', 'The secret code is heliotrope.')
      const [here] = await say(store, 'a', 'r', 'My code word is heliotrope too.')
      const [there] = await say(store, 'b', 'r', 'A heliotrope is a plant.')
      const ids = async (query: { resourceId?: string; threadId?: string }) =>
        (await recall.search({ ...query, text: 'heliotrope', limit: 10 })).map(({ messageId }) => messageId)
      expect((await ids({ resourceId: 'r' })).toSorted()).toEqual([here, there].toSorted())
      expect(await ids({ resourceId: 'r', threadId: 'a' })).toEqual([here])
      expect(await ids({ threadId: 'b' })).toEqual([there])
      expect(await ids({ resourceId: 'nobody' })).toEqual([])
      await expect(ids({ resourceId: 'r', threadId: 'theirs' })).rejects.toMatchObject({ code: 'thread_forbidden' })
    })

    it('[K1.3] never finds an edited message by its old text, nor a deleted one at all', async () => {
      const { store, recall } = await opened(await place())
      const [edited, deleted] = await say(store, 't', 'r', 'The meeting is in Lisbon.', 'Bring the telescope.')
      const found = async (text: string) => (await recall.search({ resourceId: 'r', text, limit: 5 })).map(({ messageId }) => messageId)
      expect(await found('Lisbon')).toContain(edited)
      await store.updateMessages([
        {
          scope: { threadId: 't' },
          patches: [{ id: edited ?? '', content: { parts: [{ type: 'text', text: 'The meeting is in Porto.' }] } }],
        },
      ])
      await store.deleteMessages({ threadId: 't' }, [deleted ?? ''])
      expect(await found('Lisbon')).toEqual([])
      expect(await found('Porto')).toEqual([edited])
      expect(await found('telescope')).not.toContain(deleted)
      await store.deleteThread({ threadId: 't' })
      expect(await found('Porto')).toEqual([])
    })

    it('[K1.4] finds a message of 40,000 characters by its last sentence', async () => {
      const { store, recall } = await opened(await place())
      const long = `${'We spoke of many things that day. '.repeat(1_200)}The key is under the flowerpot.`
      await say(store, 't', 'r', 'Where do you live?')
      const [wanted] = await say(store, 't', 'r', long)
      const [hit] = await recall.search({ resourceId: 'r', text: 'flowerpot', limit: 2 })
      expect(hit?.messageId).toBe(wanted)
      expect(hit?.text.endsWith('The key is under the flowerpot.')).toBe(true)
      expect(hit?.text.length).toBeLessThanOrEqual(1_000)
    })

    it('[K1.5] finds by vectors what shares no term, once there is an embedder', async () => {
      const { store, recall } = await opened(await place())
      recall.embedWith(topicEmbedder())
      const [dog] = await say(store, 't', 'r', 'Our hound is three years old.', 'The loaf was burnt.', 'Taxes are due.')
      await embedded(recall)
      const [hit] = await recall.search({ resourceId: 'r', text: 'a puppy', limit: 1 })
      expect(hit?.messageId).toBe(dog)
      expect(hit?.reasons.meaning).toBe(1)
    })

    it.each(['down', 'rubbish'] as const)(
      '[K1.6] loses nothing to an embedder that is %s, reports it, and searches by terms meanwhile',
      async (how) => {
        const { store, recall } = await opened(await place())
        const embedder = topicEmbedder()
        embedder.broken = how
        recall.embedWith(embedder)
        const [dog] = await say(store, 't', 'r', 'Our hound is three years old.', 'The loaf was burnt.')
        await expect
          .poll(async () => (await recall.status()).embedders[0])
          .toMatchObject({
            complete: false,
            failing: 2,
            pending: 2,
            error: expect.stringContaining(how === 'down' ? 'connection refused' : "Embedder 'topics'"),
          })
        expect(await recall.search({ resourceId: 'r', text: 'hound', limit: 1 })).toMatchObject([{ messageId: dog }])
        embedder.broken = false
        await embedded(recall)
        expect(await recall.search({ resourceId: 'r', text: 'puppy', limit: 1 })).toMatchObject([{ messageId: dog }])
        expect((await recall.status()).embedders[0]).not.toHaveProperty('error')
      },
    )

    it('[K1.7] changes the embedder while searches use the vectors of the old one', async () => {
      const { store, recall } = await opened(await place())
      const old = topicEmbedder('old')
      recall.embedWith(old)
      const [dog] = await say(store, 't', 'r', 'Our hound is three years old.', 'The loaf was burnt.', 'The automobile is red.')
      await embedded(recall, 'old')
      const next = Object.assign(topicEmbedder('next'), { former: old })
      next.broken = 'down'
      recall.embedWith(next)
      await expect
        .poll(async () => (await recall.status()).embedders.find(({ id }) => id === 'next'))
        .toMatchObject({ pending: 3, complete: false })
      expect(await recall.search({ resourceId: 'r', text: 'puppy', limit: 1 })).toMatchObject([{ messageId: dog }])
      next.broken = false
      await embedded(recall, 'next')
      const before = old.calls
      expect(await recall.search({ resourceId: 'r', text: 'puppy', limit: 1 })).toMatchObject([{ messageId: dog }])
      expect(old.calls).toBe(before)
    })

    it("[K1.7] changes it with a restart: the former one's vectors serve until the new one is complete, and end then", async () => {
      const at = await place()
      const first = await opened(at)
      first.recall.embedWith(topicEmbedder('old'))
      const [dog] = await say(first.store, 't', 'r', 'Our hound is three years old.', 'The loaf was burnt.', 'The automobile is red.')
      await embedded(first.recall, 'old')
      if (at.outlivesStores) await first.store.close()
      const { store, recall } = at.outlivesStores ? await opened(at) : first
      const old = topicEmbedder('old')
      const next = Object.assign(topicEmbedder('next'), { former: old })
      next.broken = 'down'
      recall.embedWith(next)
      expect(await recall.search({ resourceId: 'r', text: 'puppy', limit: 1, embedder: next })).toMatchObject([{ messageId: dog }])
      await expect.poll(async () => (await recall.status()).embedders.find(({ id }) => id === 'next')).toMatchObject({ complete: false })
      next.broken = false
      await embedded(recall, 'next')
      const before = old.calls
      await say(store, 't', 'r', 'A kitten sleeps here.')
      await embedded(recall, 'next')
      expect(await recall.search({ resourceId: 'r', text: 'puppy', limit: 1, embedder: next })).toMatchObject([{ messageId: dog }])
      expect(old.calls).toBe(before)
    })

    it('[K1.8] reindexes with progress, and searches meanwhile', async () => {
      const { store, recall } = await opened(await place())
      recall.embedWith(topicEmbedder())
      await say(store, 't', 'r', ...Array.from({ length: 250 }, (_, at) => `Remark number ${at} about bread.`))
      await embedded(recall)
      const progress: Array<{ done: number; total: number }> = []
      const reindexing = recall.reindex({ onProgress: (now) => progress.push(now) })
      expect(await recall.search({ resourceId: 'r', text: 'remark 17', limit: 1 })).toMatchObject([{ text: 'Remark number 17 about bread.' }])
      await reindexing
      expect(progress.map(({ done, total }) => done <= total && total === 250)).not.toContain(false)
      expect(progress.at(-1)).toEqual({ done: 250, total: 250, embedder: 'topics' })
      expect(await recall.status()).toMatchObject({ pending: 0, embedders: [{ embedded: 250, complete: true }] })
      expect(await recall.search({ resourceId: 'r', text: 'remark 249', limit: 1 })).toMatchObject([
        { text: 'Remark number 249 about bread.' },
      ])
    })

    it('[K1.8] reports the whole of a small index, which is one batch', async () => {
      const { store, recall } = await opened(await place())
      await say(store, 't', 'r', 'Tea at four.', 'Tea at five.')
      const progress: Array<{ done: number; total: number }> = []
      await recall.reindex({ onProgress: (now) => progress.push(now) })
      expect(progress).toEqual([{ done: 2, total: 2 }])
    })

    it('leaves out shown messages, and those that a filter does not match', async () => {
      const { store, recall } = await opened(await place())
      const ids = await say(store, 't', 'r', 'Tea at four.', 'Tea at five.', 'Tea at six.')
      await store.patchThread({ threadId: 't' }, { metadata: { topic: 'tea' } })
      const found = async (more: object) =>
        (await recall.search({ resourceId: 'r', text: 'tea', limit: 5, ...more })).map(({ messageId }) => messageId).toSorted()
      expect(await found({ shown: { threadId: 't', from: 3 } })).toEqual(ids.slice(0, 2))
      expect(await found({ except: [{ threadId: 't', messageId: ids[0] }] })).toEqual(ids.slice(1))
      expect(await found({ except: [{ threadId: 'u', messageId: ids[0] }] })).toEqual(ids)
      expect(await found({ filter: { topic: 'tea', role: { $in: ['user'] } } })).toEqual(ids)
      expect(await found({ filter: { topic: 'coffee' } })).toEqual([])
      await expect(found({ filter: { topic: { $like: 'tea' } } })).rejects.toMatchObject({
        code: 'invalid_argument',
        details: { operator: '$like' },
      })
    })

    it('[K1.22] finds the same as in memory, with the same scores', async () => {
      const texts = [
        'We danced at the wedding of Ada in June.', 'The wedding was in a barn near Lisbon.', 'Who danced at the wedding?', 'I do not know.',
        'Our hound is three years old.', 'The loaf was burnt, and the bread too.', 'Bread, bread and more bread in the bakery.',
        `A word of ${'x'.repeat(39)}\u{10348}\u{10348} letters.`, "It's a 'quoted' \\ word.", '犬がパンを食べた。', 'Ada drives an automobile.',
      ]
      const stores = await Promise.all([opened(await place()), opened({ open: () => new LibSQLStore({ url: ':memory:' }) })])
      onTestFinished(() => stores[1].store.close())
      const now = count
      for (const { store, recall } of stores) {
        count = now
        recall.embedWith(topicEmbedder())
        await say(store, 'a', 'r', ...texts.slice(0, 6))
        await say(store, 'b', 'r', ...texts.slice(6))
        await say(store, 'c', 'other', ...texts)
        await embedded(recall)
      }
      const questions = ['who danced at weddings', 'a puppy', 'bread', `${'x'.repeat(39)}\u{10348}`, 'quoted', '犬がパン', 'Ada', 'nothing of that']
      for (const text of questions) {
        const ways = [{}, { embedder: false as const }, { threadId: 'a' }, { distinct: true }, { shown: { threadId: 'b', from: 2, asked: 4 } }]
        for (const way of ways) {
          const [here, there] = await Promise.all(stores.map(({ recall }) => recall.search({ resourceId: 'r', text, limit: 4, ...way })))
          expect(here, `${text} ${JSON.stringify(way)}`).toEqual(there)
        }
      }
    })
  })
}
