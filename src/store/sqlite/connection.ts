import type { DatabaseSync } from 'node:sqlite'
import { sleep, systemClock, type Clock } from '../../base/clock.ts'
import type { ThreadsEnded } from '../contract/threads.ts'
import { inBulk, type BulkJob } from './bulk.ts'
import { Checkpointer } from './checkpoint.ts'
import { isBusy, isDatabaseError, storeFailure } from './failure.ts'
import { FileCheck, Flusher, LogFile } from './flush.ts'
import type { LocalLocation } from './location.ts'
import { migrate, refuseUnknown } from './migrations.ts'
import type { OpenedConnection, SqlConnection, TransactionSteps } from '../sql/driver.ts'
import { PreparedStatements, type Statements } from '../sql/statements.ts'
import { SqlTables } from '../sql/tables.ts'
import { Writer } from './writer.ts'

interface ConnectionOptions {
  location: LocalLocation
  clock: Clock
  /** How long a write waits for the lock of another process, in milliseconds. */
  busyTimeout: number
}

interface Shared {
  users: number
  readonly opening: Promise<Connection>
}

/** The open connections of this process by path: one for each file, however many stores name it. */
const shared = new Map<string, Shared>()

/** A bulk job writes about as many pages as this number of rows. */
const bulkRows = 4_000

/** The one connection of this process to a database: reads are synchronous, writes go through the group commit. */
export class Connection implements SqlConnection {
  readonly name: string
  readonly statements: PreparedStatements
  readonly #database: DatabaseSync
  readonly #tables: SqlTables
  readonly #writer: Writer
  readonly #log: LogFile | undefined
  readonly #flusher: Flusher | undefined
  readonly #checkpointer: Checkpointer | undefined
  readonly #busyTimeout: number
  /** Absent for a database in memory. */
  readonly path: string | undefined
  #purging: Promise<void> | undefined
  readonly #bulk = new Set<Promise<unknown>>()
  #closed = false
  #messageChanges = 0
  /** Changes when another connection has written. */
  #dataVersion = -1
  #rowsWritten = 0
  /** Called after commits that changed messages. Must not throw. */
  readonly onMessages = new Set<() => void>()
  readonly threadsEnded = new Set<ThreadsEnded>()
  /** Objects that use this connection: they are closed before it. */
  readonly onClose = new Set<() => Promise<void>>()

  static async open(options: ConnectionOptions): Promise<Connection> {
    const { DatabaseSync: Database } = await import('node:sqlite')
    const { location } = options
    const name = nameOf(location)
    let database: DatabaseSync | undefined
    try {
      const opened = new Database(location.kind === 'file' ? location.path : ':memory:', { enableForeignKeyConstraints: false, timeout: 0 })
      database = opened
      await patiently(options.busyTimeout, () => prepare(opened, name, location.kind))
      const log = location.kind === 'file' ? await LogFile.open(location.path, new FileCheck(opened, location.path)) : undefined
      return new Connection(opened, options, log)
    } catch (error) {
      database?.close()
      throw storeFailure(error, name)
    }
  }

  /** The connection of this process to a file. The last `release` closes it. */
  static async share(options: ConnectionOptions & { location: { kind: 'file'; path: string } }): Promise<OpenedConnection> {
    const { path } = options.location
    let entry = shared.get(path)
    if (!entry) {
      entry = { users: 0, opening: Connection.open(options) }
      shared.set(path, entry)
    }
    const mine = entry
    mine.users += 1
    const leave = (): boolean => {
      mine.users -= 1
      if (mine.users > 0) return false
      if (shared.get(path) === mine) shared.delete(path)
      return true
    }
    try {
      const connection = await mine.opening
      return {
        connection,
        release: async () => {
          if (leave()) await connection.close()
        },
      }
    } catch (error) {
      leave()
      throw error
    }
  }

  private constructor(database: DatabaseSync, { location, clock, busyTimeout }: ConnectionOptions, log: LogFile | undefined) {
    this.name = nameOf(location)
    this.#database = database
    this.#busyTimeout = busyTimeout
    this.statements = new PreparedStatements(database)
    this.#tables = new SqlTables(this.statements, clock)
    this.#writer = new Writer(this.#transactions(), busyTimeout)
    this.path = location.kind === 'file' ? location.path : undefined
    if (location.kind === 'file' && log) {
      this.#log = log
      this.#flusher = new Flusher(() => log.sync())
      this.#checkpointer = new Checkpointer(
        { path: location.path, pageSize: pageSizeOf(database) },
        {
          hold: () => this.#writer.hold(),
          giveUp: () => database.exec('PRAGMA wal_autocheckpoint = 1000'),
        },
      )
    }
    this.#purge()
  }

  /** Writes in a transaction that all writes of this turn of the event loop share. */
  write<Result>(
    work: (tables: SqlTables, statements: Statements) => Result,
    { first, last }: TransactionSteps<Result> = {},
  ): Promise<Result> {
    return this.#writer.write(() => work(this.#tables, this.statements), { first, last: last && ((result) => last(this.#tables, result)) })
  }

  /** Reads in one snapshot of the database, also with several statements. */
  read<Result>(work: (tables: SqlTables, statements: Statements) => Result): Promise<Result> {
    return this.#look(() => {
      this.#tables.forget()
      this.statements.run('BEGIN')
      try {
        return work(this.#tables, this.statements)
      } finally {
        this.statements.run('COMMIT')
        this.#tables.forget()
      }
    })
  }

  /** Reads with one statement, which needs no transaction for a consistent snapshot. */
  peek<Result>(work: (statements: Statements) => Result): Promise<Result> {
    return this.#look(() => work(this.statements))
  }

  async #look<Result>(act: () => Result): Promise<Result> {
    try {
      return act()
    } catch (error) {
      if (isBusy(error)) return this.#lookAgain(act)
      throw storeFailure(error, this.name)
    }
  }

  async #lookAgain<Result>(act: () => Result): Promise<Result> {
    try {
      return await patiently(this.#busyTimeout, act)
    } catch (error) {
      throw storeFailure(error, this.name)
    }
  }

  /** Runs in a worker thread a job that would block the event loop. Needs a file. */
  async bulk(job: BulkJob): Promise<unknown> {
    if (this.path === undefined) throw new Error('a database in memory has no other threads')
    const done = this.#writer.besideOwnWork()
    const work = inBulk({ path: this.path, busyTimeout: this.#busyTimeout, job })
    this.#bulk.add(work)
    try {
      return await work
    } catch (error) {
      throw storeFailure(error, this.name)
    } finally {
      this.#bulk.delete(work)
      done()
      this.#flusher?.committed()
      this.#checkpointer?.committed(bulkRows)
      for (const tell of this.onMessages) tell()
    }
  }

  /** Writes a copy of a database in memory to a file. */
  async copyTo(path: string): Promise<void> {
    const { backup } = await import('node:sqlite')
    await backup(this.#database, path)
  }

  /** The database itself, for readers of a database in memory, which no other connection can open. */
  get database(): DatabaseSync {
    return this.#database
  }

  isFailure(error: unknown): boolean {
    return isDatabaseError(error)
  }

  flush(): Promise<void> {
    return this.#flusher?.flush() ?? Promise.resolve()
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.allSettled([...this.onClose].map((end) => end()))
    await Promise.allSettled(this.#bulk)
    await this.#writer.close()
    await this.#purging
    await this.#flusher?.settled()
    await this.#log?.close()
    await this.#checkpointer?.close()
    this.#database.close()
  }

  #transactions(): ConstructorParameters<typeof Writer>[0] {
    return {
      begin: () => {
        this.#tables.forget()
        this.statements.run('BEGIN IMMEDIATE')
        this.#refuseNewer()
      },
      commit: () => {
        this.#tables.writeLoaded()
        this.statements.run('COMMIT')
        this.#tables.committed()
        this.#flusher?.committed()
        this.#checkpointer?.committed(this.statements.rowsWritten - this.#rowsWritten)
        this.#rowsWritten = this.statements.rowsWritten
        if (this.#tables.purging) this.#purge()
        if (this.#messageChanges === this.statements.messageChanges) return
        this.#messageChanges = this.statements.messageChanges
        for (const tell of this.onMessages) tell()
      },
      rollback: () => {
        this.#tables.undo()
        // After some failures of the disk SQLite has rolled back by itself.
        if (this.#database.isTransaction) this.statements.run('ROLLBACK')
      },
      failure: (error) => storeFailure(error, this.name),
    }
  }

  /** Rejects writes after another process has migrated the file to a version that this one does not know. */
  #refuseNewer(): void {
    const now = this.#tables.recent.dataVersion()
    if (now === this.#dataVersion) return
    try {
      refuseUnknown(this.#database, this.name)
    } catch (error) {
      this.statements.run('ROLLBACK')
      throw error
    }
    this.#dataVersion = now
  }

  /** Removes the rows of deleted threads in small transactions between other writes. The next open continues what a close interrupts. */
  #purge(): void {
    this.#tables.purging = false
    this.#purging ??= this.#purgeAll().finally(() => {
      this.#purging = undefined
    })
  }

  async #purgeAll(): Promise<void> {
    try {
      while (!this.#closed && (await this.#writer.write(() => this.#tables.purgeSome()))) {
        /* more is left */
      }
    } catch {
      // No query returns these rows; the next open tries again.
    }
  }
}

function nameOf(location: LocalLocation): string {
  return location.kind === 'file' ? location.path : ':memory:'
}

function pageSizeOf(database: DatabaseSync): number {
  return Number(database.prepare('PRAGMA page_size').get()?.page_size)
}

function prepare(database: DatabaseSync, name: string, kind: LocalLocation['kind']): void {
  refuseUnknown(database, name)
  if (kind === 'file') {
    // For a new file. A turn changes a few bytes in each of about thirty pages, and SQLite writes whole pages.
    database.exec('PRAGMA page_size = 2048')
    const { journal_mode: mode } = database.prepare('PRAGMA journal_mode = WAL').get() ?? {}
    if (mode !== 'wal') throw new Error(`it can't keep a write-ahead log there (${String(mode)})`)
  }
  // Commits don't sync: Flusher does. The log is copied back by Checkpointer and keeps at most this size on disk.
  database.exec(`
    PRAGMA synchronous = NORMAL;
    PRAGMA wal_autocheckpoint = 0;
    PRAGMA journal_size_limit = 67108864;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -8000`)
  const changed = kind === 'memory' ? createInMemory(database, name) : migrate(database, name)
  // A new file, its name and its tables are on disk before the first write is confirmed.
  if (changed && kind === 'file') database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
}

/** `deserialize` is not in every Node 24. */
type Copyable = Partial<Record<'serialize', () => Uint8Array> & Record<'deserialize', (bytes: Uint8Array) => void>>

let openedInMemory = 0
let emptyDatabase: Uint8Array | undefined

/**
 * Creates the tables. From the second database in memory of a process on it copies an empty one, in a tenth of the time: programs with
 * many of them are tests. The first database is no copy, because SQLite limits copies to 1 GB.
 */
function createInMemory(database: DatabaseSync & Copyable, name: string): boolean {
  openedInMemory += 1
  if (emptyDatabase && database.deserialize) {
    database.deserialize(emptyDatabase)
    return true
  }
  const changed = migrate(database, name)
  if (openedInMemory > 1) emptyDatabase = database.serialize?.()
  return changed
}

/** Retries while another process holds the file, without blocking the event loop. */
async function patiently<Result>(limit: number, act: () => Result): Promise<Result> {
  const since = performance.now()
  for (let pause = 1; ; pause = Math.min(40, pause * 2)) {
    try {
      return act()
    } catch (error) {
      if (!isBusy(error) || performance.now() - since >= limit) throw error
      await sleep(systemClock, pause * (0.5 + Math.random() / 2))
    }
  }
}
