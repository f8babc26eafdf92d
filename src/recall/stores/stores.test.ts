import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { vectorConformance } from '../../testing/vector-conformance.ts'
import type { VectorStore } from '../vector-store.ts'
import { LibSQLVector } from '../vectors/vector.ts'
import { DuckDBVector } from './duckdb.ts'
import { LanceDBVector } from './lancedb.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-vector-stores-'))
const open: Array<{ close(): Promise<void> }> = []
afterAll(async () => {
  for (const store of open) await store.close()
  rmSync(folder, { recursive: true })
})
function opened<Store extends { close(): Promise<void> }>(store: Store): Store {
  open.push(store)
  return store
}

const duckdb = opened(new DuckDBVector({ path: join(folder, 'vectors.duckdb') }))
const lancedb = opened(new LanceDBVector({ uri: join(folder, 'lance') }))
const libsql = opened(new LibSQLVector({ url: ':memory:' }))

describe.each([['DuckDBVector', duckdb], ['LanceDBVector', lancedb], ['LibSQLVector', libsql]])('%s', (_name, store) => {
  it.each(vectorConformance)('$name', ({ run }) => run({ store: async () => store }))
})

describe('[K4.5] the suite fails for a store that', () => {
  const broken: Record<string, Partial<VectorStore>> = {
    'ignores filters': { query: ({ filter: _, ...args }) => libsql.query(args) },
    'applies one key of a filter': {
      query: ({ filter, ...args }) => libsql.query({ ...args, ...(filter && { filter: Object.fromEntries(Object.entries(filter).slice(0, 1)) }) }),
    },
    'applies a filter after the nearest are chosen': {
      query: async ({ filter = {}, ...args }) =>
        (await libsql.query(args)).filter(({ metadata }) => Object.entries(filter).every(([key, value]) => metadata[key] === value)),
    },
    'deletes nothing': { deleteVectors: async () => 0 },
    'leaves the first of several ids': { deleteVectors: ({ indexName, ids = [] }) => libsql.deleteVectors({ indexName, ids: ids.slice(1) }) },
    'returns the farthest first': { query: async (args) => (await libsql.query(args)).toReversed().map((match) => ({ ...match, score: -match.score })) },
    'loses metadata': { query: async (args) => (await libsql.query(args)).map(({ id, score }) => ({ id, score })) },
    'stores an id twice': { upsert: (args) => libsql.upsert({ ...args, ids: args.ids?.map((id, at) => `${id}${args.vectors[at]?.join() ?? ''}`) ?? [] }) },
    'returns scores that are no cosines': { query: async (args) => (await libsql.query(args)).map((match) => ({ ...match, score: match.score * 2 })) },
  }
  it.each(Object.entries(broken))('%s', async (_title, fault) => {
    const bound = Object.fromEntries(
      (['createIndex', 'listIndexes', 'describeIndex', 'deleteIndex', 'upsert', 'query', 'deleteVector', 'deleteVectors'] as const)
        .map((name) => [name, libsql[name].bind(libsql)]),
    )
    const store = { ...bound, ...fault } as unknown as VectorStore
    const results = await Promise.allSettled(vectorConformance.map(({ run }) => run({ store: async () => store })))
    expect(results.filter(({ status }) => status === 'rejected').length).toBeGreaterThan(0)
  })
})
