import { HeedError } from '../../errors.ts'
import { newId } from '../../ids.ts'
import { compileFilter, type MetadataFilter } from '../../recall/filter.ts'
import { storeFailure } from './failure.ts'
import { parseLocation, resolveFile, type Location } from './location.ts'
import type { VectorEngine, VectorIndexDescription, VectorMetric, VectorQueryResult } from './recall/vector-engine.ts'
import { WorkerCalls } from './recall/worker-calls.ts'

export interface LibSQLVectorOptions {
  id?: string
  /** `file:./path.db`, or `:memory:`. Vectors are kept in a file beside it, `<path>-vectors`. */
  url: string
}

type Call = 'createIndex' | 'listIndexes' | 'describeIndex' | 'deleteIndex' | 'upsert' | 'query' | 'update' | 'remove'
type Chosen = { id: string; ids?: never; filter?: never } | { ids: readonly string[]; id?: never; filter?: never } | { filter: MetadataFilter; id?: never; ids?: never }

const metrics: readonly VectorMetric[] = ['cosine', 'euclidean', 'dotproduct']

/**
 * A store of vectors in a local file, compared in a thread of its own. As the `vector` of a memory it stands for the vectors that recall
 * keeps beside its messages.
 */
export class LibSQLVector {
  readonly id: string
  readonly url: string
  /** @internal */
  readonly builtIn = true
  readonly #location: Location
  #opening: Promise<{ ask(call: Call, args: unknown[]): Promise<unknown>; close(): Promise<void> }> | undefined

  constructor({ id = 'libsql-vector', url }: LibSQLVectorOptions) {
    this.id = id
    this.url = url
    this.#location = parseLocation(url)
  }

  /** An index that is there already, with the same dimension and metric, is left as it is. */
  async createIndex({ indexName, dimension, metric = 'cosine' }: { indexName: string; dimension: number; metric?: VectorMetric }): Promise<void> {
    if (!Number.isSafeInteger(dimension) || dimension < 1) throw refused('dimension', 'a whole number above 0')
    if (!metrics.includes(metric)) throw refused('metric', metrics.join(', '))
    await this.#ask('createIndex', named(indexName), dimension, metric)
  }

  listIndexes(): Promise<string[]> {
    return this.#ask('listIndexes')
  }

  describeIndex({ indexName }: { indexName: string }): Promise<VectorIndexDescription> {
    return this.#ask('describeIndex', named(indexName))
  }

  deleteIndex({ indexName }: { indexName: string }): Promise<void> {
    return this.#ask('deleteIndex', named(indexName))
  }

  /** Stores vectors, or puts them in place of those that have their ids. All or none. Answers their ids. */
  async upsert({ indexName, vectors, metadata = [], ids }: { indexName: string; vectors: ReadonlyArray<ArrayLike<number>>; metadata?: ReadonlyArray<Record<string, unknown>>; ids?: readonly string[] }): Promise<string[]> {
    if (ids && ids.length !== vectors.length) throw refused('ids', 'as many as there are vectors')
    if (metadata.length > 0 && metadata.length !== vectors.length) throw refused('metadata', 'as many as there are vectors')
    const items = vectors.map((vector, at) => ({ id: ids?.[at] ?? newId(), vector: numbers('vectors', vector), metadata: JSON.stringify(metadata[at] ?? {}) }))
    await this.#ask('upsert', named(indexName), items)
    return items.map(({ id }) => id)
  }

  /** The nearest, best first. */
  async query({ indexName, queryVector, topK = 10, filter, includeVector = false }: { indexName: string; queryVector: ArrayLike<number>; topK?: number; filter?: MetadataFilter; includeVector?: boolean }): Promise<VectorQueryResult[]> {
    if (!Number.isSafeInteger(topK) || topK < 1) throw refused('topK', 'a whole number above 0')
    if (filter !== undefined) compileFilter(filter)
    return this.#ask('query', named(indexName), numbers('queryVector', queryVector), topK, filter, includeVector)
  }

  /** Answers how many there were. */
  async updateVector({ indexName, update, ...chosen }: { indexName: string; update: { vector?: ArrayLike<number>; metadata?: Record<string, unknown> } } & Chosen): Promise<number> {
    const { vector, metadata } = update
    if (vector === undefined && metadata === undefined) throw refused('update', 'a vector, metadata, or both')
    return this.#ask('update', named(indexName), choice(chosen), { ...(vector && { vector: numbers('update.vector', vector) }), ...(metadata && { metadata: JSON.stringify(metadata) }) })
  }

  async deleteVector({ indexName, id }: { indexName: string; id: string }): Promise<boolean> {
    return (await this.#ask<number>('remove', named(indexName), { ids: [id] })) > 0
  }

  /** Answers how many went. */
  async deleteVectors({ indexName, ...chosen }: { indexName: string } & Chosen): Promise<number> {
    return this.#ask('remove', named(indexName), choice(chosen))
  }

  async close(): Promise<void> {
    await (await this.#opening)?.close()
    this.#opening = undefined
  }

  async #ask<Result>(call: Call, ...args: unknown[]): Promise<Result> {
    try {
      return (await (await (this.#opening ??= this.#open())).ask(call, args)) as Result
    } catch (error) {
      throw storeFailure(error, this.url)
    }
  }

  async #open() {
    const location = this.#location
    if (location.kind === 'remote') throw new HeedError('unsupported_option', 'Vectors on a server are not supported yet. Use a file: URL.', { details: { field: 'url' } })
    if (location.kind === 'file') return new WorkerCalls('vector-worker', { path: `${await resolveFile(location.path)}-vectors` })
    const { VectorEngine: Engine } = await import('./recall/vector-engine.ts')
    const engine = new Engine(':memory:')
    return {
      ask: async (call: Call, args: unknown[]) => (engine[call] as (this: VectorEngine, ...given: unknown[]) => unknown).apply(engine, args),
      close: async () => engine.close(),
    }
  }
}

function named(indexName: unknown): string {
  if (typeof indexName !== 'string' || indexName === '') throw refused('indexName', 'a text that is not empty')
  return indexName
}

function numbers(field: string, vector: ArrayLike<number>): Float32Array {
  const copied = Float32Array.from(vector)
  if (copied.length === 0 || !copied.every(Number.isFinite)) throw refused(field, 'made of numbers')
  return copied
}

function choice({ id, ids, filter }: { id?: string; ids?: readonly string[]; filter?: MetadataFilter }): { ids: readonly string[] } | { filter: MetadataFilter } {
  if (filter !== undefined) {
    compileFilter(filter)
    // What was meant by nothing at all is not everything.
    if (Object.keys(filter).length === 0) throw refused('filter', 'one that says which; deleteIndex removes all')
    return { filter }
  }
  if (id === undefined && ids === undefined) throw refused('id', 'given, or a filter')
  return { ids: ids ?? (id === undefined ? [] : [id]) }
}

function refused(field: string, wanted: string): HeedError {
  return new HeedError('invalid_argument', `${field} must be ${wanted}.`, { details: { field } })
}
