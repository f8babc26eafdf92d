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
  const time = last.toString(16).padStart(12, '0')
  const tail = hex(8)
  const variant = ((Number.parseInt(tail[0] as string, 16) & 0x3) | 0x8).toString(16)
  return `${time.slice(0, 8)}-${time.slice(8)}-7${sequence.toString(16).padStart(3, '0')}-${variant}${tail.slice(1, 4)}-${tail.slice(4)}`
}

function hex(bytes: number): string {
  const end = used + bytes
  let text = ''
  while (used < end) text += digits[pool[used++] as number]
  return text
}

const digits = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))
