import { checkName, checkNames, checkWhole, refused } from '../../base/arguments.ts'
import { HeedError, packageError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import { isPlainObject } from '../../base/json.ts'
import { compileFilter, type MetadataFilter } from '../filter/filter.ts'
import {
  checkLength, encodeMetadata, encodeMetadataList, parseSelectingFilter, parseSelection, parseVector, rejectDuplicates, type VectorNumbers,
  type VectorQuery, type VectorUpsert,
} from '../vectors/vector.ts'
import type { VectorIndexDescription, VectorMetric, VectorQueryResult } from '../vectors/vector-engine.ts'
import type { VectorIndexSettings } from '../vector-store.ts'

/** An index, as the database knows it. */
export interface VectorTable {
  name: string
  dimension: number
  metric: VectorMetric
  /** How a new one is built, where the database has a choice. */
  index?: VectorIndexSettings
}

/** A vector as a row. Its tags are the single values of its metadata, which the database compares itself. */
export interface VectorRow {
  id: string
  vector: Float32Array
  /** JSON. */
  metadata: string
  tags: string[]
}

export interface ScoredRow {
  id: string
  metadata: string
  vector: ArrayLike<number>
  /** Higher is nearer. */
  score: number
}

/** What a database has to do for `VectorTables`. Calls come one after the other. */
export interface VectorDriver {
  tables(): Promise<VectorTable[]>
  create(table: VectorTable): Promise<void>
  drop(table: VectorTable): Promise<void>
  count(table: VectorTable): Promise<number>
  /** Inserts rows, or replaces those with the same ids, in one transaction. */
  put(table: VectorTable, rows: readonly VectorRow[]): Promise<void>
  /** The nearest rows that have all these tags, nearest first. */
  nearest(table: VectorTable, vector: Float32Array, tags: readonly string[], limit: number): Promise<ScoredRow[]>
  /** Rows that have all these tags, in the order of their ids, after an id. */
  list(table: VectorTable, tags: readonly string[], after: string, limit: number): Promise<Array<Omit<ScoredRow, 'score'>>>
  /** The rows with these ids. */
  find(table: VectorTable, ids: readonly string[]): Promise<Array<Omit<ScoredRow, 'score'>>>
  remove(table: VectorTable, ids: readonly string[]): Promise<void>
  close(): Promise<void>
}

type Chosen =
  | { id: string; ids?: never; filter?: never }
  | { ids: readonly string[]; id?: never; filter?: never }
  | { filter: MetadataFilter; id?: never; ids?: never }

const metrics: readonly VectorMetric[] = ['cosine', 'euclidean', 'dotproduct']
const readAtOnce = 1_000
const removedAtOnce = 500

/**
 * A vector store in a database that a process opens itself. Filters have all operators: the database compares tags, and the rest of a
 * filter is tested here.
 */
export abstract class VectorTables {
  readonly id: string
  readonly #name: string
  readonly #open: () => Promise<VectorDriver>
  readonly #types: readonly string[]
  #driver: Promise<VectorDriver> | undefined
  #last: Promise<unknown> = Promise.resolve()

  /** @internal `open` opens the database, with the first call; `types` are the kinds of indexes that it builds. */
  protected constructor(id: string, open: () => Promise<VectorDriver>, types: readonly string[] = ['flat']) {
    this.id = id
    this.#name = this.constructor.name
    this.#open = open
    this.#types = types
  }

  /** Leaves an index with the same dimension and metric as it is. */
  async createIndex(args: {
    indexName: string; dimension: number; metric?: VectorMetric; indexConfig?: VectorIndexSettings
  }): Promise<void> {
    checkNames('createIndex()', args, ['indexName', 'dimension', 'metric', 'indexConfig'])
    const { indexName: name, dimension, metric = 'cosine', indexConfig } = args
    checkIndexName(name)
    checkWhole('dimension', dimension, 1)
    if (!metrics.includes(metric)) throw refused('metric', `one of ${metrics.join(', ')}`)
    checkNames('indexConfig', indexConfig ?? {}, ['type', 'hnsw', 'ivf'])
    const type = indexConfig?.type
    if (type !== undefined && !this.#types.includes(type)) {
      const why = this.#types.length === 1 ? `${this.#name} compares every vector: ` : ''
      const known = this.#types.map((one) => `'${one}'`).join(', ')
      throw new HeedError('unsupported_option', `${why}indexConfig.type can only be ${known}, not '${type}'.`, {
        details: { option: 'indexConfig.type' },
      })
    }
    await this.#use(async (driver) => {
      const existing = (await driver.tables()).find((table) => table.name === name)
      if (!existing) return driver.create({ name, dimension, metric, ...(indexConfig && { index: indexConfig }) })
      if (existing.dimension === dimension && existing.metric === metric) return
      const why = `Index '${name}' already exists, with ${existing.dimension} dimensions and the metric ${existing.metric}.`
        + ' Choose another name, or delete it first.'
      throw new HeedError('invalid_argument', why, {
        details: { field: 'indexName', dimension: existing.dimension, metric: existing.metric },
      })
    })
  }

  listIndexes(): Promise<string[]> {
    return this.#use(async (driver) => (await driver.tables()).map(({ name }) => name).toSorted())
  }

  async describeIndex(args: { indexName: string }): Promise<VectorIndexDescription> {
    checkNames('describeIndex()', args, ['indexName'])
    return this.#at(args.indexName, async (driver, table) => {
      const { dimension, metric } = table
      return { dimension, metric, count: await driver.count(table) }
    })
  }

  async deleteIndex(args: { indexName: string }): Promise<void> {
    checkNames('deleteIndex()', args, ['indexName'])
    await this.#at(args.indexName, (driver, table) => driver.drop(table))
  }

  /** Inserts vectors, or replaces those with the same ids. Deletes what `deleteFilter` matches first. Returns the ids. */
  async upsert(args: VectorUpsert): Promise<string[]> {
    checkNames('upsert()', args, ['indexName', 'vectors', 'metadata', 'ids', 'deleteFilter'])
    const { indexName, vectors, metadata, ids, deleteFilter } = args
    if (!Array.isArray(vectors)) throw refused('vectors', 'a list of vectors')
    if (ids !== undefined) checkLength('ids', ids, vectors.length)
    for (const id of ids ?? []) checkName('ids', id)
    rejectDuplicates(ids ?? [])
    const encoded = encodeMetadataList(metadata, vectors.length)
    const rows = Array.from(vectors, (vector: unknown, at) => {
      return toRow(ids?.[at] ?? newId(), parseVector(`vectors[${at}]`, vector), encoded[at] ?? '{}')
    })
    const filter = deleteFilter === undefined ? undefined : parseSelectingFilter('deleteFilter', deleteFilter)
    await this.#at(indexName, async (driver, table) => {
      for (const { vector } of rows) checkDimension(table, vector)
      if (filter) await removeAll(driver, table, (await selectRows(driver, table, { filter })).map(({ id }) => id))
      if (rows.length > 0) await driver.put(table, rows)
    })
    return rows.map(({ id }) => id)
  }

  /** The nearest vectors, best first, without those whose score is below `minScore`. */
  async query(args: VectorQuery): Promise<VectorQueryResult[]> {
    checkNames('query()', args, ['indexName', 'queryVector', 'topK', 'filter', 'includeVector', 'minScore'])
    const { indexName, queryVector, topK = 10, filter, includeVector = false, minScore = Number.NEGATIVE_INFINITY } = args
    checkWhole('topK', topK, 1)
    if (typeof includeVector !== 'boolean') throw refused('includeVector', 'true or false')
    if (typeof minScore !== 'number' || Number.isNaN(minScore)) throw refused('minScore', 'a number')
    const test = filter === undefined ? () => true : compileFilter(filter)
    const tags = filter === undefined ? [] : tagsOfFilter(filter)
    const vector = parseVector('queryVector', queryVector)
    return this.#at(indexName, async (driver, table) => {
      checkDimension(table, vector)
      for (let limit = topK; ; limit *= 4) {
        const rows = await driver.nearest(table, vector, tags, limit)
        const found = rows.flatMap((row): VectorQueryResult[] => {
          const metadata = JSON.parse(row.metadata) as Record<string, unknown>
          if (!test(metadata) || row.score < minScore) return []
          return [{ id: row.id, score: row.score, metadata, ...(includeVector && { vector: Array.from(row.vector) }) }]
        })
        // The database knows the tags alone: more rows may have to be read to find enough.
        if (found.length >= topK || rows.length < limit) return found.slice(0, topK)
      }
    })
  }

  /** Returns the number of changed vectors. */
  async updateVector(
    args: { indexName: string; update: { vector?: VectorNumbers; metadata?: Record<string, unknown> } } & Chosen,
  ): Promise<number> {
    checkNames('updateVector()', args, ['indexName', 'update', 'id', 'ids', 'filter'])
    const { indexName, update, ...selected } = args
    checkNames('update', update, ['vector', 'metadata'])
    if (update.vector === undefined && update.metadata === undefined) throw refused('update', 'a vector, metadata, or both')
    const vector = update.vector === undefined ? undefined : parseVector('update.vector', update.vector)
    const metadata = update.metadata === undefined ? undefined : encodeMetadata('update.metadata', update.metadata)
    const selection = parseSelection(selected)
    return this.#at(indexName, async (driver, table) => {
      if (vector) checkDimension(table, vector)
      const rows = await selectRows(driver, table, selection)
      const changed = rows.map((row) => toRow(row.id, vector ?? Float32Array.from(row.vector), metadata ?? row.metadata))
      if (changed.length > 0) await driver.put(table, changed)
      return changed.length
    })
  }

  async deleteVector(args: { indexName: string; id: string }): Promise<boolean> {
    checkNames('deleteVector()', args, ['indexName', 'id'])
    return (await this.#remove(args.indexName, parseSelection({ id: args.id }))) > 0
  }

  /** Returns the number of deleted vectors. */
  async deleteVectors(args: { indexName: string } & Chosen): Promise<number> {
    checkNames('deleteVectors()', args, ['indexName', 'id', 'ids', 'filter'])
    const { indexName, ...selected } = args
    return this.#remove(indexName, parseSelection(selected))
  }

  async close(): Promise<void> {
    const driver = this.#driver
    this.#driver = undefined
    await this.#last.catch(() => {})
    await (await driver)?.close()
  }

  #remove(indexName: string, selection: ReturnType<typeof parseSelection>): Promise<number> {
    return this.#at(indexName, async (driver, table) => {
      const rows = await selectRows(driver, table, selection)
      await removeAll(driver, table, rows.map(({ id }) => id))
      return rows.length
    })
  }

  async #at<Result>(name: string, work: (driver: VectorDriver, table: VectorTable) => Promise<Result>): Promise<Result> {
    checkIndexName(name)
    return this.#use(async (driver) => {
      const table = (await driver.tables()).find((one) => one.name === name)
      if (table) return work(driver, table)
      throw new HeedError('not_found', `Index '${name}' does not exist. Create it: createIndex({ indexName: '${name}', dimension }).`, {
        details: { field: 'indexName' },
      })
    })
  }

  /** One call after the other: each is applied completely before the next. After a failure to open, the next call tries again. */
  #use<Result>(work: (driver: VectorDriver) => Promise<Result>): Promise<Result> {
    const next = this.#last.catch(() => {}).then(async () => {
      this.#driver ??= this.#open()
      const driver = await this.#driver.catch((error: unknown) => {
        this.#driver = undefined
        throw error
      })
      return work(driver)
    })
    this.#last = next
    return next
  }
}

/** Loads a driver, which the program installs. */
export async function loadDriver<Module>(name: string, what: string): Promise<Module> {
  try {
    return (await import(name)) as Module
  } catch (cause) {
    throw packageError(name, `${what} needs the package ${name}: npm install ${name}.`, cause)
  }
}

function toRow(id: string, vector: Float32Array, metadata: string): VectorRow {
  return { id, vector, metadata, tags: tagsOf(JSON.parse(metadata) as Record<string, unknown>) }
}

function tagsOf(metadata: Record<string, unknown>): string[] {
  return Object.entries(metadata).flatMap(([key, value]) => (isSingle(value) ? [tag(key, value)] : []))
}

/** The tags that every match of a filter has: its equalities with single values. */
function tagsOfFilter(filter: MetadataFilter): string[] {
  return Object.entries(filter).flatMap(([key, wanted]): string[] => {
    if (key === '$and' && Array.isArray(wanted)) return wanted.flatMap((one) => (isPlainObject(one) ? tagsOfFilter(one) : []))
    // A key with a dot may name a nested value, which has no tag.
    if (key.startsWith('$') || key.includes('.')) return []
    const value: unknown = isPlainObject(wanted) && Object.keys(wanted).length === 1 && '$eq' in wanted ? wanted.$eq : wanted
    return isSingle(value) ? [tag(key, value)] : []
  })
}

function isSingle(value: unknown): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}

function tag(key: string, value: string | number | boolean): string {
  return `${key}=${JSON.stringify(value)}`
}

async function selectRows(
  driver: VectorDriver, table: VectorTable, selection: ReturnType<typeof parseSelection>,
): Promise<Array<Omit<ScoredRow, 'score'>>> {
  if ('ids' in selection) return driver.find(table, selection.ids)
  const test = compileFilter(selection.filter)
  const tags = tagsOfFilter(selection.filter)
  const found: Array<Omit<ScoredRow, 'score'>> = []
  for (let after = '', more = true; more;) {
    const rows = await driver.list(table, tags, after, readAtOnce)
    found.push(...rows.filter(({ metadata }) => test(JSON.parse(metadata) as Record<string, unknown>)))
    after = rows.at(-1)?.id ?? after
    more = rows.length === readAtOnce
  }
  return found
}

async function removeAll(driver: VectorDriver, table: VectorTable, ids: readonly string[]): Promise<void> {
  for (let from = 0; from < ids.length; from += removedAtOnce) await driver.remove(table, ids.slice(from, from + removedAtOnce))
}

function checkDimension({ name, dimension }: VectorTable, vector: Float32Array): void {
  if (vector.length === dimension) return
  throw new HeedError(
    'invalid_argument',
    `Index '${name}' has vectors of ${dimension} numbers, this one has ${vector.length}. Use the embedder that the index was created for.`,
    { details: { field: 'vector', dimension, given: vector.length } },
  )
}

/** The name of a table: databases differ in what else they take. */
function checkIndexName(name: unknown): asserts name is string {
  checkName('indexName', name)
  if (!/^[A-Za-z_][A-Za-z0-9_-]{0,60}$/.test(name)) {
    throw refused('indexName', 'at most 61 letters, digits, _ and -, of which the first is a letter or _')
  }
}
