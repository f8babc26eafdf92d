import { mostPassages } from '../text/passages.ts'
import type { Databases } from './databases.ts'
import { ResourceCollection } from './collection.ts'
import { ResourceVectors } from './vectors.ts'

/** What is kept at hand of resources that were asked for last. */
const mostBytes = 384 * 1024 * 1024
/** So many changes are remembered, of all resources together. */
const mostTouched = 50_000
/** More than this share of a collection is read anew rather than one by one. */
const mostFollowed = 1 / 8

interface Kept {
  /** Of the resource, when this was read. */
  version: number
  collection: ResourceCollection
  /** By embedder. */
  vectors: Map<number, ResourceVectors>
}

/**
 * Collections that were read, and follow what the index has: which messages changed with which version of their resource is noted beside
 * them, whichever process changed them. Who missed too much reads all of them again.
 */
export class Collections {
  readonly #databases: Databases
  readonly #kept = new Map<number, Kept>()

  constructor(databases: Databases) {
    this.#databases = databases
  }

  of(resource: number): ResourceCollection {
    return this.#keep(resource).collection
  }

  vectorsOf(resource: number, embedder: number, dimension: number): ResourceVectors {
    const kept = this.#keep(resource)
    let vectors = kept.vectors.get(embedder)
    if (vectors?.dimension !== dimension) {
      vectors = new ResourceVectors(this.#databases.index, kept.collection, embedder, dimension)
      kept.vectors.clear()
      kept.vectors.set(embedder, vectors)
      this.#shrink(resource)
    }
    return vectors
  }

  /** Within the transaction that changed them: by resource, the messages whose passages or vectors are others now. */
  changed(touched: ReadonlyMap<number, ReadonlySet<number>>): void {
    const { index } = this.#databases
    let last = 0
    for (const [resource, messages] of touched) {
      index.run('UPDATE resources SET version = version + 1 WHERE key = ?', resource)
      for (const message of messages) last = index.insert('INSERT INTO touched (resource, version, message) SELECT key, version, ? FROM resources WHERE key = ?', message, resource)
    }
    if (last > mostTouched) index.run('DELETE FROM touched WHERE number <= ?', last - mostTouched)
  }

  #keep(resource: number): Kept {
    const version = this.#version(resource)
    const there = this.#kept.get(resource)
    this.#kept.delete(resource)
    const kept = there && this.#follow(there, version)
      ? there
      : { version, collection: new ResourceCollection(this.#databases.index, resource), vectors: new Map<number, ResourceVectors>() }
    this.#kept.set(resource, kept)
    if (kept !== there) this.#shrink(resource)
    return kept
  }

  /** False when not all that changed is known any more, or too much did. */
  #follow(kept: Kept, version: number): boolean {
    if (kept.version === version) return true
    const { index } = this.#databases
    const { collection, vectors } = kept
    const first = index.one<{ version: number | null }>('SELECT min(version) AS version FROM touched WHERE resource = ? AND version > ?', collection.resource, kept.version)
    if (first?.version !== kept.version + 1) return false
    const most = Math.ceil(1_000 + collection.count * mostFollowed)
    const messages = index.all<{ message: number }>(
      'SELECT DISTINCT message FROM touched WHERE resource = ? AND version > ? ORDER BY message LIMIT ?', collection.resource, kept.version, most,
    ).map(({ message }) => message)
    if (messages.length === most) return false
    const moves = collection.follow(index, messages.map((message) => message * mostPassages))
    for (const followed of vectors.values()) followed.follow(index, messages.map((message) => message * mostPassages), moves)
    kept.version = version
    return true
  }

  #version(resource: number): number {
    return this.#databases.index.one<{ version: number }>('SELECT version FROM resources WHERE key = ?', resource)?.version ?? 0
  }

  /** Forgets those that were not used for longest. The one in use stays, whatever its size. */
  #shrink(used: number): void {
    let bytes = 0
    for (const kept of this.#kept.values()) bytes += bytesOf(kept)
    for (const [resource, kept] of this.#kept) {
      if (bytes <= mostBytes) return
      if (resource === used) continue
      this.#kept.delete(resource)
      bytes -= bytesOf(kept)
    }
  }
}

function bytesOf({ collection, vectors }: Kept): number {
  let bytes = collection.bytes
  for (const { bytes: more } of vectors.values()) bytes += more
  return bytes
}
