/** A value of a column. It and the driver's types below are declared here, so that the published types need none of Node's. */
export type SqlValue = null | number | bigint | string | Uint8Array

/** Executes the statements of one transaction synchronously; for a remote database `replay` implements this. */
export interface Statements {
  /** Counts statements that changed messages, with those outside of `SqlTables`. */
  readonly messageChanges: number
  /** The same for threads, runs and lanes. */
  readonly threadChanges: number
  /** A number that changes after another connection's commit; constant where nothing is kept between transactions. */
  dataVersion(): number
  /** The number of changed rows. */
  run(sql: string, ...values: SqlValue[]): number
  /** The same for a statement whose number of changed rows does not matter: nothing waits for it. */
  execute(sql: string, ...values: SqlValue[]): void
  /** The key of the inserted row: the first value if that is a number, else one that the database chooses. */
  insert(sql: string, ...values: SqlValue[]): number
  /** A key for a new row, where the database does not choose one when the row is inserted. */
  newKey?(table: KeyedTable): number
  /** The first row. The text must name its columns as the fields of `Row`. */
  one<Row extends object>(sql: string, ...values: SqlValue[]): Row | undefined
  all<Row extends object>(sql: string, ...values: SqlValue[]): Row[]
  /** Locks these threads until the transaction ends, in one order. Absent where a transaction excludes all other writers. */
  lockThreads?(lock: ThreadsLock): void
  /**
   * The same for records that are no threads. Locks are taken in the order of `LockedDomain`, and after those of threads. `inbox`: the only
   * resource whose inbox the transaction changes, where that is known.
   */
  lockDomain?(domain: LockedDomain, names?: readonly string[], inbox?: string): void
  /** Reads that follow with the key of this thread as their first value: they are sent together with its lock. */
  foresee?(threadId: string, sql: string, ...values: SqlValue[]): void
}

/** The tables whose keys are read by the transaction that inserts a row. */
export type KeyedTable = 'heed_threads' | 'heed_inbounds' | 'heed_watches' | 'heed_notification_batches'

/** Which threads a transaction locks. */
export interface ThreadsLock {
  ids: readonly string[]
  /** Locks these too, with all threads below them. */
  below?: readonly string[]
  /** The threads that this process owns, and those with signals that only it may run. */
  owner?: string
}

/** What is locked by name: all records of a domain, or those that have one of the names. */
export type LockedDomain =
  | 'pruning' | 'titles' | 'notifications' | 'schedules' | 'subscriptions' | 'watches' | 'usage' | 'recall' | 'scores' | 'edits'

/** The part of `node:sqlite` that is used. */
interface Database {
  prepare(sql: string): Statement
}

interface Statement {
  run(...values: SqlValue[]): { changes: number | bigint; lastInsertRowid: number | bigint }
  get(...values: SqlValue[]): unknown
  all(...values: SqlValue[]): unknown[]
  columns(): Array<{ name: string }>
  setReturnArrays(enabled: boolean): void
}

/** Rows are read as arrays, which costs half as much as objects, and become records. */
interface Prepared {
  readonly statement: Statement
  readonly make: Make
  readonly changesMessages: boolean
  readonly changesThreads: boolean
  /** False for BEGIN and COMMIT, which return the number of rows that the previous statement changed. */
  readonly changesRows: boolean
}

export const messageTable = /\bheed_messages\b/i
/** The cached record of a thread also has whether it has lanes, and its running run. */
export const threadTables = /\bheed_(threads|lanes|runs)\b/i

/** Whether a statement may change one of these tables. */
export function changesTable(tables: RegExp, sql: string): boolean {
  return tables.test(sql) && !/^\s*SELECT\b/i.test(sql)
}

/** Statements of a database in this process, each prepared once. There are as many as texts, however much data the database has. */
export class PreparedStatements implements Statements {
  readonly #database: Database
  readonly #prepared = new Map<string, Prepared>()
  messageChanges = 0
  threadChanges = 0
  rowsWritten = 0

  constructor(database: Database) {
    this.#database = database
  }

  dataVersion(): number {
    return this.one<{ data_version: number }>('PRAGMA data_version')?.data_version ?? -1
  }

  run(sql: string, ...values: SqlValue[]): number {
    const prepared = this.#prepare(sql)
    if (prepared.changesMessages) this.messageChanges += 1
    if (prepared.changesThreads) this.threadChanges += 1
    const changes = Number(prepared.statement.run(...values).changes)
    if (prepared.changesRows) this.rowsWritten += changes
    return changes
  }

  execute(sql: string, ...values: SqlValue[]): void {
    this.run(sql, ...values)
  }

  insert(sql: string, ...values: SqlValue[]): number {
    const prepared = this.#prepare(sql)
    if (prepared.changesMessages) this.messageChanges += 1
    if (prepared.changesThreads) this.threadChanges += 1
    this.rowsWritten += 1
    return Number(prepared.statement.run(...values).lastInsertRowid)
  }

  one<Row extends object>(sql: string, ...values: SqlValue[]): Row | undefined {
    const { statement, make } = this.#prepare(sql)
    const row = statement.get(...values) as SqlValue[] | undefined
    return row && (make(row) as Row)
  }

  all<Row extends object>(sql: string, ...values: SqlValue[]): Row[] {
    const { statement, make } = this.#prepare(sql)
    const rows = statement.all(...values) as SqlValue[][]
    return rows.map((row) => make(row) as Row)
  }

  #prepare(sql: string): Prepared {
    let prepared = this.#prepared.get(sql)
    if (!prepared) {
      const statement = this.#database.prepare(sql)
      statement.setReturnArrays(true)
      prepared = {
        statement,
        make: recordsOf(statement.columns().map(({ name }) => name)),
        changesMessages: changesTable(messageTable, sql),
        changesThreads: changesTable(threadTables, sql),
        changesRows: /^\s*(INSERT|UPDATE|DELETE|WITH|REPLACE)\b/i.test(sql),
      }
      this.#prepared.set(sql, prepared)
    }
    return prepared
  }
}

type Make = (row: readonly SqlValue[]) => Record<string, SqlValue | undefined>

/** A function that makes records of rows with these columns. */
function recordsOf(names: readonly string[]): Make {
  return (row) => {
    const fields: Record<string, SqlValue> = {}
    for (let index = 0; index < names.length; index += 1) fields[names[index] as string] = row[index] as SqlValue
    return fields
  }
}
