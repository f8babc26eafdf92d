import { numbersOf, scaleOf } from '../../../recall/quantised.ts'
import type { Meanings } from '../../../recall/rank.ts'
import type { Statements } from '../statements.ts'
import type { ResourceCollection } from './collection.ts'

/** Up to so many passages all vectors are compared. Of more, those first whose signs agree with the question's. */
const compared = 8_000
const candidates = 4_000

/** The vectors of a resource's passages, at hand. */
export class ResourceVectors {
  readonly #collection: ResourceCollection
  readonly #dimension: number
  readonly #words: number
  #size = 0
  #own = new Int8Array(0)
  #pair = new Int8Array(0)
  #scales = new Float32Array(0)
  #signs = new Uint32Array(0)

  constructor(index: Statements, collection: ResourceCollection, embedder: number, dimension: number) {
    this.#collection = collection
    this.#dimension = dimension
    this.#words = Math.ceil(dimension / 32)
    this.#reserve()
    const limit = 2_000
    for (let after = -1, more = true; more;) {
      const rows = index.all<{ passage: number; own: Uint8Array; pair: Uint8Array }>(
        'SELECT passage, own, pair FROM vectors WHERE embedder = ? AND resource = ? AND passage > ? ORDER BY passage LIMIT ?', embedder, collection.resource, after, limit,
      )
      for (const { passage, own, pair } of rows) this.put(passage, own, pair)
      after = rows.at(-1)?.passage ?? after
      more = rows.length === limit
    }
  }

  get bytes(): number {
    return this.#own.byteLength + this.#pair.byteLength + this.#scales.byteLength + this.#signs.byteLength
  }

  put(passage: number, own: Uint8Array, pair: Uint8Array): void {
    const at = this.#collection.find(passage)
    if (at < 0 || own.byteLength !== this.#dimension + 4 || pair.byteLength !== own.byteLength) return
    this.#reserve()
    const numbers = numbersOf(own)
    this.#own.set(numbers, at * this.#dimension)
    this.#pair.set(numbersOf(pair), at * this.#dimension)
    this.#scales[at * 2] = scaleOf(own)
    this.#scales[at * 2 + 1] = scaleOf(pair)
    this.#signs.set(signsOf(numbers, this.#words), at * this.#words)
  }

  /** Cosines with a question's vector; of many passages, of those that may be near, and of `also`. */
  compare(question: Float32Array, also: Iterable<number>): Meanings {
    const { count } = this.#collection
    this.#reserve()
    const unit = unitOf(question)
    const meanings: Meanings = { own: new Float32Array(count), pair: new Float32Array(count) }
    if (count <= compared) {
      for (let at = 0; at < count; at += 1) this.#compareOne(unit, at, meanings)
    } else {
      for (const at of this.#nearest(unit)) this.#compareOne(unit, at, meanings)
      for (const at of also) if (meanings.own[at] === 0) this.#compareOne(unit, at, meanings)
    }
    this.#assume(meanings)
    return meanings
  }

  /** What has no vector yet is taken to be as near as the others are on average: it must not lose to them for that. */
  #assume({ own, pair }: Meanings): void {
    const { count } = this.#collection
    let [present, ownSum, pairSum] = [0, 0, 0]
    for (let at = 0; at < count; at += 1) {
      if (this.#scales[at * 2] === 0) continue
      present += 1
      ownSum += own[at] ?? 0
      pairSum += pair[at] ?? 0
    }
    if (present === count || present === 0) return
    for (let at = 0; at < count; at += 1) {
      if (this.#scales[at * 2] !== 0) continue
      own[at] = ownSum / present
      pair[at] = pairSum / present
    }
  }

  #compareOne(question: Float32Array, at: number, { own, pair }: Meanings): void {
    const scale = this.#scales[at * 2] ?? 0
    if (scale === 0) return
    const start = at * this.#dimension
    own[at] = dot(question, this.#own, start) * scale
    pair[at] = dot(question, this.#pair, start) * (this.#scales[at * 2 + 1] ?? 0)
  }

  /** Those whose numbers have the signs of the question's most often. */
  #nearest(question: Float32Array): number[] {
    const { count } = this.#collection
    const words = this.#words
    const signs = this.#signs
    const asked = signsOf(question, words)
    const differing = new Uint16Array(count)
    const having = new Uint32Array(words * 32 + 2)
    const none = words * 32 + 1
    for (let at = 0; at < count; at += 1) {
      let bits = 0
      for (let word = 0, place = at * words; word < words; word += 1, place += 1) bits += bitsIn((signs[place] ?? 0) ^ (asked[word] ?? 0))
      if (this.#scales[at * 2] === 0) bits = none
      differing[at] = bits
      having[bits] = (having[bits] ?? 0) + 1
    }
    let most = 0
    for (let sum = 0; most < none; most += 1) {
      sum += having[most] ?? 0
      if (sum >= candidates) break
    }
    const nearest: number[] = []
    for (let at = 0; at < count; at += 1) if ((differing[at] ?? none) <= most && differing[at] !== none) nearest.push(at)
    return nearest
  }

  #reserve(): void {
    const size = this.#collection.keys.length
    if (size <= this.#size) return
    this.#size = size
    this.#own = grown(this.#own, new Int8Array(size * this.#dimension))
    this.#pair = grown(this.#pair, new Int8Array(size * this.#dimension))
    this.#scales = grown(this.#scales, new Float32Array(size * 2))
    this.#signs = grown(this.#signs, new Uint32Array(size * this.#words))
  }
}

function grown<Numbers extends Int8Array | Float32Array | Uint32Array>(before: Numbers, after: Numbers): Numbers {
  after.set(before)
  return after
}

function dot(question: Float32Array, numbers: Int8Array, start: number): number {
  let sum = 0
  const { length } = question
  for (let at = 0; at < length; at += 1) sum += (question[at] as number) * (numbers[start + at] as number)
  return sum
}

function unitOf(vector: Float32Array): Float32Array {
  let squares = 0
  for (const number of vector) squares += number * number
  const length = Math.sqrt(squares) || 1
  return vector.map((number) => number / length)
}

function signsOf(numbers: ArrayLike<number>, words: number): Uint32Array {
  const signs = new Uint32Array(words)
  for (let at = 0; at < numbers.length; at += 1) if ((numbers[at] ?? 0) > 0) signs[at >>> 5] = (signs[at >>> 5] ?? 0) | (1 << (at & 31))
  return signs
}

function bitsIn(word: number): number {
  let bits = word - ((word >>> 1) & 0x55555555)
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333)
  return Math.imul((bits + (bits >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
}
