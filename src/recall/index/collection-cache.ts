import type { Statements } from '../../store/sql/statements.ts'
import type { Databases } from './databases.ts'
import { readChanged, ResourceCollection, type ChangedPassages } from './resource-collection.ts'
import {
  readChangedVectors, readVectorsOf, ResourceVectors, spaceFor, type StoredEmbedder, type VectorRow, type VectorSpace,
} from './resource-vectors.ts'
import { firstPassageKey } from './schema.ts'

/** The memory for the resources that were searched last, if the store does not say how much. */
const defaultBytes = 384 * 1024 * 1024
/** The length of the change log in `touched`, for all resources together. */
const maxTouched = 50_000
/** When more than this share of a collection changed, it is read again as a whole. */
const maxRefreshed = 1 / 8

/** A resource in memory. */
export interface CachedResource {
  /** The version of the resource that this is up to date with. */
  version: number
  collection: ResourceCollection
  /** By key of the embedder. */
  vectors: Map<number, ResourceVectors>
}

/** What a resource in memory lacks: nothing, the changes since its version, or everything. */
type ResourceChange =
  | { kind: 'none' }
  | { kind: 'some'; version: number; messages: ChangedPassages[]; vectors: Map<number, VectorRow[]> }
  | { kind: 'all'; version: number; collection: ResourceCollection }

/** The collections that a search reads. */
export interface Collections {
  collectionOf(resource: number): ResourceCollection
  /** The cosines of its passages with a question. */
  cosinesOf(resource: number, embedder: StoredEmbedder, question: Float32Array): Float32Array
  /** Logs, by resource, the messages whose passages or vectors changed. Called within the transaction that changes them. */
  logChanges(touched: ReadonlyMap<number, ReadonlySet<number>>): void
}

/**
 * Keeps collections in memory and up to date with the index. Any process that changes messages logs them in `touched` with the new version
 * of their resource; a reader applies the log since its own version, or reads the collection again when the log no longer reaches back.
 */
export class CollectionCache implements Collections {
  readonly #databases: Databases
  readonly #cached: CachedResources

  constructor(databases: Databases, maxBytes?: number) {
    this.#databases = databases
    this.#cached = new CachedResources(maxBytes)
  }

  collectionOf(resource: number): ResourceCollection {
    return this.#refreshed(resource).collection
  }

  cosinesOf(resource: number, embedder: StoredEmbedder, question: Float32Array): Float32Array {
    const vectors = this.vectorsOf(resource, embedder)
    const comparison = vectors.compare(question)
    if (vectors.isCoarse) comparison.refine(readVectorsOf(this.#databases.index, resource, embedder.key, comparison.nearest()))
    return comparison.cosines
  }

  vectorsOf(resource: number, embedder: StoredEmbedder): ResourceVectors {
    const cached = this.#refreshed(resource)
    const known = this.#cached.vectorsOf(cached, embedder)
    if (known) return known
    const space = this.#cached.spaceFor(cached, embedder)
    const vectors = ResourceVectors.read(this.#databases.index, cached.collection, embedder, space)
    this.#cached.addVectors(cached, embedder.key, vectors)
    return vectors
  }

  logChanges(touched: ReadonlyMap<number, ReadonlySet<number>>): void {
    logChanges(this.#databases.index, touched)
  }

  #refreshed(resource: number): CachedResource {
    const cached = this.#cached.get(resource)
    return this.#cached.apply(resource, readChange(this.#databases.index, resource, cached), cached)
  }
}

/** The resources in memory, the least recently used first. */
export class CachedResources {
  readonly #entries = new Map<number, CachedResource>()
  readonly #maxBytes: number

  constructor(maxBytes = defaultBytes) {
    this.#maxBytes = maxBytes
  }

  get(resource: number): CachedResource | undefined {
    return this.#entries.get(resource)
  }

  /** Brings a resource up to date with a change that was read for it, as it was in memory then. */
  apply(resource: number, change: ResourceChange, cached: CachedResource | undefined): CachedResource {
    this.#entries.delete(resource)
    const entry = change.kind === 'all' || !cached ? entryOf(resource, change) : cached
    if (change.kind === 'some' && entry === cached) refresh(entry, change)
    this.#entries.set(resource, entry)
    if (change.kind !== 'none') this.#evict(entry)
    return entry
  }

  /** The vectors in memory. Those that have outgrown the memory are read again, with fewer bits. */
  vectorsOf(entry: CachedResource, { key, dimension }: StoredEmbedder): ResourceVectors | undefined {
    const known = entry.vectors.get(key)
    if (known?.dimension !== dimension) return undefined
    return known.isCoarse || bytesOf(entry) <= this.#maxBytes ? known : undefined
  }

  /** How the vectors of a resource are to be kept. */
  spaceFor({ collection }: CachedResource, { dimension }: StoredEmbedder): VectorSpace {
    return spaceFor(collection, dimension, this.#maxBytes - collection.bytes)
  }

  /** The vectors of one embedder alone are kept. */
  addVectors(entry: CachedResource, embedder: number, vectors: ResourceVectors): void {
    entry.vectors.clear()
    entry.vectors.set(embedder, vectors)
    this.#evict(entry)
  }

  /** Evicts the least recently used entries. The one in use stays: its vectors take what its passages leave. */
  #evict(used: CachedResource): void {
    let bytes = 0
    for (const entry of this.#entries.values()) bytes += bytesOf(entry)
    for (const [resource, entry] of this.#entries) {
      if (bytes <= this.#maxBytes) return
      if (entry === used) continue
      this.#entries.delete(resource)
      bytes -= bytesOf(entry)
    }
  }
}

function entryOf(resource: number, change: ResourceChange): CachedResource {
  const { version, collection } = change.kind === 'all' ? change : { version: 0, collection: new ResourceCollection(resource) }
  return { version, collection, vectors: new Map() }
}

function refresh(entry: CachedResource, { version, messages, vectors }: ResourceChange & { kind: 'some' }): void {
  const firsts = messages.map(({ first }) => first)
  const moves = entry.collection.refresh(messages)
  for (const [embedder, refreshed] of entry.vectors) refreshed.refresh(firsts, vectors.get(embedder) ?? [], moves)
  entry.version = version
}

/** Reads what a resource in memory lacks, and changes nothing. */
function readChange(index: Statements, resource: number, cached: CachedResource | undefined): ResourceChange {
  const version = index.one<{ version: number }>('SELECT version FROM resources WHERE key = ?', resource)?.version ?? 0
  if (cached?.version === version) return { kind: 'none' }
  const firsts = cached && changedSince(index, cached)
  if (!cached || !firsts) return { kind: 'all', version, collection: ResourceCollection.read(index, resource) }
  return readSome(index, resource, version, cached, firsts)
}

/** The change to a version, of the messages with these first passages. */
export function readSome(
  index: Statements, resource: number, version: number, cached: CachedResource, firsts: readonly number[],
): ResourceChange {
  const vectors = new Map([...cached.vectors.keys()].map((embedder) => [embedder, readChangedVectors(index, resource, embedder, firsts)]))
  return { kind: 'some', version, messages: readChanged(index, resource, firsts), vectors }
}

/** The keys of the first passages of what changed; undefined when the log does not reach back to the version, or too much changed. */
export function changedSince(index: Statements, { version, collection }: CachedResource): number[] | undefined {
  const { resource } = collection
  const first = index.one<{ version: number | null }>(
    'SELECT min(version) AS version FROM touched WHERE resource = ? AND version > ?', resource, version,
  )
  const most = Math.ceil(1_000 + collection.count * maxRefreshed)
  const messages = index.all<{ message: number }>(
    'SELECT DISTINCT message FROM touched WHERE resource = ? AND version > ? ORDER BY message LIMIT ?', resource, version, most,
  )
  return first?.version !== version + 1 || messages.length === most ? undefined : messages.map(({ message }) => firstPassageKey(message))
}

/** Logs changed messages by resource, within the transaction that changes them. */
export function logChanges(index: Statements, touched: ReadonlyMap<number, ReadonlySet<number>>): void {
  for (const [resource, messages] of touched) {
    index.execute('UPDATE resources SET version = version + 1 WHERE key = ?', resource)
    for (const message of messages) {
      index.execute(
        'INSERT INTO touched (resource, version, message) SELECT key, version, CAST(? AS BIGINT) FROM resources WHERE key = ?',
        message,
        resource,
      )
    }
  }
  if (touched.size > 0) index.execute(`DELETE FROM touched WHERE number <= (SELECT max(number) FROM touched) - ${maxTouched}`)
}

function bytesOf({ collection, vectors }: CachedResource): number {
  let bytes = collection.bytes
  for (const { bytes: more } of vectors.values()) bytes += more
  return bytes
}
