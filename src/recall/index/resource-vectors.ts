import { dotProducts, quantizedNumbers, quantizedScale, strideOf } from '../rank/quantized-vectors.ts'
import { maxPassages } from '../text/passages.ts'
import type { Meanings } from '../rank/rank.ts'
import type { Statements } from '../../store/sql/statements.ts'
import { applyMoves, grow, type Move, type ResourceCollection } from './resource-collection.ts'

/** The rows that are read at once. */
const readAtOnce = 2_000

/** The vectors of all passages: each alone, or each with the one before it. A scale of 0 means that the passage has none. */
interface Vectors {
  numbers: Int8Array
  scales: Float32Array
}

interface VectorRow {
  passage: number
  own: Uint8Array
  pair: Uint8Array
}

/** The vectors that one embedder made of a resource's passages, in memory. */
export class ResourceVectors {
  readonly dimension: number
  readonly #collection: ResourceCollection
  readonly #embedder: number
  readonly #stride: number
  readonly #own: Vectors = { numbers: new Int8Array(0), scales: new Float32Array(0) }
  readonly #pair: Vectors = { numbers: new Int8Array(0), scales: new Float32Array(0) }
  /** The number of passages that have vectors. */
  #present = 0

  constructor(index: Statements, collection: ResourceCollection, embedder: number, dimension: number) {
    this.#collection = collection
    this.#embedder = embedder
    this.dimension = dimension
    this.#stride = strideOf(dimension)
    this.#reserve()
    for (let after = -1, more = true; more;) {
      const rows = index.all<VectorRow>(
        'SELECT passage, own, pair FROM vectors WHERE embedder = ? AND resource = ? AND passage > ? ORDER BY passage LIMIT ?',
        embedder,
        collection.resource,
        after,
        readAtOnce,
      )
      for (const row of rows) this.#put(row)
      after = rows.at(-1)?.passage ?? after
      more = rows.length === readAtOnce
    }
  }

  get bytes(): number {
    return [this.#own, this.#pair].reduce((sum, { numbers, scales }) => sum + numbers.byteLength + scales.byteLength, 0)
  }

  /** Called after the collection's `refresh`: reads the vectors of the changed messages again, and moves the others. */
  refresh(index: Statements, firsts: readonly number[], moves: readonly Move[]): void {
    this.#reserve()
    for (const vectors of [this.#own, this.#pair]) {
      applyMoves(vectors.numbers, moves, this.#stride)
      applyMoves(vectors.scales, moves)
      vectors.scales.fill(0, this.#collection.count)
      for (const first of firsts) vectors.scales.fill(0, ...this.#collection.rangeOf(first))
    }
    for (const first of firsts) {
      const rows = index.all<VectorRow>(
        'SELECT passage, own, pair FROM vectors WHERE embedder = ? AND resource = ? AND passage >= ? AND passage < ?',
        this.#embedder,
        this.#collection.resource,
        first,
        first + maxPassages,
      )
      for (const row of rows) this.#put(row)
    }
    this.#present = this.#own.scales.reduce((sum, scale) => sum + (scale === 0 ? 0 : 1), 0)
  }

  /** Cosines with a question's vector. */
  compare(question: Float32Array): Meanings {
    const { count } = this.#collection
    const unit = normalize(question)
    const [own, pair] = [this.#own, this.#pair].map(({ numbers, scales }) => dotProducts(unit, numbers, scales, count)) as [
      Float32Array,
      Float32Array,
    ]
    if (this.#present < count && this.#present > 0) this.#assumeMean({ own, pair })
    return { own, pair }
  }

  /** Passages without a vector get the mean cosine, so that they don't rank last only because an embedder has not seen them yet. */
  #assumeMean({ own, pair }: Meanings): void {
    const { count } = this.#collection
    const { scales } = this.#own
    const mean = {
      own: own.reduce((sum, cosine) => sum + cosine, 0) / this.#present,
      pair: pair.reduce((sum, cosine) => sum + cosine, 0) / this.#present,
    }
    for (let at = 0; at < count; at += 1) {
      if (scales[at] !== 0) continue
      own[at] = mean.own
      pair[at] = mean.pair
    }
  }

  #put({ passage, own, pair }: VectorRow): void {
    const at = this.#collection.find(passage)
    if (at < 0 || own.byteLength !== this.dimension + 4 || pair.byteLength !== own.byteLength) return
    if (this.#own.scales[at] === 0) this.#present += 1
    for (const [vectors, bytes] of [[this.#own, own], [this.#pair, pair]] as const) {
      vectors.numbers.set(quantizedNumbers(bytes), at * this.#stride)
      vectors.scales[at] = quantizedScale(bytes)
    }
  }

  #reserve(): void {
    const size = this.#collection.keys.length
    if (size <= this.#own.scales.length) return
    for (const vectors of [this.#own, this.#pair]) {
      vectors.numbers = grow(vectors.numbers, new Int8Array(size * this.#stride))
      vectors.scales = grow(vectors.scales, new Float32Array(size))
    }
  }
}

function normalize(vector: Float32Array): Float32Array {
  let squares = 0
  for (const number of vector) squares += number * number
  const length = Math.sqrt(squares) || 1
  return vector.map((number) => number / length)
}
