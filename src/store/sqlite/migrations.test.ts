import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { acceptOne, begin, gone, persisted, rowIds, send, start, states, threadId } from '../conformance/fixture.ts'
import { migrate, migrations, versionOf, wholeSchema } from './migrations.ts'
import { LibSQLStore } from './store.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-migrations-'))
afterAll(() => rmSync(folder, { recursive: true }))
let count = 0
const newFile = () => join(folder, `${count++}.db`)

const children: ChildProcess[] = []
afterEach(async () => {
  await Promise.all(children.splice(0).map(async (child) => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }))
})

/** A next version: a column whose values are made of what is stored, a table, and a count of how often it ran. `halfway()` runs between. */
const next = `
  ALTER TABLE heed_messages ADD COLUMN length INTEGER NOT NULL DEFAULT 0;
  UPDATE heed_messages SET length = length(content);
  SELECT halfway();
  CREATE TABLE heed_times (times INTEGER NOT NULL) STRICT;
  INSERT INTO heed_times VALUES (1);
`
const steps = [...migrations, next]

/** A file of the newest version with one message in history, one signal that a run has drained and one that is pending. */
async function ofNewestVersion(): Promise<string> {
  const path = newFile()
  const store = new LibSQLStore({ url: `file:${path}` })
  await acceptOne(store, send('history', persisted))
  await start(store, 'drained')
  await acceptOne(store, send('pending'))
  await store.close()
  return path
}

function open(path: string, halfway: () => null = () => null): DatabaseSync {
  const database = new DatabaseSync(path)
  database.function('halfway', halfway)
  return database
}

function look<Result>(path: string, at: (database: DatabaseSync) => Result): Result {
  const database = open(path)
  try {
    return at(database)
  } finally {
    database.close()
  }
}

function lengths(path: string): unknown {
  const sql = 'SELECT id, length = length(content) AS right FROM heed_messages ORDER BY seq'
  return look(path, (database) => database.prepare(sql).all().map((row) => ({ ...row })))
}

/** The newest version as it was before: its contents, and nothing of the next one. */
async function expectNewestVersion(path: string): Promise<void> {
  look(path, (database) => {
    expect(versionOf(database)).toBe(migrations.length)
    expect(database.prepare(`SELECT name FROM sqlite_schema WHERE name = 'heed_times'`).all()).toEqual([])
    expect(database.prepare(`SELECT name FROM pragma_table_info('heed_messages') WHERE name = 'length'`).all()).toEqual([])
    expect(database.prepare('PRAGMA integrity_check').get()).toMatchObject({ integrity_check: 'ok' })
  })
  const store = new LibSQLStore({ url: `file:${path}` })
  expect(await rowIds(store)).toEqual(['history', 'drained'])
  expect(await states(store)).toEqual({ drained: 'taken', history: 'consumed', pending: 'pending' })
  await store.close()
}

/** A process that migrates the file to the next version after a message from here; `halfway` is the body of the function of that name. */
function migrating(path: string, halfway: string): ChildProcess {
  const text = `
    import { DatabaseSync } from 'node:sqlite'
    import { once } from 'node:events'
    import { existsSync, writeFileSync } from 'node:fs'
    import { migrate } from ${JSON.stringify(new URL('./migrations.ts', import.meta.url).href)}
    const database = new DatabaseSync(${JSON.stringify(path)}, { timeout: 60_000 })
    database.function('halfway', () => { ${halfway} })
    process.send('ready')
    await once(process, 'message')
    process.send('trying')
    migrate(database, 'it', ${JSON.stringify(steps)})
    process.disconnect()`
  const child = spawn(process.execPath, ['--input-type=module', '-e', text], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  children.push(child)
  return child
}

describe('a migration', () => {
  it('from one version to the next keeps the contents, and a Heed of the earlier one refuses the file from then on', async () => {
    const path = await ofNewestVersion()
    const old = new LibSQLStore({ url: `file:${path}` })
    expect(await rowIds(old)).toEqual(['history', 'drained'])
    look(path, (database) => {
      expect(migrate(database, path, steps)).toBe(true)
      expect(versionOf(database)).toBe(steps.length)
      expect(migrate(database, path, steps)).toBe(false)
    })
    expect(lengths(path)).toEqual([{ id: 'history', right: 1 }, { id: 'drained', right: 1 }])
    // One that had it open before, and one that opens it now.
    await expect(old.accept([send('late')])).rejects.toMatchObject({ code: 'store_newer', details: { version: steps.length, known: migrations.length } })
    await old.close()
    await expect(new LibSQLStore({ url: `file:${path}` }).open()).rejects.toMatchObject({ code: 'store_newer', details: { version: steps.length, known: migrations.length } })
  })

  it('of a new database in one step has the result of all steps: tables, indexes, triggers and rows', () => {
    const contentsOf = (texts: readonly string[]) => {
      const database = new DatabaseSync(':memory:')
      for (const text of texts) database.exec(text)
      const objects = database.prepare('SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name').all()
      // A sequence that has not begun has a row with 0 or none.
      const tables = objects.filter(({ type, name }) => type === 'table' && name !== 'sqlite_sequence')
      const rows = tables.map(({ name }) => ({ name, rows: database.prepare(`SELECT * FROM ${String(name)}`).all() }))
      database.close()
      return { objects, rows }
    }
    const whole = contentsOf([wholeSchema(migrations)])
    expect(whole.objects.length).toBeGreaterThan(100)
    expect(whole.rows.flatMap(({ rows }) => rows).length).toBeGreaterThan(0)
    expect(whole).toEqual(contentsOf(migrations))
  })

  it('that fails half-way leaves the version before as it was', async () => {
    const path = await ofNewestVersion()
    const database = open(path, () => {
      throw new Error('half-way')
    })
    expect(() => migrate(database, path, steps)).toThrow('half-way')
    expect(database.isTransaction).toBe(false)
    database.close()
    await expectNewestVersion(path)
    look(path, (again) => expect(migrate(again, path, steps)).toBe(true))
    expect(lengths(path)).toHaveLength(2)
  })

  it('whose process is killed half-way leaves the version before as it was, with a run that another process takes over', async () => {
    const path = await ofNewestVersion()
    const child = migrating(path, `process.kill(process.pid, 'SIGKILL')`)
    await once(child, 'message')
    child.send('go')
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
    await expectNewestVersion(path)
    const store = new LibSQLStore({ url: `file:${path}` })
    await gone(store, 'p1')
    const claimed = await store.claim(threadId, 'p2')
    expect(claimed?.takenOver).toBe(true)
    expect(claimed && (await begin(store, claimed.fence))).toMatchObject({ resumed: true })
    await store.close()
    look(path, (database) => expect(migrate(database, path, steps)).toBe(true))
    expect(lengths(path)).toEqual([{ id: 'history', right: 1 }, { id: 'drained', right: 1 }])
  })

  it('that two processes begin at once runs once', async () => {
    const path = await ofNewestVersion()
    const [halfway, tried] = [`${path}.halfway`, `${path}.tried`]
    const [first, other] = [0, 1].map(() => migrating(path, `
      writeFileSync(${JSON.stringify(halfway)}, '')
      while (!existsSync(${JSON.stringify(tried)})) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
      return null`)) as [ChildProcess, ChildProcess]
    await Promise.all([first, other].map((child) => once(child, 'message')))
    const exits = [first, other].map((child) => once(child, 'exit'))
    first.send('go')
    await expect.poll(() => existsSync(halfway)).toBe(true)
    // The first one holds the lock until the other one has asked for it.
    const trying = once(other, 'message')
    other.send('go')
    expect(await trying).toContain('trying')
    writeFileSync(tried, '')
    expect(await Promise.all(exits)).toEqual([[0, null], [0, null]])
    look(path, (database) => {
      expect(versionOf(database)).toBe(steps.length)
      expect(database.prepare('SELECT times FROM heed_times').all().map(({ times }) => times)).toEqual([1])
    })
    expect(lengths(path)).toEqual([{ id: 'history', right: 1 }, { id: 'drained', right: 1 }])
  })

  it('of a new file happens whole or not at all', () => {
    const database = new DatabaseSync(':memory:')
    database.exec('CREATE TABLE heed_quotes (in_the_way)')
    expect(() => migrate(database, 'x')).toThrow(/heed_quotes/)
    expect(versionOf(database)).toBe(0)
    expect(database.prepare(`SELECT name FROM sqlite_schema WHERE name LIKE 'heed_%'`).all()).toHaveLength(1)
    database.close()
  })
})
