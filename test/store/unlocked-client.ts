import { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn } from 'node:timers/promises'
import type { LibSQLClient, LibSQLResult, LibSQLTransaction } from '../../src/store/sqlite/remote.ts'
import type { SqlValue } from '../../src/store/sql/statements.ts'

interface Statement {
  sql: string
  args: SqlValue[]
}

const reads = /^\s*(?:SELECT|PRAGMA|WITH(?![\s\S]*\b(?:INSERT|UPDATE|DELETE)\b))/i

/** One connection: the open calls of its store, whether its commit waits for one of the other connection, and whether it is not done. */
interface OpenCalls {
  calls: number
  waits: boolean
  commits: boolean
}

/** One file, its connections, and the transaction whose writes it shows at the moment. */
interface Unlocked {
  readonly database: DatabaseSync
  readonly connections: Set<OpenCalls>
  /** How often two commits met: the one that waited is first when the number is even. */
  meetings: number
  shown: UnlockedTransaction | undefined
}

const files = new Map<string, Unlocked>()

/**
 * A client whose transactions take no lock, as READ COMMITTED without `FOR UPDATE`: each statement reads what is committed by then and
 * the transaction's own writes, and other transactions commit between two of its statements. A commit is atomic. It waits for a commit of
 * the other connection while a call is open there: then both have read before either writes. Which of the two is first alternates.
 */
export function unlockedClient(path: string): { client: LibSQLClient; counted<Store extends object>(store: Store): Store } {
  const file = files.get(path) ?? { database: open(path), connections: new Set<OpenCalls>(), meetings: 0, shown: undefined }
  files.set(path, file)
  const connection: OpenCalls = { calls: 0, waits: false, commits: false }
  file.connections.add(connection)
  const client: LibSQLClient = {
    transaction: async (mode) => new UnlockedTransaction(file, mode === 'write' ? connection : undefined),
    close() {
      file.connections.delete(connection)
      if (file.connections.size > 0) return
      file.database.close()
      files.delete(path)
    },
  }
  return { client, counted: (store) => countCalls(store, connection) }
}

/** The same store, whose open calls are counted. */
function countCalls<Store extends object>(store: Store, connection: OpenCalls): Store {
  const get = (target: Store, name: string | symbol): unknown => {
    const value: unknown = Reflect.get(target, name, target)
    if (name === 'scores') return countCalls(value as object, connection)
    if (typeof value !== 'function') return value
    return async (...args: unknown[]) => {
      connection.calls += 1
      try {
        return await (Reflect.apply(value, target, args) as unknown)
      } finally {
        connection.calls -= 1
      }
    }
  }
  return new Proxy(store, { get })
}

function open(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { enableForeignKeyConstraints: false })
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF')
  return database
}

/** Its writes are taken back when it is another's turn, and done again on what was committed meanwhile when it is its own. */
class UnlockedTransaction implements LibSQLTransaction {
  readonly #file: Unlocked
  /** The connection of a transaction that writes. */
  readonly #writer: OpenCalls | undefined
  readonly #writes: Array<() => void> = []

  constructor(file: Unlocked, writer: OpenCalls | undefined) {
    this.#file = file
    this.#writer = writer
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
    if (this.#writer) await this.#meet(this.#writer)
    this.#shown(() => this.#file.database.exec('COMMIT'))
    this.#file.shown = undefined
  }

  close(): void {
    if (this.#writer) this.#writer.commits = false
    if (this.#file.shown === this) this.#hide()
  }

  async #meet(writer: OpenCalls): Promise<void> {
    const others = [...this.#file.connections].filter((connection) => connection !== writer)
    const waiting = others.find(({ waits }) => waits)
    if (waiting) {
      waiting.waits = false
      this.#file.meetings += 1
      while (this.#file.meetings % 2 === 0 && waiting.commits) await turn()
    } else {
      writer.waits = true
      writer.commits = true
      while (writer.waits && others.some(({ calls }) => calls > 0)) await turn()
      writer.waits = false
    }
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
