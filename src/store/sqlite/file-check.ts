import type { BigIntStats } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { HeedError } from '../../base/errors.ts'
import { isOurs } from './migrations.ts'

/**
 * Whether the database file is still the one that was opened: it may be emptied, cut or overwritten without losing its name. Only a
 * checkpoint, of this process or another, changes it otherwise, and makes it longer at most up to what the connection sees. So it is looked
 * into only when its size or time changed: a tenth of a millisecond, every few thousand commits. A copy of the same length with the header of a
 * Heed is not told apart.
 *
 * The file is read through SQLite: to open and close it by other means would drop SQLite's locks. Only its header is: without the log
 * its pages are of different times.
 */
export class FileCheck {
  readonly #database: DatabaseSync
  readonly #name: string
  readonly #url: URL
  #known = ''
  #size = 0n

  constructor(database: DatabaseSync, name: string) {
    this.#database = database
    this.#name = name
    this.#url = pathToFileURL(name)
    this.#url.searchParams.set('immutable', '1')
  }

  /** Throws by name when it is another file by now, or a part of one. */
  check({ size, mtimeNs, ctimeNs }: Pick<BigIntStats, 'size' | 'mtimeNs' | 'ctimeNs'>): void {
    const print = `${size} ${mtimeNs} ${ctimeNs}`
    if (print === this.#known) return
    if (size === 0n) throw overwritten(this.#name, 'it is empty')
    if (!this.#isOurs()) throw overwritten(this.#name, 'it is of another program')
    if (size < this.#size && size < this.#seen()) throw overwritten(this.#name, 'a part of it is missing')
    if (size > this.#seen()) throw overwritten(this.#name, 'it is longer than what was written')
    this.#known = print
    this.#size = size
  }

  #isOurs(): boolean {
    const Database = this.#database.constructor as typeof DatabaseSync
    let file: DatabaseSync | undefined
    try {
      file = new Database(this.#url, { readOnly: true, enableForeignKeyConstraints: false })
      return isOurs(file)
    } catch (error) {
      // A checkpoint that is under way, or was cut short, leaves a file that is shorter than its header says; the log has the rest.
      return !isNoDatabase(error)
    } finally {
      file?.close()
    }
  }

  /** How long the file would be if all of the log were in it. */
  #seen(): bigint {
    const number = (name: 'page_count' | 'page_size') => BigInt(Number(this.#database.prepare(`PRAGMA ${name}`).get()?.[name]))
    return number('page_count') * number('page_size')
  }
}

function isNoDatabase(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'errcode' in error && error.errcode === 26
}

function overwritten(name: string, why: string): HeedError {
  return new HeedError('store_gone', `The database ${name} was overwritten while it was open: ${why}. Nothing more is stored; put it back and restart.`)
}
