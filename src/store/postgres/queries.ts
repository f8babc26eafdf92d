import { isLost } from './errors.ts'
import { connectClient, type ClientConfig } from './sessions.ts'

/** A client that executes one statement after the other: a `Client` of `pg`, or a PGlite. */
export interface QueryClient {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>
}

/** A `Pool` of `pg`. */
export interface QueryPool {
  connect(): Promise<QueryClient & { release(error?: Error | boolean): void }>
}

export type Row = Record<string, unknown>
export type Query = (text: string, ...values: unknown[]) => Promise<Row[]>

/** One connection for statements and transactions that come one after the other. One that is lost is opened again by the next call. */
export class Queries {
  readonly #from: { config: ClientConfig } | { pool: QueryPool } | { client: QueryClient }
  #own: (QueryClient & { end(): Promise<void> }) | undefined

  constructor(from: { config: ClientConfig } | { pool: QueryPool } | { client: QueryClient }) {
    this.#from = from
  }

  all(text: string, ...values: unknown[]): Promise<Row[]> {
    return this.#use((query) => query(text, ...values))
  }

  transaction<Result>(work: (query: Query) => Promise<Result>): Promise<Result> {
    return this.#use(async (query) => {
      await query('BEGIN')
      try {
        const result = await work(query)
        await query('COMMIT')
        return result
      } catch (error) {
        await query('ROLLBACK').catch(() => {})
        throw error
      }
    })
  }

  async close(): Promise<void> {
    const own = this.#own
    this.#own = undefined
    await own?.end().catch(() => {})
  }

  async #use<Result>(work: (query: Query) => Promise<Result>): Promise<Result> {
    const pooled = 'pool' in this.#from ? await this.#from.pool.connect() : undefined
    const client = pooled ?? ('client' in this.#from ? this.#from.client : await this.#connect())
    const query: Query = async (text, ...values) => (await client.query(text, values)).rows as Row[]
    try {
      const result = await work(query)
      pooled?.release()
      return result
    } catch (error) {
      pooled?.release(isLost(error))
      if (isLost(error)) await this.close()
      throw error
    }
  }

  async #connect(): Promise<QueryClient> {
    if (!('config' in this.#from)) throw new TypeError('only a store with a configuration connects')
    this.#own ??= (await connectClient(this.#from.config)) as unknown as QueryClient & { end(): Promise<void> }
    return this.#own
  }
}
