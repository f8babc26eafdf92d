import { fdatasync, readSync, statSync, type BigIntStats } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { HeedError, isHeedError } from '../../errors.ts'
import type { FileCheck } from './file-check.ts'

/**
 * Makes commits survive a power cut, without making the event loop wait for the disk: SQLite writes its log, this syncs it.
 * Callers that ask while a sync runs share the next one, which begins after their commit.
 */
export class Flusher {
  readonly #sync: () => Promise<void>
  #committed = 0
  #synced = 0
  #syncing: { covers: number; done: Promise<void> } | undefined
  #next: Promise<void> | undefined
  #failure: HeedError | undefined

  constructor(sync: () => Promise<void>) {
    this.#sync = sync
  }

  /** A transaction was committed. */
  committed(): void {
    this.#committed += 1
  }

  /** Resolves when all that was committed before this call is on disk. */
  flush(): Promise<void> {
    if (this.#failure) return Promise.reject(this.#failure)
    if (this.#synced >= this.#committed) return Promise.resolve()
    if (!this.#syncing) return this.#start()
    if (this.#syncing.covers >= this.#committed) return this.#syncing.done
    this.#next ??= this.#syncing.done.then(() => {
      this.#next = undefined
      return this.#start()
    })
    return this.#next
  }

  /** Resolves when nothing is under way. */
  async settled(): Promise<void> {
    await this.#next?.catch(() => {})
    await this.#syncing?.done.catch(() => {})
  }

  #start(): Promise<void> {
    const covers = this.#committed
    const done = this.#sync().then(
      () => {
        this.#synced = covers
        this.#syncing = undefined
      },
      (error: unknown) => {
        // After a failed sync the system may have dropped what it couldn't write: a later success would prove nothing.
        this.#failure = isHeedError(error) ? error : new HeedError('store_failed', 'The disk refused to make the database durable. Check it, then restart.', { cause: error })
        throw this.#failure
      },
    )
    this.#syncing = { covers, done }
    return done
  }
}

/**
 * SQLite's log, as a file to sync. It is the only file of a database that may be opened here: closing a second descriptor of the
 * database or of its index would drop SQLite's locks on them. The log keeps its inode as long as our connection is open, because
 * only the last connection to go removes it.
 */
export class LogFile {
  readonly #database: string
  readonly #databaseIs: string
  readonly #path: string
  readonly #check: FileCheck
  readonly #head = new Uint8Array(4)
  #opened: Promise<OpenLog> | undefined

  constructor(databasePath: string, check: FileCheck) {
    this.#database = databasePath
    this.#check = check
    this.#databaseIs = identityOf(statSync(databasePath, { bigint: true }))
    this.#path = `${databasePath}-wal`
  }

  async sync(): Promise<void> {
    this.#opened ??= this.#open()
    const { handle, is } = await this.#opened
    await datasync(handle.fd)
    // A file that was deleted can still be written and synced, and nobody will ever find what is in it. Names of files that are open are at hand:
    // to ask for them here costs a tenth of handing the question to another thread.
    const database = this.#find(this.#database)
    const log = this.#find(this.#path)
    // A log that was emptied and written on has nothing where it should begin, and nobody will read it. An empty one is in the database.
    const begins = readSync(handle.fd, this.#head, 0, this.#head.length, 0) === 0 || beginsLog(this.#head)
    if (identityOf(database) !== this.#databaseIs || identityOf(log) !== is || !begins) throw gone(this.#database)
    this.#check.check(database)
  }

  async close(): Promise<void> {
    const opened = await this.#opened?.catch(() => undefined)
    await opened?.handle.close()
  }

  async #open(): Promise<OpenLog> {
    // The log's name has to survive as well as its contents.
    const folder = await open(dirname(this.#path), 'r').catch(missing(this.#database))
    await folder.sync().finally(() => folder.close())
    const handle = await open(this.#path, 'r+').catch(missing(this.#database))
    return { handle, is: identityOf(await handle.stat({ bigint: true })) }
  }

  /** Which file has a name now. */
  #find(path: string): BigIntStats {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false })
    if (!found) throw gone(this.#database)
    return found
  }
}

function datasync(fd: number): Promise<void> {
  return new Promise((resolve, reject) => fdatasync(fd, (error) => (error ? reject(error) : resolve())))
}

interface OpenLog {
  handle: FileHandle
  is: string
}

function identityOf({ dev, ino }: BigIntStats): string {
  return `${dev}:${ino}`
}

/** SQLite's logs begin with 0x377f0682 or 0x377f0683. */
function beginsLog([a, b, c, d = 0]: Uint8Array): boolean {
  return a === 0x37 && b === 0x7f && c === 0x06 && (d | 1) === 0x83
}

function missing(database: string): (error: NodeJS.ErrnoException) => never {
  return (error) => {
    throw error.code === 'ENOENT' ? gone(database, error) : error
  }
}

function gone(database: string, cause?: unknown): HeedError {
  return new HeedError('store_gone', `The database ${database} was deleted, replaced or overwritten while it was open. Nothing more is stored; put it back and restart.`, { cause })
}
