import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import type { Message } from '../../message/message.ts'
import type { TextEmbedder } from '../embedder.ts'
import type { RecallIndex } from '../../store/contract/recall.ts'
import { LibSQLStore } from '../../store/sqlite/store.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-recall-'))
afterAll(() => rmSync(folder, { recursive: true }))
const open: LibSQLStore[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((store) => store.close()))
})

let files = 0
const newFile = () => `file:${join(folder, `${files++}.db`)}`

async function storeAt(url: string): Promise<{ store: LibSQLStore; recall: RecallIndex }> {
  const store = new LibSQLStore({ url })
  open.push(store)
  const recall = await store.getStore('recall')
  if (!recall) throw new Error('no recall')
  return { store, recall }
}

let count = 0
function message(text: string, id = `m${count++}`): Message {
  return { id, role: 'user', createdAt: new Date(1_700_000_000_000 + count), content: { format: 2, parts: [{ type: 'text', text }] } }
}

async function say(store: LibSQLStore, threadId: string, resourceId: string, ...texts: string[]): Promise<string[]> {
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

function topicEmbedder(id = 'topics'): TextEmbedder & { calls: number; broken: false | 'down' | 'rubbish' } {
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

async function embedded(recall: RecallIndex, id = 'topics') {
  await expect.poll(async () => {
    const { pending, rebuilding, embedders } = await recall.status()
    return { unindexed: pending + (rebuilding ? 1 : 0), ...embedders.find((one) => one.id === id) }
  }).toMatchObject({ unindexed: 0, complete: true, pending: 0 })
}

describe.each(['file', 'memory'] as const)('recall in a %s', (kind) => {
  const place = () => (kind === 'file' ? newFile() : ':memory:')

  it('[K1.1] finds what was just committed, by its terms, in any form of the words', async () => {
    const { store, recall } = await storeAt(place())
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

  it('[K1.1] finds the last of thousands that were just committed', async () => {
    const { store, recall } = await storeAt(place())
    await recall.status()
    const ids = await say(store, 't', 'r', ...Array.from({ length: 3_000 }, (_, at) => `Remark number ${at}.`), 'The gazelle jumps.')
    expect(await recall.search({ resourceId: 'r', text: 'gazelle', limit: 1 })).toMatchObject([{ messageId: ids.at(-1) }])
  })

  it('[K1.2] searches one resource alone, or one thread', async () => {
    const { store, recall } = await storeAt(place())
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
    const { store, recall } = await storeAt(place())
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
    const { store, recall } = await storeAt(place())
    const long = `${'We spoke of many things that day. '.repeat(1_200)}The key is under the flowerpot.`
    await say(store, 't', 'r', 'Where do you live?')
    const [wanted] = await say(store, 't', 'r', long)
    const [hit] = await recall.search({ resourceId: 'r', text: 'flowerpot', limit: 2 })
    expect(hit?.messageId).toBe(wanted)
    expect(hit?.text.endsWith('The key is under the flowerpot.')).toBe(true)
    expect(hit?.text.length).toBeLessThanOrEqual(1_000)
  })

  it('[K1.5] finds by vectors what shares no term, once there is an embedder', async () => {
    const { store, recall } = await storeAt(place())
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
      const { store, recall } = await storeAt(place())
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
    const { store, recall } = await storeAt(place())
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
    const url = place()
    const first = await storeAt(url)
    first.recall.embedWith(topicEmbedder('old'))
    const [dog] = await say(first.store, 't', 'r', 'Our hound is three years old.', 'The loaf was burnt.', 'The automobile is red.')
    await embedded(first.recall, 'old')
    if (kind === 'file') await first.store.close()
    const { store, recall } = kind === 'file' ? await storeAt(url) : first
    const old = topicEmbedder('old')
    const next = Object.assign(topicEmbedder('next'), { former: old })
    next.broken = 'down'
    recall.embedWith(next)
    expect(await recall.search({ resourceId: 'r', text: 'puppy', limit: 1, embedder: next })).toMatchObject([{ messageId: dog }])
    expect((await recall.status()).embedders.find(({ id }) => id === 'next')).toMatchObject({ complete: false })
    next.broken = false
    await embedded(recall, 'next')
    const before = old.calls
    await say(store, 't', 'r', 'A kitten sleeps here.')
    await embedded(recall, 'next')
    expect(await recall.search({ resourceId: 'r', text: 'puppy', limit: 1, embedder: next })).toMatchObject([{ messageId: dog }])
    expect(old.calls).toBe(before)
  })

  it('[K1.8] reindexes with progress, and searches meanwhile', async () => {
    const { store, recall } = await storeAt(place())
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
    const { store, recall } = await storeAt(place())
    await say(store, 't', 'r', 'Tea at four.', 'Tea at five.')
    const progress: Array<{ done: number; total: number }> = []
    await recall.reindex({ onProgress: (now) => progress.push(now) })
    expect(progress).toEqual([{ done: 2, total: 2 }])
  })

  it('leaves out shown messages, and those that a filter does not match', async () => {
    const { store, recall } = await storeAt(place())
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
})

describe('recall beside a file', () => {
  it('[K1.10] creates the index again when the backup is older than the first use of recall', async () => {
    const url = newFile()
    const { store, recall } = await storeAt(url)
    const [kept] = await say(store, 't', 'r', 'The walrus sings.')
    const backup = join(folder, `backup-${files++}.db`)
    await store.backup(backup)
    await say(store, 't2', 'r', 'The carpenter dances.')
    const found = async (text: string) =>
      (await recall.search({ resourceId: 'r', text, limit: 1 })).map(({ messageId, reasons }) => ({ messageId, words: reasons.words }))
    expect(await found('carpenter')).toMatchObject([{ words: 1 }])
    await store.restore(backup)
    expect(await found('carpenter')).toEqual([])
    expect(await found('walrus')).toEqual([{ messageId: kept, words: 1 }])
    const [late] = await say(store, 't3', 'r', 'The unicorn sleeps.')
    expect(await found('unicorn')).toMatchObject([{ messageId: late }])
    expect(await found('carpenter')).toEqual([])
  })

  it('[K1.10] creates the index again when it is missing or the messages were restored', async () => {
    const url = newFile()
    const { store, recall } = await storeAt(url)
    const [kept] = await say(store, 't', 'r', 'The walrus sings.')
    await recall.search({ resourceId: 'r', text: 'walrus', limit: 1 })
    const backup = join(folder, `backup-${files++}.db`)
    await store.backup(backup)
    await say(store, 't', 'r', 'The carpenter dances.')
    expect(await recall.search({ resourceId: 'r', text: 'carpenter', limit: 1 })).toHaveLength(1)
    await store.restore(backup)
    expect(
      (await recall.search({ resourceId: 'r', text: 'carpenter', limit: 1 })).filter(({ text }) => text.includes('carpenter')),
    ).toEqual([])
    await store.close()
    for (const suffix of ['-recall', '-recall-wal', '-recall-shm']) rmSync(`${url.slice(5)}${suffix}`, { force: true })
    const again = await storeAt(url)
    expect(await again.recall.search({ resourceId: 'r', text: 'walrus', limit: 1 })).toMatchObject([{ messageId: kept }])
  })
})
