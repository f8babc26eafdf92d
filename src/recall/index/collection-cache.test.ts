import { DatabaseSync } from 'node:sqlite'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { maxPassages } from '../text/passages.ts'
import { quantize } from '../rank/quantized-vectors.ts'
import { CollectionCache } from './collection-cache.ts'
import { besideMessages, type Databases } from './databases.ts'
import { applyMoves, movesAfter, ResourceCollection } from './resource-collection.ts'
import { ResourceVectors } from './resource-vectors.ts'

const resource = 1
const embedder = { key: 7, dimension: 2 }

interface Change {
  message: number
  /** How many passages it has then. */
  passages: number
  thread: number
  words: number
  /** Of its passages, those that have vectors. */
  embedded: boolean
}

const change: fc.Arbitrary<Change> = fc.record({
  message: fc.integer({ min: 1, max: 30 }),
  passages: fc.nat(3),
  thread: fc.nat(3),
  words: fc.integer({ min: 1, max: 50 }),
  embedded: fc.boolean(),
})

function write({ index, write: transaction }: Databases, collections: CollectionCache, changes: readonly Change[]): void {
  transaction(() => {
    for (const { message, passages, thread, words, embedded } of changes) {
      const first = message * maxPassages
      index.run('DELETE FROM passages WHERE key >= ? AND key < ?', first, first + maxPassages)
      index.run('DELETE FROM vectors WHERE passage >= ? AND passage < ?', first, first + maxPassages)
      for (let passage = first; passage < first + passages; passage += 1) {
        index.run(
          'INSERT INTO passages (key, resource, thread, words, form, role, created_at, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
          passage,
          resource,
          thread,
          words,
          words % 2,
          words % 4,
          words,
          '',
        )
        const vector = quantize([words, passage - first + 1])
        if (embedded)
          index.run(
            'INSERT INTO vectors (embedder, resource, passage, vector) VALUES (?, ?, ?, ?)',
            embedder.key,
            resource,
            passage,
            vector,
          )
      }
    }
    collections.logChanges(new Map([[resource, new Set(changes.map(({ message }) => message))]]))
  })
}

function shown(collection: ResourceCollection, vectors: ResourceVectors) {
  const { count, threads, threadKeys, lengths } = collection
  const lists = [
    collection.keys,
    collection.length,
    collection.thread,
    collection.previous,
    collection.next,
    collection.form,
    collection.role,
    collection.createdAt,
  ]
  const { cosines } = vectors.compare(Float32Array.of(1, 0.5))
  return {
    count,
    threads,
    threadKeys,
    lengths: [...lengths],
    lists: lists.map((list) => Array.from(list.subarray(0, count))),
    cosines: [...cosines],
  }
}

function opened(): Databases {
  const databases = besideMessages(new DatabaseSync(':memory:'))
  databases.index.run('INSERT INTO resources (key, id) VALUES (?, ?)', resource, 'r')
  return databases
}

describe('cached collections', () => {
  it('[K1.11] equal freshly read ones after any changes, of this process or of another', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(change, { minLength: 1, maxLength: 6 }), { maxLength: 12 }),
        fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }),
        (steps, looks) => {
          const databases = opened()
          const [writer, reader] = [new CollectionCache(databases), new CollectionCache(databases)]
          const before = [writer, reader].map((collections) => collections.collectionOf(resource))
          for (const [step, changes] of steps.entries()) {
            write(databases, writer, [...new Map(changes.map((one) => [one.message, one])).values()])
            for (const collections of looks[step] ? [writer, reader] : [writer]) {
              const fresh = ResourceCollection.read(databases.index, resource)
              expect(shown(collections.collectionOf(resource), collections.vectorsOf(resource, embedder))).toEqual(
                shown(fresh, ResourceVectors.read(databases.index, fresh, embedder, { bits: 8, most: Number.POSITIVE_INFINITY })),
              )
            }
          }
          // None of them was read again.
          for (const [n, collections] of [writer, reader].entries()) expect(collections.collectionOf(resource)).toBe(before[n])
          databases.close()
        },
      ),
      { numRuns: 200 },
    )
  })

  it('[K1.11] are read again when the change log does not reach back, or the index is another one', () => {
    const databases = opened()
    const collections = new CollectionCache(databases)
    const first = collections.collectionOf(resource)
    const one = { message: 1, passages: 1, thread: 1, words: 3, embedded: true }
    write(databases, collections, [one])
    databases.index.run('DELETE FROM touched')
    write(databases, collections, [{ ...one, message: 2 }])
    const second = collections.collectionOf(resource)
    expect(second).not.toBe(first)
    expect(second.count).toBe(2)
    databases.index.run('DELETE FROM passages')
    databases.index.run('DELETE FROM resources')
    databases.index.run('INSERT INTO resources (key, id) VALUES (?, ?)', resource, 'r')
    expect(collections.collectionOf(resource).count).toBe(0)
    databases.close()
  })
})

describe('the memory of a resource', () => {
  const count = 5_000
  const wide = { key: 7, dimension: 384 }
  const databases = opened()
  let seed = 3
  const chance = () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647
  const vectors = Array.from({ length: count }, () => Float32Array.from({ length: wide.dimension }, () => chance() - 0.5))
  databases.write(() => {
    for (const [at, vector] of vectors.entries()) {
      databases.index.run(
        `INSERT INTO passages (key, resource, thread, words, form, role, created_at, hash) VALUES (?, ?, 1, 9, 0, 0, ?, '')`, (at + 1) * maxPassages, resource, at,
      )
      databases.index.run(
        'INSERT INTO vectors (embedder, resource, passage, vector) VALUES (?, ?, ?, ?)', wide.key, resource, (at + 1) * maxPassages, quantize(vector),
      )
    }
  })
  const best = (cosines: Float32Array) => [...cosines.keys()].toSorted((a, b) => (cosines[b] ?? 0) - (cosines[a] ?? 0)).slice(0, 10)
  const all = new CollectionCache(databases)

  it('[K1.28] without room for all numbers, vectors are coarse, and the nearest have the same cosines', () => {
    const half = new CollectionCache(databases, 2_000_000)
    const coarse = half.vectorsOf(resource, wide)
    expect([coarse.isCoarse, all.vectorsOf(resource, wide).isCoarse]).toEqual([true, false])
    expect(coarse.bytes + half.collectionOf(resource).bytes).toBeLessThanOrEqual(2_000_000)
    for (const [at, question] of vectors.slice(0, 20).entries()) {
      const asked = question.map((number, n) => number + (vectors[at + 100]?.[n] ?? 0))
      const [exact, found] = [all, half].map((collections) => collections.cosinesOf(resource, wide, asked))
      if (!exact || !found) throw new Error('no cosines')
      expect(best(found)).toEqual(best(exact))
      for (const place of best(exact)) expect(found[place]).toBe(exact[place])
    }
  })

  it('[K1.28] with less, those of the latest passages are compared, and later ones take the place of the oldest', () => {
    const little = new CollectionCache(databases, 700_000)
    const [asked, old, late] = [vectors[0], 0, count - 1]
    if (!asked) throw new Error('no vector')
    const cosines = little.cosinesOf(resource, wide, vectors[late] ?? asked)
    expect(cosines[late]).toBeCloseTo(1, 2)
    expect(little.cosinesOf(resource, wide, asked)[old]).toBeLessThan(0.5)
    const { bytes } = little.vectorsOf(resource, wide)
    expect(bytes + little.collectionOf(resource).bytes).toBeLessThanOrEqual(700_000)
    const key = (count + 1) * maxPassages
    databases.write(() => {
      databases.index.run(
        `INSERT INTO passages (key, resource, thread, words, form, role, created_at, hash) VALUES (?, ?, 1, 9, 0, 0, 1, '')`, key, resource,
      )
      databases.index.run('INSERT INTO vectors (embedder, resource, passage, vector) VALUES (?, ?, ?, ?)', wide.key, resource, key, quantize(asked))
      little.logChanges(new Map([[resource, new Set([count + 1])]]))
    })
    expect(little.cosinesOf(resource, wide, asked)[count]).toBeCloseTo(1, 2)
    expect(little.vectorsOf(resource, wide).bytes).toBe(bytes)
    expect(new CollectionCache(databases, 0).cosinesOf(resource, wide, asked).every((cosine) => cosine === 0)).toBe(true)
  })
})

it('moves the remaining items before they are overwritten', () => {
  const splice = fc.record({ skip: fc.nat(5), removed: fc.nat(3), added: fc.nat(3) })
  fc.assert(fc.property(fc.array(splice, { maxLength: 8 }), fc.nat(5), (given, rest) => {
    const wanted: number[] = []
    let count = 0
    const splices = given.map(({ skip, removed, added }) => {
      for (let n = 0; n < skip; n += 1) wanted.push(count + n)
      const at = count + skip
      for (let n = 0; n < added; n += 1) wanted.push(-1)
      count = at + removed
      return { at, removed, added }
    })
    for (let n = 0; n < rest; n += 1) wanted.push(count + n)
    count += rest
    const list = new Int32Array(Math.max(count, wanted.length) * 2)
    for (let at = 0; at < count; at += 1) list.fill(at, at * 2, at * 2 + 2)
    applyMoves(list, movesAfter(splices, count), 2)
    for (const [at, was] of wanted.entries()) if (was >= 0) expect([list[at * 2], list[at * 2 + 1]]).toEqual([was, was])
  }))
})
