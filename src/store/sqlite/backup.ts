import { existsSync, statSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { refused } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import { makeFolder } from './made-folder.ts'
import { refuseUnknown } from './migrations.ts'

/** Writes a backup under another name first: what has the wanted name is whole and on the disk. */
export async function writeBackup(to: string, write: (path: string) => Promise<unknown>): Promise<void> {
  if (existsSync(to)) throw new HeedError('invalid_argument', `There is a file ${to} already. Name another for the backup, or remove it.`, { details: { field: 'path' } })
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

/** Refuses a backup that is none, is the database itself, is damaged or of a newer Heed, before anything is touched. */
export async function checkBackup(path: string, database: string | undefined): Promise<void> {
  if (typeof path !== 'string' || path === '') throw refused('path', 'the path of a backup')
  if (database !== undefined && isSame(path, database)) {
    throw new HeedError('invalid_argument', `${path} is the database that is open, and no backup of it. Name a file that backup() wrote.`, { details: { field: 'path' } })
  }
  await checkCopy(path)
}

/** One file, whatever it is called: by another path, or through a link of either kind. */
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
