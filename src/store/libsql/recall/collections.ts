import type { Databases } from './databases.ts'
import { ResourceCollection } from './collection.ts'
import { ResourceVectors } from './vectors.ts'

/** What is kept at hand of resources that were asked for last. */
const mostBytes = 384 * 1024 * 1024

interface Kept {
  collection: ResourceCollection
  /** By embedder. */
  vectors: Map<number, ResourceVectors>
}

/** Collections that were read, as long as they are what the index has. Other processes write to it too: each is compared when it is used. */
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
    if (!vectors) {
      vectors = new ResourceVectors(this.#databases.index, kept.collection, embedder, dimension)
      kept.vectors.clear()
      kept.vectors.set(embedder, vectors)
      this.#shrink(resource)
    }
    return vectors
  }

  /** Within the transaction that changed them: by resource, the passages that came; -1 where any went. */
  changed(touched: ReadonlyMap<number, readonly number[]>): void {
    const { index } = this.#databases
    for (const [resource, passages] of touched) {
      index.run('UPDATE resources SET version = version + 1 WHERE key = ?', resource)
      const kept = this.#kept.get(resource)
      if (!kept) continue
      const isNext = kept.collection.version + 1 === this.#version(resource)
      if (!isNext || passages.includes(-1) || !kept.collection.append(index, passages)) this.#kept.delete(resource)
      else kept.collection.version += 1
    }
  }

  /** Within the transaction that stored vectors of a resource. */
  embedded(resource: number, embedder: number, stored: ReadonlyArray<{ passage: number; own: Uint8Array; pair: Uint8Array }>): void {
    this.#databases.index.run('UPDATE resources SET version = version + 1 WHERE key = ?', resource)
    const kept = this.#kept.get(resource)
    if (!kept) return
    if (kept.collection.version + 1 !== this.#version(resource)) {
      this.#kept.delete(resource)
      return
    }
    kept.collection.version += 1
    for (const { passage, own, pair } of stored) kept.vectors.get(embedder)?.put(passage, own, pair)
  }

  /** A transaction that told of changes was undone, or others wrote. */
  clear(): void {
    this.#kept.clear()
  }

  #keep(resource: number): Kept {
    const version = this.#version(resource)
    const there = this.#kept.get(resource)
    this.#kept.delete(resource)
    const kept = there?.collection.version === version ? there : { collection: new ResourceCollection(this.#databases.index, resource, version), vectors: new Map<number, ResourceVectors>() }
    this.#kept.set(resource, kept)
    if (kept !== there) this.#shrink(resource)
    return kept
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
