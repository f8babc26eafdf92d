import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { accept, acceptOne, begin, persisted, row, rowIds, scope, send, start, threadId } from '../conformance/fixture.ts'
import { Connection } from './connection.ts'
import { migrations } from './migrations.ts'
import { LibSQLStore } from './store.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-libsql-'))
afterAll(() => rmSync(folder, { recursive: true }))
let count = 0
const newFile = () => join(folder, `${count++}.db`)

const opened: LibSQLStore[] = []
afterEach(async () => {
  vi.restoreAllMocks()
  await Promise.all(opened.splice(0).map((store) => store.close()))
})
function storeAt(url: string): LibSQLStore {
  const store = new LibSQLStore({ url })
  opened.push(store)
  return store
}

describe('where a database is', () => {
  it.each(['', 'heed.db', 'file:', 'file:a.db?mode=ro', 'postgres://x', 'libsql:', 'https://'])('%j names none', (url) => {
    expect(() => new LibSQLStore({ url })).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
  })

  it.skipIf(process.platform !== 'linux')('a folder that can\'t be made is refused by name, at once', async () => {
    const refused = expect.objectContaining({ code: 'store_failed', message: expect.stringContaining('/proc/nope') as string }) as Error
    for (const url of ['file:/proc/nope/x.db', 'file:/proc/nope/deep/er/x.db']) await expect(storeAt(url).open()).rejects.toThrow(refused)
    const store = storeAt(':memory:')
    await store.open()
    await expect(store.backup('/proc/nope/x.db')).rejects.toThrow(refused)
  })

  it('a file where a folder should be is refused by name', async () => {
    const path = newFile()
    writeFileSync(path, '')
    await expect(storeAt(`file:${join(path, 'x.db')}`).open()).rejects.toThrow(expect.objectContaining({ code: 'store_failed' }) as Error)
  })

  it('makes the folder of a new file', async () => {
    const path = join(folder, 'deep', 'er', 'a.db')
    await storeAt(`file:${path}`).open()
    expect(existsSync(path)).toBe(true)
  })

  it('has small pages in a new file, and leaves those of an old one', async () => {
    const pages = (path: string) => {
      using database = new DatabaseSync(path)
      return database.prepare('PRAGMA page_size').get()?.page_size
    }
    const [made, found] = [newFile(), newFile()]
    {
      using database = new DatabaseSync(found)
      database.exec('PRAGMA page_size = 8192; CREATE TABLE a (b); DROP TABLE a')
    }
    for (const path of [made, found]) await storeAt(`file:${path}`).open()
    expect([pages(made), pages(found)]).toEqual([2048, 8192])
  })

  it('says which file it can\'t open', async () => {
    const file = join(folder, 'plain')
    writeFileSync(file, '')
    await expect(storeAt(`file:${join(file, 'below.db')}`).open()).rejects.toMatchObject({ code: 'store_failed', message: expect.stringContaining('below.db') })
  })
})

describe('stores on one file', () => {
  it('share one connection in a process, however they name the file', async () => {
    const opening = vi.spyOn(Connection, 'open')
    const path = newFile()
    const first = storeAt(`file:${path}`)
    await first.open()
    const link = join(folder, 'link.db')
    symlinkSync(path, link)
    const others = [storeAt(pathToFileURL(path).href), storeAt(`file:${link}`), storeAt(`file:${join(folder, '.', 'x', '..', path.slice(folder.length + 1))}`)]
    await Promise.all(others.map((store) => store.open()))
    expect(opening).toHaveBeenCalledTimes(1)

    await acceptOne(first, send('a', persisted))
    for (const other of others) expect(await rowIds(other)).toEqual(['a'])
    await first.close()
    expect(await rowIds(others[0] ?? first)).toEqual(['a'])
    await expect(first.getThread(scope)).rejects.toMatchObject({ code: 'closed' })
  })

  it('in memory share nothing', async () => {
    const [a, b] = [storeAt(':memory:'), storeAt(':memory:')]
    await acceptOne(a, send('a', persisted))
    expect(await b.getThread(scope)).toBeNull()
  })

  it('finish what was asked for before they close, and leave one plain file', async () => {
    const path = newFile()
    const store = storeAt(`file:${path}`)
    await store.open()
    const stored = Promise.all(Array.from({ length: 500 }, (_, index) => acceptOne(store, send(`s${index}`, persisted))))
    await new Promise((resolve) => setImmediate(resolve))
    await store.close()
    await stored
    expect(existsSync(`${path}-wal`)).toBe(false)
    expect(await rowIds(storeAt(`file:${path}`))).toHaveLength(500)
  })

  it('open again after they could not', async () => {
    const path = newFile()
    writeFileSync(path, 'this is no database, and long enough to be taken for a damaged one'.repeat(20))
    const store = storeAt(`file:${path}`)
    await expect(store.open()).rejects.toMatchObject({ code: 'store_corrupt' })
    rmSync(path)
    await store.open()
    expect(await store.getThread(scope)).toBeNull()
  })
})

describe('a file that is not ours to open', () => {
  it('of a newer version is refused and left as it is', async () => {
    const path = newFile()
    const store = storeAt(`file:${path}`)
    await store.open()
    await store.close()
    const database = new DatabaseSync(path)
    database.exec('PRAGMA user_version = 999')
    database.close()
    const before = readFileSync(path)
    await expect(storeAt(`file:${path}`).open()).rejects.toMatchObject({ code: 'store_newer', details: { version: 999, known: migrations.length } })
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  it('that is damaged is refused and left as it is', async () => {
    const path = newFile()
    writeFileSync(path, Buffer.concat([Buffer.from('SQLite format 3\0'), Buffer.alloc(8000, 7)]))
    const before = readFileSync(path)
    await expect(storeAt(`file:${path}`).open()).rejects.toMatchObject({ code: 'store_corrupt' })
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  it.each([1, 26])('of schema %i of the development before 0.1.0 is refused by name and left as it is', async (version) => {
    const path = newFile()
    const database = new DatabaseSync(path)
    database.exec(`CREATE TABLE heed_threads (key INTEGER PRIMARY KEY); PRAGMA application_id = 1214604644; PRAGMA user_version = ${version}`)
    database.close()
    const before = readFileSync(path)
    await expect(storeAt(`file:${path}`).open()).rejects.toMatchObject({
      code: 'store_failed', message: expect.stringMatching(/development version of Heed .* Name another database/), details: { unreleased: version },
    })
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  it('of another program is refused and left as it is', async () => {
    const path = newFile()
    const database = new DatabaseSync(path)
    database.exec('CREATE TABLE theirs (a); PRAGMA user_version = 1')
    database.close()
    const before = readFileSync(path)
    await expect(storeAt(`file:${path}`).open()).rejects.toMatchObject({ code: 'store_failed', message: expect.stringContaining('another program') })
    expect(readFileSync(path).equals(before)).toBe(true)
  })
})

describe('a large thread', () => {
  it('that is deleted is gone at once, and its rows go after it, also over a restart', async () => {
    const path = newFile()
    const store = storeAt(`file:${path}`)
    await store.createThread({ id: threadId, resourceId: 'resource-1', now: 1 })
    await store.saveRows(scope, Array.from({ length: 5000 }, (_, index) => row(`m${index}`)))
    await store.deleteThread(scope)
    expect(await store.getThread(scope)).toBeNull()
    const { fence } = await acceptOne(store, send('m1'))
    expect(fence && (await begin(store, fence)).rows.map(({ id }) => id)).toEqual(['m1'])
    await store.close()

    const again = storeAt(`file:${path}`)
    await again.open()
    const left = () => {
      const database = new DatabaseSync(path, { readOnly: true, timeout: 60_000 })
      const { count: rows } = database.prepare('SELECT count(*) AS count FROM heed_messages').get() ?? {}
      database.close()
      return rows
    }
    // Each answered write lets the purge do a part of its own.
    for (let round = 0; round < 100 && left() !== 1; round += 1) await again.heartbeat('p1', round)
    expect(left()).toBe(1)
  })
})

describe('the log', () => {
  it('is copied into the database beside the writing, and nothing is lost', async () => {
    const path = newFile()
    const store = storeAt(`file:${path}`)
    await start(store)
    const small = statSync(path).size
    let sent = 0
    for (let round = 0; round < 2000 && statSync(path).size < small + 1_000_000; round += 1) {
      await accept(store, ...Array.from({ length: 20 }, () => send(`s${sent++}`, persisted)))
    }
    expect(statSync(path).size).toBeGreaterThan(small + 1_000_000)
    await store.flush()
    await store.close()
    expect((await storeAt(`file:${path}`).listRows(scope, { limit: 100_000 })).rows).toHaveLength(sent + 1)
  })
})
