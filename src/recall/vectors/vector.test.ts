import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { LibSQLVector } from '../../store/sqlite/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-vector-'))
afterAll(() => rmSync(folder, { recursive: true }))
let files = 0

describe.each(['file', 'memory'] as const)('vectors in a %s', (kind) => {
  const place = () => (kind === 'file' ? `file:${join(folder, `${files++}.db`)}` : ':memory:')
  const indexName = 'notes'

  it('are stored, found by nearness and filter, updated and deleted', async () => {
    const vectors = new LibSQLVector({ id: 'v', url: place() })
    await vectors.createIndex({ indexName, dimension: 2 })
    await vectors.createIndex({ indexName, dimension: 2 })
    await vectors.upsert({
      indexName,
      ids: ['a', 'b', 'c'],
      vectors: [
        [1, 0],
        [0, 1],
        [1, 1],
      ],
      metadata: [{ n: 1 }, { n: 2 }, { n: 3, tag: ['x'] }],
    })
    expect(await vectors.listIndexes()).toEqual(['notes'])
    expect(await vectors.describeIndex({ indexName })).toEqual({ dimension: 2, metric: 'cosine', count: 3 })
    const ids = async (more: object = {}) =>
      (await vectors.query({ indexName, queryVector: [1, 0.1], topK: 2, ...more })).map(({ id }) => id)
    expect(await ids()).toEqual(['a', 'c'])
    expect(await ids({ filter: { n: { $gt: 1 } } })).toEqual(['c', 'b'])
    expect(await vectors.query({ indexName, queryVector: [0, 1], topK: 1, includeVector: true })).toEqual([
      { id: 'b', score: 1, metadata: { n: 2 }, vector: [0, 1] },
    ])
    expect(await vectors.updateVector({ indexName, id: 'b', update: { vector: [1, 0], metadata: { n: 9 } } })).toBe(1)
    expect(await ids({ filter: { n: 9 } })).toEqual(['b'])
    expect(await vectors.deleteVector({ indexName, id: 'a' })).toBe(true)
    expect(await vectors.deleteVectors({ indexName, filter: { tag: 'x' } })).toBe(1)
    expect(await vectors.describeIndex({ indexName })).toMatchObject({ count: 1 })
    await vectors.deleteIndex({ indexName })
    expect(await vectors.listIndexes()).toEqual([])
    await vectors.close()
  })

  it('[K4.2] are queried with options that are honored', async () => {
    const vectors = new LibSQLVector({ url: place() })
    await vectors.createIndex({ indexName, dimension: 2, indexConfig: { type: 'flat' } })
    await vectors.upsert({
      indexName,
      ids: ['a1', 'a2', 'b1'],
      vectors: [
        [1, 0],
        [0, 1],
        [1, 1],
      ],
      metadata: [{ of: 'a' }, { of: 'a' }, { of: 'b' }],
    })
    expect((await vectors.query({ indexName, queryVector: [1, 0], minScore: 0.5 })).map(({ id }) => id)).toEqual(['a1', 'b1'])
    await vectors.upsert({ indexName, ids: ['a3'], vectors: [[0, 1]], metadata: [{ of: 'a' }], deleteFilter: { of: 'a' } })
    expect((await vectors.query({ indexName, queryVector: [0, 1] })).map(({ id }) => id)).toEqual(['a3', 'b1'])
    await vectors.close()
  })

  it('[K4.2] are rejected with the name of an invalid or unsupported option, and nothing is written', async () => {
    const vectors = new LibSQLVector({ url: place() })
    await vectors.createIndex({ indexName, dimension: 2 })
    const untyped = vectors as unknown as Record<
      'createIndex' | 'upsert' | 'query' | 'updateVector' | 'deleteVector' | 'deleteVectors',
      (args?: object) => Promise<unknown>
    >
    const bad: ReadonlyArray<[keyof typeof untyped, object | undefined, string]> = [
      ['upsert', { ids: ['', 'a'], vectors: [[1, 0], [0, 1]] }, 'ids'],
      ['upsert', { ids: [1, 2], vectors: [[1, 0], [0, 1]] }, 'ids'],
      ['upsert', { ids: ['a', 'a'], vectors: [[1, 0], [0, 1]] }, 'ids'],
      ['upsert', { ids: 'ab', vectors: [[1, 0], [0, 1]] }, 'ids'],
      ['upsert', { ids: ['a'], vectors: [[1, 0], [0, 1]] }, 'ids'],
      ['upsert', {}, 'vectors'],
      ['upsert', { vectors: [5] }, 'vectors[0]'],
      ['upsert', { vectors: [[1, 0]], metadata: ['text'] }, 'metadata[0]'],
      ['upsert', { vectors: [[1, 0]], sparseVectors: [] }, 'sparseVectors'],
      ['upsert', { vectors: [[1, 0]], deleteFilter: {} }, 'deleteFilter'],
      ['upsert', { vectors: [[1, 0]], metadata: { a: 1 } }, 'metadata'],
      ['upsert', { vectors: [[1, 0]], metadata: null }, 'metadata'],
      ['upsert', { vectors: [[1, 0]], metadata: [] }, 'metadata'],
      ['upsert', { vectors: [[1, 0], [0, 1]], metadata: [{}] }, 'metadata'],
      ['upsert', { vectors: [[1, 0]], metadata: [null] }, 'metadata[0]'],
      ['upsert', { vectors: [[1, 0]], metadata: [new Map([['a', 1]])] }, 'metadata[0]'],
      ['upsert', { vectors: [[1, 0]], metadata: [{ a: 1n }] }, 'metadata[0].a'],
      ['upsert', { vectors: [[1, 0]], metadata: [{ a: [Number.NaN] }] }, 'metadata[0].a[0]'],
      ['upsert', { vectors: [[1, 0]], metadata: [{ a: new Date(Number.NaN) }] }, 'metadata[0].a'],
      ['upsert', { vectors: [[1, 0]], metadata: [{ a: () => 1 }] }, 'metadata[0].a'],
      ['upsert', { vectors: [['1', '2']] }, 'vectors[0]'],
      ['upsert', { vectors: [[null, 1]] }, 'vectors[0]'],
      ['upsert', { vectors: [[1n, 2n]] }, 'vectors[0]'],
      ['upsert', { vectors: [new BigInt64Array(2)] }, 'vectors[0]'],
      ['upsert', { vectors: [[1, 1e300]] }, 'vectors[0]'],
      ['upsert', { vectors: [[1, 0], Object.assign([], { 1: 0 })] }, 'vectors[1]'],
      ['upsert', { vectors: Object.assign([], { 1: [1, 0] }) }, 'vectors[0]'],
      ['query', { queryVector: [1, 0], filter: { a: undefined } }, 'filter.a'],
      ['query', { queryVector: [1, 0], filter: null }, 'filter'],
      ['updateVector', { id: 'a', update: { metadata: new Map() } }, 'update.metadata'],
      ['updateVector', { id: 'a', update: { metadata: null } }, 'update.metadata'],
      ['updateVector', { id: 'a', update: { vector: ['1', 0] } }, 'update.vector'],
      ['createIndex', { indexName: 'j', dimension: 2, indexConfig: [] }, 'indexConfig'],
      ['query', {}, 'queryVector'],
      ['query', { queryVector: '12' }, 'queryVector'],
      ['query', { queryVector: [1, 0], sparseVector: { indices: [1], values: [1] } }, 'sparseVector'],
      ['query', { queryVector: [1, 0], minScore: 'high' }, 'minScore'],
      ['query', { queryVector: [1, 0], topK: 1.5 }, 'topK'],
      ['query', undefined, 'query()'],
      ['updateVector', { id: 'a' }, 'update'],
      ['updateVector', { id: 'a', update: { vectors: [1, 0] } }, 'vectors'],
      ['updateVector', { id: '', update: { vector: [1, 0] } }, 'id'],
      ['updateVector', { update: { vector: [1, 0] } }, 'id'],
      ['deleteVector', {}, 'id'],
      ['deleteVectors', { ids: ['a'], filter: { a: 1 } }, 'id'],
      ['createIndex', { indexName: 'j', dimension: 2, indexConfig: { type: 'hnsw' } }, 'indexConfig.type'],
      ['createIndex', { indexName: 'j', dimension: 2, indexConfig: { hnsw: {} } }, 'hnsw'],
    ]
    for (const [call, args, named] of bad) {
      const error: unknown = await untyped[call](args && { indexName, ...args }).catch((thrown: unknown) => thrown)
      const { code, details } = error as { code?: string; details?: { field?: string; option?: string } }
      expect({
        call,
        args,
        code: ['invalid_argument', 'unsupported_option'].includes(code ?? ''),
        named: details?.field ?? details?.option,
      }).toEqual({ call, args, code: true, named })
    }
    expect(await vectors.describeIndex({ indexName })).toMatchObject({ count: 0 })
    expect(await vectors.listIndexes()).toEqual([indexName])
    await vectors.close()
  })

  it('[K4.2] are neither updated nor deleted by a filter without a condition', async () => {
    const vectors = new LibSQLVector({ url: place() })
    await vectors.createIndex({ indexName, dimension: 2 })
    await vectors.upsert({ indexName, ids: ['a', 'b'], vectors: [[1, 0], [0, 1]], metadata: [{ user: 'ada' }, {}] })
    const before = await vectors.query({ indexName, queryVector: [1, 0], includeVector: true })
    const vague: ReadonlyArray<[object, string]> = [
      [{}, ''],
      [{ user: undefined }, '.user'],
      [{ $and: [] }, '.$and'],
      [{ $and: [{}] }, '.$and[0]'],
      [{ $nor: [] }, '.$nor'],
      [{ $not: { $or: [] } }, '.$not.$or'],
      [{ user: { $ne: undefined } }, '.user.$ne'],
      [{ user: { $nin: [] } }, '.user.$nin'],
      [{ $not: { user: { $in: [] } } }, '.$not.user.$in'],
      [{ $nor: [{ tags: { $all: [] } }] }, '.$nor[0].tags.$all'],
      [new Map(), ''],
      [{ age: { $gte: Number.NaN } }, '.age.$gte'],
    ]
    for (const [given, path] of vague) {
      const filter = given as Record<string, unknown>
      const named = (field: string) => ({ code: 'invalid_argument', details: { field }, message: expect.stringContaining(field) as string })
      await expect(vectors.deleteVectors({ indexName, filter })).rejects.toMatchObject(named(`filter${path}`))
      await expect(vectors.updateVector({ indexName, filter, update: { metadata: {} } })).rejects.toMatchObject(named(`filter${path}`))
      await expect(vectors.upsert({ indexName, vectors: [[1, 0]], deleteFilter: filter })).rejects.toMatchObject(
        named(`deleteFilter${path}`),
      )
    }
    expect(await vectors.query({ indexName, queryVector: [1, 0], includeVector: true })).toEqual(before)
    await vectors.close()
  })

  it('are found by objects whose keys are in any order, and may be lists of 32 or 64 bits', async () => {
    const vectors = new LibSQLVector({ url: place() })
    await vectors.createIndex({ indexName, dimension: 2 })
    const at = new Date('2024-01-01')
    await vectors.upsert({
      indexName,
      ids: ['a', 'b'],
      vectors: [Float32Array.of(1, 0), Float64Array.of(0, 1)],
      metadata: [{ of: { x: 1, y: 2 }, at, left: undefined }, {}],
    })
    expect(await vectors.query({ indexName, queryVector: [1, 0], filter: { of: { y: 2, x: 1 }, at } })).toEqual([
      { id: 'a', score: 1, metadata: { of: { x: 1, y: 2 }, at: at.toISOString() } },
    ])
    await vectors.close()
  })

  it('[K4.1] are rejected for a wrong dimension, an unknown operator or an unknown index, and nothing is written', async () => {
    const vectors = new LibSQLVector({ url: place() })
    await vectors.createIndex({ indexName, dimension: 3 })
    await expect(
      vectors.upsert({
        indexName,
        vectors: [
          [1, 2, 3],
          [1, 2],
        ],
      }),
    ).rejects.toMatchObject({ code: 'invalid_argument', details: { dimension: 3, given: 2 } })
    expect(await vectors.describeIndex({ indexName })).toMatchObject({ count: 0 })
    await expect(vectors.query({ indexName, queryVector: [1] })).rejects.toMatchObject({
      code: 'invalid_argument',
      details: { field: 'vector' },
    })
    await expect(vectors.query({ indexName, queryVector: [1, 2, 3], filter: { a: { $near: 1 } } })).rejects.toMatchObject({
      details: { operator: '$near' },
    })
    await expect(vectors.query({ indexName: 'none', queryVector: [1, 2, 3] })).rejects.toMatchObject({ code: 'not_found' })
    await expect(vectors.createIndex({ indexName, dimension: 4 })).rejects.toMatchObject({
      code: 'invalid_argument',
      details: { dimension: 3 },
    })
    await expect(vectors.createIndex({ indexName: 'x', dimension: 4, metric: 'manhattan' as never })).rejects.toMatchObject({
      details: { field: 'metric' },
    })
    await expect(vectors.upsert({ indexName, vectors: [[Number.NaN, 1, 2]] })).rejects.toMatchObject({ code: 'invalid_argument' })
    await expect(vectors.deleteVectors({ indexName, filter: {} })).rejects.toMatchObject({ details: { field: 'filter' } })
    await vectors.close()
  })
})

it('vectors persist across a restart', async () => {
  const url = `file:${join(folder, 'kept.db')}`
  const first = new LibSQLVector({ url })
  await first.createIndex({ indexName: 'i', dimension: 1, metric: 'euclidean' })
  await first.upsert({ indexName: 'i', ids: ['far', 'near'], vectors: [[10], [2]] })
  await first.close()
  const again = new LibSQLVector({ url })
  expect((await again.query({ indexName: 'i', queryVector: [1] })).map(({ id, score }) => [id, score])).toEqual([
    ['near', 0.5],
    ['far', 0.1],
  ])
  await again.close()
})
