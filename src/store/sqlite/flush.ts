import { fdatasync, readSync, statSync, type BigIntStats } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { HeedError, isHeedError } from '../../base/errors.ts'
import type { FileCheck } from './file-check.ts'

/** Syncs that are under way at once: while a slow one lasts, what was committed after it began is on its way to the disk already. */
const mostSyncs = 2

/**
 * Makes commits survive a power cut, without making the event loop wait for the disk: SQLite writes its log, this syncs it.
 * A sync covers what was committed before it began. Callers that ask while as many as may be are under way share the next one.
 */
export class Flusher {
  readonly #sync: () => Promise<void>
  #committed = 0
  #synced = 0
  /** In the order in which they began, and end. */
  readonly #syncing: Array<{ covers: number; done: Promise<void> }> = []
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
    const last = this.#syncing.at(-1)
    if (last && last.covers >= this.#committed) return last.done
    if (this.#syncing.length < mostSyncs) return this.#start()
    this.#next ??= (this.#syncing[0]?.done ?? Promise.resolve()).then(() => {
      this.#next = undefined
      return this.#start()
    })
    return this.#next
  }

  /** Resolves when nothing is under way. */
  async settled(): Promise<void> {
    await this.#next?.catch(() => {})
    await Promise.allSettled(this.#syncing.map(({ done }) => done))
  }

  #start(): Promise<void> {
    const covers = this.#committed
    // The disk tells of a write that failed once only, to whichever sync asks first: one is good when those before it were.
    const done = Promise.all([this.#sync(), this.#syncing.at(-1)?.done]).then(
      () => {
        this.#synced = covers
        this.#syncing.shift()
      },
      (error: unknown) => {
        // After a failed sync the system may have dropped what it couldn't write: a later success would prove nothing.
        this.#failure ??= isHeedError(error) ? error : new HeedError('store_failed', 'The disk refused to make the database durable. Check it, then restart.', { cause: error })
        throw this.#failure
      },
    )
    this.#syncing.push({ covers, done })
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
