import { fdatasync, readSync, statSync, type BigIntStats } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { HeedError, isHeedError } from '../../base/errors.ts'
import { storeWork } from '../../base/promises.ts'
import { isOurs } from './migrations.ts'

/** How many syncs run at once: later commits need not wait for the end of a slow sync before theirs starts. */
const mostSyncs = 2

/**
 * Makes commits survive a power cut, without making the event loop wait for the disk: SQLite writes its log, this syncs it.
 * A sync covers what was committed before it began. Callers that arrive while the allowed number of syncs is running share the next one.
 */
export class Flusher {
  readonly #sync: () => Promise<void>
  #committed = 0
  #synced = 0
  /** The running syncs, in the order in which they began; they resolve in that order. */
  readonly #syncing: Array<{ covers: number; proof: Promise<unknown>; done: Promise<void> }> = []
  #next: Promise<void> | undefined
  #failure: HeedError | undefined

  constructor(sync: () => Promise<void>) {
    this.#sync = sync
  }

  /** Called after each commit. */
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
    this.#next ??= Promise.allSettled([this.#syncing[0]?.done]).then(() => {
      this.#next = undefined
      return this.#failure ? Promise.reject(this.#failure) : this.#start()
    })
    return this.#next
  }

  /** Resolves when no sync is running. */
  async settled(): Promise<void> {
    await this.#next?.catch(() => {})
    await Promise.allSettled(this.#syncing.map(({ done }) => done))
  }

  #start(): Promise<void> {
    const covers = this.#committed
    // The system reports a failed write once, to the first sync after it: a sync counts only if all syncs before it succeeded.
    const proof = Promise.all([this.#sync(), this.#syncing.at(-1)?.proof])
    storeWork.begin()
    const done = proof.then(
      () => {
        storeWork.end()
        this.#synced = covers
        this.#syncing.shift()
      },
      (error: unknown) => {
        storeWork.end()
        this.#syncing.splice(this.#syncing.indexOf(sync), 1)
        if (error instanceof NotSynced) throw error.failure
        // After a failed sync the system may have dropped what it couldn't write: a later success would prove nothing.
        this.#failure ??= isHeedError(error)
          ? error
          : new HeedError('store_failed', 'The disk refused to make the database durable. Check it, then restart.', { cause: error })
        throw this.#failure
      },
    )
    const sync = { covers, proof, done }
    this.#syncing.push(sync)
    return done
  }
}

/** The error of a sync that could not be made and lost nothing: the next one may succeed, and covers the same commits. */
export class NotSynced extends Error {
  readonly failure: HeedError

  constructor(failure: HeedError) {
    super(failure.message, { cause: failure })
    this.failure = failure
  }
}

/**
 * SQLite's log, as a file to sync. It is the only file of a database that may be opened here: closing a second descriptor of the
 * database or of its index would drop SQLite's locks on them. The log keeps its inode as long as our connection is open, because
 * only the last connection that closes removes it.
 */
export class LogFile {
  readonly #database: string
  readonly #databaseIs: string
  readonly #path: string
  readonly #check: FileCheck
  readonly #head = new Uint8Array(4)
  #opened: Promise<OpenLog> | undefined

  /** Opens the log with the database: a process that runs out of file descriptors later can still sync. */
  static async open(databasePath: string, check: FileCheck): Promise<LogFile> {
    const log = new LogFile(databasePath, check)
    await log.#handle().catch((error: unknown) => {
      throw error instanceof NotSynced ? error.failure : error
    })
    return log
  }

  private constructor(databasePath: string, check: FileCheck) {
    this.#database = databasePath
    this.#check = check
    this.#databaseIs = identityOf(statSync(databasePath, { bigint: true }))
    this.#path = `${databasePath}-wal`
  }

  async sync(): Promise<void> {
    const { handle, is } = await this.#handle()
    await datasync(handle.fd)
    // A deleted file can still be written and synced, but its content is lost. The names of open files are cached by the system: a
    // synchronous stat costs a tenth of one in the thread pool.
    const database = this.#find(this.#database)
    const log = this.#find(this.#path)
    // A log that was truncated and then written has no header, so SQLite ignores it. The content of an empty log is in the database.
    const begins = readSync(handle.fd, this.#head, 0, this.#head.length, 0) === 0 || beginsLog(this.#head)
    // A file that was moved away may be moved back.
    if (identityOf(database) !== this.#databaseIs || identityOf(log) !== is) throw new NotSynced(gone(this.#database))
    if (!begins) throw gone(this.#database)
    this.#check.check(database)
  }

  async close(): Promise<void> {
    const opened = await this.#opened?.catch(() => undefined)
    await opened?.handle.close()
  }

  /** The open log. An attempt that failed is repeated by the next call. */
  #handle(): Promise<OpenLog> {
    this.#opened ??= this.#open().catch((error: unknown) => {
      this.#opened = undefined
      throw error
    })
    return this.#opened
  }

  async #open(): Promise<OpenLog> {
    // The log's name has to survive as well as its contents.
    const folder = await open(dirname(this.#path), 'r').catch(notOpened(this.#database))
    await folder.sync().finally(() => folder.close())
    const handle = await open(this.#path, 'r+').catch(notOpened(this.#database))
    return { handle, is: identityOf(await handle.stat({ bigint: true })) }
  }

  /** The identity of the file that has this name now. */
  #find(path: string): BigIntStats {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false })
    if (!found) throw new NotSynced(gone(this.#database))
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

function notOpened(database: string): (error: NodeJS.ErrnoException) => never {
  return (error) => {
    if (error.code === 'ENOENT') throw new NotSynced(gone(database, error))
    const hint = 'Check its permissions and the limit of open files.'
    const message = `The log of the database ${database} can't be opened: ${error.message}. ${hint}`
    throw new NotSynced(new HeedError('store_failed', message, { cause: error, retryable: true }))
  }
}

function gone(database: string, cause?: unknown): HeedError {
  return new HeedError(
    'store_gone',
    `The database ${database} was deleted, replaced or overwritten while it was open. Nothing more is stored until it is put back.`,
    { cause },
  )
}

/**
 * Whether the database file is still the one that was opened: it may be emptied, cut or overwritten without losing its name. Only a
 * checkpoint, of this process or another, changes it otherwise, and makes it longer at most up to what the connection sees. So it is looked
 * into only when its size or time changed: a tenth of a millisecond, every few thousand commits. A copy of the same length with the header
 * of a Heed is not detected.
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

  /** Throws `store_gone` when the file was replaced or cut. */
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

  /** The length of the file with all of the log copied into it. */
  #seen(): bigint {
    const number = (name: 'page_count' | 'page_size') => BigInt(Number(this.#database.prepare(`PRAGMA ${name}`).get()?.[name]))
    return number('page_count') * number('page_size')
  }
}

function isNoDatabase(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'errcode' in error && error.errcode === 26
}

function overwritten(name: string, why: string): HeedError {
  return new HeedError(
    'store_gone',
    `The database ${name} was overwritten while it was open: ${why}. Nothing more is stored; put it back and restart.`,
  )
}
