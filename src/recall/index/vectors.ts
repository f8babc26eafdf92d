import { dotProducts, strideOf } from '../rank/dot-products.ts'
import { mostPassages } from '../text/passages.ts'
import { numbersOf, scaleOf } from '../rank/quantised.ts'
import type { Meanings } from '../rank/rank.ts'
import type { Statements } from '../../store/sql/statements.ts'
import type { ResourceCollection } from './collection.ts'
import { move, type Move } from './splices.ts'

/** Vectors that are read at once. */
const atOnce = 2_000

/** Of passages alone, or with the one before. A scale of 0 says that there is none. */
interface Vectors {
  numbers: Int8Array
  scales: Float32Array
}

interface VectorRow {
  passage: number
  own: Uint8Array
  pair: Uint8Array
}

/** The vectors of a resource's passages, at hand. */
export class ResourceVectors {
  readonly dimension: number
  readonly #collection: ResourceCollection
  readonly #embedder: number
  readonly #stride: number
  readonly #own: Vectors = { numbers: new Int8Array(0), scales: new Float32Array(0) }
  readonly #pair: Vectors = { numbers: new Int8Array(0), scales: new Float32Array(0) }
  /** How many passages have theirs. */
  #present = 0

  constructor(index: Statements, collection: ResourceCollection, embedder: number, dimension: number) {
    this.#collection = collection
    this.#embedder = embedder
    this.dimension = dimension
    this.#stride = strideOf(dimension)
    this.#reserve()
    for (let after = -1, more = true; more;) {
      const rows = index.all<VectorRow>(
        'SELECT passage, own, pair FROM vectors WHERE embedder = ? AND resource = ? AND passage > ? ORDER BY passage LIMIT ?', embedder, collection.resource, after, atOnce,
      )
      for (const row of rows) this.#put(row)
      after = rows.at(-1)?.passage ?? after
      more = rows.length === atOnce
    }
  }

  get bytes(): number {
    return [this.#own, this.#pair].reduce((sum, { numbers, scales }) => sum + numbers.byteLength + scales.byteLength, 0)
  }

  /** After the collection did: vectors of these messages came, went or became others, and those of others moved. */
  follow(index: Statements, firsts: readonly number[], moves: readonly Move[]): void {
    this.#reserve()
    for (const vectors of [this.#own, this.#pair]) {
      move(vectors.numbers, moves, this.#stride)
      move(vectors.scales, moves)
      vectors.scales.fill(0, this.#collection.count)
      for (const first of firsts) vectors.scales.fill(0, ...this.#collection.rangeOf(first))
    }
    for (const first of firsts) {
      const rows = index.all<VectorRow>(
        'SELECT passage, own, pair FROM vectors WHERE embedder = ? AND resource = ? AND passage >= ? AND passage < ?', this.#embedder, this.#collection.resource, first, first + mostPassages,
      )
      for (const row of rows) this.#put(row)
    }
    this.#present = this.#own.scales.reduce((sum, scale) => sum + (scale === 0 ? 0 : 1), 0)
  }

  /** Cosines with a question's vector. */
  compare(question: Float32Array): Meanings {
    const { count } = this.#collection
    const unit = unitOf(question)
    const [own, pair] = [this.#own, this.#pair].map(({ numbers, scales }) => dotProducts(unit, numbers, scales, count)) as [Float32Array, Float32Array]
    if (this.#present < count && this.#present > 0) this.#assume({ own, pair })
    return { own, pair }
  }

  /** What has no vector yet is taken to be as near as the others are on average: it must not lose to them for that. */
  #assume({ own, pair }: Meanings): void {
    const { count } = this.#collection
    const { scales } = this.#own
    const mean = { own: own.reduce((sum, cosine) => sum + cosine, 0) / this.#present, pair: pair.reduce((sum, cosine) => sum + cosine, 0) / this.#present }
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
      vectors.numbers.set(numbersOf(bytes), at * this.#stride)
      vectors.scales[at] = scaleOf(bytes)
    }
  }

  #reserve(): void {
    const size = this.#collection.keys.length
    if (size <= this.#own.scales.length) return
    for (const vectors of [this.#own, this.#pair]) {
      vectors.numbers = grown(vectors.numbers, new Int8Array(size * this.#stride))
      vectors.scales = grown(vectors.scales, new Float32Array(size))
    }
  }
}

function grown<Numbers extends Int8Array | Float32Array>(before: Numbers, after: Numbers): Numbers {
  after.set(before)
  return after
}

function unitOf(vector: Float32Array): Float32Array {
  let squares = 0
  for (const number of vector) squares += number * number
  const length = Math.sqrt(squares) || 1
  return vector.map((number) => number / length)
}
