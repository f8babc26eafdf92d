import { bytesInMemory, dotProducts, packInto, quantizedScale, scaleBytes, type Bits } from './quantized-vectors.ts'

/** The slots of a block; the first block grows up to that. */
export const blockSlots = 2_048
const firstSlots = 64

/** The vectors of consecutive slots, as `dotProducts` reads them. A slot without a vector has the scale 0. */
interface Block {
  bytes: Uint8Array
  /** The same bytes: the first number of each slot is its scale. */
  floats: Float32Array
}

/** Vectors of one dimension in numbered slots, in blocks: another vector never moves those that are stored. */
export class VectorSlots {
  readonly dimension: number
  readonly bits: Bits
  readonly #bytesOfVector: number
  readonly #blocks: Block[] = []
  readonly #free: number[] = []
  /** The number of slots that were ever used. */
  #size = 0

  constructor(dimension: number, bits: Bits) {
    this.dimension = dimension
    this.bits = bits
    this.#bytesOfVector = bytesInMemory(dimension, bits)
  }

  /** How many vectors have room in so many bytes. */
  static capacity(bytes: number, dimension: number, bits: Bits): number {
    const fits = Math.floor(Math.max(0, bytes) / bytesInMemory(dimension, bits))
    if (fits >= blockSlots) return fits - (fits % blockSlots)
    return fits < firstSlots ? 0 : 2 ** Math.floor(Math.log2(fits))
  }

  get bytes(): number {
    return this.#blocks.reduce((sum, { bytes }) => sum + bytes.byteLength, 0)
  }

  /** Stores a quantized vector, which begins at a byte of these. Returns its slot. */
  add(vectors: Uint8Array, from = 0): number {
    const slot = this.#free.pop() ?? this.#size++
    this.set(slot, vectors, from)
    return slot
  }

  /**
   * Stores quantized vectors, one after the other. Returns the slot of the first; the others follow. A whole block of them is kept as it
   * is.
   */
  addAll(vectors: Uint8Array): number {
    const stored = scaleBytes + this.dimension
    const count = vectors.byteLength / stored
    const first = this.#size
    this.#size += count
    if (stored !== this.#bytesOfVector) for (let n = 0; n < count; n += 1) this.set(first + n, vectors, n * stored)
    else if (count === blockSlots && first % blockSlots === 0 && vectors.buffer.byteLength === vectors.byteLength) {
      this.#blocks[first / blockSlots] = { bytes: vectors, floats: new Float32Array(vectors.buffer) }
    } else this.#copy(vectors, first, count)
    return first
  }

  /** Copies vectors that are as they are in memory. */
  #copy(vectors: Uint8Array, first: number, count: number): void {
    for (let done = 0, some = 0; done < count; done += some) {
      const place = (first + done) % blockSlots
      some = Math.min(count - done, blockSlots - place)
      const { bytes } = this.#blockOf(first + done + some - 1)
      bytes.set(vectors.subarray(done * this.#bytesOfVector, (done + some) * this.#bytesOfVector), place * this.#bytesOfVector)
    }
  }

  set(slot: number, vectors: Uint8Array, from = 0): void {
    const { bytes, floats } = this.#blockOf(slot)
    const at = (slot % blockSlots) * this.#bytesOfVector
    const vector = vectors.subarray(from, from + scaleBytes + this.dimension)
    floats[at / scaleBytes] = quantizedScale(vector) * packInto(bytes, at + scaleBytes, vector.subarray(scaleBytes), this.bits)
  }

  free(slot: number): void {
    this.#blockOf(slot).floats[((slot % blockSlots) * this.#bytesOfVector) / scaleBytes] = 0
    this.#free.push(slot)
  }

  /** Frees all slots but those with 1 in this list. */
  keep(used: Uint8Array): void {
    this.#free.length = 0
    for (let slot = this.#size - 1; slot >= 0; slot -= 1) if (used[slot] === 0) this.free(slot)
  }

  /** By slot, the cosine with a question of length 1; of the slots `from` to `to`, where these are given. */
  compare(question: Float32Array, cosines: Float32Array = new Float32Array(this.#size), from = 0, to = this.#size): Float32Array {
    for (let first = from; first < to; first += blockSlots) {
      const count = Math.min(blockSlots, to - first)
      dotProducts(question, this.#blockOf(first).bytes, count, this.bits, cosines.subarray(first, first + count))
    }
    return cosines
  }

  /** The slots that a caller compares at once, if it must not hold the event loop. */
  static readonly atOnce = 8 * blockSlots

  get size(): number {
    return this.#size
  }

  #blockOf(slot: number): Block {
    const number = Math.floor(slot / blockSlots)
    const needed = (slot % blockSlots) + 1
    const block = this.#blocks[number]
    if (block && block.bytes.byteLength >= needed * this.#bytesOfVector) return block
    const slots = number > 0 ? blockSlots : Math.min(blockSlots, Math.max(firstSlots, 2 ** Math.ceil(Math.log2(needed))))
    const bytes = new Uint8Array(slots * this.#bytesOfVector)
    if (block) bytes.set(block.bytes)
    const longer = { bytes, floats: new Float32Array(bytes.buffer) }
    this.#blocks[number] = longer
    return longer
  }
}
