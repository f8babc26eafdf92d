import type { Chunk } from '../../run/chunk.ts'
import type { KeptChunks } from './cursor-index.ts'

/** How many chunks a thread keeps for those who read slowly or come back. Beyond it they start from a snapshot. */
const ringSize = 8_192

/** The newest chunks of a thread, by their positions. */
export class ChunkRing {
  /** The position of the oldest chunk that is kept, and the one after the newest. */
  first = 0
  end = 0
  /** What was said before it was refused: whoever was there has read it, and nobody who comes is told it. */
  #withdrawn = 0
  readonly #chunks: Chunk[] = []

  push(chunk: Chunk): void {
    this.#chunks[this.end % ringSize] = chunk
    this.end++
    if (this.end - this.first > ringSize) this.first = this.end - ringSize
  }

  /** The chunk at a position that is not before `first`; undefined at the edge. */
  at(position: number): Chunk | undefined {
    return position < this.end ? this.#chunks[position % ringSize] : undefined
  }

  /** Nobody reads what is before this place. */
  clear(): void {
    this.first = this.end
  }

  /** Something is missing here: also who has read all there was is behind. */
  skip(): void {
    this.first = ++this.end
  }

  withdraw(): void {
    this.#withdrawn = this.end
  }

  /** The first position from which those who come may be told. */
  get replayFrom(): number {
    return Math.max(this.first, this.#withdrawn)
  }

  /** What those who come may be told. */
  replayed(generation: number): KeptChunks {
    return { first: this.replayFrom, end: this.end, generation, at: (position) => this.at(position) }
  }

  /** From a position that is not before `first`. */
  from(position: number): Chunk[] {
    return Array.from({ length: this.end - position }, (_, index) => this.at(position + index) as Chunk)
  }
}
