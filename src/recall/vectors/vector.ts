import { checkName, checkNames, checkWhole, refused } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import { compileFilter, type MetadataFilter } from '../filter/filter.ts'
import { storeFailure } from '../../store/sql/failure.ts'
import { parseLocation, resolveFile, type Location } from '../../store/sqlite/location.ts'
import type { VectorEngine, VectorIndexDescription, VectorMetric, VectorQueryResult } from './vector-engine.ts'
import { WorkerCalls } from '../index/worker-calls.ts'
import { checkChoosing, checkLength, choiceOf, describedBy, metadataText, numbersOf, refuseTwice, type VectorNumbers } from './vector-input.ts'

export interface LibSQLVectorOptions {
  id?: string
  /** `file:./path.db`, or `:memory:`. Vectors are kept in a file beside it, `<path>-vectors`. */
  url: string
}

export interface VectorUpsert {
  indexName: string
  vectors: readonly VectorNumbers[]
  /** One for each vector: objects of JSON. Dates are stored as texts. */
  metadata?: ReadonlyArray<Record<string, unknown>>
  ids?: readonly string[]
  deleteFilter?: MetadataFilter
}

export interface VectorQuery {
  indexName: string
  queryVector: VectorNumbers
  topK?: number
  filter?: MetadataFilter
  includeVector?: boolean
  minScore?: number
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

  /** An index that is there already, with the same dimension and metric, is left as it is. Every question is compared with all: `indexConfig` can only be flat. */
  async createIndex(args: { indexName: string; dimension: number; metric?: VectorMetric; indexConfig?: { type?: 'flat' } }): Promise<void> {
    checkNames('createIndex()', args, ['indexName', 'dimension', 'metric', 'indexConfig'])
    const { indexName, dimension, metric = 'cosine', indexConfig } = args
    checkWhole('dimension', dimension, 1)
    if (!metrics.includes(metric)) throw refused('metric', `one of ${metrics.join(', ')}`)
    if (indexConfig !== undefined) checkFlat(indexConfig)
    await this.#ask('createIndex', named(indexName), dimension, metric)
  }

  listIndexes(): Promise<string[]> {
    return this.#ask('listIndexes')
  }

  async describeIndex(args: { indexName: string }): Promise<VectorIndexDescription> {
    checkNames('describeIndex()', args, ['indexName'])
    return this.#ask('describeIndex', named(args.indexName))
  }

  async deleteIndex(args: { indexName: string }): Promise<void> {
    checkNames('deleteIndex()', args, ['indexName'])
    return this.#ask('deleteIndex', named(args.indexName))
  }

  /** Stores vectors, or puts them in place of those that have their ids; what `deleteFilter` lets through goes first. All or none. Answers their ids. */
  async upsert(args: VectorUpsert): Promise<string[]> {
    checkNames('upsert()', args, ['indexName', 'vectors', 'metadata', 'ids', 'deleteFilter'])
    const { indexName, vectors, metadata, ids, deleteFilter } = args
    if (!Array.isArray(vectors)) throw refused('vectors', 'a list of vectors')
    if (ids !== undefined) checkLength('ids', ids, vectors.length)
    for (const id of ids ?? []) checkName('ids', id)
    refuseTwice(ids ?? [])
    const described = describedBy(metadata, vectors.length)
    const items = Array.from(vectors, (vector: unknown, at) => ({ id: ids?.[at] ?? newId(), vector: numbersOf(`vectors[${at}]`, vector), metadata: described[at] ?? '{}' }))
    await this.#ask('upsert', named(indexName), items, deleteFilter === undefined ? undefined : checkChoosing('deleteFilter', deleteFilter))
    return items.map(({ id }) => id)
  }

  /** The nearest, best first. None with a score below `minScore`. */
  async query(args: VectorQuery): Promise<VectorQueryResult[]> {
    checkNames('query()', args, ['indexName', 'queryVector', 'topK', 'filter', 'includeVector', 'minScore'])
    const { indexName, queryVector, topK = 10, filter, includeVector = false, minScore = Number.NEGATIVE_INFINITY } = args
    checkWhole('topK', topK, 1)
    if (filter !== undefined) compileFilter(filter)
    if (typeof includeVector !== 'boolean') throw refused('includeVector', 'true or false')
    if (typeof minScore !== 'number' || Number.isNaN(minScore)) throw refused('minScore', 'a number')
    return this.#ask('query', named(indexName), numbersOf('queryVector', queryVector), { topK, includeVector, minScore, ...(filter && { filter }) })
  }

  /** Answers how many there were. */
  async updateVector(args: { indexName: string; update: { vector?: VectorNumbers; metadata?: Record<string, unknown> } } & Chosen): Promise<number> {
    checkNames('updateVector()', args, ['indexName', 'update', 'id', 'ids', 'filter'])
    const { indexName, update, ...chosen } = args
    checkNames('update', update, ['vector', 'metadata'])
    const { vector, metadata } = update
    if (vector === undefined && metadata === undefined) throw refused('update', 'a vector, metadata, or both')
    const change = { ...(vector !== undefined && { vector: numbersOf('update.vector', vector) }), ...(metadata !== undefined && { metadata: metadataText('update.metadata', metadata) }) }
    return this.#ask('update', named(indexName), choiceOf(chosen), change)
  }

  async deleteVector(args: { indexName: string; id: string }): Promise<boolean> {
    checkNames('deleteVector()', args, ['indexName', 'id'])
    return (await this.#ask<number>('remove', named(args.indexName), choiceOf({ id: args.id }))) > 0
  }

  /** Answers how many went. */
  async deleteVectors(args: { indexName: string } & Chosen): Promise<number> {
    checkNames('deleteVectors()', args, ['indexName', 'id', 'ids', 'filter'])
    const { indexName, ...chosen } = args
    return this.#ask('remove', named(indexName), choiceOf(chosen))
  }

  async close(): Promise<void> {
    await (await this.#opening)?.close()
    this.#opening = undefined
  }

  async #ask<Result>(call: Call, ...args: unknown[]): Promise<Result> {
    try {
      return (await (await (this.#opening ??= this.#opened())).ask(call, args)) as Result
    } catch (error) {
      throw storeFailure(error, this.url)
    }
  }

  /** What could not be opened is tried again by the next call. */
  async #opened() {
    try {
      return await this.#open()
    } catch (error) {
      this.#opening = undefined
      throw error
    }
  }

  async #open() {
    const location = this.#location
    if (location.kind === 'remote') throw new HeedError('unsupported_option', 'Vectors on a server are not supported yet. Use a file: URL.', { details: { field: 'url' } })
    if (location.kind === 'file') return new WorkerCalls(import.meta.url, 'vector-worker', { path: `${await resolveFile(location.path)}-vectors` })
    const { VectorEngine: Engine } = await import('./vector-engine.ts')
    const engine = new Engine(':memory:')
    return {
      ask: async (call: Call, args: unknown[]) => (engine[call] as (this: VectorEngine, ...given: unknown[]) => unknown).apply(engine, args),
      close: async () => engine.close(),
    }
  }
}

function named(indexName: unknown): string {
  checkName('indexName', indexName)
  return indexName
}

function checkFlat(indexConfig: unknown): void {
  checkNames('indexConfig', indexConfig, ['type'])
  const { type } = indexConfig as { type?: unknown }
  if (type === undefined || type === 'flat') return
  throw new HeedError('unsupported_option', `This store compares with every vector: indexConfig.type can only be 'flat', not '${String(type)}'.`, { details: { option: 'indexConfig.type' } })
}
