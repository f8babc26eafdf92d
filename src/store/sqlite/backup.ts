import { existsSync, statSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { refused } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import { makeFolder } from './location.ts'
import { migrations, refuseUnknown, versionOf } from './migrations.ts'

/** Writes the backup under a temporary name and renames it when it is complete and synced. */
export async function writeBackup(to: string, write: (path: string) => Promise<unknown>): Promise<void> {
  if (existsSync(to))
    throw new HeedError('invalid_argument', `There is a file ${to} already. Name another for the backup, or remove it.`, {
      details: { field: 'path' },
    })
  await makeFolder(dirname(to))
  const partial = `${to}.${newId()}.partial`
  try {
    await write(partial)
    await sync(partial)
    await rename(partial, to)
  } finally {
    await rm(partial, { force: true })
  }
  await sync(dirname(to))
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r')
  await handle.sync().finally(() => handle.close())
}

/** Rejects a file that is not a backup, is the database itself, is damaged, or is of a newer Heed. Nothing is written before that. */
export async function checkBackup(path: string, database: string | undefined): Promise<void> {
  if (typeof path !== 'string' || path === '') throw refused('path', 'the path of a backup')
  if (database !== undefined && isSame(path, database)) {
    throw new HeedError('invalid_argument', `${path} is the database that is open, and no backup of it. Name a file that backup() wrote.`, {
      details: { field: 'path' },
    })
  }
  await checkCopy(path)
}

/** Whether two paths name the same file, also through symbolic and hard links. */
function isSame(path: string, database: string): boolean {
  const [one, other] = [path, database].map((name) => statSync(name, { bigint: true, throwIfNoEntry: false }))
  return one !== undefined && other !== undefined && one.ino === other.ino && one.dev === other.dev
}

async function checkCopy(path: string): Promise<void> {
  if (!existsSync(path)) throw new HeedError('invalid_argument', `There is no backup ${path}.`, { details: { field: 'path' } })
  const { DatabaseSync: Database } = await import('node:sqlite')
  const database: DatabaseSync = new Database(path, { readOnly: true })
  try {
    refuseUnknown(database, path)
    const { quick_check: found } = database.prepare('PRAGMA quick_check(1)').get() ?? {}
    if (found !== 'ok') throw new HeedError('store_corrupt', `The backup ${path} is damaged: ${String(found)}. Use another.`)
  } finally {
    database.close()
  }
}

/** Tables that a restore leaves as they are. */
const ofTheMoment: ReadonlySet<string> = new Set(['heed_processes'])

/**
 * Restores the contents of a backup in one transaction: other connections stay open and read the state before it or after it. Active
 * runs are fenced off; runs that were active in the backup are taken over by the next process that runs their agent.
 */
export function restore(database: DatabaseSync, from: string): void {
  database.prepare('ATTACH ? AS backup').run(from)
  const version = Number(database.prepare('PRAGMA backup.user_version').get()?.user_version)
  if (version !== versionOf(database)) {
    throw new HeedError(
      'store_failed',
      `The backup ${from} has schema version ${version}, and this database ${migrations.length}. `
        + 'Open the backup once with this Heed, then restore it.',
    )
  }
  const tables = database
    .prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'heed\\_%' ESCAPE '\\'`)
    .all()
    .map(({ name }) => String(name))
  const triggers = database.prepare(`SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'heed\\_%' ESCAPE '\\'`).all()
  database.exec('BEGIN IMMEDIATE')
  try {
    const floor = Math.max(...['main', 'backup'].map((schema) => lastEpoch(database, schema))) + 1
    const { key } = database.prepare(`SELECT coalesce(max(seq), 0) AS key FROM sqlite_sequence WHERE name = 'heed_threads'`).get() ?? {}
    const recalled = database.prepare('SELECT 1 AS found FROM heed_recall').get() !== undefined
    for (const { name } of triggers) database.exec(`DROP TRIGGER ${String(name)}`)
    for (const table of tables.filter((name) => !ofTheMoment.has(name)))
      database.exec(`DELETE FROM main.${table}; INSERT INTO main.${table} SELECT * FROM backup.${table}`)
    for (const { sql } of triggers) database.exec(String(sql))
    // Epochs and keys only grow: no fence and no cursor from before the restore fits a restored thread.
    database
      .prepare(`UPDATE heed_threads SET epoch = ?1, life = ?1, owner = NULL, due_at = iif(status = 'running', 0, due_at)`)
      .run(floor)
    database.prepare('UPDATE heed_epochs SET floor = ?').run(floor)
    database.prepare(`UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'heed_threads'`).run(Number(key))
    // A new generation makes the index of recall start over. A backup from before recall was first used has no row of it.
    database.exec('UPDATE heed_recall SET generation = hex(randomblob(8))')
    if (recalled) database.exec('INSERT INTO heed_recall (one, generation) VALUES (1, hex(randomblob(8))) ON CONFLICT DO NOTHING')
    database.exec('COMMIT')
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}

/** The highest epoch that a thread of this database may have. */
function lastEpoch(database: DatabaseSync, schema: string): number {
  const text = `SELECT max(floor, (SELECT coalesce(max(epoch), 0) FROM ${schema}.heed_threads)) AS epoch FROM ${schema}.heed_epochs`
  return Number(database.prepare(text).get()?.epoch)
}
