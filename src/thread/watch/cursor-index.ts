import type { Chunk } from '../../run/chunk.ts'
import { compareCursors, formatBefore, parseCursor, type Cursor } from './cursor.ts'

/** The chunks that a thread keeps, by their positions. */
export interface KeptChunks {
  readonly first: number
  readonly end: number
  readonly generation: number
  at(position: number): Chunk | undefined
}

/** The position after the chunk with this cursor; undefined when what is kept can't tell what came after it. */
export function positionAfter(kept: KeptChunks, cursor: Cursor): number | undefined {
  let low = kept.first
  let high = kept.end
  while (low < high) {
    const middle = (low + high) >>> 1
    if (compareCursors(cursorAt(kept, middle), cursor) < 0) low = middle + 1
    else high = middle
  }
  if (low === kept.end) return undefined
  const found = cursorAt(kept, low)
  if (compareCursors(found, cursor) === 0) return low + 1
  // The chunk itself may have just left; the one after it has not.
  return found.epoch === cursor.epoch && found.index === cursor.index + 1 ? low : undefined
}

/** What was seen by whoever reads from a position on; undefined where nothing is kept on either side of it. */
export function cursorBefore(kept: KeptChunks, position: number): string | undefined {
  const seen = position > kept.first ? kept.at(position - 1)?.cursor : undefined
  return seen ?? (kept.at(position)?.cursor === undefined ? undefined : formatBefore(cursorAt(kept, position)))
}

/**
 * Where somebody began to watch while nothing was kept. No chunk has its cursor, and the next one may belong to another epoch: it is remembered
 * for as long as those who watched since then were told all that came after it.
 */
export class Beginning {
  #cursor: string | undefined
  #position = 0
  #generation = 0

  note({ end, generation }: KeptChunks, cursor: string): string {
    this.#cursor = cursor
    this.#position = end
    this.#generation = generation
    return cursor
  }

  positionOf({ first, generation }: KeptChunks, cursor: string): number | undefined {
    return cursor === this.#cursor && this.#position >= first && generation === this.#generation ? this.#position : undefined
  }
}

function cursorAt(kept: KeptChunks, position: number): Cursor {
  return parseCursor(kept.at(position)?.cursor ?? '0.0')
}
