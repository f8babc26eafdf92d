import { DatabaseSync } from 'node:sqlite'
import { HeedError } from '../../base/errors.ts'
import { compileFilter, type MetadataFilter } from '../filter/filter.ts'
import { Statements } from '../../store/sql/statements.ts'
import { prepareVectors } from './vector-schema.ts'

export type VectorMetric = 'cosine' | 'euclidean' | 'dotproduct'

export interface VectorIndexDescription {
  dimension: number
  metric: VectorMetric
  count: number
}

export interface VectorQueryResult {
  id: string
  score: number
  metadata: Record<string, unknown>
  vector?: number[]
}

/** Which vectors are meant: by id, by a list of ids, or all that a filter lets through. */
export interface VectorChoice {
  ids?: readonly string[]
  filter?: MetadataFilter
}

interface IndexRow {
  key: number
  dimension: number
  metric: VectorMetric
}

const readAtOnce = 1_000

/**
 * Vectors by index, in a database of their own, which others may have open too: each call is one transaction, from finding the index on. Every
 * question is compared with all that the filter lets through.
 */
export class VectorEngine {
  readonly #database: DatabaseSync
  readonly #statements: Statements

  constructor(path: string) {
    this.#database = new DatabaseSync(path, { timeout: 5_000 })
    try {
      this.#database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
      prepareVectors(this.#database)
    } catch (error) {
      this.#database.close()
      throw error
    }
    this.#statements = new Statements(this.#database)
  }

  createIndex(name: string, dimension: number, metric: VectorMetric): void {
    this.#write(() => {
      const there = this.#find(name)
      if (!there) this.#statements.run('INSERT INTO indexes (name, dimension, metric) VALUES (?, ?, ?)', name, dimension, metric)
      else if (there.dimension !== dimension || there.metric !== metric) {
        const why = `Index '${name}' is there already, with ${there.dimension} dimensions and the metric ${there.metric}. Name another, or delete it first.`
        throw new HeedError('invalid_argument', why, { details: { field: 'indexName', dimension: there.dimension, metric: there.metric } })
      }
    })
  }

  listIndexes(): string[] {
    return this.#statements.all<{ name: string }>('SELECT name FROM indexes ORDER BY name').map(({ name }) => name)
  }

  describeIndex(name: string): VectorIndexDescription {
    return this.#read(() => {
      const { key, dimension, metric } = this.#index(name)
      return { dimension, metric, count: this.#statements.one<{ count: number }>('SELECT count(*) AS count FROM vectors WHERE place = ?', key)?.count ?? 0 }
    })
  }

  deleteIndex(name: string): void {
    this.#write(() => {
      const { key } = this.#index(name)
      this.#statements.run('DELETE FROM vectors WHERE place = ?', key)
      this.#statements.run('DELETE FROM indexes WHERE key = ?', key)
    })
  }

  /** `replacing`: what this filter lets through goes first. */
  upsert(name: string, items: ReadonlyArray<{ id: string; vector: Float32Array; metadata: string }>, replacing?: MetadataFilter): void {
    this.#write(() => {
      const index = this.#index(name)
      for (const { vector } of items) checkDimension(name, index, vector)
      if (replacing) for (const id of this.#chosen(index.key, { filter: replacing })) this.#statements.run('DELETE FROM vectors WHERE place = ? AND id = ?', index.key, id)
      for (const { id, vector, metadata } of items) {
        this.#statements.run(
          'INSERT INTO vectors (place, id, vector, metadata) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET vector = excluded.vector, metadata = excluded.metadata',
          index.key, id, bytesOf(vector), metadata,
        )
      }
    })
  }

  query(name: string, question: Float32Array, { topK, filter, includeVector, minScore }: { topK: number; filter?: MetadataFilter; includeVector: boolean; minScore: number }): VectorQueryResult[] {
    return this.#read(() => {
      const index = this.#index(name)
      checkDimension(name, index, question)
      const best: VectorQueryResult[] = []
      for (const { id, vector, metadata } of this.#rows(index.key, filter)) {
        const numbers = numbersOf(vector)
        const score = scoreOf(index.metric, question, numbers)
        if (score < minScore) continue
        if (best.length >= topK && score <= (best.at(-1)?.score ?? 0)) continue
        const place = best.findIndex((one) => one.score < score)
        best.splice(place < 0 ? best.length : place, 0, { id, score, metadata, ...(includeVector && { vector: Array.from(numbers) }) })
        if (best.length > topK) best.pop()
      }
      return best
    })
  }

  /** Gives vectors another vector, other metadata, or both. Answers how many there were. */
  update(name: string, choice: VectorChoice, { vector, metadata }: { vector?: Float32Array; metadata?: string }): number {
    return this.#write(() => {
      const index = this.#index(name)
      if (vector) checkDimension(name, index, vector)
      return this.#chosen(index.key, choice).reduce((sum, id) => sum + this.#statements.run(
        'UPDATE vectors SET vector = coalesce(?, vector), metadata = coalesce(?, metadata) WHERE place = ? AND id = ?', vector ? bytesOf(vector) : null, metadata ?? null, index.key, id,
      ), 0)
    })
  }

  remove(name: string, choice: VectorChoice): number {
    return this.#write(() => {
      const { key } = this.#index(name)
      return this.#chosen(key, choice).reduce((sum, id) => sum + this.#statements.run('DELETE FROM vectors WHERE place = ? AND id = ?', key, id), 0)
    })
  }

  close(): void {
    this.#database.close()
  }

  #chosen(key: number, { ids, filter }: VectorChoice): readonly string[] {
    return ids ?? Array.from(this.#rows(key, filter), ({ id }) => id)
  }

  *#rows(key: number, filter: MetadataFilter | undefined): Generator<{ id: string; vector: Uint8Array; metadata: Record<string, unknown> }> {
    const test = filter && compileFilter(filter)
    for (let after = '', more = true; more;) {
      const rows = this.#statements.all<{ id: string; vector: Uint8Array; metadata: string }>(
        'SELECT id, vector, metadata FROM vectors WHERE place = ? AND id > ? ORDER BY id LIMIT ?', key, after, readAtOnce,
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
    if (!index) throw new HeedError('not_found', `There is no index '${name}'. Create it: createIndex({ indexName: '${name}', dimension }).`, { details: { field: 'indexName' } })
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
  throw new HeedError('invalid_argument', `Index '${name}' has vectors of ${dimension} numbers, and this one has ${vector.length}. Use the embedder that it was made for.`, {
    details: { field: 'vector', dimension, given: vector.length },
  })
}

function bytesOf(vector: Float32Array): Uint8Array {
  return new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength)
}

function numbersOf(bytes: Uint8Array): Float32Array {
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength))
}

/** The higher, the nearer, for each of them. */
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
