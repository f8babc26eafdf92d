import { HeedError } from '../../../base/errors.ts'
import type { SqlConnection } from '../../../store/sql/driver.ts'
import type { Statements } from '../../../store/sql/statements.ts'
import { CachedResources, changedSince, logChanges, readSome, type CachedResource, type Collections } from '../collection-cache.ts'
import { RecallEngine, type EngineMethod, type EnginePort, type IndexKind, type SearchResult } from '../engine.ts'
import type { EmbedderRow } from '../embeddings.ts'
import { readPassages, ResourceCollection } from '../resource-collection.ts'
import { readVectors, readVectorsOf, ResourceVectors, type StoredEmbedder } from '../resource-vectors.ts'
import type { Question, SearchScope } from '../searcher.ts'
import { createTables, inTransaction } from './tables.ts'

type ServerKind = Exclude<IndexKind, 'file'>

/** What only reads. All other methods change the index. */
const reading: ReadonlySet<EngineMethod> = new Set([
  'embedderState', 'removals', 'resourceOf', 'embedderProgress', 'status',
])

/**
 * An engine whose index is in the database of a server. Each call is one transaction: its code is that of a file, executed again until
 * the server has answered all its statements. The collections of resources are in the memory of this process, and are brought up to date
 * before a search begins, since a transaction must not change anything here.
 */
export class ServerEngine implements EnginePort {
  readonly #connection: SqlConnection
  readonly #kind: ServerKind
  #cached: CachedResources
  /** By resource: searches of one resource wait for each other, since they share its collection. */
  readonly #searching = new Map<number, Promise<unknown>>()
  #closed = false

  static async open(connection: SqlConnection, kind: ServerKind, memoryBytes?: number): Promise<ServerEngine> {
    if (kind === 'libsql') await connection.write((_, statements) => createTables(statements))
    return new ServerEngine(connection, kind, memoryBytes)
  }

  private constructor(connection: SqlConnection, kind: ServerKind, memoryBytes: number | undefined) {
    this.#connection = connection
    this.#kind = kind
    this.#cached = new CachedResources(memoryBytes)
    // The versions of resources may have gone back too.
    connection.rewound?.add(() => (this.#cached = new CachedResources(memoryBytes)))
  }

  async call<Method extends EngineMethod>(
    method: Method, ...args: Parameters<RecallEngine[Method]>
  ): Promise<ReturnType<RecallEngine[Method]>> {
    if (this.#closed) throw new HeedError('closed', 'This store was closed. Open a new one.')
    if (method === 'search') return (await this.#search(args[0] as Question)) as ReturnType<RecallEngine[Method]>
    const act = (engine: RecallEngine) => (engine[method] as (...args: unknown[]) => ReturnType<RecallEngine[Method]>).apply(engine, args)
    return reading.has(method) ? this.#read(act) : this.#write(act)
  }

  async close(): Promise<void> {
    this.#closed = true
  }

  async #search(question: Question): Promise<SearchResult> {
    let incomplete = false
    let state = await this.#read((engine) => engine.readForSearch(question))
    if (!state.isCurrent) {
      for (let step = 1, again = true; again; step += 1) ({ again, incomplete } = await this.#write((engine) => engine.catchUp(step)))
      state = await this.#read((engine) => engine.readForSearch(question))
    }
    const { scope, embedder } = state
    if (!scope) return { hits: [], incomplete }
    const found = await this.#alone(scope.resource, async () => {
      const cached = await this.#refreshed(scope)
      const cosines = question.vector && embedder && (await this.#cosines(cached, embedder, question.vector.numbers))
      const found = await this.#read((engine) => engine.searchIn(scope, question), { cached, cosines })
      cached.collection.keepCounts()
      return found
    })
    return { ...found, incomplete }
  }

  async #alone<Result>(resource: number, work: () => Promise<Result>): Promise<Result> {
    const before = this.#searching.get(resource)
    const working = (before ?? Promise.resolve()).then(work, work)
    const done = working.then(() => {}, () => {})
    this.#searching.set(resource, done)
    try {
      return await working
    } finally {
      if (this.#searching.get(resource) === done) this.#searching.delete(resource)
    }
  }

  /** The resource in memory, up to date. */
  async #refreshed({ resource, version }: SearchScope): Promise<CachedResource> {
    const all = this.#cached
    const cached = all.get(resource)
    if (cached?.version === version) return all.apply(resource, { kind: 'none' }, cached)
    // Two transactions: in one, the whole collection would be read on the guess that nothing is known of the changes.
    const firsts = cached && (await this.#readIndex((index) => changedSince(index, cached)))
    if (cached && firsts) {
      return all.apply(resource, await this.#readIndex((index) => readSome(index, resource, version, cached, firsts)), cached)
    }
    // What changes while it is read is in the log of changes since its version, and is read again with the next search.
    const collection = new ResourceCollection(resource)
    for (let after: number | undefined = -1; after !== undefined;) {
      const from: number = after
      after = collection.add(await this.#readIndex((index) => readPassages(index, resource, from)))
    }
    return all.apply(resource, { kind: 'all', version, collection }, cached)
  }

  /** Undefined where the vectors are in a vector store, or of another length than the question's. */
  async #cosines(
    cached: CachedResource, { key, dimension, scope }: EmbedderRow, question: Float32Array,
  ): Promise<{ dimension: number; of: Float32Array } | undefined> {
    if (scope !== null || dimension !== question.length) return undefined
    const { collection } = cached
    const vectors = await this.#vectors(cached, { key, dimension })
    const comparison = vectors.begin(question)
    // The event loop runs between the parts.
    while (comparison.step()) await new Promise<void>((resolve) => setImmediate(resolve))
    if (vectors.isCoarse) {
      comparison.refine(await this.#readIndex((index) => readVectorsOf(index, collection.resource, key, comparison.nearest())))
    }
    return { dimension, of: comparison.cosines }
  }

  async #vectors(cached: CachedResource, embedder: StoredEmbedder): Promise<ResourceVectors> {
    const known = this.#cached.vectorsOf(cached, embedder)
    if (known) return known
    const { collection } = cached
    const vectors = new ResourceVectors(collection, embedder.dimension, this.#cached.spaceFor(cached, embedder))
    for (let after: number | undefined = vectors.firstRead; after !== undefined;) {
      const from: number = after
      after = vectors.add(await this.#readIndex((index) => readVectors(index, collection.resource, embedder, from)))
    }
    this.#cached.addVectors(cached, embedder.key, vectors)
    return vectors
  }

  #readIndex<Result>(work: (index: Statements) => Result): Promise<Result> {
    return this.#connection.read((_, statements) => work(inTransaction(statements, this.#kind).index))
  }

  #read<Result>(
    work: (engine: RecallEngine) => Result, held?: Held,
  ): Promise<Result> {
    return this.#connection.read((_, statements) => work(this.#engineIn(statements, held)))
  }

  #write<Result>(work: (engine: RecallEngine) => Result): Promise<Result> {
    return this.#connection.write((_, statements) => {
      // One process at a time changes the index.
      statements.lockDomain?.('recall')
      return work(this.#engineIn(statements))
    })
  }

  #engineIn(statements: Statements, held?: Held): RecallEngine {
    const databases = inTransaction(statements, this.#kind)
    const collections: Collections = {
      collectionOf: () => must(held?.cached.collection),
      cosinesOf: (_resource, { dimension }) =>
        // The dimension may have changed since the vectors were read.
        (held?.cosines?.dimension === dimension ? held.cosines.of : new Float32Array(must(held?.cached.collection).count)),
      logChanges: (touched) => logChanges(databases.index, touched),
    }
    return new RecallEngine(databases, collections)
  }
}

/** What is read and computed before the transaction of a search. */
interface Held {
  cached: CachedResource
  cosines: { dimension: number; of: Float32Array } | undefined
}

function must<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new TypeError('no collection was read for this search')
  return value
}
