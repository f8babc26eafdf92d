import { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn } from 'node:timers/promises'
import type { LibSQLClient, LibSQLResult, LibSQLTransaction } from '../../src/store/sqlite/client.ts'
import type { SqlValue } from '../../src/store/sql/statements.ts'

interface Statement {
  sql: string
  args: SqlValue[]
}

const reads = /^\s*(?:SELECT|PRAGMA|WITH(?![\s\S]*\b(?:INSERT|UPDATE|DELETE)\b))/i

/** One file, and the transaction whose writes it shows at the moment. */
interface Unlocked {
  readonly database: DatabaseSync
  clients: number
  shown: UnlockedTransaction | undefined
}

const files = new Map<string, Unlocked>()

/**
 * A client whose transactions take no lock, as READ COMMITTED without `FOR UPDATE`: each statement reads what is committed by then and
 * the transaction's own writes, and other transactions commit between two of its statements. A commit is atomic.
 */
export function unlockedClient(path: string): LibSQLClient {
  const file = files.get(path) ?? { database: open(path), clients: 0, shown: undefined }
  files.set(path, file)
  file.clients += 1
  return {
    transaction: async () => new UnlockedTransaction(file),
    close() {
      file.clients -= 1
      if (file.clients > 0) return
      file.database.close()
      files.delete(path)
    },
  }
}

function open(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { enableForeignKeyConstraints: false })
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF')
  return database
}

/** Its writes are taken back when it is another's turn, and done again on what was committed meanwhile when it is its own. */
class UnlockedTransaction implements LibSQLTransaction {
  readonly #file: Unlocked
  readonly #writes: Array<() => void> = []

  constructor(file: Unlocked) {
    this.#file = file
  }

  async execute(statement: Statement): Promise<LibSQLResult> {
    const [result] = await this.batch([statement])
    return result ?? { columns: [], rows: [], rowsAffected: 0 }
  }

  async batch(statements: Statement[]): Promise<LibSQLResult[]> {
    await turn()
    return this.#shown(() => statements.map((statement) => {
      const act = () => this.#perform(statement)
      const result = act()
      if (!reads.test(statement.sql)) this.#writes.push(act)
      return result
    }))
  }

  async executeMultiple(sql: string): Promise<void> {
    await turn()
    const act = () => this.#file.database.exec(sql)
    this.#shown(act)
    this.#writes.push(act)
  }

  async commit(): Promise<void> {
    await turn()
    this.#shown(() => this.#file.database.exec('COMMIT'))
    this.#file.shown = undefined
  }

  close(): void {
    if (this.#file.shown === this) this.#hide()
  }

  #shown<Result>(act: () => Result): Result {
    const { database } = this.#file
    try {
      if (this.#file.shown !== this) {
        this.#hide()
        database.exec('BEGIN IMMEDIATE')
        this.#file.shown = this
        for (const write of this.#writes) write()
      }
      return act()
    } catch (error) {
      this.#hide()
      throw Object.assign(new Error(error instanceof Error ? error.message : String(error), { cause: error }), { code: 'SQLITE_ERROR' })
    }
  }

  #hide(): void {
    if (this.#file.database.isTransaction) this.#file.database.exec('ROLLBACK')
    this.#file.shown = undefined
  }

  #perform({ sql, args }: Statement): LibSQLResult {
    const statement = this.#file.database.prepare(sql)
    const columns = statement.columns().map(({ name }) => name)
    if (columns.length === 0) {
      const { changes, lastInsertRowid } = statement.run(...args)
      return { columns, rows: [], rowsAffected: Number(changes), lastInsertRowid: BigInt(lastInsertRowid) }
    }
    const rows = statement.all(...args).map((record) => columns.map((name) => record[name]))
    return { columns, rows, rowsAffected: reads.test(sql) ? 0 : rows.length }
  }
}
