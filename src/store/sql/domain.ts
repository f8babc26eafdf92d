import type { ConnectionOwner } from './driver.ts'
import type { Statements } from './statements.ts'
import type { SqlTables } from './tables.ts'

/** A domain of a store, in the database of the threads or in another one. */
export abstract class SqlDomain {
  readonly #owner: ConnectionOwner
  readonly #owned: boolean

  /** `owned`: closing the domain closes the owner of its connection. */
  constructor(owner: ConnectionOwner, { owned = false }: { owned?: boolean } = {}) {
    this.#owner = owner
    this.#owned = owned
  }

  open(): Promise<void> {
    return this.#owner.open()
  }

  async close(): Promise<void> {
    if (this.#owned) await this.#owner.close()
  }

  async flush(): Promise<void> {
    await (await this.#owner.connection()).flush()
  }

  protected now(): number {
    return this.#owner.now()
  }

  /** One transaction. It may be replayed: `newId` of the tables then returns the same ids. */
  protected async write<Result>(work: (statements: Statements, tables: SqlTables) => Result): Promise<Result> {
    const connection = await this.#owner.connection()
    return connection.write((tables, statements) => work(statements, tables))
  }

  /** Runs on one snapshot of the database. */
  protected async read<Result>(work: (statements: Statements) => Result): Promise<Result> {
    const connection = await this.#owner.connection()
    return connection.read((_, statements) => work(statements))
  }

  /** A read with a single statement, without a transaction where possible. */
  protected async peek<Result>(work: (statements: Statements) => Result): Promise<Result> {
    const connection = await this.#owner.connection()
    return connection.peek ? connection.peek(work) : connection.read((_, statements) => work(statements))
  }
}
