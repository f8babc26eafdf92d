import { HeedError } from '../../../base/errors.ts'
import type { SqlConnection } from '../../../store/sql/driver.ts'
import type { Statements } from '../../../store/sql/statements.ts'
import { CachedResources, changedSince, logChanges, readMissing, type CachedResource, type Collections } from '../collection-cache.ts'
import { RecallEngine, type EngineMethod, type EnginePort, type IndexKind, type SearchResult } from '../engine.ts'
import type { EmbedderRow } from '../embeddings.ts'
import { readVectors, ResourceVectors } from '../resource-vectors.ts'
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
  #cached = new CachedResources()
  /** By resource: searches of one resource wait for each other, since they share its collection. */
  readonly #searching = new Map<number, Promise<unknown>>()
  #closed = false

  static async open(connection: SqlConnection, kind: ServerKind): Promise<ServerEngine> {
    if (kind === 'libsql') await connection.write((_, statements) => createTables(statements))
    return new ServerEngine(connection, kind)
  }

  private constructor(connection: SqlConnection, kind: ServerKind) {
    this.#connection = connection
    this.#kind = kind
    // The versions of resources may have gone back too.
    connection.rewound?.add(() => (this.#cached = new CachedResources()))
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
    const hits = await this.#alone(scope.resource, async () => {
      const cached = await this.#refreshed(scope)
      const vectors = question.vector && embedder && (await this.#vectors(cached, embedder, question.vector.numbers.length))
      const found = await this.#read((engine) => engine.searchIn(scope, question), { cached, vectors })
      cached.collection.keepCounts()
      return found
    })
    return { hits, incomplete }
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
    return all.apply(resource, await this.#readIndex((index) => readMissing(index, resource, version, cached, firsts)), cached)
  }

  /** Undefined where the vectors are in a vector store, or of another length than the question's. */
  async #vectors(cached: CachedResource, { key, dimension, scope }: EmbedderRow, wanted: number): Promise<ResourceVectors | undefined> {
    if (scope !== null || dimension !== wanted) return undefined
    const known = this.#cached.vectorsOf(cached, key, dimension)
    if (known) return known
    const vectors = new ResourceVectors(cached.collection, dimension)
    for (let after: number | undefined = -1; after !== undefined;) {
      const from: number = after
      after = vectors.add(await this.#readIndex((index) => readVectors(index, cached.collection.resource, key, from)))
    }
    this.#cached.addVectors(cached, key, vectors)
    return vectors
  }

  #readIndex<Result>(work: (index: Statements) => Result): Promise<Result> {
    return this.#connection.read((_, statements) => work(inTransaction(statements, this.#kind).index))
  }

  #read<Result>(
    work: (engine: RecallEngine) => Result, held?: { cached: CachedResource; vectors: ResourceVectors | undefined },
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

  #engineIn(statements: Statements, held?: { cached: CachedResource; vectors: ResourceVectors | undefined }): RecallEngine {
    const databases = inTransaction(statements, this.#kind)
    const collections: Collections = {
      collectionOf: () => must(held?.cached.collection),
      vectorsOf: (_resource, _embedder, dimension) =>
        // The dimension may have changed since the vectors were read.
        (held?.vectors?.dimension === dimension ? held.vectors : new ResourceVectors(must(held?.cached.collection), dimension)),
      logChanges: (touched) => logChanges(databases.index, touched),
    }
    return new RecallEngine(databases, collections)
  }
}

function must<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new TypeError('no collection was read for this search')
  return value
}
