import type { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import type { BigIntStats } from 'node:fs'
import { HeedError, isHeedError } from '../../errors.ts'
import { isOurs } from './migrations.ts'

/** As many of the oldest threads tell one database from another. */
const oldestThreads = 5

/**
 * Whether the database file is still the one that was opened: it may be emptied, cut or overwritten without losing its name. Only a
 * checkpoint, of this process or another, changes it otherwise, so that it is looked into only when its size or time changed: a tenth of a
 * millisecond, every few thousand commits.
 *
 * The file is read through SQLite: to open and close it by other means would drop SQLite's locks. What it holds without the log is compared
 * with what the connection sees.
 */
export class FileCheck {
  readonly #database: DatabaseSync
  readonly #name: string
  readonly #open: (url: URL) => DatabaseSync
  #known = ''
  #size = 0n

  constructor(database: DatabaseSync, name: string) {
    this.#database = database
    this.#name = name
    const Database = database.constructor as typeof DatabaseSync
    this.#open = (url) => new Database(url, { readOnly: true, enableForeignKeyConstraints: false })
  }

  /** Throws by name when it is another file by now, or a part of one. False when that can't be told yet: somebody is writing to it. */
  check({ size, mtimeNs, ctimeNs }: Pick<BigIntStats, 'size' | 'mtimeNs' | 'ctimeNs'>): boolean {
    const print = `${size} ${mtimeNs} ${ctimeNs}`
    if (print === this.#known) return true
    if (size === 0n) throw overwritten(this.#name, 'it is empty')
    const url = pathToFileURL(this.#name)
    url.searchParams.set('immutable', '1')
    let file: DatabaseSync | undefined
    try {
      file = this.#open(url)
      if (!isOurs(file)) throw overwritten(this.#name, 'it is of another program')
      // A file becomes shorter when another program compacts it, or cuts it.
      if (size < this.#size && !isWhole(file)) throw overwritten(this.#name, 'a part of it is missing')
      if (!this.#hasOurThreads(file)) throw overwritten(this.#name, 'it has other threads')
    } catch (error) {
      if (isHeedError(error)) throw error
      if (isNoDatabase(error)) throw overwritten(this.#name, 'it is no database', error)
      if (size < this.#size) throw overwritten(this.#name, 'a part of it is missing', error)
      return false
    } finally {
      file?.close()
    }
    this.#known = print
    this.#size = size
    return true
  }

  #hasOurThreads(file: DatabaseSync): boolean {
    const ours = new Map(threadsOf(this.#database))
    return threadsOf(file).every(([key, thread]) => (ours.get(key) ?? thread) === thread)
  }
}

/** The oldest, by their key, which is never given twice. */
function threadsOf(database: DatabaseSync): Array<[number, string]> {
  const rows = database.prepare(`SELECT key, id, created_at AS at FROM heed_threads ORDER BY key LIMIT ${oldestThreads}`).all()
  return rows.map(({ key, id, at }) => [Number(key), `${String(at)} ${String(id)}`])
}

function isWhole(database: DatabaseSync): boolean {
  return Object.values(database.prepare('PRAGMA quick_check(1)').get() ?? {})[0] === 'ok'
}

function isNoDatabase(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'errcode' in error && error.errcode === 26
}

function overwritten(name: string, why: string, cause?: unknown): HeedError {
  return new HeedError('store_gone', `The database ${name} was overwritten while it was open: ${why}. Nothing more is stored; put it back and restart.`, { cause })
}
