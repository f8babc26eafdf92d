import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { VectorMatch, VectorStore } from '../recall/vector-store.ts'

/** Gives the suite a vector store without indexes of its own names. The harness closes it after the case. */
export interface VectorHarness {
  store(): Promise<VectorStore>
  /** Resolves when what was written is found. For stores that answer before that is so. */
  settled?(): Promise<void>
}

/** One guarantee as a test. The ids in brackets are those of PROTOCOL.md. */
export interface VectorCase {
  name: string
  run(harness: VectorHarness): Promise<void>
}

/** An index of a store, whose calls the cases make. */
class Fixture {
  readonly store: VectorStore
  readonly indexName: string
  readonly #settled: () => Promise<void>

  constructor(store: VectorStore, { settled }: VectorHarness, name = 'case') {
    this.store = store
    // A name of its own: a store in the cloud may be used by two runs of the suite.
    this.indexName = ['heed', name, randomUUID().slice(0, 8)].join(store.indexSeparator ?? '_')
    this.#settled = settled ?? (() => Promise.resolve())
  }

  static async open(harness: VectorHarness, dimension = 3): Promise<Fixture> {
    const fixture = new Fixture(await harness.store(), harness)
    await fixture.store.createIndex({ indexName: fixture.indexName, dimension, metric: 'cosine' })
    return fixture
  }

  async put(vectors: ReadonlyArray<{ id: string; vector: number[]; metadata?: Record<string, unknown> }>): Promise<void> {
    await this.store.upsert({
      indexName: this.indexName,
      vectors: vectors.map(({ vector }) => vector),
      metadata: vectors.map(({ metadata = { resource_id: 'ada' } }) => metadata),
      ids: vectors.map(({ id }) => id),
    })
    await this.#settled()
  }

  async remove(...ids: string[]): Promise<void> {
    const { store, indexName } = this
    if (store.deleteVectors) await store.deleteVectors({ indexName, ids })
    else for (const id of ids) await store.deleteVector({ indexName, id })
    await this.#settled()
  }

  query(queryVector: number[], more: { topK?: number; filter?: Record<string, string> } = {}): Promise<VectorMatch[]> {
    return this.store.query({ indexName: this.indexName, queryVector, topK: 10, ...more })
  }

  async ids(...args: Parameters<Fixture['query']>): Promise<string[]> {
    return (await this.query(...args)).map(({ id }) => id)
  }

  async close(): Promise<void> {
    await this.store.deleteIndex({ indexName: this.indexName })
  }
}

/** Ids as recall gives them: some stores take no others. */
const [a, b, c] = ['a', 'b', 'c'].map((letter) => `00000000-0000-4000-8000-00000000000${letter}`) as [string, string, string]

function vectorCase(name: string, act: (fixture: Fixture) => Promise<void>): VectorCase {
  return {
    name,
    async run(harness) {
      const fixture = await Fixture.open(harness)
      try {
        await act(fixture)
      } finally {
        await fixture.close()
      }
    },
  }
}

/**
 * What recall relies on in a vector store, as cases for any test runner:
 *
 *     for (const { name, run } of vectorConformance) it(name, () => run({ store: async () => new MyVectorStore() }))
 */
export const vectorConformance: VectorCase[] = [
  vectorCase('[K4.5] returns the nearest vectors, nearest first, at most topK of them', async (fixture) => {
    await fixture.put([{ id: a, vector: [1, 0, 0] }, { id: b, vector: [0, 1, 0] }, { id: c, vector: [0.8, 0.6, 0] }])
    assert.deepEqual(await fixture.ids([1, 0.1, 0]), [a, c, b])
    assert.deepEqual(await fixture.ids([1, 0.1, 0], { topK: 2 }), [a, c])
  }),
  vectorCase('[K4.5] orders scores: similarities fall or distances grow, and tell a near vector from a far one', async (fixture) => {
    await fixture.put([{ id: a, vector: [1, 0, 0] }, { id: b, vector: [0, 1, 0] }, { id: c, vector: [0.8, 0.6, 0] }])
    const scores = (await fixture.query([1, 0, 0])).map(({ score }) => score)
    assert.equal(scores.length, 3)
    assert.ok(scores.every(Number.isFinite))
    const sorted = scores.toSorted((x, y) => x - y)
    assert.deepEqual(scores, (scores[0] ?? 0) > (scores[2] ?? 0) ? sorted.toReversed() : sorted)
    const [near = 0, , far = 0] = (scores[0] ?? 0) > (scores[2] ?? 0) ? scores : scores.map((score) => 1 - score)
    assert.ok(Math.abs(near - 1) < 0.01 && Math.abs(far) < 0.01, `the cosines 1 and 0 are returned as ${near} and ${far}`)
  }),
  vectorCase('[K4.5] replaces a vector and its metadata when its id is stored again', async (fixture) => {
    await fixture.put([{ id: a, vector: [1, 0, 0] }, { id: b, vector: [0, 1, 0] }])
    await fixture.put([{ id: a, vector: [0, 0, 1], metadata: { resource_id: 'bob' } }])
    assert.deepEqual(await fixture.ids([0, 0, 1], { topK: 1 }), [a])
    assert.deepEqual(await fixture.ids([0, 0, 1], { filter: { resource_id: 'ada' } }), [b])
    assert.equal((await fixture.store.describeIndex({ indexName: fixture.indexName })).count, 2)
  }),
  vectorCase('[K4.5] returns only what a filter matches, however near the others are', async (fixture) => {
    const others = Array.from({ length: 40 }, (_, at) => ({
      id: randomUUID(), vector: [1, at / 1_000, 0], metadata: { heed_index: 'x', resource_id: 'bob', thread_id: 't' },
    }))
    await fixture.put([
      ...others,
      { id: a, vector: [0, 0, 1], metadata: { heed_index: 'x', resource_id: 'ada', thread_id: 't' } },
      { id: b, vector: [0, 0.1, 1], metadata: { heed_index: 'x', resource_id: 'ada', thread_id: 'u' } },
      { id: c, vector: [0, 0.2, 1], metadata: { heed_index: 'y', resource_id: 'ada', thread_id: 't' } },
    ])
    assert.deepEqual(await fixture.ids([1, 0, 0], { topK: 5, filter: { resource_id: 'nobody' } }), [])
    assert.deepEqual((await fixture.ids([0, 0, 1], { topK: 5, filter: { resource_id: 'ada' } })), [a, b, c])
    assert.deepEqual((await fixture.ids([1, 0, 0], { topK: 5, filter: { heed_index: 'x', resource_id: 'ada' } })).toSorted(), [a, b])
    assert.deepEqual(await fixture.ids([0, 0, 1], { filter: { heed_index: 'x', resource_id: 'ada', thread_id: 't' } }), [a])
  }),
  vectorCase('[K4.5] compares values of a filter as they are: quotes, wildcards and other scripts', async (fixture) => {
    const owners = [`o'brien`, `a" OR "1"="1`, `%`, `_`, '株式会社', `ada' OR '1'='1`, 'x\\y', 'line\nbreak=1']
    await fixture.put(owners.map((owner, at) => ({ id: randomUUID(), vector: [1, at, 0], metadata: { resource_id: owner } })))
    for (const owner of owners) {
      const found = await fixture.query([1, 0, 0], { filter: { resource_id: owner } })
      assert.deepEqual(found.map(({ metadata }) => metadata?.resource_id), [owner])
    }
  }),
  vectorCase('[K4.5] returns metadata as it was stored', async (fixture) => {
    const ids = { heed_index: 'x', resource_id: 'ada', thread_id: 't-1', message_id: 'm' }
    const metadata = { ...ids, role: 'user', created_at: '2026-01-01T00:00:00.000Z' }
    await fixture.put([{ id: a, vector: [1, 0, 0], metadata }])
    const [found] = await fixture.query([1, 0, 0])
    assert.deepEqual({ ...found?.metadata }, metadata)
  }),
  vectorCase('[K4.5] deletes vectors by their ids, and ignores ids that it does not have', async (fixture) => {
    await fixture.put([{ id: a, vector: [1, 0, 0] }, { id: b, vector: [0, 1, 0] }, { id: c, vector: [0, 0, 1] }])
    await fixture.remove(a, randomUUID())
    assert.deepEqual((await fixture.ids([1, 1, 1])).toSorted(), [b, c])
    await fixture.store.deleteVector({ indexName: fixture.indexName, id: b })
    await fixture.remove(randomUUID())
    assert.deepEqual(await fixture.ids([1, 1, 1]), [c])
  }),
  vectorCase('[K4.5] stores a hundred vectors at once, and returns them all', async (fixture) => {
    const many = Array.from({ length: 100 }, (_, at) => ({ id: randomUUID(), vector: [Math.cos(at / 70), Math.sin(at / 70), 0] }))
    await fixture.put(many)
    assert.deepEqual(await fixture.ids([1, 0, 0], { topK: 100 }), many.map(({ id }) => id))
  }),
  {
    name: '[K4.5] creates an index once, and lists and describes it until it is deleted',
    async run(harness) {
      const fixture = await Fixture.open(harness, 4)
      const { store, indexName } = fixture
      await store.createIndex({ indexName, dimension: 4, metric: 'cosine' })
      assert.ok((await store.listIndexes()).includes(indexName))
      assert.equal((await store.describeIndex({ indexName })).dimension, 4)
      await fixture.put([{ id: a, vector: [1, 0, 0, 0] }])
      await store.createIndex({ indexName, dimension: 4, metric: 'cosine' })
      assert.deepEqual(await fixture.ids([1, 0, 0, 0]), [a])
      await fixture.close()
      assert.ok(!(await store.listIndexes()).includes(indexName))
      await store.createIndex({ indexName, dimension: 4, metric: 'cosine' })
      assert.deepEqual(await fixture.ids([1, 0, 0, 0]), [])
      await fixture.close()
    },
  },
  {
    name: '[K4.5] keeps indexes of different dimensions apart',
    async run(harness) {
      const store = await harness.store()
      const [small, large] = [new Fixture(store, harness, 'small'), new Fixture(store, harness, 'large')]
      await store.createIndex({ indexName: small.indexName, dimension: 2, metric: 'cosine' })
      await store.createIndex({ indexName: large.indexName, dimension: 3, metric: 'cosine' })
      await small.put([{ id: a, vector: [1, 0] }])
      await large.put([{ id: b, vector: [1, 0, 0] }])
      assert.deepEqual(await small.ids([1, 0]), [a])
      assert.deepEqual(await large.ids([1, 0, 0]), [b])
      await large.remove(a)
      assert.deepEqual(await small.ids([1, 0]), [a])
      await small.close()
      await large.close()
    },
  },
]
