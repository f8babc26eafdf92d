import { PGlite } from '@electric-sql/pglite'
import { vector as extension } from '@electric-sql/pglite-pgvector'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { Agent, Heed, InMemoryStore, Memory, silentLogger } from '../../src/index.ts'
import { PgVector, type QueryClient } from '../../src/store/postgres/index.ts'
import { scriptedModel, vectorConformance } from '../../src/testing/index.ts'
import { dogs } from '../memory/dogs.ts'
import { newSchema, sharedServer } from './server.ts'

let lite: PGlite
beforeAll(async () => {
  lite = await PGlite.create({ extensions: { vector: extension } })
})
afterAll(() => lite.close())

/** With pgvector. */
function withExtension(schemaName = newSchema()): PgVector {
  const store = new PgVector({ client: lite, schemaName })
  onTestFinished(() => store.close())
  return store
}

/** On the server of the tests, which has no extension. */
async function withoutExtension(schemaName = newSchema()): Promise<PgVector> {
  const store = new PgVector({ connectionString: await sharedServer(), schemaName })
  onTestFinished(() => store.close())
  return store
}

const unit = (angle: number) => [Math.cos(angle), Math.sin(angle)]
const rows = (count: number, resource: string) => ({
  vectors: Array.from({ length: count }, (_, at) => unit(at / 100)),
  ids: Array.from({ length: count }, (_, at) => `${resource}-${at}`),
  metadata: Array.from({ length: count }, () => ({ resource_id: resource })),
})

describe('[K4.10] PgVector with pgvector', () => {
  it.each(vectorConformance)('$name', ({ run }) => run({ store: async () => withExtension() }))

  it.each([
    [undefined, 'hnsw', 'vector_cosine_ops', {}],
    [{ type: 'hnsw', hnsw: { m: 8, efConstruction: 32 } }, 'hnsw', "m='8', ef_construction='32'", { metric: 'dotproduct' as const }],
    [{ type: 'hnsw' }, 'hnsw', 'vector_l2_ops', { metric: 'euclidean' as const }],
    [{ type: 'flat' }, '', '', {}],
  ])('[K4.10] builds the index that %j asks for', async (indexConfig, method, settings, more) => {
    const schemaName = newSchema()
    const store = withExtension(schemaName)
    await store.createIndex({ indexName: 'notes', dimension: 2, ...more, ...(indexConfig && { indexConfig }) })
    const { rows: found } = await lite.query<{ indexdef: string }>('SELECT indexdef FROM pg_indexes WHERE schemaname = $1', [schemaName])
    const defined = found.map(({ indexdef }) => indexdef).find((text) => /USING (?:hnsw|ivfflat)/.test(text)) ?? ''
    expect(defined).toContain(method === '' ? '' : `USING ${method}`)
    expect(defined).toContain(settings)
    expect(defined === '').toBe(method === '')
    await store.upsert({ indexName: 'notes', ...rows(20, 'ada') })
    expect((await store.query({ indexName: 'notes', queryVector: unit(0.05), topK: 3 })).map(({ id }) => id).toSorted()).toEqual(['ada-4', 'ada-5', 'ada-6'])
  })

  it('[K4.10] builds lists of an ivfflat index from vectors, once there are enough', async () => {
    const schemaName = newSchema()
    const store = withExtension(schemaName)
    await store.createIndex({ indexName: 'notes', dimension: 2, indexConfig: { type: 'ivfflat', ivf: { lists: 2 } } })
    const built = async () => (await lite.query<{ indexdef: string }>(`SELECT indexdef FROM pg_indexes WHERE schemaname = $1 AND indexdef LIKE '%ivfflat%'`, [schemaName])).rows
    await store.upsert({ indexName: 'notes', ...rows(20, 'ada') })
    expect(await built()).toEqual([])
    await store.upsert({ indexName: 'notes', ...rows(80, 'ben') })
    expect((await built())[0]?.indexdef).toContain("lists='2'")
    expect(await store.query({ indexName: 'notes', queryVector: unit(0.1), topK: 1, filter: { resource_id: 'ada' } })).toMatchObject([{ id: 'ada-10' }])
  })

  it('[K4.11] finds every vector of a small tenant among many of others', async () => {
    const store = withExtension()
    await store.createIndex({ indexName: 'notes', dimension: 2 })
    await store.upsert({ indexName: 'notes', ...rows(1_500, 'large') })
    await store.upsert({ indexName: 'notes', ...rows(12, 'small') })
    // The nearest thousand are of the other tenant.
    const found = await store.query({ indexName: 'notes', queryVector: unit(3), topK: 12, filter: { resource_id: 'small' } })
    expect(found.map(({ id }) => id).toSorted()).toEqual(rows(12, 'small').ids.toSorted())
  })

  it.each([
    ['hnsw', 'strict_order'],
    ['ivfflat', 'relaxed_order'],
  ])('[K4.11] scans an index of type %s on until enough vectors of a large tenant are found, and compares the others no more', async (type, order) => {
    const schemaName = newSchema()
    const asked: string[] = []
    const client: QueryClient = { query: (text, values) => {
      asked.push(text)
      return lite.query(text, values as unknown[])
    } }
    const store = new PgVector({ client, schemaName })
    onTestFinished(() => store.close())
    const settings = type === 'hnsw' ? { hnsw: { m: 6, efConstruction: 16 } } : { ivf: { lists: 30 } }
    await store.createIndex({ indexName: 'notes', dimension: 4, indexConfig: { type, ...settings } })
    // Vectors on a cylinder: the graph of an hnsw index, which is made by chance, is often torn where its vectors lie on a line.
    const around = (angle: number) => [...unit(angle), 0.5, 0]
    const [mine, other] = [around(1.5), around(0)]
    // More vectors than are compared one by one, and before them enough of another tenant to fill the first part of a scan.
    await store.upsert({ indexName: 'notes', vectors: [mine, other], ids: ['mine-0', 'other-0'], metadata: [{ resource_id: 'mine' }, { resource_id: 'other' }] })
    const table = `"${schemaName}"."v:notes"`
    const copies = (of: string, angle: string, count: number) => `
      INSERT INTO ${table} SELECT '${of}-' || n, format('[%s,%s,%s,%s]', cos(${angle}), sin(${angle}), cos(n * 2.4) / 2, sin(n * 2.4) / 2)::vector, metadata, tags
      FROM generate_series(1, ${count}) n, ${table} WHERE id = '${of}-0'`
    const { rows: indexes } = await lite.query<{ indexdef: string; name: string }>(`SELECT indexdef, indexname AS name FROM pg_indexes WHERE schemaname = $1 AND indexdef LIKE '%hnsw%'`, [schemaName])
    for (const { name } of indexes) await lite.exec(`DROP INDEX "${schemaName}"."${name}"`)
    await lite.exec(`${copies('mine', '1.5 + n / 20000.0', 20_001)}; ${copies('other', 'n / 1340.0', 2_000)}`)
    for (const { indexdef } of indexes) await lite.exec(indexdef)
    await store.upsert({ indexName: 'notes', vectors: [around(3)], ids: ['last-0'], metadata: [{ resource_id: 'last' }] })
    asked.length = 0
    const queryVector = [...unit(0), 0, 0]
    const found = await store.query({ indexName: 'notes', queryVector, topK: 5, filter: { resource_id: 'mine' } })
    expect(found.map(({ id }) => id.split('-')[0])).toEqual(Array.from({ length: 5 }, () => 'mine'))
    // All are within the nearest tenth of the tenant's vectors.
    expect(found.filter(({ score }) => score < Math.cos(1.6) / Math.hypot(1, 0.5))).toEqual([])
    expect(asked).toContain(`SET LOCAL ${type}.iterative_scan = ${order}`)
    expect(asked.filter((text) => /ORDER BY[^L]*\+ 0, id/.test(text))).toEqual([])
    // The vectors of the other tenant are so few that all of them are compared.
    asked.length = 0
    const few = await store.query({ indexName: 'notes', queryVector, topK: 3, filter: { resource_id: 'other' } })
    expect(few.map(({ id }) => id)).toEqual(['other-0', 'other-1', 'other-2'])
    expect(asked.filter((text) => text.startsWith('SET LOCAL'))).toEqual([])
  })

  it.each([
    [{ type: 'hnsw', metric: 'dotproduct', m: 8, efConstruction: 32 }, "USING hnsw (vector vector_ip_ops) WITH (m='8', ef_construction='32')"],
    [{ type: 'hnsw', metric: 'dotproduct', hnsw: { m: 8, efConstruction: 32 } }, "USING hnsw (vector vector_ip_ops) WITH (m='8', ef_construction='32')"],
    [{ type: 'ivfflat', metric: 'dotproduct', lists: 1 }, "USING ivfflat (vector vector_ip_ops) WITH (lists='1')"],
    [{ type: 'ivfflat', metric: 'dotproduct', ivf: { lists: 1 } }, "USING ivfflat (vector vector_ip_ops) WITH (lists='1')"],
  ] as const)('[K4.10] builds the index that a memory asks for with %j, and recalls from it', async (indexConfig, defined) => {
    const schemaName = newSchema()
    const vector = withExtension(schemaName)
    const model = scriptedModel(['Noted.'], { loop: true })
    const agent = new Agent({ id: 'guide', model, memory: new Memory({ embedder: dogs, vector, lastMessages: 2, semanticRecall: { topK: 1, indexConfig } }) })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
    onTestFinished(() => heed.close())
    await agent.generate('Our hound sleeps all day.', { memory: { thread: 'monday', resource: 'ada' } })
    const memory = await agent.getMemory()
    await expect.poll(async () => (await memory.recallStatus()).embedders[0]?.embedded ?? 0, { timeout: 10_000 }).toBeGreaterThan(0)
    const [name = ''] = await vector.listIndexes()
    // Lists of an ivfflat index are chosen from thirty vectors.
    if (indexConfig.type === 'ivfflat') await vector.upsert({ indexName: name, ...rows(40, 'ben') })
    const { rows: found } = await lite.query<{ indexdef: string }>('SELECT indexdef FROM pg_indexes WHERE schemaname = $1', [schemaName])
    expect(found.map(({ indexdef }) => indexdef.replace('public.', '')).filter((text) => text.includes(defined))).toHaveLength(1)
    await agent.generate('A puppy?', { memory: { thread: 'friday', resource: 'ada' } })
    expect(JSON.stringify(model.calls.at(-1)?.prompt)).toContain('Our hound sleeps all day.')
  })

  it('[K4.10] rejects what pgvector cannot index, and other types, by name', async () => {
    const store = withExtension()
    const refused = { code: 'unsupported_option', details: { option: 'indexConfig.type' } }
    await expect(store.createIndex({ indexName: 'long', dimension: 2_001, indexConfig: { type: 'hnsw' } })).rejects.toMatchObject(refused)
    await expect(store.createIndex({ indexName: 'other', dimension: 2, indexConfig: { type: 'diskann' } })).rejects.toMatchObject(refused)
    await store.createIndex({ indexName: 'long', dimension: 2_001 })
    expect(await store.listIndexes()).toEqual(['long'])
  })
})

describe('[K4.10] PgVector without the extension', () => {
  it.each(vectorConformance)('$name', async ({ run }) => {
    const store = await withoutExtension()
    await run({ store: async () => store })
  })

  it('[K4.10] compares every vector, by each metric, and rejects the types that need it', async () => {
    const store = await withoutExtension()
    await expect(store.createIndex({ indexName: 'notes', dimension: 2, indexConfig: { type: 'hnsw' } })).rejects.toMatchObject({
      code: 'unsupported_option', message: expect.stringContaining('CREATE EXTENSION vector') as string,
    })
    for (const metric of ['cosine', 'dotproduct', 'euclidean'] as const) {
      await store.createIndex({ indexName: metric, dimension: 2, metric })
      await store.upsert({ indexName: metric, ...rows(2_100, 'ada') })
      const [best, next] = await store.query({ indexName: metric, queryVector: unit(20.5), topK: 2, includeVector: true })
      expect(best).toMatchObject({ id: 'ada-2050', score: expect.closeTo(1, 5) as number })
      expect(best?.vector?.[0]).toBeCloseTo(Math.cos(20.5), 5)
      expect(next?.score).toBeLessThan(best?.score ?? 0)
    }
  })

  it('[K4.10] is one index, where two create it at once, and connects again after its connection was closed', async () => {
    const schemaName = newSchema()
    const [one, two] = [await withoutExtension(schemaName), await withoutExtension(schemaName)]
    await one.listIndexes()
    await Promise.all([one, two].map((store) => store.createIndex({ indexName: 'notes', dimension: 2 })))
    await one.close()
    await one.upsert({ indexName: 'notes', ...rows(1, 'ada') })
    expect(await two.describeIndex({ indexName: 'notes' })).toEqual({ dimension: 2, metric: 'cosine', count: 1 })
  })
})

describe('the options of a PgVector', () => {
  it('takes the parts of an address, a pool, a client, a schema and an id', async () => {
    const url = new URL(await sharedServer())
    const connectionString = url.href
    const parts = { host: url.hostname, port: Number(url.port), user: url.username, password: decodeURIComponent(url.password), database: url.pathname.slice(1) }
    const driver = 'pg'
    type Opened = QueryClient & { connect(): Promise<never>; end(): Promise<void> }
    const pg = (await import(driver)) as Record<'Pool' | 'Client', new (config: object) => Opened>
    const pool = new pg.Pool({ connectionString })
    const client = new pg.Client({ connectionString })
    await client.connect()
    onTestFinished(() => Promise.all([pool.end(), client.end()]).then(() => {}))
    const schemaName = newSchema()
    const first = new PgVector({ id: 'mine', connectionString, schemaName })
    expect([first.id, new PgVector({ connectionString }).id]).toEqual(['mine', 'pg-vector'])
    await first.createIndex({ indexName: 'notes', dimension: 2 })
    await first.close()
    for (const from of [parts, { pool }, { client }]) {
      const store = new PgVector({ ...from, schemaName })
      expect(await store.listIndexes()).toEqual(['notes'])
      await store.close()
    }
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
    const encrypted = new PgVector({ ...parts, ssl: true })
    await expect(encrypted.listIndexes()).rejects.toMatchObject({ code: 'store_failed', message: expect.stringContaining('SSL') as string })
    expect(String(await new PgVector({ ...parts, password: 'wrong secret' }).listIndexes().catch(String))).not.toContain('wrong secret')
  })

  it('[K4.10] rejects options that name no database, or two', () => {
    for (const options of [{}, { connectionString: 'postgresql://a/b', host: 'c' }, { client: lite, database: 'd' }]) {
      expect(() => new PgVector(options)).toThrow(expect.objectContaining({ code: 'invalid_argument' }) as Error)
    }
  })
})
