import { checkNames, checkText } from '../../base/arguments.ts'
import type { VectorMetric } from '../vector-store.ts'
import { loadDriver, VectorTables, type ScoredRow, type VectorDriver, type VectorRow, type VectorTable } from './vector-tables.ts'

export type { VectorMetric }
export type { VectorIndexDescription, VectorQueryResult } from '../vectors/vector-engine.ts'
export type { VectorQuery, VectorUpsert } from '../vectors/vector.ts'

/** The options of `LanceDBVector`. */
export interface LanceDBVectorOptions {
  /** Defaults to `lancedb`. Another id gets all vectors of recall anew. */
  id?: string
  /** The folder of the database, or an address that `@lancedb/lancedb` connects to. */
  uri: string
}

/** The part of `@lancedb/lancedb` that is used. Written out: published types need no package that may not be there. */
interface LanceModule {
  connect(uri: string): Promise<LanceConnection>
}
interface LanceConnection {
  tableNames(): Promise<string[]>
  openTable(name: string): Promise<LanceTable>
  createTable(name: string, data: Array<Record<string, unknown>>, options?: { existOk?: boolean }): Promise<LanceTable>
  dropTable(name: string): Promise<void>
  close(): void
}
interface LanceTable {
  countRows(): Promise<number>
  mergeInsert(on: string): LanceMerge
  vectorSearch(vector: Float32Array): LanceVectorQuery
  query(): LanceQuery
  delete(where: string): Promise<unknown>
  optimize(): Promise<unknown>
  close(): void
}
interface LanceMerge {
  whenMatchedUpdateAll(): LanceMerge
  whenNotMatchedInsertAll(): LanceMerge
  execute(data: Array<Record<string, unknown>>): Promise<unknown>
}
interface LanceQuery {
  where(condition: string): LanceQuery
  limit(count: number): LanceQuery
  toArray(): Promise<Array<Record<string, unknown>>>
}
interface LanceVectorQuery extends LanceQuery {
  distanceType(type: 'l2' | 'cosine' | 'dot'): LanceVectorQuery
}

/**
 * A vector store in a LanceDB folder, with the package `@lancedb/lancedb`. A query compares every vector, exactly.
 *
 * @example new Memory({ embedder: 'openai/text-embedding-3-small', vector: new LanceDBVector({ uri: './vectors' }) })
 */
export class LanceDBVector extends VectorTables {
  constructor(options: LanceDBVectorOptions) {
    checkNames('LanceDBVector', options, ['id', 'uri'])
    const { id = 'lancedb', uri } = options
    checkText('id', id)
    checkText('uri', uri)
    super(id, async () => {
      const { connect } = await loadDriver<LanceModule>('@lancedb/lancedb', 'LanceDBVector')
      return new LanceDriver(await connect(uri))
    })
  }
}

const distances: Readonly<Record<VectorMetric, 'l2' | 'cosine' | 'dot'>> = { cosine: 'cosine', dotproduct: 'dot', euclidean: 'l2' }
const prefix = 'heed_vectors'
/** LanceDB writes a file per change, and joins them when it is asked to. */
const changesBeforeOptimize = 64
/** A table gets its columns from a first row, which is deleted at once. */
const firstId = 'first'

class LanceDriver implements VectorDriver {
  readonly #connection: LanceConnection
  readonly #open = new Map<string, Promise<LanceTable>>()
  #changes = 0

  constructor(connection: LanceConnection) {
    this.#connection = connection
  }

  /** The name of a table has the settings of its index: LanceDB stores none. */
  async tables(): Promise<VectorTable[]> {
    return (await this.#connection.tableNames()).flatMap((table) => {
      const [, metric, dimension, name] = /^heed_vectors\.(\w+)\.(\d+)\.(.+)$/.exec(table) ?? []
      return name === undefined ? [] : [{ name, dimension: Number(dimension), metric: metric as VectorMetric }]
    })
  }

  async create(table: VectorTable): Promise<void> {
    const vector = Array.from({ length: table.dimension }, () => 0)
    const created = await this.#connection.createTable(tableOf(table), [{ id: firstId, vector, metadata: '{}', tags: [''] }])
    await created.delete(`id = '${firstId}'`)
    created.close()
  }

  async drop(table: VectorTable): Promise<void> {
    ;(await this.#open.get(tableOf(table)))?.close()
    this.#open.delete(tableOf(table))
    await this.#connection.dropTable(tableOf(table))
  }

  async count(table: VectorTable): Promise<number> {
    return (await this.#table(table)).countRows()
  }

  async put(table: VectorTable, rows: readonly VectorRow[]): Promise<void> {
    const into = await this.#table(table)
    const data = rows.map(({ id, vector, metadata, tags }) => ({ id, vector: Array.from(vector), metadata, tags: ['', ...tags] }))
    await into.mergeInsert('id').whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(data)
    this.#changes += 1
    if (this.#changes % changesBeforeOptimize === 0) await into.optimize()
  }

  async nearest(table: VectorTable, vector: Float32Array, tags: readonly string[], limit: number): Promise<ScoredRow[]> {
    const query = (await this.#table(table)).vectorSearch(vector).distanceType(distances[table.metric])
    const rows = await (tags.length === 0 ? query : query.where(hasTags(tags))).limit(limit).toArray()
    return rows.map((row) => ({ ...rowOf(row), score: scoreOf(table.metric, Number(row._distance)) }))
  }

  async list(table: VectorTable, tags: readonly string[], after: string, limit: number): Promise<Array<Omit<ScoredRow, 'score'>>> {
    // A query has no order: all ids are read, then the rows of the first of them.
    const where = [`id > ${text(after)}`, ...(tags.length === 0 ? [] : [hasTags(tags)])].join(' AND ')
    const rows = await (await this.#table(table)).query().where(where).limit(Number.MAX_SAFE_INTEGER).toArray()
    return rows.map(rowOf).toSorted((a, b) => (a.id < b.id ? -1 : 1)).slice(0, limit)
  }

  async find(table: VectorTable, ids: readonly string[]): Promise<Array<Omit<ScoredRow, 'score'>>> {
    if (ids.length === 0) return []
    const rows = await (await this.#table(table)).query().where(`id IN (${ids.map(text).join(', ')})`).limit(ids.length).toArray()
    return rows.map(rowOf)
  }

  async remove(table: VectorTable, ids: readonly string[]): Promise<void> {
    await (await this.#table(table)).delete(`id IN (${ids.map(text).join(', ')})`)
  }

  async close(): Promise<void> {
    for (const table of this.#open.values()) (await table).close()
    this.#connection.close()
  }

  #table(table: VectorTable): Promise<LanceTable> {
    const name = tableOf(table)
    let opening = this.#open.get(name)
    if (!opening) {
      opening = this.#connection.openTable(name)
      this.#open.set(name, opening)
      opening.catch(() => this.#open.delete(name))
    }
    return opening
  }
}

function rowOf({ id, metadata, vector }: Record<string, unknown>): Omit<ScoredRow, 'score'> {
  return { id: id as string, metadata: metadata as string, vector: Array.from(vector as Iterable<number>) }
}

/** LanceDB returns 1 minus the cosine, 1 minus the dot product, or the square of the distance. */
function scoreOf(metric: VectorMetric, distance: number): number {
  if (metric === 'euclidean') return 1 / (1 + Math.sqrt(Math.max(0, distance)))
  return Number.isNaN(distance) ? 0 : 1 - distance
}

function hasTags(tags: readonly string[]): string {
  return `array_has_all(tags, [${tags.map(text).join(', ')}])`
}

function text(value: string): string {
  return `'${value.replaceAll("'", "''")}'`
}

function tableOf({ name, dimension, metric }: VectorTable): string {
  return `${prefix}.${metric}.${dimension}.${name}`
}
