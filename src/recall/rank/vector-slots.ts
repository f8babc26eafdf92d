import { dotProducts, packInto, scaleBytes, strideOf, type Bits } from './quantized-vectors.ts'

/** The slots of a block; the first block grows up to that. */
const blockSlots = 4_096
const firstSlots = 64

interface Block {
  numbers: Uint8Array
  /** 0 in a slot without a vector. */
  scales: Float32Array
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
    this.#bytesOfVector = (strideOf(dimension, bits) * bits) / 8
  }

  /** How many vectors have room in so many bytes. */
  static capacity(bytes: number, dimension: number, bits: Bits): number {
    const fits = Math.floor(Math.max(0, bytes) / ((strideOf(dimension, bits) * bits) / 8 + Float32Array.BYTES_PER_ELEMENT))
    if (fits >= blockSlots) return fits - (fits % blockSlots)
    return fits < firstSlots ? 0 : 2 ** Math.floor(Math.log2(fits))
  }

  get bytes(): number {
    return this.#blocks.reduce((sum, { numbers, scales }) => sum + numbers.byteLength + scales.byteLength, 0)
  }

  /** Stores a quantized vector, which begins at a byte of these. Returns its slot. */
  add(vectors: DataView, from = 0): number {
    const slot = this.#free.pop() ?? this.#size++
    this.set(slot, vectors, from)
    return slot
  }

  set(slot: number, vectors: DataView, from = 0): void {
    const { numbers, scales } = this.#blockOf(slot)
    const at = slot % blockSlots
    const bytes = new Uint8Array(vectors.buffer, vectors.byteOffset + from + scaleBytes, this.dimension)
    scales[at] = vectors.getFloat32(from, true) * packInto(numbers, at * this.#bytesOfVector, bytes, this.bits)
  }

  free(slot: number): void {
    this.#blockOf(slot).scales[slot % blockSlots] = 0
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
      const { numbers, scales } = this.#blockOf(first)
      const count = Math.min(blockSlots, to - first)
      dotProducts(question, numbers, scales, count, { bits: this.bits, results: cosines.subarray(first, first + count) })
    }
    return cosines
  }

  /** The slots that a caller compares at once, if it must not hold the event loop. */
  static readonly atOnce = 4 * blockSlots

  get size(): number {
    return this.#size
  }

  #blockOf(slot: number): Block {
    const number = Math.floor(slot / blockSlots)
    const needed = (slot % blockSlots) + 1
    const block = this.#blocks[number]
    if (block && block.scales.length >= needed) return block
    const slots = number > 0 ? blockSlots : Math.min(blockSlots, Math.max(firstSlots, 2 ** Math.ceil(Math.log2(needed))))
    const longer = { numbers: new Uint8Array(slots * this.#bytesOfVector), scales: new Float32Array(slots) }
    if (block) longer.numbers.set(block.numbers)
    if (block) longer.scales.set(block.scales)
    this.#blocks[number] = longer
    return longer
  }
}
