import { open, type FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { HeedError } from '../../errors.ts'

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
        this.#failure = new HeedError('store_failed', 'The disk refused to make the database durable. Check it, then restart.', { cause: error })
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
  readonly #path: string
  #handle: Promise<FileHandle> | undefined

  constructor(databasePath: string) {
    this.#path = `${databasePath}-wal`
  }

  async sync(): Promise<void> {
    this.#handle ??= this.#open()
    const handle = await this.#handle
    await handle.datasync()
  }

  async close(): Promise<void> {
    const handle = await this.#handle?.catch(() => undefined)
    await handle?.close()
  }

  async #open(): Promise<FileHandle> {
    // The log's name has to survive as well as its contents.
    const folder = await open(dirname(this.#path), 'r')
    await folder.sync().finally(() => folder.close())
    return open(this.#path, 'r+')
  }
}
