import { shapeOf } from './shapes.ts'

/** What a column takes. Written out, as is the database below: published types need none of Node's. */
export type SqlValue = null | number | bigint | string | Uint8Array

/** As much of `node:sqlite` as a store uses. */
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

/** Rows come as arrays, which is half the work of objects, and become records of one shape. */
interface Prepared {
  readonly statement: Statement
  readonly make: ReturnType<typeof shapeOf>
  readonly changesMessages: boolean
  readonly changesThreads: boolean
  /** What is said of transactions answers how many rows the statement before it changed. */
  readonly changesRows: boolean
}

/** Whatever names the table and doesn't begin as a read. */
function changesMessages(sql: string): boolean {
  return /\bheed_messages\b/i.test(sql) && !/^\s*SELECT\b/i.test(sql)
}

/** A thread's record also says whether it has lanes, and is kept with the run that is at work on it. */
function changesThreads(sql: string): boolean {
  return /\bheed_(threads|lanes|runs)\b/i.test(sql) && !/^\s*SELECT\b/i.test(sql)
}

/** Prepared statements, each made once. Their number is that of the texts in this folder, and doesn't grow with the data. */
export class Statements {
  readonly #database: Database
  readonly #prepared = new Map<string, Prepared>()
  /** How many statements were run that change messages, whoever asked for them. */
  messageChanges = 0
  /** The same for threads. */
  threadChanges = 0
  /** How many rows were written. */
  rowsWritten = 0

  constructor(database: Database) {
    this.#database = database
  }

  /** How many rows changed. */
  run(sql: string, ...values: SqlValue[]): number {
    const prepared = this.#prepare(sql)
    if (prepared.changesMessages) this.messageChanges += 1
    if (prepared.changesThreads) this.threadChanges += 1
    const changes = Number(prepared.statement.run(...values).changes)
    if (prepared.changesRows) this.rowsWritten += changes
    return changes
  }

  /** The key of the row that was inserted. */
  insert(sql: string, ...values: SqlValue[]): number {
    const prepared = this.#prepare(sql)
    if (prepared.changesMessages) this.messageChanges += 1
    if (prepared.changesThreads) this.threadChanges += 1
    this.rowsWritten += 1
    return Number(prepared.statement.run(...values).lastInsertRowid)
  }

  /** The columns are named as the fields of `Row`: the text is the proof. */
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
      prepared = { statement, make: shapeOf(statement.columns().map(({ name }) => name)), changesMessages: changesMessages(sql), changesThreads: changesThreads(sql), changesRows: /^\s*(INSERT|UPDATE|DELETE|WITH|REPLACE)\b/i.test(sql) }
      this.#prepared.set(sql, prepared)
    }
    return prepared
  }
}
