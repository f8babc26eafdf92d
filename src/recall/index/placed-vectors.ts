import { hash } from 'node:crypto'
import type { ResourceCollection } from './resource-collection.ts'
import type { Databases } from './databases.ts'

/** A vector that is to be deleted in a vector store. */
export interface Removal {
  number: number
  id: string
  /** Absent: it may be in an index of any dimension. */
  dimension?: number
}

/** A vector that a vector store returned. */
interface NearVector {
  id: string
  /** Of its vector and the question's. */
  cosine: number
}

export interface NearVectors {
  vectors: NearVector[]
  /** The store returned fewer than it was asked for: it has no others. */
  all: boolean
}

interface RemovalRow {
  number: number
  scope: string
  dimension: number | null
  passage: number
  revision: number
}

/** What the index knows of the vectors in vector stores. */
export class PlacedVectors {
  readonly #databases: Databases

  constructor(databases: Databases) {
    this.#databases = databases
  }

  /** What the vectors of an embedder have in common in a vector store that other databases may share. Survives the loss of the index. */
  scopeOf(embedder: string): string {
    const generation = this.#databases.messages.one<{ generation: string }>('SELECT generation FROM heed_recall')?.generation ?? ''
    return hash('sha256', `${generation} ${embedder}`, 'hex').slice(0, 15)
  }

  removals(place: string, limit: number): Removal[] {
    return this.#databases.index
      .all<RemovalRow>(
        'SELECT number, scope, dimension, passage, revision FROM removals WHERE place = ? ORDER BY number LIMIT ?', place, limit,
      )
      .map(({ number, scope, dimension, passage, revision }) => ({
        number, id: vectorId(scope, passage, revision), ...(dimension !== null && { dimension }),
      }))
  }

  removed(numbers: readonly number[]): void {
    const { index, write } = this.#databases
    const text = 'DELETE FROM removals WHERE number IN (SELECT CAST(value AS BIGINT) FROM json_each(?))'
    write(() => index.execute(text, JSON.stringify(numbers)))
  }

  countRemovals(place: string): number {
    return this.#databases.index.one<{ count: number }>('SELECT count(*) AS count FROM removals WHERE place = ?', place)?.count ?? 0
  }

  /** A vector of a passage that changed while it was stored there. */
  recordRemoval(embedder: number, passage: number, revision: number): void {
    this.#databases.index.execute(
      `INSERT INTO removals (place, scope, dimension, passage, revision)
       SELECT place, scope, dimension, CAST(? AS BIGINT), CAST(? AS BIGINT) FROM embedders WHERE key = ? AND place IS NOT NULL`,
      passage, revision, embedder,
    )
  }

  /**
   * Cosines of a resource's passages, as far as a vector store returned them. Vectors that the index does not know, or knows of another
   * resource, count for nothing. The other passages are at most as near as the farthest that was returned; if it returned all, they have
   * no vector yet, and get the mean.
   */
  cosines(
    collection: ResourceCollection, embedder: { key: number; scope: string }, { vectors, all }: NearVectors,
  ): Float32Array | undefined {
    const byRevision = new Map(vectors.flatMap(({ id, cosine }) => {
      const revision = revisionOf(embedder.scope, id)
      return revision === undefined ? [] : [[revision, { id, cosine }] as const]
    }))
    const rows = this.#databases.index.all<{ passage: number; revision: number }>(
      `SELECT passage, revision FROM vectors WHERE embedder = ? AND resource = ?
       AND revision IN (SELECT CAST(value AS BIGINT) FROM json_each(?))`,
      embedder.key, collection.resource, JSON.stringify([...byRevision.keys()]),
    )
    const cosines = new Float32Array(collection.count).fill(Number.NaN)
    const known: number[] = []
    for (const { passage, revision } of rows) {
      const near = byRevision.get(revision)
      const at = collection.find(passage)
      if (!near || at < 0 || near.id !== vectorId(embedder.scope, passage, revision)) continue
      cosines[at] = near.cosine
      known.push(near.cosine)
    }
    if (known.length === 0) return undefined
    const rest = all ? known.reduce((sum, one) => sum + one, 0) / known.length : Math.min(...known)
    return cosines.map((cosine) => (Number.isNaN(cosine) ? rest : cosine))
  }
}

/** A UUID, which every vector store accepts as an id. The revision is a random number of 48 bits. */
export function vectorId(scope: string, passage: number, revision: number): string {
  const last = BigInt.asUintN(48, BigInt(revision)).toString(16).padStart(12, '0')
  const variant = (0x8000 + (passage % 0x4000)).toString(16)
  return `${scope.slice(0, 8)}-${scope.slice(8, 12)}-4${scope.slice(12, 15)}-${variant}-${last}`
}

function revisionOf(scope: string, id: string): number | undefined {
  const last = id.slice(24)
  if (!/^[0-9a-f]{12}$/.test(last) || !id.startsWith(scope.slice(0, 8))) return undefined
  return Number(BigInt.asIntN(48, BigInt(`0x${last}`)))
}
