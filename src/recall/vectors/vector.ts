import { checkName, checkNames, checkWhole, refused } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import { compileFilter, type MetadataFilter } from '../filter/filter.ts'
import { storeFailure } from '../../store/sqlite/failure.ts'
import { parseLocation, placeAt, resolveFile, type Location } from '../../store/sqlite/location.ts'
import type { VectorEngine, VectorIndexDescription, VectorMetric, VectorQueryResult } from './vector-engine.ts'
import { WorkerCalls } from '../index/worker-calls.ts'
import type { JSONObject } from '../../base/json.ts'
import { copyJSONObject } from '../../signals/input-fields.ts'

/** The options of `LibSQLVector`. */
export interface LibSQLVectorOptions {
  id?: string
  /** `file:./path.db`, or `:memory:`. Vectors are kept in a file beside it, `<path>-vectors`. */
  url: string
}

/** Vectors that are to be stored. */
export interface VectorUpsert {
  indexName: string
  vectors: readonly VectorNumbers[]
  /** One JSON object per vector. Dates are stored as strings. */
  metadata?: ReadonlyArray<Record<string, unknown>>
  ids?: readonly string[]
  /** Deletes the vectors that it matches before storing the new ones. */
  deleteFilter?: MetadataFilter
}

/** A search for the nearest vectors. */
export interface VectorQuery {
  indexName: string
  queryVector: VectorNumbers
  topK?: number
  filter?: MetadataFilter
  includeVector?: boolean
  minScore?: number
}

type Method = 'createIndex' | 'listIndexes' | 'describeIndex' | 'deleteIndex' | 'upsert' | 'query' | 'update' | 'remove'
type Chosen =
  | { id: string; ids?: never; filter?: never }
  | { ids: readonly string[]; id?: never; filter?: never }
  | { filter: MetadataFilter; id?: never; ids?: never }

const metrics: readonly VectorMetric[] = ['cosine', 'euclidean', 'dotproduct']

/**
 * A vector store in a local file, which compares vectors in a worker thread. As the `vector` of a memory it stands for the vectors that
 * recall keeps beside its messages.
 */
export class LibSQLVector {
  readonly id: string
  readonly url: string
  /** As the `vector` of a memory, it stands for the vectors that recall keeps beside its messages. */
  readonly builtIn = true as const
  readonly #location: Location
  #opening: Promise<{ call(method: Method, args: unknown[]): Promise<unknown>; close(): Promise<void> }> | undefined

  constructor(options: LibSQLVectorOptions) {
    checkNames('LibSQLVector', options, ['id', 'url'])
    const { id = 'libsql-vector', url } = options
    this.id = id
    this.url = url
    this.#location = parseLocation(url)
  }

  /** @internal Whether it names the same database as this url. */
  isAt(url: string): boolean {
    return placeAt(this.#location) === placeAt(parseLocation(url))
  }

  /** Leaves an index with the same dimension and metric as it is. A query compares all vectors: `indexConfig` can only be flat. */
  async createIndex(args: { indexName: string; dimension: number; metric?: VectorMetric; indexConfig?: { type?: 'flat' } }): Promise<void> {
    checkNames('createIndex()', args, ['indexName', 'dimension', 'metric', 'indexConfig'])
    const { indexName, dimension, metric = 'cosine', indexConfig } = args
    checkWhole('dimension', dimension, 1)
    if (!metrics.includes(metric)) throw refused('metric', `one of ${metrics.join(', ')}`)
    if (indexConfig !== undefined) checkFlat(indexConfig)
    await this.#call('createIndex', parseIndexName(indexName), dimension, metric)
  }

  listIndexes(): Promise<string[]> {
    return this.#call('listIndexes')
  }

  async describeIndex(args: { indexName: string }): Promise<VectorIndexDescription> {
    checkNames('describeIndex()', args, ['indexName'])
    return this.#call('describeIndex', parseIndexName(args.indexName))
  }

  async deleteIndex(args: { indexName: string }): Promise<void> {
    checkNames('deleteIndex()', args, ['indexName'])
    return this.#call('deleteIndex', parseIndexName(args.indexName))
  }

  /**
   * Inserts vectors, or replaces those with the same ids, in one transaction. Deletes what `deleteFilter` matches first. Returns the ids.
   */
  async upsert(args: VectorUpsert): Promise<string[]> {
    checkNames('upsert()', args, ['indexName', 'vectors', 'metadata', 'ids', 'deleteFilter'])
    const { indexName, vectors, metadata, ids, deleteFilter } = args
    if (!Array.isArray(vectors)) throw refused('vectors', 'a list of vectors')
    if (ids !== undefined) checkLength('ids', ids, vectors.length)
    for (const id of ids ?? []) checkName('ids', id)
    rejectDuplicates(ids ?? [])
    const encoded = encodeMetadataList(metadata, vectors.length)
    const items = Array.from(vectors, (vector: unknown, at) => ({
      id: ids?.[at] ?? newId(),
      vector: parseVector(`vectors[${at}]`, vector),
      metadata: encoded[at] ?? '{}',
    }))
    await this.#call(
      'upsert',
      parseIndexName(indexName),
      items,
      deleteFilter === undefined ? undefined : parseSelectingFilter('deleteFilter', deleteFilter),
    )
    return items.map(({ id }) => id)
  }

  /** The nearest vectors, best first, without those whose score is below `minScore`. */
  async query(args: VectorQuery): Promise<VectorQueryResult[]> {
    checkNames('query()', args, ['indexName', 'queryVector', 'topK', 'filter', 'includeVector', 'minScore'])
    const { indexName, queryVector, topK = 10, filter, includeVector = false, minScore = Number.NEGATIVE_INFINITY } = args
    checkWhole('topK', topK, 1)
    if (filter !== undefined) compileFilter(filter)
    if (typeof includeVector !== 'boolean') throw refused('includeVector', 'true or false')
    if (typeof minScore !== 'number' || Number.isNaN(minScore)) throw refused('minScore', 'a number')
    return this.#call('query', parseIndexName(indexName), parseVector('queryVector', queryVector), {
      topK,
      includeVector,
      minScore,
      ...(filter && { filter }),
    })
  }

  /** Returns the number of changed vectors. */
  async updateVector(
    args: { indexName: string; update: { vector?: VectorNumbers; metadata?: Record<string, unknown> } } & Chosen,
  ): Promise<number> {
    checkNames('updateVector()', args, ['indexName', 'update', 'id', 'ids', 'filter'])
    const { indexName, update, ...selected } = args
    checkNames('update', update, ['vector', 'metadata'])
    const { vector, metadata } = update
    if (vector === undefined && metadata === undefined) throw refused('update', 'a vector, metadata, or both')
    const change = {
      ...(vector !== undefined && { vector: parseVector('update.vector', vector) }),
      ...(metadata !== undefined && { metadata: encodeMetadata('update.metadata', metadata) }),
    }
    return this.#call('update', parseIndexName(indexName), parseSelection(selected), change)
  }

  async deleteVector(args: { indexName: string; id: string }): Promise<boolean> {
    checkNames('deleteVector()', args, ['indexName', 'id'])
    return (await this.#call<number>('remove', parseIndexName(args.indexName), parseSelection({ id: args.id }))) > 0
  }

  /** Returns the number of deleted vectors. */
  async deleteVectors(args: { indexName: string } & Chosen): Promise<number> {
    checkNames('deleteVectors()', args, ['indexName', 'id', 'ids', 'filter'])
    const { indexName, ...selected } = args
    return this.#call('remove', parseIndexName(indexName), parseSelection(selected))
  }

  async close(): Promise<void> {
    await (await this.#opening)?.close()
    this.#opening = undefined
  }

  async #call<Result>(method: Method, ...args: unknown[]): Promise<Result> {
    try {
      return (await (await (this.#opening ??= this.#open())).call(method, args)) as Result
    } catch (error) {
      throw storeFailure(error, this.url)
    }
  }

  /** After a failure the next call tries again. */
  async #open() {
    try {
      return await this.#openEngine()
    } catch (error) {
      this.#opening = undefined
      throw error
    }
  }

  async #openEngine() {
    const location = this.#location
    if (location.kind === 'remote')
      throw new HeedError('unsupported_option', 'LibSQLVector does not support a database server yet. Use a file: URL.', {
        details: { field: 'url' },
      })
    if (location.kind === 'file') {
      return new WorkerCalls(import.meta.url, 'vector-worker', { path: `${await resolveFile(location.path)}-vectors` })
    }
    const { VectorEngine: Engine } = await import('./vector-engine.ts')
    const engine = new Engine(':memory:')
    return {
      call: async (method: Method, args: unknown[]) =>
        (engine[method] as (this: VectorEngine, ...args: unknown[]) => unknown).apply(engine, args),
      close: async () => engine.close(),
    }
  }
}

function parseIndexName(indexName: unknown): string {
  checkName('indexName', indexName)
  return indexName
}

function checkFlat(indexConfig: unknown): void {
  checkNames('indexConfig', indexConfig, ['type'])
  const { type } = indexConfig as { type?: unknown }
  if (type === undefined || type === 'flat') return
  throw new HeedError(
    'unsupported_option',
    `LibSQLVector compares every vector: indexConfig.type can only be 'flat', not '${String(type)}'.`,
    { details: { option: 'indexConfig.type' } },
  )
}

export type VectorNumbers = readonly number[] | Float32Array | Float64Array

/** A copy as 32-bit floats, which is how vectors are stored. */
export function parseVector(field: string, vector: unknown): Float32Array {
  const isList = Array.isArray(vector) || vector instanceof Float32Array || vector instanceof Float64Array
  if (!isList || vector.length === 0) throw refused(field, 'a list of numbers')
  // Array.from makes undefined of holes, which every() would skip.
  const items: unknown[] = Array.from(vector)
  if (!items.every((number) => typeof number === 'number')) throw refused(field, 'a list of numbers only')
  const numbers = Float32Array.from(items)
  if (!numbers.every(Number.isFinite)) throw refused(field, 'a list of numbers that are finite as 32-bit floats')
  return numbers
}

/** The metadata of `count` vectors, encoded. */
export function encodeMetadataList(metadata: unknown, count: number): string[] {
  if (metadata === undefined) return Array.from({ length: count }, () => '{}')
  checkLength('metadata', metadata, count)
  return Array.from(metadata, (one, at) => encodeMetadata(`metadata[${at}]`, one))
}

/** Rejects, by its path, what JSON would silently change. Dates are stored as strings. */
export function encodeMetadata(field: string, metadata: unknown): string {
  let copied: JSONObject
  try {
    copied = copyJSONObject(metadata, field)
  } catch (cause) {
    const { details = {} } = cause as { details?: { field?: string } }
    throw new HeedError(
      'invalid_argument',
      `${details.field ?? field} must be a JSON object: strings, finite numbers, true, false, null, and lists and objects of these.`,
      { cause, details: { field: details.field ?? field } },
    )
  }
  return JSON.stringify(copied)
}

export function checkLength(field: string, list: unknown, length: number): asserts list is unknown[] {
  if (!Array.isArray(list) || list.length !== length) throw refused(field, 'a list of the same length as vectors')
}

/** One of two vectors with the same id would overwrite the other. */
export function rejectDuplicates(ids: readonly string[]): void {
  const seen = new Set<string>()
  for (const id of ids) {
    if (seen.has(id))
      throw new HeedError('invalid_argument', `ids contains '${id}' twice: an id names one vector. Nothing was stored.`, {
        details: { field: 'ids', id },
      })
    seen.add(id)
  }
}

/** The vectors that a change selects: exactly one of the three is given. */
export function parseSelection({
  id,
  ids,
  filter,
}: {
  id?: string
  ids?: readonly string[]
  filter?: MetadataFilter
}): { ids: readonly string[] } | { filter: MetadataFilter } {
  if ([id, ids, filter].filter((given) => given !== undefined).length !== 1) {
    throw refused('id', 'given, or ids, or a filter: exactly one of them')
  }
  if (filter !== undefined) return { filter: parseSelectingFilter('filter', filter) }
  const chosen = ids ?? [id]
  if (!Array.isArray(chosen)) throw refused('ids', 'a list')
  for (const one of chosen) checkName(ids ? 'ids' : 'id', one)
  return { ids: chosen as string[] }
}

/** A filter that selects vectors to change. An empty one is rejected: it would select all of them. */
export function parseSelectingFilter(field: string, filter: MetadataFilter): MetadataFilter {
  compileFilter(filter, field)
  if (Object.keys(filter).length === 0) throw refused(field, 'a filter with at least one condition; deleteIndex removes all vectors')
  rejectEmptyLists(filter, field)
  return filter
}

function rejectEmptyLists(within: object, path: string): void {
  for (const [key, value] of Object.entries(within) as Array<[string, unknown]>) {
    const at = Array.isArray(within) ? `${path}[${key}]` : `${path}.${key}`
    if (['$in', '$nin', '$all'].includes(key) && Array.isArray(value) && value.length === 0) throw refused(at, 'a list that is not empty')
    if (typeof value === 'object' && value !== null) rejectEmptyLists(value, at)
  }
}
