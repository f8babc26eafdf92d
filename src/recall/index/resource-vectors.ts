import { dotProducts, quantizedNumbers, quantizedScale, strideOf } from '../rank/quantized-vectors.ts'
import { maxPassages } from '../text/passages.ts'
import type { Statements } from '../../store/sql/statements.ts'
import { applyMoves, grow, type Move, type ResourceCollection } from './resource-collection.ts'

/** The rows that are read at once. */
const readAtOnce = 2_000

export interface VectorRow {
  passage: number
  vector: Uint8Array
}

/** The next vectors of a resource, in the order of their passages. */
export function readVectors(index: Statements, resource: number, embedder: number, after: number): VectorRow[] {
  const text = 'SELECT passage, vector FROM vectors WHERE embedder = ? AND resource = ? AND passage > ? ORDER BY passage LIMIT ?'
  return index.all<VectorRow>(text, embedder, resource, after, readAtOnce)
}

/** The vectors of changed messages. */
export function readChangedVectors(index: Statements, resource: number, embedder: number, firsts: readonly number[]): VectorRow[] {
  const text = 'SELECT passage, vector FROM vectors WHERE embedder = ? AND resource = ? AND passage >= ? AND passage < ?'
  return firsts.flatMap((first) => index.all<VectorRow>(text, embedder, resource, first, first + maxPassages))
}

/** The vectors that one embedder made of a resource's passages, in memory. */
export class ResourceVectors {
  readonly dimension: number
  readonly #collection: ResourceCollection
  readonly #stride: number
  #numbers = new Int8Array(0)
  /** 0 means that the passage has no vector. */
  #scales = new Float32Array(0)
  /** The number of passages that have vectors. */
  #present = 0

  constructor(collection: ResourceCollection, dimension: number) {
    this.#collection = collection
    this.dimension = dimension
    this.#stride = strideOf(dimension)
    this.#reserve()
  }

  static read(index: Statements, collection: ResourceCollection, embedder: number, dimension: number): ResourceVectors {
    const vectors = new ResourceVectors(collection, dimension)
    for (let after: number | undefined = -1; after !== undefined;) {
      after = vectors.add(readVectors(index, collection.resource, embedder, after))
    }
    return vectors
  }

  /** Adds vectors that `readVectors` returned. Returns after which passage the next ones are read. */
  add(rows: readonly VectorRow[]): number | undefined {
    for (const row of rows) this.#put(row)
    return rows.length === readAtOnce ? rows.at(-1)?.passage : undefined
  }

  get bytes(): number {
    return this.#numbers.byteLength + this.#scales.byteLength
  }

  /** Called after the collection's `refresh`: takes the vectors of the changed messages, and moves the others. */
  refresh(firsts: readonly number[], rows: readonly VectorRow[], moves: readonly Move[]): void {
    this.#reserve()
    applyMoves(this.#numbers, moves, this.#stride)
    applyMoves(this.#scales, moves)
    this.#scales.fill(0, this.#collection.count)
    for (const first of firsts) this.#scales.fill(0, ...this.#collection.rangeOf(first))
    for (const row of rows) this.#put(row)
    this.#present = this.#scales.reduce((sum, scale) => sum + (scale === 0 ? 0 : 1), 0)
  }

  /** Cosines with a question's vector. */
  compare(question: Float32Array): Float32Array {
    const { count } = this.#collection
    const cosines = dotProducts(normalize(question), this.#numbers, this.#scales, count)
    if (this.#present < count && this.#present > 0) this.#assumeMean(cosines)
    return cosines
  }

  /** Passages without a vector get the mean cosine, so that they don't rank last only because an embedder has not seen them yet. */
  #assumeMean(cosines: Float32Array): void {
    const mean = cosines.reduce((sum, cosine) => sum + cosine, 0) / this.#present
    for (let at = 0; at < cosines.length; at += 1) if (this.#scales[at] === 0) cosines[at] = mean
  }

  #put({ passage, vector }: VectorRow): void {
    const at = this.#collection.find(passage)
    if (at < 0 || vector.byteLength !== this.dimension + 4) return
    if (this.#scales[at] === 0) this.#present += 1
    this.#numbers.set(quantizedNumbers(vector), at * this.#stride)
    this.#scales[at] = quantizedScale(vector)
  }

  #reserve(): void {
    const size = this.#collection.keys.length
    if (size <= this.#scales.length) return
    this.#numbers = grow(this.#numbers, new Int8Array(size * this.#stride))
    this.#scales = grow(this.#scales, new Float32Array(size))
  }
}

function normalize(vector: Float32Array): Float32Array {
  let squares = 0
  for (const number of vector) squares += number * number
  const length = Math.sqrt(squares) || 1
  return vector.map((number) => number / length)
}
