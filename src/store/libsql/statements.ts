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
}

/** Prepared statements, each made once. Their number is that of the texts in this folder, and doesn't grow with the data. */
export class Statements {
  readonly #database: Database
  readonly #prepared = new Map<string, Statement>()

  constructor(database: Database) {
    this.#database = database
  }

  /** How many rows changed. */
  run(sql: string, ...values: SqlValue[]): number {
    return Number(this.#statement(sql).run(...values).changes)
  }

  /** The key of the row that was inserted. */
  insert(sql: string, ...values: SqlValue[]): number {
    return Number(this.#statement(sql).run(...values).lastInsertRowid)
  }

  /** The columns are named as the fields of `Row`: the text is the proof. */
  one<Row extends object>(sql: string, ...values: SqlValue[]): Row | undefined {
    return this.#statement(sql).get(...values) as Row | undefined
  }

  all<Row extends object>(sql: string, ...values: SqlValue[]): Row[] {
    return this.#statement(sql).all(...values) as Row[]
  }

  #statement(sql: string): Statement {
    let statement = this.#prepared.get(sql)
    if (!statement) {
      statement = this.#database.prepare(sql)
      this.#prepared.set(sql, statement)
    }
    return statement
  }
}
