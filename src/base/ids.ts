import { randomFillSync } from 'node:crypto'

const pool = new Uint8Array(10 * 256)
let used = pool.length
let last = 0
let sequence = 0

/**
 * A new id: a UUID of version 7. Consecutive ids are neighbors in an index, so that a store writes few pages for many of them. Nothing
 * may be ordered by them.
 */
export function newId(): string {
  const now = Date.now()
  if (now > last) {
    last = now
    sequence = 0
  } else sequence++
  // Ids of one millisecond have a sequence number in place of random bits. When the clock goes back, the last time stays.
  if (sequence > 0xfff) {
    last++
    sequence = 0
  }
  if (used + 8 > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  if (last !== written) writeTime(last)
  characters[15] = digit(sequence >> 8)
  characters[16] = digit(sequence >> 4)
  characters[17] = digit(sequence)
  for (let at = 0; at < positions.length; at += 2) {
    const byte = pool[used] as number
    used += 1
    characters[positions[at] as number] = digit(byte >> 4)
    characters[positions[at + 1] as number] = digit(byte)
  }
  characters[19] = digit(((characters[19] as number) & 0x3) | 0x8)
  return characters.toString('latin1')
}

/** One flat buffer: a string built from pieces is flattened at each comparison. */
const characters = Buffer.from('00000000-0000-7000-8000-000000000000')
/** The positions of the random digits. */
const positions = [19, 20, 21, 22, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35]
let written = -1

function writeTime(time: number): void {
  written = time
  const high = Math.floor(time / 0x1000000)
  for (let at = 0; at < 6; at++) {
    characters[at] = digit(high >> (20 - 4 * at))
    // A hyphen precedes the last four digits.
    characters[at < 2 ? at + 6 : at + 7] = digit((time % 0x1000000) >> (20 - 4 * at))
  }
}

/** The lowest four bits as a hexadecimal digit. */
function digit(value: number): number {
  const four = value & 0xf
  return four < 10 ? 48 + four : 87 + four
}
