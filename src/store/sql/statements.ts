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
  /** The key of the inserted row. */
  insert(sql: string, ...values: SqlValue[]): number
  /** The first row. The text must name its columns as the fields of `Row`. */
  one<Row extends object>(sql: string, ...values: SqlValue[]): Row | undefined
  all<Row extends object>(sql: string, ...values: SqlValue[]): Row[]
}

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

/** Rows are read as arrays, which costs half as much as objects, and become records of one shape. */
interface Prepared {
  readonly statement: Statement
  readonly make: ReturnType<typeof shapeOf>
  readonly changesMessages: boolean
  readonly changesThreads: boolean
  /** False for BEGIN and COMMIT, which return the number of rows that the previous statement changed. */
  readonly changesRows: boolean
}

/** Whether a statement may change one of these tables. */
function changesTable(tables: RegExp, sql: string): boolean {
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
        make: shapeOf(statement.columns().map(({ name }) => name)),
        changesMessages: changesTable(/\bheed_messages\b/i, sql),
        // The cached record of a thread also has whether it has lanes, and its running run.
        changesThreads: changesTable(/\bheed_(threads|lanes|runs)\b/i, sql),
        changesRows: /^\s*(INSERT|UPDATE|DELETE|WITH|REPLACE)\b/i.test(sql),
      }
      this.#prepared.set(sql, prepared)
    }
    return prepared
  }
}

type Make = (row: readonly SqlValue[]) => Record<string, SqlValue | undefined>

/**
 * The records that every turn reads, as object literals. V8 gives a record that is built field by field another hidden class than the
 * literals in `store/core` have, and code that meets both classes is slower. The order of the fields is that of the columns and of the
 * literals.
 */
const recordLiterals: readonly Make[] = [
  // ThreadRecord
  (r) => ({
    key: r[0], id: r[1], resourceId: r[2], title: r[3], metadata: r[4], parentId: r[5], createdAt: r[6], updatedAt: r[7], status: r[8],
    epoch: r[9], owner: r[10], runId: r[11], agentId: r[12], begun: r[13], nextSeq: r[14], nextOrd: r[15], ordinal: r[16], turn: r[17],
    tail: r[18], tailOrdinal: r[19], tailTurn: r[20], dueAt: r[21], laned: r[22],
  }),
  // RowRecord
  (r) => ({
    seq: r[0], id: r[1], messageId: r[2], role: r[3], type: r[4], runId: r[5], step: r[6], content: r[7], createdAt: r[8],
    ordinal: r[9], turn: r[10], counted: r[11],
  }),
  // MailRecord
  (r) => ({
    ord: r[0], id: r[1], agentId: r[2], route: r[3], kind: r[4], state: r[5], runId: r[6], startRunId: r[7], step: r[8], rows: r[9],
    options: r[10], boundTo: r[11], reason: r[12], acceptedAt: r[13],
  }),
  // RunRecord
  (r) => ({
    runId: r[0], agentId: r[1], status: r[2], epoch: r[3], step: r[4], attempts: r[5], options: r[6], started: r[7], suspended: r[8],
    startedAt: r[9], endedAt: r[10], suspendedAt: r[11], error: r[12], usage: r[13], firstSeq: r[14], sealSeq: r[15], staged: r[16],
    lost: r[17], ordinal: r[18], taken: r[19],
  }),
]

const byNames = new Map(recordLiterals.map((make) => [Object.keys(make([])).join(), make]))

/** A function that makes records of rows with these columns; for the records above always the same function. */
export function shapeOf(names: readonly string[]): Make {
  return byNames.get(names.join()) ?? ((row) => {
    const fields: Record<string, SqlValue> = {}
    for (let index = 0; index < names.length; index += 1) fields[names[index] as string] = row[index] as SqlValue
    return fields
  })
}
