import { DatabaseSync } from 'node:sqlite'
import { HeedError } from '../../base/errors.ts'
import { compileFilter, type MetadataFilter } from '../filter/filter.ts'
import { PreparedStatements, type Statements } from '../../store/sql/statements.ts'
import { useWriteAheadLog } from '../../store/sqlite/write-ahead.ts'
import type { VectorMetric } from '../vector-store.ts'

export type { VectorMetric }

/** An index of vectors. */
export interface VectorIndexDescription {
  dimension: number
  metric: VectorMetric
  count: number
}

/** A vector that a query found. */
export interface VectorQueryResult {
  id: string
  score: number
  metadata: Record<string, unknown>
  vector?: number[]
}

/** Selects vectors: by a list of ids, or all that match a filter. */
export interface VectorSelection {
  ids?: readonly string[]
  filter?: MetadataFilter
}

interface IndexRow {
  key: number
  dimension: number
  metric: VectorMetric
}

const readAtOnce = 1_000
/** How long a call waits for another process. It blocks the worker thread only. */
const busyTimeoutMs = 5_000

/** The migrations of a vector file, forward only. Version n (`user_version`) is the state after the first n of them. */
const migrations: readonly string[] = [
  // Files from before versions were counted have these tables already.
  `CREATE TABLE IF NOT EXISTS indexes (
     key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL, metric TEXT NOT NULL
   ) STRICT;
   CREATE TABLE IF NOT EXISTS vectors (
     place INTEGER NOT NULL, id TEXT NOT NULL, vector BLOB NOT NULL, metadata TEXT NOT NULL, PRIMARY KEY (place, id)
   ) STRICT;`,
  // AUTOINCREMENT never reuses the key of a deleted index: vectors of the deleted one could otherwise appear in a new one.
  `ALTER TABLE indexes RENAME TO former;
   CREATE TABLE indexes (
     key INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL, metric TEXT NOT NULL
   ) STRICT;
   INSERT INTO indexes SELECT key, name, dimension, metric FROM former ORDER BY key;
   DROP TABLE former;
   DELETE FROM vectors WHERE place NOT IN (SELECT key FROM indexes);`,
]

/**
 * Vectors by index, in a database that other processes may have open too: each call is one transaction. A query compares the question with
 * every vector that matches the filter.
 */
export class VectorEngine {
  readonly #database: DatabaseSync
  readonly #statements: Statements

  constructor(path: string) {
    this.#database = new DatabaseSync(path, { timeout: busyTimeoutMs })
    try {
      useWriteAheadLog(this.#database, busyTimeoutMs)
      this.#database.exec('PRAGMA synchronous = FULL')
      migrate(this.#database)
    } catch (error) {
      this.#database.close()
      throw error
    }
    this.#statements = new PreparedStatements(this.#database)
  }

  createIndex(name: string, dimension: number, metric: VectorMetric): void {
    this.#write(() => {
      const existing = this.#find(name)
      if (!existing) this.#statements.run('INSERT INTO indexes (name, dimension, metric) VALUES (?, ?, ?)', name, dimension, metric)
      else if (existing.dimension !== dimension || existing.metric !== metric) {
        const why = `Index '${name}' already exists, with ${existing.dimension} dimensions and the metric ${existing.metric}.`
          + ' Choose another name, or delete it first.'
        throw new HeedError('invalid_argument', why, {
          details: { field: 'indexName', dimension: existing.dimension, metric: existing.metric },
        })
      }
    })
  }

  listIndexes(): string[] {
    return this.#statements.all<{ name: string }>('SELECT name FROM indexes ORDER BY name').map(({ name }) => name)
  }

  describeIndex(name: string): VectorIndexDescription {
    return this.#read(() => {
      const { key, dimension, metric } = this.#index(name)
      return {
        dimension,
        metric,
        count: this.#statements.one<{ count: number }>('SELECT count(*) AS count FROM vectors WHERE place = ?', key)?.count ?? 0,
      }
    })
  }

  deleteIndex(name: string): void {
    this.#write(() => {
      const { key } = this.#index(name)
      this.#statements.run('DELETE FROM vectors WHERE place = ?', key)
      this.#statements.run('DELETE FROM indexes WHERE key = ?', key)
    })
  }

  /** Deletes what `deleteFilter` matches first. */
  upsert(name: string, items: ReadonlyArray<{ id: string; vector: Float32Array; metadata: string }>, deleteFilter?: MetadataFilter): void {
    this.#write(() => {
      const index = this.#index(name)
      for (const { vector } of items) checkDimension(name, index, vector)
      const deleted = deleteFilter ? this.#selectedIds(index.key, { filter: deleteFilter }) : []
      for (const id of deleted) this.#statements.run('DELETE FROM vectors WHERE place = ? AND id = ?', index.key, id)
      for (const { id, vector, metadata } of items) {
        this.#statements.run(
          `INSERT INTO vectors (place, id, vector, metadata) VALUES (?, ?, ?, ?)
           ON CONFLICT DO UPDATE SET vector = excluded.vector, metadata = excluded.metadata`,
          index.key,
          id,
          encodeVector(vector),
          metadata,
        )
      }
    })
  }

  query(
    name: string,
    question: Float32Array,
    { topK, filter, includeVector, minScore }: { topK: number; filter?: MetadataFilter; includeVector: boolean; minScore: number },
  ): VectorQueryResult[] {
    return this.#read(() => {
      const index = this.#index(name)
      checkDimension(name, index, question)
      const best: VectorQueryResult[] = []
      for (const { id, vector, metadata } of this.#rows(index.key, filter)) {
        const numbers = decodeVector(vector)
        const score = scoreOf(index.metric, question, numbers)
        if (score < minScore) continue
        if (best.length >= topK && score <= (best.at(-1)?.score ?? 0)) continue
        const rank = best.findIndex((one) => one.score < score)
        best.splice(rank < 0 ? best.length : rank, 0, { id, score, metadata, ...(includeVector && { vector: Array.from(numbers) }) })
        if (best.length > topK) best.pop()
      }
      return best
    })
  }

  /** Replaces the vector, the metadata, or both. Returns the number of changed rows. */
  update(name: string, selection: VectorSelection, { vector, metadata }: { vector?: Float32Array; metadata?: string }): number {
    return this.#write(() => {
      const index = this.#index(name)
      if (vector) checkDimension(name, index, vector)
      return this.#selectedIds(index.key, selection).reduce(
        (sum, id) =>
          sum +
          this.#statements.run(
            'UPDATE vectors SET vector = coalesce(?, vector), metadata = coalesce(?, metadata) WHERE place = ? AND id = ?',
            vector ? encodeVector(vector) : null,
            metadata ?? null,
            index.key,
            id,
          ),
        0,
      )
    })
  }

  remove(name: string, selection: VectorSelection): number {
    return this.#write(() => {
      const { key } = this.#index(name)
      return this.#selectedIds(key, selection).reduce(
        (sum, id) => sum + this.#statements.run('DELETE FROM vectors WHERE place = ? AND id = ?', key, id),
        0,
      )
    })
  }

  close(): void {
    this.#database.close()
  }

  #selectedIds(key: number, { ids, filter }: VectorSelection): readonly string[] {
    return ids ?? Array.from(this.#rows(key, filter), ({ id }) => id)
  }

  *#rows(
    key: number,
    filter: MetadataFilter | undefined,
  ): Generator<{ id: string; vector: Uint8Array; metadata: Record<string, unknown> }> {
    const test = filter && compileFilter(filter)
    for (let after = '', more = true; more;) {
      const rows = this.#statements.all<{ id: string; vector: Uint8Array; metadata: string }>(
        'SELECT id, vector, metadata FROM vectors WHERE place = ? AND id > ? ORDER BY id LIMIT ?',
        key,
        after,
        readAtOnce,
      )
      for (const { id, vector, metadata } of rows) {
        const described = JSON.parse(metadata) as Record<string, unknown>
        if (!test || test(described)) yield { id, vector, metadata: described }
      }
      after = rows.at(-1)?.id ?? after
      more = rows.length === readAtOnce
    }
  }

  #find(name: string): IndexRow | undefined {
    return this.#statements.one<IndexRow>('SELECT key, dimension, metric FROM indexes WHERE name = ?', name)
  }

  #index(name: string): IndexRow {
    const index = this.#find(name)
    if (!index)
      throw new HeedError('not_found', `Index '${name}' does not exist. Create it: createIndex({ indexName: '${name}', dimension }).`, {
        details: { field: 'indexName' },
      })
    return index
  }

  #read<Result>(work: () => Result): Result {
    return this.#transaction('BEGIN', work)
  }

  #write<Result>(work: () => Result): Result {
    return this.#transaction('BEGIN IMMEDIATE', work)
  }

  #transaction<Result>(begin: string, work: () => Result): Result {
    this.#database.exec(begin)
    try {
      const result = work()
      this.#database.exec('COMMIT')
      return result
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK')
      throw error
    }
  }
}

function checkDimension(name: string, { dimension }: IndexRow, vector: Float32Array): void {
  if (vector.length === dimension) return
  throw new HeedError(
    'invalid_argument',
    `Index '${name}' has vectors of ${dimension} numbers, this one has ${vector.length}. Use the embedder that the index was created for.`,
    {
      details: { field: 'vector', dimension, given: vector.length },
    },
  )
}

function encodeVector(vector: Float32Array): Uint8Array {
  return new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength)
}

function decodeVector(bytes: Uint8Array): Float32Array {
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength))
}

/** Higher is nearer, for each metric. */
function scoreOf(metric: VectorMetric, a: Float32Array, b: Float32Array): number {
  let [product, squares, others, distance] = [0, 0, 0, 0]
  for (let at = 0; at < a.length; at += 1) {
    const x = a[at] ?? 0
    const y = b[at] ?? 0
    product += x * y
    squares += x * x
    others += y * y
    distance += (x - y) ** 2
  }
  if (metric === 'dotproduct') return product
  return metric === 'cosine' ? product / (Math.sqrt(squares * others) || 1) : 1 / (1 + Math.sqrt(distance))
}

/** Brings a file to the newest version in one transaction, which excludes other processes that open it. */
function migrate(database: DatabaseSync): void {
  if (schemaVersion(database) === migrations.length) return
  database.exec('BEGIN IMMEDIATE')
  try {
    // Another process may have migrated it meanwhile.
    const version = schemaVersion(database)
    if (version > migrations.length) {
      throw new HeedError(
        'store_newer',
        `The vector file has version ${version}; this version of Heed knows up to ${migrations.length}. Update Heed, or use another file.`,
        { details: { version, known: migrations.length } },
      )
    }
    for (const step of migrations.slice(version)) database.exec(step)
    database.exec(`PRAGMA user_version = ${migrations.length}; COMMIT`)
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}

function schemaVersion(database: DatabaseSync): number {
  return Number(database.prepare('PRAGMA user_version').get()?.user_version)
}
