/**
 * Encodes a vector with one byte per number, scaled to length 1, behind its scale as a float: a quarter of the space, and its cosines are
 * the same to within half a percent.
 */
export function quantise(vector: ArrayLike<number>): Uint8Array {
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

/** The factor that makes the vector of the bytes. */
export function quantisedScale(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getFloat32(0, true)
}

export function quantisedNumbers(bytes: Uint8Array): Int8Array {
  return new Int8Array(bytes.buffer, bytes.byteOffset + 4, bytes.byteLength - 4)
}
