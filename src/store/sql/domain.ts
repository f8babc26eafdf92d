import type { DatabaseConnection } from '../sqlite/remote.ts'
import type { Statements } from './statements.ts'

/** Whoever has the connection to a database: a `LibSQLStore`. */
export interface ConnectionHolder {
  open(): Promise<void>
  close(): Promise<void>
  /** @internal */
  now(): number
  /** @internal */
  connection(): Promise<DatabaseConnection>
}

/** A domain in a database: that of the threads, or one of its own. */
export abstract class LibSQLDomain {
  readonly #holder: ConnectionHolder
  readonly #owned: boolean

  /** `owned`: closing the domain closes the holder, which is otherwise left to whoever has it. */
  constructor(holder: ConnectionHolder, { owned = false }: { owned?: boolean } = {}) {
    this.#holder = holder
    this.#owned = owned
  }

  open(): Promise<void> {
    return this.#holder.open()
  }

  async close(): Promise<void> {
    if (this.#owned) await this.#holder.close()
  }

  async flush(): Promise<void> {
    await (await this.#holder.connection()).flush()
  }

  protected now(): number {
    return this.#holder.now()
  }

  /** One transaction. It may be done again: ids that it makes up come from `newId`, and are the same each time. */
  protected async write<Result>(work: (statements: Statements, newId: () => string) => Result): Promise<Result> {
    const connection = await this.#holder.connection()
    return connection.write((tables, statements) => work(statements, tables.newId))
  }

  /** Sees one state of the database. */
  protected async read<Result>(work: (statements: Statements) => Result): Promise<Result> {
    const connection = await this.#holder.connection()
    return connection.read((_, statements) => work(statements))
  }

  /** A read of one statement, where that needs no transaction. */
  protected async peek<Result>(work: (statements: Statements) => Result): Promise<Result> {
    const connection = await this.#holder.connection()
    return connection.peek ? connection.peek(work) : connection.read((_, statements) => work(statements))
  }
}
