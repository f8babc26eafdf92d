import { randomFillSync } from 'node:crypto'

const pool = new Uint8Array(10 * 256)
let used = pool.length
let last = 0
let sequence = 0

/**
 * A new id: a UUID of version 7. Ids that were made one after another are neighbours in an index, so that a store writes few pages
 * for many of them. Nothing may be ordered by them.
 */
export function newId(): string {
  const now = Date.now()
  if (now > last) {
    last = now
    sequence = 0
  } else sequence++
  // Ids of one millisecond count on in the bits that would be random; a clock that goes back doesn't take them along.
  if (sequence > 0xfff) {
    last++
    sequence = 0
  }
  if (used + 8 > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  if (last !== written) writeTime(last)
  letters[15] = digit(sequence >> 8)
  letters[16] = digit(sequence >> 4)
  letters[17] = digit(sequence)
  for (let at = 0; at < places.length; at += 2) {
    const byte = pool[used] as number
    used += 1
    letters[places[at] as number] = digit(byte >> 4)
    letters[places[at + 1] as number] = digit(byte)
  }
  letters[19] = digit(((letters[19] as number) & 0x3) | 0x8)
  return letters.toString('latin1')
}

/** Letters in one piece: what is put together of pieces is put together again each time that it is compared. */
const letters = Buffer.from('00000000-0000-7000-8000-000000000000')
/** Where the random ones go. */
const places = [19, 20, 21, 22, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35]
let written = -1

function writeTime(time: number): void {
  written = time
  const high = Math.floor(time / 0x1000000)
  for (let at = 0; at < 6; at++) {
    letters[at] = digit(high >> (20 - 4 * at))
    // A hyphen stands before the last four.
    letters[at < 2 ? at + 6 : at + 7] = digit((time % 0x1000000) >> (20 - 4 * at))
  }
}

/** The lowest four bits, as a letter. */
function digit(value: number): number {
  const four = value & 0xf
  return four < 10 ? 48 + four : 87 + four
}
