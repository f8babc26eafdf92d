import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import type { Message } from '../../message/message.ts'
import type { RecallIndex } from '../../store/contract/recall.ts'
import { LibSQLStore } from '../../store/sqlite/store.ts'
import { virtualClock } from '../../testing/virtual-clock.ts'
import type { TextEmbedder } from '../embedder.ts'
import type { VectorMatch, VectorStore } from '../vector-store.ts'
import { LibSQLVector } from '../vectors/vector.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-placed-'))
afterAll(() => rmSync(folder, { recursive: true }))
const open: Array<{ close(): Promise<void> }> = []
afterEach(async () => {
  for (const store of open.splice(0).toReversed()) await store.close()
})
let files = 0
const newUrl = () => `file:${join(folder, `${files++}.db`)}`

/** A real vector store, whose calls are recorded, and that fails, hangs or lies on request. */
class Watched implements VectorStore {
  readonly id = 'watched'
  readonly inner = new LibSQLVector({ url: ':memory:' })
  readonly calls: Array<{ method: string; args: object }> = []
  /** By name of the method: what happens instead. */
  readonly faults = new Map<string, () => Promise<never> | Promise<unknown>>()

  constructor() {
    open.push(this.inner)
  }

  createIndex = (args: Parameters<LibSQLVector['createIndex']>[0]) => this.#call('createIndex', args, () => this.inner.createIndex(args))
  listIndexes = () => this.#call('listIndexes', {}, () => this.inner.listIndexes())
  describeIndex = (args: { indexName: string }) => this.#call('describeIndex', args, () => this.inner.describeIndex(args))
  deleteIndex = (args: { indexName: string }) => this.#call('deleteIndex', args, () => this.inner.deleteIndex(args))
  upsert = (args: Parameters<VectorStore['upsert']>[0]) => this.#call('upsert', args, () => this.inner.upsert(args))
  query = (args: Parameters<VectorStore['query']>[0]): Promise<VectorMatch[]> => this.#call('query', args, () => this.inner.query(args))
  deleteVector = (args: { indexName: string; id: string }) => this.#call('deleteVector', args, () => this.inner.deleteVector(args))
  deleteVectors = (args: Parameters<NonNullable<VectorStore['deleteVectors']>>[0]) =>
    this.#call('deleteVectors', args, () => this.inner.deleteVectors(args))

  async #call<Result>(method: string, args: object, act: () => Promise<Result>): Promise<Result> {
    this.calls.push({ method, args })
    const fault = this.faults.get(method)
    return fault ? (fault() as Promise<Result>) : act()
  }

  /** All that is stored, by the message that it is of. */
  async messages(): Promise<string[]> {
    const names = await this.inner.listIndexes()
    const found = await Promise.all(names.map(async (indexName) => {
      const { dimension } = await this.inner.describeIndex({ indexName })
      return this.inner.query({ indexName, queryVector: new Array<number>(dimension).fill(1), topK: 10_000 })
    }))
    return found.flat().map(({ metadata }) => `${String(metadata.resource_id)}/${String(metadata.thread_id)}/${String(metadata.message_id)}`).toSorted()
  }

  of(method: string): object[] {
    return this.calls.filter((call) => call.method === method).map(({ args }) => args)
  }
}

/** Dogs point one way, bread another. Counts the texts. */
class Dogs implements TextEmbedder {
  readonly id: string
  readonly maxBatch = 16
  readonly texts: string[] = []
  readonly place: NonNullable<TextEmbedder['place']>
  readonly former?: TextEmbedder
  readonly #dimension: number

  constructor(store: VectorStore, { model = 'test/dogs', former, dimension = 3 }: { model?: string; former?: TextEmbedder; dimension?: number } = {}) {
    this.id = `${model}@watched`
    this.place = { store, name: 'watched', model, metric: 'cosine' }
    this.#dimension = dimension
    if (former) this.former = former
  }

  async embed(texts: readonly string[]): Promise<number[][]> {
    this.texts.push(...texts)
    return texts.map((text) => vectorOf(text, this.#dimension))
  }
}

function vectorOf(text: string, dimension = 3): number[] {
  const vector = new Array<number>(dimension).fill(0.01)
  vector[0] = /dog|hound|puppy/i.test(text) ? 1 : 0.02
  vector[1] = /bread|loaf/i.test(text) ? 1 : 0.02
  return vector
}

interface World {
  store: LibSQLStore
  recall: RecallIndex
}

async function openStore(options: ConstructorParameters<typeof LibSQLStore>[0] = { url: ':memory:' }): Promise<World> {
  const store = new LibSQLStore(options)
  open.push(store)
  const recall = await store.getStore('recall')
  if (!recall) throw new Error('no recall')
  return { store, recall }
}

async function say({ store }: World, thread: string, texts: Record<string, string>): Promise<void> {
  const [resourceId = '', threadId = ''] = thread.split('/')
  await store.createThread({ id: threadId, resourceId, now: 1 })
  const messages = Object.entries(texts).map(([id, text], at): Message => ({
    id, role: 'user', createdAt: new Date(1_700_000_000_000 + at), content: { format: 2, parts: [{ type: 'text', text }] },
  }))
  await store.saveMessages([{ scope: { threadId, resourceId }, messages }])
}

async function settled({ recall }: World): Promise<void> {
  await expect.poll(async () => {
    const { pending, rebuilding, embedders } = await recall.status()
    const left = embedders.reduce((sum, { pending: waiting, removing = 0 }) => sum + waiting + removing, 0)
    return pending + left + (rebuilding || embedders.length === 0 ? 1 : 0)
  }, { timeout: 10_000 }).toBe(0)
}

const never = () => new Promise<never>(() => {})
const fails = (message = 'the store is away') => () => Promise.reject(new Error(message))

async function found({ recall }: World, text: string, more: object = {}) {
  const hits = await recall.search({ resourceId: 'ada', text, limit: 3, ...more })
  return { ids: hits.map(({ messageId }) => messageId), meaning: hits[0]?.reasons.meaning ?? 0, reason: hits.incompleteReason, incomplete: hits.incomplete }
}

describe('recall with a vector store', () => {
  it('[K4.6] finds by meaning what the vector store returns, and asks it only for vectors of the resource', async () => {
    const [world, vectors] = [await openStore(), new Watched()]
    await say(world, 'ada/t', { hound: 'Our hound sleeps all day.', loaf: 'The loaf is in the oven.' })
    await say(world, 'bob/u', { other: 'My hound is older.' })
    world.recall.embedWith(new Dogs(vectors))
    await settled(world)
    expect(await vectors.messages()).toEqual(['ada/t/hound', 'ada/t/loaf', 'bob/u/other'])
    expect(vectors.of('createIndex')).toEqual([{ indexName: 'heed_recall_3', dimension: 3, metric: 'cosine' }])
    expect(await found(world, 'a puppy')).toMatchObject({ ids: ['hound', 'loaf'], meaning: 1, incomplete: undefined })
    await found(world, 'a puppy', { threadId: 't' })
    const [everywhere, inThread] = vectors.of('query') as Array<{ filter: object }>
    expect(everywhere).toMatchObject({ indexName: 'heed_recall_3', filter: { resource_id: 'ada', heed_index: expect.any(String) } })
    expect(inThread?.filter).toEqual({ ...everywhere?.filter, thread_id: 't' })
  })

  it('[K4.6] discards what a vector store returns of other resources, or of messages that are not indexed', async () => {
    const [world, vectors] = [await openStore(), new Watched()]
    await say(world, 'ada/t', { hound: 'Our hound sleeps all day.' })
    await say(world, 'bob/u', { other: 'My hound is older.' })
    world.recall.embedWith(new Dogs(vectors))
    await settled(world)
    // A store that ignores filters, and forges what it cannot know.
    vectors.faults.set('query', async () => {
      const all = await vectors.inner.query({ indexName: 'heed_recall_3', queryVector: vectorOf('dog'), topK: 100 })
      const forged = all.map((match) => ({ ...match, metadata: { ...match.metadata, resource_id: 'ada' } }))
      return [{ id: 'none', score: 1 }, ...forged, { id: '00000000-0000-4000-8000-000000000000', score: 0.1, metadata: {} }]
    })
    expect((await found(world, 'a puppy')).ids).toEqual(['hound'])
    expect((await world.recall.search({ resourceId: 'eve', text: 'a puppy', limit: 9 })).length).toBe(0)
  })

  it('[K4.6] reads scores as similarities or as distances, by their order', async () => {
    const [world, vectors] = [await openStore(), new Watched()]
    await say(world, 'ada/t', { loaf: 'The loaf is in the oven.', hound: 'Our hound sleeps all day.' })
    world.recall.embedWith(new Dogs(vectors))
    await settled(world)
    const similar = await found(world, 'a puppy')
    vectors.faults.set('query', async () => {
      const all = await vectors.inner.query({ indexName: 'heed_recall_3', queryVector: vectorOf('dog'), topK: 100 })
      return all.map((match) => ({ ...match, score: 1 - match.score }))
    })
    expect(await found(world, 'a puppy')).toEqual(similar)
    expect(similar.ids[0]).toBe('hound')
  })
})

describe('what leaves the messages leaves the vector store', () => {
  it('[K4.7] deleted and changed messages, deleted threads, and threads of another resource', async () => {
    const [world, vectors] = [await openStore(), new Watched()]
    await say(world, 'ada/t', { one: 'A dog.', two: 'A loaf.', three: 'A puppy.' })
    await say(world, 'ada/u', { four: 'A hound.' })
    await say(world, 'ada/v', { five: 'Some bread.' })
    const embedder = new Dogs(vectors)
    world.recall.embedWith(embedder)
    await settled(world)
    expect(await vectors.messages()).toHaveLength(5)
    await world.store.deleteMessages({ threadId: 't' }, ['one'])
    await world.store.updateMessages([{ scope: { threadId: 't' }, patches: [{ id: 'two', content: { parts: [{ type: 'text', text: 'A cake.' }] } }] }])
    await world.store.deleteThread({ threadId: 'u' })
    await world.store.transferThread({ threadId: 'v' }, 'bob')
    await expect.poll(() => vectors.messages()).toEqual(['ada/t/three', 'ada/t/two', 'bob/v/five'])
    await settled(world)
    const { ids, reason } = await found(world, 'a loaf of bread')
    expect({ ids, reason }).toEqual({ ids: expect.not.arrayContaining(['five', 'one', 'four']), reason: undefined })
    const { count } = await vectors.inner.describeIndex({ indexName: 'heed_recall_3' })
    expect(count).toBe(3)
  })

  it('[K4.7] a store that fails delays it, also beyond a restart, and what was deleted is not found meanwhile', async () => {
    const [url, vectors] = [newUrl(), new Watched()]
    const first = await openStore({ url })
    await say(first, 'ada/t', { one: 'A dog.', two: 'A puppy.' })
    first.recall.embedWith(new Dogs(vectors))
    await settled(first)
    vectors.faults.set('deleteVectors', fails())
    await first.store.deleteMessages({ threadId: 't' }, ['one'])
    await expect.poll(async () => (await first.recall.status()).embedders[0])
      .toMatchObject({ removing: 1, vectorStore: 'watched', error: expect.stringContaining('the store is away') })
    expect(await vectors.messages()).toEqual(['ada/t/one', 'ada/t/two'])
    expect((await found(first, 'a hound')).ids).toEqual(['two'])
    await first.store.close()
    vectors.faults.clear()
    const second = await openStore({ url })
    second.recall.embedWith(new Dogs(vectors))
    await settled(second)
    expect(await vectors.messages()).toEqual(['ada/t/two'])
  })

  it('[K4.7] a vector that arrives after its message was changed is deleted there', async () => {
    const [world, vectors] = [await openStore(), new Watched()]
    await say(world, 'ada/t', { one: 'A dog.' })
    const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>()
    const { promise: goOn, resolve: release } = Promise.withResolvers<void>()
    vectors.faults.set('upsert', async () => {
      arrive()
      await goOn
      vectors.faults.delete('upsert')
      return vectors.inner.upsert(vectors.of('upsert')[0] as Parameters<LibSQLVector['upsert']>[0])
    })
    world.recall.embedWith(new Dogs(vectors))
    await arrived
    await world.store.deleteMessages({ threadId: 't' }, ['one'])
    await expect.poll(async () => (await world.recall.status()).pending).toBe(0)
    release()
    await expect.poll(() => vectors.messages()).toEqual([])
    await settled(world)
  })

  it('[K4.7] what a lost index left in the store is deleted before new vectors are stored', async () => {
    const [url, vectors] = [newUrl(), new Watched()]
    const first = await openStore({ url })
    await say(first, 'ada/t', { one: 'A dog.', two: 'A puppy.' })
    first.recall.embedWith(new Dogs(vectors))
    await settled(first)
    await first.store.close()
    for (const name of readdirSync(folder)) if (name.includes('-recall')) rmSync(join(folder, name), { recursive: true })
    const second = await openStore({ url })
    await second.store.deleteMessages({ threadId: 't' }, ['one'])
    // Not every store deletes by a filter.
    const remove = vectors.deleteVectors
    vectors.deleteVectors = (args) => (args.filter ? Promise.reject(new Error('no filters')) : remove(args))
    second.recall.embedWith(new Dogs(vectors))
    await settled(second)
    expect(await vectors.messages()).toEqual(['ada/t/two'])
  })
})

describe('a vector store that fails', () => {
  it('[K4.8] leaves the words: the search says that it is incomplete and why, and the status has the error', async () => {
    const [world, vectors] = [await openStore(), new Watched()]
    await say(world, 'ada/t', { hound: 'Our hound sleeps all day.', loaf: 'The loaf is in the oven.' })
    world.recall.embedWith(new Dogs(vectors))
    await settled(world)
    vectors.faults.set('query', fails('quota exceeded'))
    expect(await found(world, 'a puppy in the oven')).toMatchObject({ ids: expect.arrayContaining(['loaf']), meaning: 0, incomplete: true, reason: 'vectors' })
    expect((await world.recall.status()).embedders[0]?.error).toContain(`Vector store 'watched' failed: quota exceeded`)
    vectors.faults.set('query', async () => 'nonsense')
    expect((await found(world, 'oven')).reason).toBe('vectors')
    vectors.faults.clear()
    expect(await found(world, 'a puppy')).toMatchObject({ ids: ['hound', 'loaf'], incomplete: undefined })
  })

  it('[K4.8] delays a search for three seconds at most, and for half a second in the minute after that', async () => {
    const clock = virtualClock()
    const [world, vectors] = [await openStore({ url: ':memory:', clock }), new Watched()]
    await say(world, 'ada/t', { hound: 'Our hound sleeps all day.' })
    world.recall.embedWith(new Dogs(vectors))
    await clock.advance(1)
    await settled(world)
    vectors.faults.set('query', never)
    for (const ms of [3_000, 500, 500]) {
      const searching = found(world, 'a hound')
      let done = false
      const ended = searching.finally(() => (done = true))
      await expect.poll(() => vectors.of('query').length).toBeGreaterThan(0)
      vectors.calls.length = 0
      await clock.advance(ms - 1)
      expect(done).toBe(false)
      await clock.advance(1)
      await ended
      expect(await searching).toMatchObject({ ids: ['hound'], reason: 'vectors' })
    }
  })

  it('[K4.8] gets its vectors when it works again, and no text is embedded twice for it', async () => {
    const clock = virtualClock()
    const [world, vectors] = [await openStore({ url: ':memory:', clock }), new Watched()]
    vectors.faults.set('upsert', fails())
    await say(world, 'ada/t', { hound: 'Our hound sleeps all day.', loaf: 'The loaf is in the oven.' })
    const embedder = new Dogs(vectors)
    world.recall.embedWith(embedder)
    await clock.advance(10_000)
    await expect.poll(async () => (await world.recall.status()).embedders[0]).toMatchObject({ pending: 2, complete: false, error: expect.stringContaining('the store is away') })
    expect((await found(world, 'the oven')).ids[0]).toBe('loaf')
    vectors.faults.clear()
    await clock.advance(120_000)
    await settled(world)
    expect(await vectors.messages()).toEqual(['ada/t/hound', 'ada/t/loaf'])
    expect(embedder.texts.filter((text) => text.startsWith('Our hound'))).toHaveLength(1)
  })
})

describe('vectors that move', () => {
  it('[K4.9] clones are stored there without the embedder, each with its own thread', async () => {
    const [world, vectors] = [await openStore(), new Watched()]
    await say(world, 'ada/t', { one: 'A dog.', two: 'A loaf.' })
    const embedder = new Dogs(vectors)
    world.recall.embedWith(embedder)
    await settled(world)
    await world.store.cloneThread({ threadId: 't' }, { id: 'copy', resourceId: 'bob', metadata: {}, now: 2 })
    await expect.poll(async () => (await vectors.messages()).filter((one) => one.startsWith('bob/copy/'))).toHaveLength(2)
    await settled(world)
    expect(embedder.texts).toEqual(['A dog.', 'A loaf.'])
    const hits = await world.recall.search({ resourceId: 'bob', text: 'a puppy', limit: 1 })
    expect(hits[0]).toMatchObject({ threadId: 'copy', text: 'A dog.' })
  })

  it('[K4.9] vectors beside the messages serve until the store has them all, and are stored there without the embedder', async () => {
    const [world, vectors] = [await openStore(), new Watched()]
    await say(world, 'ada/t', { one: 'A dog.', two: 'A loaf.' })
    const asked: string[] = []
    const beside: TextEmbedder = {
      id: 'test/dogs', maxBatch: 16, embed: async (texts) => (asked.push(...texts), texts.map((text) => vectorOf(text))),
    }
    world.recall.embedWith(beside)
    await settled(world)
    vectors.faults.set('upsert', fails())
    const embedder = new Dogs(vectors, { former: beside })
    world.recall.embedWith(embedder)
    await expect.poll(async () => (await world.recall.status()).embedders).toHaveLength(2)
    expect(await found(world, 'a puppy', { embedder })).toMatchObject({ ids: ['one', 'two'], meaning: 1, incomplete: undefined })
    vectors.faults.clear()
    await expect.poll(() => vectors.messages(), { timeout: 10_000 }).toEqual(['ada/t/one', 'ada/t/two'])
    expect(embedder.texts).toEqual(['a puppy'])
    expect(asked.filter((text) => text === 'A dog.')).toHaveLength(1)
  })

  it('[K4.9] another model has its own vectors in the store, in an index of its own dimension', async () => {
    const [world, vectors] = [await openStore(), new Watched()]
    await say(world, 'ada/t', { one: 'A dog.', two: 'A loaf.' })
    const small = new Dogs(vectors)
    world.recall.embedWith(small)
    await settled(world)
    const large = new Dogs(vectors, { model: 'test/large', former: small, dimension: 5 })
    world.recall.embedWith(large)
    await settled(world)
    expect(await vectors.inner.listIndexes()).toEqual(['heed_recall_3', 'heed_recall_5'])
    vectors.calls.length = 0
    expect((await found(world, 'a puppy', { embedder: large })).ids).toEqual(['one', 'two'])
    expect(vectors.of('query')).toMatchObject([{ indexName: 'heed_recall_5' }])
    await world.store.deleteMessages({ threadId: 't' }, ['one'])
    await expect.poll(() => vectors.messages()).toEqual(['ada/t/two', 'ada/t/two'])
  })
})
