/**
 * Encodes a vector with one byte per number, scaled to length 1, behind its scale as a float: a quarter of the space, and its cosines are
 * the same to within half a percent.
 */
export function quantize(vector: ArrayLike<number>): Uint8Array {
  let squares = 0
  let most = 0
  for (let at = 0; at < vector.length; at += 1) {
    const number = vector[at] ?? 0
    squares += number * number
    most = Math.max(most, Math.abs(number))
  }
  const bytes = new Uint8Array(4 + vector.length)
  const length = Math.sqrt(squares) || 1
  const scale = most / 127 || 1
  new DataView(bytes.buffer).setFloat32(0, scale / length, true)
  const numbers = new Int8Array(bytes.buffer, 4)
  for (let at = 0; at < vector.length; at += 1) numbers[at] = Math.round((vector[at] ?? 0) / scale)
  return bytes
}

/** A quantized vector begins with its scale, a float. */
export const scaleBytes = 4

/** The factor that makes the vector of the bytes. */
export function quantizedScale(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getFloat32(0, true)
}

export function quantizedNumbers(bytes: Uint8Array): Int8Array {
  return new Int8Array(bytes.buffer, bytes.byteOffset + 4, bytes.byteLength - 4)
}

/**
 * Dot products of one vector with many, eight numbers at a time in WebAssembly SIMD: limited by memory bandwidth, and ten times as fast as
 * JavaScript. The instructions are written out below.
 */

/** Vectors are padded with zeros to a multiple of this many numbers. */
const lanes = 16
/** The bits of each number of a vector in memory. */
export type Bits = 4 | 8
/** Numbers of four bits are between ±7. A byte has two, which are `lanes` apart: the lower bits have the first. */
const largestOfFour = 7
const zeroOfFour = 8
/** The question's numbers are quantized to ±2,047: with any vector of up to 8,000 bytes the sum stays within 32 bits. */
const largestQuantized = 2_047
/** Small enough for the cache of a processor. */
const memoryBytes = 1 << 18
const pageBytes = 1 << 16

interface Kernel {
  memory: ArrayBuffer
  /** `bytes`: of the numbers of a vector. */
  dots(question: number, vectors: number, count: number, bytes: number, results: number): void
  /** The same for numbers of four bits, as they are stored: each is `zeroOfFour` too high. */
  dotsOfFour(question: number, vectors: number, count: number, bytes: number, results: number): void
}

let kernel: Kernel | undefined

/** The bytes of a vector in memory: its scale, and its numbers with their padding. */
export function bytesInMemory(dimension: number, bits: Bits): number {
  return scaleBytes + (strideOf(dimension, bits) * bits) / 8
}

function strideOf(dimension: number, bits: Bits): number {
  const multiple = (lanes * 8) / bits
  return Math.ceil(dimension / multiple) * multiple
}

/** Writes numbers of a byte each with so many bits each. Returns by how much the scale of the vector is to be multiplied. */
export function packInto(place: Uint8Array, at: number, numbers: Uint8Array, bits: Bits): number {
  if (bits === 8) {
    place.set(numbers, at)
    return 1
  }
  const count = numbers.length
  let to = at
  for (let first = 0; first < count; first += 2 * lanes) {
    for (let n = first; n < first + lanes; n += 1) {
      const low = n < count ? (ofFour[numbers[n] as number] as number) : zeroOfFour
      const high = n + lanes < count ? (ofFour[numbers[n + lanes] as number] as number) : zeroOfFour
      place[to] = low | (high << 4)
      to += 1
    }
  }
  return 127 / largestOfFour
}

/** By a number of a byte, the same with four bits. */
const ofFour = Uint8Array.from({ length: 256 }, (_, byte) => Math.round((((byte << 24) >> 24) * largestOfFour) / 127) + zeroOfFour)

/**
 * The dot products of a question with the first `count` vectors, which are as in memory, one after the other: each begins with its
 * scale, which its product is multiplied with.
 */
export function dotProducts(
  question: Float32Array, vectors: Uint8Array, count: number, bits: Bits, results: Float32Array = new Float32Array(count),
): Float32Array {
  const stride = strideOf(question.length, bits)
  const bytes = bytesInMemory(question.length, bits)
  const { memory, dots, dotsOfFour } = (kernel ??= compileKernel())
  const numbers = new Int16Array(memory, 0, stride)
  const unit = quantizeInto(numbers, question)
  const vectorsAt = stride * 2
  const atOnce = Math.floor((memoryBytes - vectorsAt) / (bytes + 4))
  const batch = new Uint8Array(memory, vectorsAt, atOnce * bytes)
  const scales = new Float32Array(memory, vectorsAt, (atOnce * bytes) / scaleBytes)
  const resultsAt = vectorsAt + atOnce * bytes
  const sums = new Int32Array(memory, resultsAt, atOnce)
  const tooHigh = bits === 8 ? 0 : zeroOfFour * numbers.reduce((sum, number) => sum + number, 0)
  for (let from = 0; from < count; from += atOnce) {
    const some = Math.min(atOnce, count - from)
    batch.set(vectors.subarray(from * bytes, (from + some) * bytes))
    if (bits === 8) dots(0, vectorsAt, some, bytes - scaleBytes, resultsAt)
    else dotsOfFour(0, vectorsAt, some, bytes - scaleBytes, resultsAt)
    for (let at = 0, scale = 0; at < some; at += 1, scale += bytes / scaleBytes) {
      results[from + at] = ((sums[at] as number) - tooHigh) * unit * (scales[scale] as number)
    }
  }
  return results
}

/** Writes the question as whole numbers; returns the value of one unit. */
function quantizeInto(numbers: Int16Array, question: Float32Array): number {
  let largest = 0
  for (const number of question) largest = Math.max(largest, Math.abs(number))
  const unit = largest / largestQuantized || 1
  numbers.fill(0)
  for (let at = 0; at < question.length; at += 1) numbers[at] = Math.round((question[at] as number) / unit)
  return unit
}

function compileKernel(): Kernel {
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(moduleBytes()))
  const { memory, dots, dotsOfFour } = exports as unknown as Omit<Kernel, 'memory'> & { memory: WebAssembly.Memory }
  return { memory: memory.buffer, dots, dotsOfFour }
}

const [i32, v128] = [0x7f, 0x7b]
const get = (local: number) => [0x20, local]
const set = (local: number) => [0x21, local]
const constant = (value: number) => [0x41, value]
const simd = (code: number) => [0xfd, ...(code < 0x80 ? [code] : [(code & 0x7f) | 0x80, code >> 7])]
const add = [0x6a]
const [loop, block, end] = [[0x03, 0x40], [0x02, 0x40], [0x0b]]
const load = (offset: number) => [...simd(0x00), 0, offset]
const vector = (byte: number) => [...simd(0x0c), ...Array.from({ length: 16 }, () => byte)]

/** The local variables of both functions; `high` is that of the second alone. */
const [question, vectors, count, length, results, at, bytes, sum, high] = [0, 1, 2, 3, 4, 5, 6, 7, 8]

/** Widens eight bytes of a variable to 16 bits, multiplies them with eight numbers of the question, and adds them to the sum. */
const multiply = (of: number, widen: number, shift: number, offset: number) => [
  ...get(of), ...simd(widen), ...get(question), ...get(at), ...constant(shift), 0x74, ...add, ...load(offset), ...simd(0xba), ...simd(0xae),
]

/** A function that goes over all vectors, sixteen bytes at a time; `step` adds their products to the sum. */
function dotsBody(vectorLocals: number, step: readonly number[]): number[] {
  const lane = (number: number) => [...get(sum), ...simd(0x1b), number]
  return [
    2, 1, i32, vectorLocals, v128,
    ...block, ...loop,
    ...get(count), 0x45, 0x0d, 1,
    ...vector(0), ...set(sum),
    ...constant(0), ...set(at),
    ...loop,
    ...get(vectors), ...get(at), ...add, ...load(scaleBytes), ...set(bytes),
    ...step,
    ...get(at), ...constant(lanes), ...add, 0x22, at, ...get(length), 0x49, 0x0d, 0,
    ...end,
    ...get(results), ...lane(0), ...lane(1), ...add, ...lane(2), ...add, ...lane(3), ...add, 0x36, 2, 0,
    ...get(vectors), ...get(length), ...add, ...constant(scaleBytes), ...add, ...set(vectors),
    ...get(results), ...constant(4), ...add, ...set(results),
    ...get(count), ...constant(1), 0x6b, ...set(count),
    0x0c, 0,
    ...end, ...end, ...end,
  ]
}

const stepOfEight = [...get(sum), ...multiply(bytes, 0x87, 1, 0), ...multiply(bytes, 0x88, 1, 16), ...set(sum)]

/** The higher bits of sixteen bytes, then the lower ones. */
const stepOfFour = [
  ...get(bytes), ...constant(4), ...simd(0x6d), ...set(high),
  ...get(bytes), ...vector(0x0f), ...simd(0x4e), ...set(bytes),
  ...get(sum), ...multiply(bytes, 0x89, 2, 0), ...multiply(bytes, 0x8a, 2, 16),
  ...multiply(high, 0x89, 2, 32), ...multiply(high, 0x8a, 2, 48), ...set(sum),
]

function moduleBytes(): Uint8Array<ArrayBuffer> {
  const sized = (contents: readonly number[]) => [...varint(contents.length), ...contents]
  const section = (id: number, contents: readonly number[]) => [id, ...sized(contents)]
  const name = (text: string) => sized(Array.from(text, (letter) => letter.charCodeAt(0)))
  return Uint8Array.from([
    0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
    ...section(1, [1, 0x60, 5, i32, i32, i32, i32, i32, 0]),
    ...section(3, [2, 0, 0]),
    ...section(5, [1, 0, memoryBytes / pageBytes]),
    ...section(7, [3, ...name('memory'), 2, 0, ...name('dots'), 0, 0, ...name('dotsOfFour'), 0, 1]),
    ...section(10, [2, ...sized(dotsBody(2, stepOfEight)), ...sized(dotsBody(3, stepOfFour))]),
  ])
}

/** LEB128. */
function varint(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >> 7)]
}
