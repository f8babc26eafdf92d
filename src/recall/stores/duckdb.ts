import { checkNames, checkText } from '../../base/arguments.ts'
import type { VectorMetric } from '../vector-store.ts'
import { loadDriver, VectorTables, type ScoredRow, type VectorDriver, type VectorRow, type VectorTable } from './vector-tables.ts'

export type { VectorMetric }
export type { VectorIndexDescription, VectorQueryResult } from '../vectors/vector-engine.ts'
export type { VectorQuery, VectorUpsert } from '../vectors/vector.ts'

/** The options of `DuckDBVector`. */
export interface DuckDBVectorOptions {
  /** Defaults to `duckdb`. Another id gets all vectors of recall anew. */
  id?: string
  /** The file of the database. Defaults to `:memory:`. */
  path?: string
}

/** The part of `@duckdb/node-api` that is used. Written out: published types need no package that may not be there. */
interface DuckDBModule {
  DuckDBInstance: { create(path: string): Promise<DuckDBInstance> }
}
interface DuckDBInstance {
  connect(): Promise<DuckDBConnection>
  closeSync(): void
}
interface DuckDBConnection {
  run(sql: string, values?: unknown[]): Promise<unknown>
  runAndReadAll(sql: string, values?: unknown[]): Promise<{ getRowObjectsJS(): Array<Record<string, unknown>> }>
  closeSync(): void
}

/**
 * A vector store in a DuckDB file, with the package `@duckdb/node-api`. A query compares every vector, exactly. One process has the file
 * open at a time.
 *
 * @example new Memory({ embedder: 'openai/text-embedding-3-small', vector: new DuckDBVector({ path: './vectors.duckdb' }) })
 */
export class DuckDBVector extends VectorTables {
  constructor(options: DuckDBVectorOptions = {}) {
    checkNames('DuckDBVector', options, ['id', 'path'])
    const { id = 'duckdb', path = ':memory:' } = options
    checkText('id', id)
    checkText('path', path)
    super(id, () => openDatabase(path))
  }
}

async function openDatabase(path: string): Promise<VectorDriver> {
  const { DuckDBInstance: Instance } = await loadDriver<DuckDBModule>('@duckdb/node-api', 'DuckDBVector')
  const instance = await Instance.create(path)
  const connection = await instance.connect()
  await connection.run('CREATE TABLE IF NOT EXISTS heed_vector_indexes (name VARCHAR PRIMARY KEY, dimension INTEGER, metric VARCHAR)')
  return new DuckDBDriver(instance, connection)
}

const scores: Readonly<Record<VectorMetric, (vector: string) => string>> = {
  cosine: (vector) => `coalesce(array_cosine_similarity(vector, ${vector}), 0)`,
  dotproduct: (vector) => `array_inner_product(vector, ${vector})`,
  euclidean: (vector) => `1 / (1 + array_distance(vector, ${vector}))`,
}
const columns = 'id, metadata, vector'
/** The tags as JSON, one line each: a line never contains the end of another. */
const hasTags = (parameter: number) => `list_has_all(string_split(tags, chr(10)), string_split($${parameter}, chr(10)))`

class DuckDBDriver implements VectorDriver {
  readonly #instance: DuckDBInstance
  readonly #connection: DuckDBConnection

  constructor(instance: DuckDBInstance, connection: DuckDBConnection) {
    this.#instance = instance
    this.#connection = connection
  }

  async tables(): Promise<VectorTable[]> {
    return (await this.#all('SELECT name, dimension, metric FROM heed_vector_indexes')) as unknown as VectorTable[]
  }

  async create({ name, dimension, metric }: VectorTable): Promise<void> {
    await this.#transaction(async () => {
      await this.#connection.run(
        `CREATE TABLE ${tableOf(name)} (id VARCHAR PRIMARY KEY, vector FLOAT[${dimension}], metadata VARCHAR, tags VARCHAR)`,
      )
      await this.#connection.run('INSERT INTO heed_vector_indexes VALUES ($1, $2, $3)', [name, dimension, metric])
    })
  }

  async drop({ name }: VectorTable): Promise<void> {
    await this.#transaction(async () => {
      await this.#connection.run(`DROP TABLE ${tableOf(name)}`)
      await this.#connection.run('DELETE FROM heed_vector_indexes WHERE name = $1', [name])
    })
  }

  async count({ name }: VectorTable): Promise<number> {
    return Number((await this.#all(`SELECT count(*) AS count FROM ${tableOf(name)}`))[0]?.count)
  }

  async put({ name, dimension }: VectorTable, rows: readonly VectorRow[]): Promise<void> {
    await this.#transaction(async () => {
      for (const { id, vector, metadata, tags } of rows) {
        await this.#connection.run(
          `INSERT INTO ${tableOf(name)} VALUES ($1, $2::FLOAT[${dimension}], $3, $4)
           ON CONFLICT DO UPDATE SET vector = excluded.vector, metadata = excluded.metadata, tags = excluded.tags`,
          [id, JSON.stringify(Array.from(vector)), metadata, tags.join('\n')],
        )
      }
    })
  }

  async nearest(
    { name, dimension, metric }: VectorTable, vector: Float32Array, tags: readonly string[], limit: number,
  ): Promise<ScoredRow[]> {
    const score = scores[metric](`$1::FLOAT[${dimension}]`)
    const where = tags.length === 0 ? '' : `WHERE ${hasTags(3)}`
    return (await this.#all(`SELECT ${columns}, ${score} AS score FROM ${tableOf(name)} ${where} ORDER BY score DESC, id LIMIT $2`, [
      JSON.stringify(Array.from(vector)), limit, ...(tags.length === 0 ? [] : [tags.join('\n')]),
    ])) as unknown as ScoredRow[]
  }

  async list({ name }: VectorTable, tags: readonly string[], after: string, limit: number): Promise<ScoredRow[]> {
    const where = tags.length === 0 ? '' : `AND ${hasTags(3)}`
    return (await this.#all(`SELECT ${columns} FROM ${tableOf(name)} WHERE id > $1 ${where} ORDER BY id LIMIT $2`, [
      after, limit, ...(tags.length === 0 ? [] : [tags.join('\n')]),
    ])) as unknown as ScoredRow[]
  }

  async find({ name }: VectorTable, ids: readonly string[]): Promise<ScoredRow[]> {
    if (ids.length === 0) return []
    const sql = `SELECT ${columns} FROM ${tableOf(name)} WHERE id IN (${placeholders(ids)})`
    return (await this.#all(sql, [...ids])) as unknown as ScoredRow[]
  }

  async remove({ name }: VectorTable, ids: readonly string[]): Promise<void> {
    await this.#connection.run(`DELETE FROM ${tableOf(name)} WHERE id IN (${placeholders(ids)})`, [...ids])
  }

  async close(): Promise<void> {
    this.#connection.closeSync()
    this.#instance.closeSync()
  }

  async #all(sql: string, values: unknown[] = []): Promise<Array<Record<string, unknown>>> {
    return (await this.#connection.runAndReadAll(sql, values)).getRowObjectsJS()
  }

  async #transaction(work: () => Promise<void>): Promise<void> {
    await this.#connection.run('BEGIN')
    try {
      await work()
      await this.#connection.run('COMMIT')
    } catch (error) {
      await this.#connection.run('ROLLBACK').catch(() => {})
      throw error
    }
  }
}

function placeholders(values: readonly unknown[]): string {
  return values.map((_, at) => `$${at + 1}`).join(', ')
}

/** The names of indexes have no quotes. */
function tableOf(name: string): string {
  return `"vectors of ${name}"`
}
