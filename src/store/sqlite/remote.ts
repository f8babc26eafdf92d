import { HeedError, isHeedError, packageError } from '../../base/errors.ts'
import { storeWork } from '../../base/promises.ts'
import type { SqlValue, Statements } from '../sql/statements.ts'
import { sleep, systemClock, type Clock } from '../../base/clock.ts'
import type { ThreadsEnded } from '../contract/threads.ts'
import { migrations, newer, unreleased, stepsFrom } from './migrations.ts'
import type { SqlAnswer } from '../sql/replay/known-answers.ts'
import { SpeculationFailed, replay, type Execute, type Replayed, type SpeculationLevel } from '../sql/replay/replay.ts'
import { SeenHeartbeats } from '../sql/seen-heartbeats.ts'
import type { SqlTables } from '../sql/tables.ts'
import type { SqlConnection, TransactionSteps } from '../sql/driver.ts'

/** As much of a client of `@libsql/client` as a store uses. Written out: published types need no package that may not be there. */
export interface LibSQLClient {
  transaction(mode: 'write' | 'read' | 'deferred'): Promise<LibSQLTransaction>
  close(): void
}

/** A transaction of a libSQL client. */
export interface LibSQLTransaction {
  execute(statement: { sql: string; args: SqlValue[] }): Promise<LibSQLResult>
  /** All in one round trip. Without it each is sent by itself. */
  batch?(statements: Array<{ sql: string; args: SqlValue[] }>): Promise<LibSQLResult[]>
  executeMultiple(sql: string): Promise<void>
  commit(): Promise<void>
  close(): void
}

/** The result of a statement, as `@libsql/client` returns it. */
export interface LibSQLResult {
  columns: string[]
  rows: ReadonlyArray<ArrayLike<unknown>>
  rowsAffected: number
  lastInsertRowid?: bigint | undefined
}

/** A client for a database elsewhere. The package is loaded when it is first needed. */
export async function remoteClient(url: string, authToken: string | undefined): Promise<LibSQLClient> {
  const name = '@libsql/client'
  let createClient: (config: { url: string; authToken?: string }) => LibSQLClient
  try {
    ;({ createClient } = (await import(name)) as { createClient: typeof createClient })
  } catch (cause) {
    throw packageError(name, `${url.slice(0, url.indexOf(':'))}: databases need the package ${name}: npm install ${name}.`, cause)
  }
  try {
    return createClient({ url, ...(authToken !== undefined && { authToken }) })
  } catch (cause) {
    throw new HeedError('invalid_argument', `"${url}" names no database: ${cause instanceof Error ? cause.message : String(cause)}.`, {
      cause,
      details: { field: 'url' },
    })
  }
}

interface Job {
  work(tables: SqlTables, statements: Statements): unknown
  last: ((tables: SqlTables, result: unknown) => unknown) | undefined
  resolve(result: unknown): void
  reject(error: unknown): void
}

/** A transaction is done again for each answer that it waits for: with few jobs that costs little. */
const jobsAtOnce = 16
const maxQueued = 100_000
/** A client has 20 connections unless its user chose another number, and each open transaction has one: further reads wait. */
const readsAtOnce = 16

const versionTable = 'CREATE TABLE IF NOT EXISTS heed_version (version INTEGER NOT NULL) STRICT'
/** What development versions before 0.1.0 had in its place. */
const unreleasedTable = `SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'heed_schema'`

/** A database that is reached through a client. The statements are those of a file; a round trip has as many as can be foreseen. */
export class RemoteConnection implements SqlConnection {
  readonly name: string
  readonly threadsEnded = new Set<ThreadsEnded>()
  readonly onMessages = new Set<() => void>()
  readonly onClose = new Set<() => Promise<void>>()
  readonly #client: LibSQLClient
  readonly #clock: Clock
  readonly #seen = new SeenHeartbeats()
  readonly #busyTimeout: number
  #jobs: Job[] = []
  #pumping: Promise<void> | undefined
  readonly #reading = new Set<Promise<unknown>>()
  #reads = 0
  readonly #waitingReads: Array<() => void> = []
  #purging = false
  #closed = false

  static async open(client: LibSQLClient, options: { name: string; clock: Clock; busyTimeout: number }): Promise<RemoteConnection> {
    const connection = new RemoteConnection(client, options)
    await connection.#transaction('write', (transaction) => migrate(transaction, options.name))
    return connection
  }

  private constructor(client: LibSQLClient, { name, clock, busyTimeout }: { name: string; clock: Clock; busyTimeout: number }) {
    this.#client = client
    this.name = name
    this.#clock = clock
    this.#busyTimeout = busyTimeout
  }

  /** In the order in which they came. What is asked for while others are at work shares the next transaction. */
  write<Result>(work: (tables: SqlTables, statements: Statements) => Result, steps?: TransactionSteps<Result>): Promise<Result> {
    if (this.#closed) return Promise.reject(new HeedError('closed', 'This store was closed. Open a new one.'))
    return this.#add(work, steps)
  }

  #add<Result>(
    work: (tables: SqlTables, statements: Statements) => Result,
    { first, last }: TransactionSteps<Result> = {},
  ): Promise<Result> {
    if (this.#jobs.length >= maxQueued) {
      return Promise.reject(
        new HeedError('store_failed', `${maxQueued} writes wait already. Send slower, or try again.`, { retryable: true }),
      )
    }
    return new Promise<Result>((resolve, reject) => {
      const job: Job = { work, last: last as Job['last'], resolve: (result) => resolve(result as Result), reject }
      if (first) this.#jobs.unshift(job)
      else this.#jobs.push(job)
      this.#pumping ??= this.#pump()
    })
  }

  async #pump(): Promise<void> {
    while (this.#jobs.length > 0) {
      await new Promise<void>((resolve) => setImmediate(resolve))
      const jobs = this.#jobs.splice(0, jobsAtOnce)
      // One that is refused takes the others of its transaction along: each is then done by itself.
      if (!(await this.#perform(jobs, jobs.length > 1))) for (const job of jobs) await this.#perform([job], false)
    }
    // In the same moment in which nothing was found waiting: what comes next starts another.
    this.#pumping = undefined
  }

  /** False, and nothing, when one of several was refused. */
  async #perform(jobs: readonly Job[], several: boolean): Promise<boolean> {
    try {
      const { result, purging, changedMessages } = await this.#replayed('write', (tables, statements) => {
        const results = jobs.map(({ work }) => work(tables, statements))
        return jobs.map(({ last }, index) => (last ? last(tables, results[index]) : results[index]))
      })
      for (const [index, { resolve }] of jobs.entries()) resolve(result[index])
      if (changedMessages) for (const tell of this.onMessages) tell()
      if (purging) this.#purge()
      return true
    } catch (error) {
      if (several) return false
      jobs[0]?.reject(error)
      return true
    }
  }

  read<Result>(work: (tables: SqlTables, statements: Statements) => Result): Promise<Result> {
    const reading = this.#readInTurn(work)
    this.#reading.add(reading)
    const forget = () => this.#reading.delete(reading)
    reading.then(forget, forget)
    return reading
  }

  async #readInTurn<Result>(work: (tables: SqlTables, statements: Statements) => Result): Promise<Result> {
    if (this.#reads < readsAtOnce) this.#reads += 1
    // One that ends leaves its turn to the next.
    else await new Promise<void>((resolve) => this.#waitingReads.push(resolve))
    try {
      return (await this.#replayed('deferred', work)).result
    } finally {
      const next = this.#waitingReads.shift()
      if (next) next()
      else this.#reads -= 1
    }
  }

  /** The server answers a commit when it is durable. */
  async flush(): Promise<void> {}

  async close(): Promise<void> {
    await Promise.allSettled([...this.onClose].map((end) => end()))
    this.#closed = true
    await this.#pumping
    await Promise.allSettled(this.#reading)
    this.#client.close()
  }

  /** What deleted threads left goes a little at a time. What a close interrupts goes on with the next that is deleted. */
  #purge(): void {
    if (this.#purging) return
    this.#purging = true
    this.#purgeAll()
      .finally(() => {
        this.#purging = false
      })
      .catch(() => {
        // These rows are invisible; the next deletion of a thread deletes them.
      })
  }

  async #purgeAll(): Promise<void> {
    while (!this.#closed && (await this.#add((tables) => tables.purgeSome()))) {
      /* more is left */
    }
  }

  async #replayed<Result>(
    mode: 'write' | 'deferred',
    work: (tables: SqlTables, statements: Statements) => Result,
  ): Promise<Replayed<Result>> {
    const attempt = (level: SpeculationLevel) =>
      this.#transaction(mode, (transaction) => replay(executeIn(transaction), this.#clock, work, { seen: this.#seen, level }))
    for (const level of ['much', 'little'] as const) {
      try {
        return await attempt(level)
      } catch (error) {
        if (!(error instanceof SpeculationFailed)) throw error
      }
    }
    return attempt('nothing')
  }

  /** Retries while another client writes: a transaction that did not begin, or was rejected, changed nothing. */
  async #transaction<Result>(mode: 'write' | 'deferred', work: (transaction: LibSQLTransaction) => Promise<Result>): Promise<Result> {
    const since = performance.now()
    storeWork.begin()
    try {
      for (let pause = 1; ; pause = Math.min(40, pause * 2)) {
        try {
          return await this.#once(mode, work)
        } catch (error) {
          if (isHeedError(error) || error instanceof SpeculationFailed) throw error
          if (!isBusy(error) || performance.now() - since >= this.#busyTimeout) throw failure(error, this.name)
          await sleep(systemClock, pause * (0.5 + Math.random() / 2))
        }
      }
    } finally {
      storeWork.end()
    }
  }

  async #once<Result>(mode: 'write' | 'deferred', work: (transaction: LibSQLTransaction) => Promise<Result>): Promise<Result> {
    const transaction = await this.#client.transaction(mode)
    try {
      const result = await work(transaction)
      await transaction.commit()
      return result
    } finally {
      // Undoes what wasn't committed.
      transaction.close()
    }
  }
}

function executeIn(transaction: LibSQLTransaction): Execute {
  return async ({ statements: [first, ...more] }) => {
    if (!first) return { answers: [] }
    const { batch } = transaction
    if (more.length === 0 || !batch) {
      const answers = [answerOf(await transaction.execute(first))]
      for (const one of more) answers.push(answerOf(await transaction.execute(one)))
      return { answers }
    }
    try {
      return { answers: (await batch.call(transaction, [first, ...more])).map(answerOf) }
    } catch (error) {
      // It may be for what was guessed that one of them failed; if it isn't, it fails again.
      if (/^SQLITE_(?!BUSY|LOCKED)/.test(codeOf(error)))
        throw new SpeculationFailed('statements that were sent on a guess failed', { cause: error })
      throw error
    }
  }
}

function answerOf({ columns, rows, rowsAffected, lastInsertRowid }: LibSQLResult): SqlAnswer {
  return {
    rows: rows.map((row) => Object.fromEntries(columns.map((column, index) => [column, valueOf(row[index])]))),
    changes: rowsAffected,
    lastInsertRowid: Number(lastInsertRowid ?? 0),
  }
}

/** The client returns a blob as an `ArrayBuffer`. */
function valueOf(value: unknown): unknown {
  return value instanceof ArrayBuffer ? new Uint8Array(value) : value
}

/** Runs the missing steps in one transaction. The version is in a table: servers refuse some pragmas. */
async function migrate(transaction: LibSQLTransaction, name: string): Promise<void> {
  if ((await transaction.execute({ sql: unreleasedTable, args: [] })).rows.length > 0) {
    const { rows } = await transaction.execute({ sql: 'SELECT max(version) FROM heed_schema', args: [] })
    throw unreleased(name, Number(rows[0]?.[0] ?? 0))
  }
  await transaction.execute({ sql: versionTable, args: [] })
  const { rows } = await transaction.execute({ sql: 'SELECT max(version) FROM heed_version', args: [] })
  const version = Number(rows[0]?.[0] ?? 0)
  if (version > migrations.length) throw newer(name, version, migrations.length)
  if (version === migrations.length) return
  for (const step of stepsFrom(version)) await transaction.executeMultiple(step)
  await transaction.execute({ sql: 'INSERT INTO heed_version (version) VALUES (?)', args: [migrations.length] })
}

function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : ''
}

/** Another transaction of this client or of another one is in the way. A client that the user shares may have no free connection. */
function isBusy(error: unknown): boolean {
  return /^SQLITE_BUSY|^SQLITE_LOCKED|^TRANSACTION_ACTIVE$/.test(codeOf(error))
}

function failure(error: unknown, name: string): HeedError {
  const why = error instanceof Error ? error.message : String(error)
  if (/^SQLITE_(?:CORRUPT|NOTADB)/.test(codeOf(error)))
    return new HeedError('store_corrupt', `The database ${name} is damaged or is none: ${why}.`, { cause: error })
  // A connection that broke, or a server that is away, may be there again.
  const retryable = !/^SQLITE_(?!BUSY|LOCKED)/.test(codeOf(error))
  return new HeedError('store_failed', `The database ${name} refused: ${why}.`, { cause: error, retryable })
}
