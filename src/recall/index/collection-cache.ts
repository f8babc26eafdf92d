import type { Databases } from './databases.ts'
import { ResourceCollection } from './resource-collection.ts'
import { ResourceVectors } from './resource-vectors.ts'
import { firstPassageKey } from './schema.ts'

/** The memory for the resources that were searched last. */
const maxBytes = 384 * 1024 * 1024
/** The length of the change log in `touched`, for all resources together. */
const maxTouched = 50_000
/** When more than this share of a collection changed, it is read again as a whole. */
const maxRefreshed = 1 / 8

interface CacheEntry {
  /** The version of the resource that this is up to date with. */
  version: number
  collection: ResourceCollection
  /** By key of the embedder. */
  vectors: Map<number, ResourceVectors>
}

/**
 * Keeps collections in memory and up to date with the index. Any process that changes messages logs them in `touched` with the new version
 * of their resource; a reader applies the log since its own version, or reads the collection again when the log no longer reaches back.
 */
export class CollectionCache {
  readonly #databases: Databases
  readonly #entries = new Map<number, CacheEntry>()

  constructor(databases: Databases) {
    this.#databases = databases
  }

  collectionOf(resource: number): ResourceCollection {
    return this.#entry(resource).collection
  }

  vectorsOf(resource: number, embedder: number, dimension: number): ResourceVectors {
    const entry = this.#entry(resource)
    let vectors = entry.vectors.get(embedder)
    if (vectors?.dimension !== dimension) {
      vectors = new ResourceVectors(this.#databases.index, entry.collection, embedder, dimension)
      entry.vectors.clear()
      entry.vectors.set(embedder, vectors)
      this.#evict(resource)
    }
    return vectors
  }

  /** Logs, by resource, the messages whose passages or vectors changed. Called within the transaction that changes them. */
  logChanges(touched: ReadonlyMap<number, ReadonlySet<number>>): void {
    const { index } = this.#databases
    let last = 0
    for (const [resource, messages] of touched) {
      index.run('UPDATE resources SET version = version + 1 WHERE key = ?', resource)
      for (const message of messages)
        last = index.insert(
          'INSERT INTO touched (resource, version, message) SELECT key, version, ? FROM resources WHERE key = ?',
          message,
          resource,
        )
    }
    if (last > maxTouched) index.run('DELETE FROM touched WHERE number <= ?', last - maxTouched)
  }

  #entry(resource: number): CacheEntry {
    const version = this.#version(resource)
    const cached = this.#entries.get(resource)
    this.#entries.delete(resource)
    const entry = cached && this.#refresh(cached, version)
      ? cached
      : { version, collection: new ResourceCollection(this.#databases.index, resource), vectors: new Map<number, ResourceVectors>() }
    this.#entries.set(resource, entry)
    if (entry !== cached) this.#evict(resource)
    return entry
  }

  /** False when the log does not reach back to the entry's version, or too much changed. */
  #refresh(entry: CacheEntry, version: number): boolean {
    if (entry.version === version) return true
    const { index } = this.#databases
    const { collection, vectors } = entry
    const first = index.one<{ version: number | null }>(
      'SELECT min(version) AS version FROM touched WHERE resource = ? AND version > ?',
      collection.resource,
      entry.version,
    )
    if (first?.version !== entry.version + 1) return false
    const most = Math.ceil(1_000 + collection.count * maxRefreshed)
    const messages = index
      .all<{ message: number }>(
        'SELECT DISTINCT message FROM touched WHERE resource = ? AND version > ? ORDER BY message LIMIT ?',
        collection.resource,
        entry.version,
        most,
      )
      .map(({ message }) => message)
    if (messages.length === most) return false
    const firsts = messages.map(firstPassageKey)
    const moves = collection.refresh(index, firsts)
    for (const refreshed of vectors.values()) refreshed.refresh(index, firsts, moves)
    entry.version = version
    return true
  }

  #version(resource: number): number {
    return this.#databases.index.one<{ version: number }>('SELECT version FROM resources WHERE key = ?', resource)?.version ?? 0
  }

  /** Evicts the least recently used entries. The one in use stays, whatever its size. */
  #evict(used: number): void {
    let bytes = 0
    for (const entry of this.#entries.values()) bytes += bytesOf(entry)
    for (const [resource, entry] of this.#entries) {
      if (bytes <= maxBytes) return
      if (resource === used) continue
      this.#entries.delete(resource)
      bytes -= bytesOf(entry)
    }
  }
}

function bytesOf({ collection, vectors }: CacheEntry): number {
  let bytes = collection.bytes
  for (const { bytes: more } of vectors.values()) bytes += more
  return bytes
}
