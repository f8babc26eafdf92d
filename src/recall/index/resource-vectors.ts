import { highest } from '../rank/best-first.ts'
import { scaleBytes, type Bits } from '../rank/quantized-vectors.ts'
import { blockSlots, VectorSlots } from '../rank/vector-slots.ts'
import { maxPassages } from '../text/passages.ts'
import type { Statements } from '../../store/sql/statements.ts'
import { applyMoves, grow, type Move, type ResourceCollection } from './resource-collection.ts'

/** The vectors that are read at once: as many as are kept together. */
const readAtOnce = blockSlots
/** Where vectors are coarse, the exact cosines of so many of the nearest are computed. */
const refined = 256

export interface VectorRow {
  passage: number
  vector: Uint8Array
}

/** The next vectors of a resource, in the order of their passages, as one value: a row for each would take three times as long. */
export interface VectorBlock {
  /** The keys of the passages, as JSON. */
  passages: string | null
  vectors: Uint8Array | null
}

export function readVectors(
  index: Statements, resource: number, { key, dimension }: StoredEmbedder, after: number,
): VectorBlock | undefined {
  return index.one<VectorBlock>(
    `SELECT json_group_array(passage) AS passages, CAST(group_concat(vector, '') AS BLOB) AS vectors FROM (
       SELECT passage, vector FROM vectors WHERE embedder = ? AND resource = ? AND passage > ? AND length(vector) = ?
       ORDER BY passage LIMIT ?) AS next`,
    key, resource, after, dimension + scaleBytes, readAtOnce,
  )
}

/** An embedder in the index. */
export interface StoredEmbedder {
  key: number
  dimension: number
}

/** The vectors of changed messages. */
export function readChangedVectors(index: Statements, resource: number, embedder: number, firsts: readonly number[]): VectorRow[] {
  const text = 'SELECT passage, vector FROM vectors WHERE embedder = ? AND resource = ? AND passage >= ? AND passage < ?'
  return firsts.flatMap((first) => index.all<VectorRow>(text, embedder, resource, first, first + maxPassages))
}

/** The vectors of some passages. */
export function readVectorsOf(index: Statements, resource: number, embedder: number, passages: readonly number[]): VectorRow[] {
  return index.all<VectorRow>(
    `SELECT passage, vector FROM vectors
     WHERE embedder = ? AND resource = ? AND passage IN (SELECT CAST(value AS BIGINT) FROM json_each(?))`,
    embedder, resource, JSON.stringify(passages),
  )
}

/** How the vectors of a resource are kept: with so many bits a number; `most` of them have room. */
export interface VectorSpace {
  bits: Bits
  most: number
}

/** With eight bits a number if all vectors fit into so many bytes, else with four. */
export function spaceFor({ count, keys }: ResourceCollection, dimension: number, bytes: number): VectorSpace {
  const forVectors = bytes - keys.length * Int32Array.BYTES_PER_ELEMENT
  if (VectorSlots.capacity(forVectors, dimension, 8) >= count) return { bits: 8, most: Number.POSITIVE_INFINITY }
  return { bits: 4, most: VectorSlots.capacity(forVectors, dimension, 4) }
}

/** The vectors that one embedder made of a resource's passages, in memory. Where not all have room, those of the latest passages have. */
export class ResourceVectors {
  readonly dimension: number
  readonly #collection: ResourceCollection
  readonly #vectors: VectorSlots
  readonly #most: number
  /** By number of the passage, its slot plus 1; 0 means that it has no vector here. */
  #slots = new Int32Array(0)
  /** The number of passages that have vectors here. */
  #present = 0
  /** No passage below this one has a vector here. */
  #oldest = 0

  constructor(collection: ResourceCollection, dimension: number, { bits, most }: VectorSpace) {
    this.#collection = collection
    this.dimension = dimension
    this.#vectors = new VectorSlots(dimension, bits)
    this.#most = most
    this.#reserve()
  }

  static read(index: Statements, collection: ResourceCollection, embedder: StoredEmbedder, space: VectorSpace): ResourceVectors {
    const vectors = new ResourceVectors(collection, embedder.dimension, space)
    for (let after: number | undefined = vectors.firstRead; after !== undefined;) {
      after = vectors.add(readVectors(index, collection.resource, embedder, after))
    }
    return vectors
  }

  /** After which passage the first vectors are read. */
  get firstRead(): number {
    const { count, keys } = this.#collection
    return count > this.#most ? (keys[count - Math.floor(this.#most) - 1] ?? -1) : -1
  }

  /** Adds vectors that `readVectors` returned. Returns after which passage the next ones are read. */
  add(block: VectorBlock | undefined): number | undefined {
    const passages = JSON.parse(block?.passages ?? '[]') as number[]
    const found = this.#collection.findEach(passages)
    if (block?.vectors) this.#putAll(found, block.vectors)
    return passages.length === readAtOnce ? passages.at(-1) : undefined
  }

  /** The vectors of these passages, one after the other; -1 for a passage that is gone. */
  #putAll(passages: Int32Array, vectors: Uint8Array): void {
    const isNew = passages.every((at) => at >= 0 && this.#slots[at] === 0)
    if (!isNew || this.#present + passages.length > this.#most) {
      for (const [n, at] of passages.entries()) if (at >= 0) this.#putAt(at, vectors, n * (this.dimension + scaleBytes))
      return
    }
    const first = this.#vectors.addAll(vectors)
    for (let n = 0; n < passages.length; n += 1) this.#slots[passages[n] as number] = first + n + 1
    this.#present += passages.length
    const [lowest = this.#oldest] = passages
    if (lowest < this.#oldest) this.#oldest = lowest
  }

  get bytes(): number {
    return this.#vectors.bytes + this.#slots.byteLength
  }

  /** Cosines are not exact: numbers have four bits. */
  get isCoarse(): boolean {
    return this.#vectors.bits < 8
  }

  /** Called after the collection's `refresh`: takes the vectors of the changed messages, and moves the others. */
  refresh(firsts: readonly number[], rows: readonly VectorRow[], moves: readonly Move[]): void {
    this.#reserve()
    for (const first of firsts) if (moves.length === 0) this.#clear(...this.#collection.rangeOf(first))
    if (moves.length > 0) this.#move(firsts, moves)
    for (const { passage, vector } of rows) {
      const at = this.#collection.find(passage)
      if (at >= 0 && vector.byteLength === this.dimension + scaleBytes) this.#putAt(at, vector, 0)
    }
  }

  /** Removes the vectors of some passages. */
  #clear(from: number, to: number): void {
    for (let at = from; at < to; at += 1) {
      const slot = this.#slots[at] as number
      if (slot === 0) continue
      this.#vectors.free(slot - 1)
      this.#slots[at] = 0
      this.#present -= 1
    }
  }

  /** Moves the slots of passages, and frees those of the passages that are gone. */
  #move(firsts: readonly number[], moves: readonly Move[]): void {
    const { count } = this.#collection
    applyMoves(this.#slots, moves)
    this.#slots.fill(0, count)
    for (const first of firsts) this.#slots.fill(0, ...this.#collection.rangeOf(first))
    const used = new Uint8Array(this.#vectors.size)
    this.#present = 0
    for (let at = 0; at < count; at += 1) {
      const slot = this.#slots[at] as number
      if (slot === 0) continue
      used[slot - 1] = 1
      this.#present += 1
    }
    this.#vectors.keep(used)
    this.#oldest = 0
  }

  /** Cosines with a question's vector. Passages without a vector here have 0. */
  compare(question: Float32Array): Comparison {
    const comparison = this.begin(question)
    while (comparison.step());
    return comparison
  }

  /** The same, a part at each `step`. */
  begin(question: Float32Array): Comparison {
    return new Comparison(this.#vectors, { numbers: this.#slots, present: this.#present }, this.#collection, normalize(question))
  }

  /** The vector begins at a byte of `vectors`. */
  #putAt(at: number, vectors: Uint8Array, from: number): void {
    const slot = this.#slots[at] as number
    if (slot !== 0) return this.#vectors.set(slot - 1, vectors, from)
    if (this.#present >= this.#most && !this.#makeRoom(at)) return
    this.#slots[at] = this.#vectors.add(vectors, from) + 1
    this.#present += 1
    if (at < this.#oldest) this.#oldest = at
  }

  /** Removes the vector of the oldest passage. False if this one is older. */
  #makeRoom(at: number): boolean {
    while (this.#oldest < this.#slots.length && this.#slots[this.#oldest] === 0) this.#oldest += 1
    if (this.#oldest >= at) return false
    this.#vectors.free((this.#slots[this.#oldest] as number) - 1)
    this.#slots[this.#oldest] = 0
    this.#present -= 1
    return true
  }

  #reserve(): void {
    const size = this.#collection.keys.length
    if (size > this.#slots.length) this.#slots = grow(this.#slots, new Int32Array(size))
  }
}

/** The comparison of a question with the vectors of a resource. */
export class Comparison {
  readonly #vectors: VectorSlots
  readonly #slots: { numbers: Int32Array; present: number }
  readonly #collection: ResourceCollection
  readonly #question: Float32Array
  readonly #bySlot: Float32Array
  #compared = 0
  #cosines: Float32Array | undefined

  constructor(
    vectors: VectorSlots, slots: { numbers: Int32Array; present: number }, collection: ResourceCollection, question: Float32Array,
  ) {
    this.#vectors = vectors
    this.#slots = slots
    this.#collection = collection
    this.#question = question
    this.#bySlot = new Float32Array(vectors.size)
  }

  /** Compares some more vectors: about a millisecond. False when all are compared. */
  step(): boolean {
    const to = Math.min(this.#vectors.size, this.#compared + VectorSlots.atOnce)
    this.#vectors.compare(this.#question, this.#bySlot, this.#compared, to)
    this.#compared = to
    return to < this.#vectors.size
  }

  /** By number of the passage. Those without a vector have the mean, so that they don't rank last because an embedder has not seen them. */
  get cosines(): Float32Array {
    if (this.#cosines) return this.#cosines
    const { count } = this.#collection
    const { numbers, present } = this.#slots
    const cosines = new Float32Array(count)
    for (let at = 0; at < count; at += 1) {
      const slot = numbers[at] as number
      if (slot !== 0) cosines[at] = this.#bySlot[slot - 1] as number
    }
    if (present < count && present > 0) {
      const mean = cosines.reduce((sum, cosine) => sum + cosine, 0) / present
      for (let at = 0; at < count; at += 1) if (numbers[at] === 0) cosines[at] = mean
    }
    this.#cosines = cosines
    return cosines
  }

  /** The keys of the nearest passages, whose exact vectors `refine` takes. */
  nearest(): number[] {
    if (this.#slots.present === 0) return []
    return Array.from(highest(this.cosines, refined), (at) => this.#collection.keys[at] ?? 0)
  }

  refine(rows: readonly VectorRow[]): void {
    const { cosines } = this
    const exact = new VectorSlots(this.#question.length, 8)
    const found = rows
      .map(({ passage, vector }) => ({ at: this.#collection.find(passage), vector }))
      .filter(({ at, vector }) => at >= 0 && vector.byteLength === this.#question.length + scaleBytes)
    for (const { vector } of found) exact.add(vector)
    for (const [slot, cosine] of exact.compare(this.#question).entries()) cosines[found[slot]?.at ?? 0] = cosine
  }
}

function normalize(vector: Float32Array): Float32Array {
  let squares = 0
  for (const number of vector) squares += number * number
  const length = Math.sqrt(squares) || 1
  return vector.map((number) => number / length)
}
