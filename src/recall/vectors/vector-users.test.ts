import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { LibSQLVector } from '../../store/sqlite/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-vector-users-'))
const open: LibSQLVector[] = []
afterEach(async () => void (await Promise.all(open.splice(0).map((vectors) => vectors.close()))))
afterAll(() => rmSync(folder, { recursive: true }))
let files = 0

/** Each has a thread and a connection of its own, as another process would. */
function usersOf(path: string): [LibSQLVector, LibSQLVector] {
  const users = [0, 1].map(() => new LibSQLVector({ url: `file:${path}` })) as [LibSQLVector, LibSQLVector]
  open.push(...users)
  return users
}

function inFile<Row>(path: string, sql: string): Row[] {
  const database = new DatabaseSync(`${path}-vectors`, { timeout: 60_000 })
  try {
    return database.prepare(sql).all() as Row[]
  } finally {
    database.close()
  }
}

const orphans = 'SELECT id FROM vectors WHERE place NOT IN (SELECT key FROM indexes)'
const rounds = Array.from({ length: 40 }, (_, at) => `index-${at}`)

describe('two processes that use one vector file', () => {
  it('[K4.3] create one index when both create the same at once', async () => {
    const users = usersOf(join(folder, `${files++}.db`))
    for (const indexName of rounds) await Promise.all(users.map((vectors) => vectors.createIndex({ indexName, dimension: 2 })))
    expect((await users[0].listIndexes()).toSorted()).toEqual(rounds.toSorted())
  })

  it('[K4.3] keep the first index when both create different ones with one name; the second is rejected', async () => {
    const [one, other] = usersOf(join(folder, `${files++}.db`))
    for (const indexName of rounds) {
      const made = await Promise.allSettled([one.createIndex({ indexName, dimension: 2 }), other.createIndex({ indexName, dimension: 3 })])
      expect(made.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
      const dimension = made[0].status === 'fulfilled' ? 2 : 3
      expect(made.find(({ status }) => status === 'rejected')).toMatchObject({
        reason: { code: 'invalid_argument', details: { field: 'indexName', dimension } },
      })
      expect(await one.describeIndex({ indexName })).toMatchObject({ dimension, count: 0 })
    }
  })

  it('[K4.3] leave no vectors when one writes while the other deletes the index', async () => {
    const path = join(folder, `${files++}.db`)
    const [one, other] = usersOf(path)
    for (const indexName of rounds) {
      await one.createIndex({ indexName, dimension: 2 })
      await one.upsert({ indexName, ids: ['first'], vectors: [[0, 1]] })
      const [deleted, ...written] = await Promise.allSettled([
        one.deleteIndex({ indexName }),
        other.upsert({ indexName, ids: ['second'], vectors: [[1, 0]] }),
        other.updateVector({ indexName, id: 'first', update: { vector: [1, 1] } }),
      ])
      expect(deleted.status).toBe('fulfilled')
      for (const result of written) if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'not_found' })
    }
    expect(inFile(path, orphans)).toEqual([])
    await one.createIndex({ indexName: 'fresh', dimension: 3 })
    expect(await one.query({ indexName: 'fresh', queryVector: [1, 0, 0] })).toEqual([])
  })

  it('[K4.3] never reuse the key of a deleted index', async () => {
    const path = join(folder, `${files++}.db`)
    const [one] = usersOf(path)
    const keys = new Set<number>()
    for (const indexName of rounds.slice(0, 5)) {
      await one.createIndex({ indexName, dimension: 1 })
      for (const { key } of inFile<{ key: number }>(path, 'SELECT key FROM indexes')) keys.add(key)
      await one.deleteIndex({ indexName })
    }
    expect(keys.size).toBe(5)
  })
})

describe('a vector file', () => {
  it('[K4.3] of the first version keeps its vectors, and loses those whose index was deleted', async () => {
    const path = join(folder, `${files++}.db`)
    const old = new DatabaseSync(`${path}-vectors`)
    old.exec(`
      CREATE TABLE indexes (key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL, metric TEXT NOT NULL) STRICT;
      CREATE TABLE vectors (
        place INTEGER NOT NULL, id TEXT NOT NULL, vector BLOB NOT NULL, metadata TEXT NOT NULL, PRIMARY KEY (place, id)
      ) STRICT;
      INSERT INTO indexes VALUES (3, 'notes', 1, 'dotproduct');
      INSERT INTO vectors VALUES (3, 'kept', x'0000803f', '{"n":1}'), (4, 'lost', x'0000803f', '{}')`)
    old.close()
    const users = usersOf(path)
    const [one] = users
    const found = await Promise.all(users.map((vectors) => vectors.query({ indexName: 'notes', queryVector: [2], includeVector: true })))
    expect(found).toEqual([0, 1].map(() => [{ id: 'kept', score: 2, metadata: { n: 1 }, vector: [1] }]))
    await one.createIndex({ indexName: 'next', dimension: 1 })
    expect(await one.describeIndex({ indexName: 'next' })).toMatchObject({ count: 0 })
    expect(inFile(path, 'SELECT id FROM vectors')).toEqual([{ id: 'kept' }])
  })

  it('of a newer version is rejected and left unchanged', async () => {
    const path = join(folder, `${files++}.db`)
    const newer = new DatabaseSync(`${path}-vectors`)
    newer.exec('PRAGMA user_version = 99')
    newer.close()
    const [one] = usersOf(path)
    await expect(one.listIndexes()).rejects.toMatchObject({ code: 'store_newer', details: { version: 99 } })
    expect(inFile(path, 'SELECT name FROM sqlite_schema')).toEqual([])
  })

  it('that could not be opened is opened by the next call, and can be closed', async () => {
    const blocked = join(folder, `${files++}`)
    writeFileSync(blocked, 'no folder')
    const [one, other] = usersOf(join(blocked, 'x.db'))
    await expect(one.listIndexes()).rejects.toMatchObject({ code: 'store_failed' })
    await expect(other.listIndexes()).rejects.toMatchObject({ code: 'store_failed' })
    await other.close()
    rmSync(blocked)
    expect(await one.listIndexes()).toEqual([])
  })
})
