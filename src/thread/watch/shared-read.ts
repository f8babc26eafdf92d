import type { Chunk } from '../../run/chunk.ts'

/** What a reader gets at one position of a thread. */
export interface Handed {
  readonly position: number
  readonly result: IteratorResult<Chunk>
  readonly promise: Promise<IteratorResult<Chunk>>
}

/** Hands out chunks. Readers go along together, mostly: what is made for the first who comes to a position is for all of them. */
export class Handing {
  #last: Handed | undefined

  at(position: number, chunk: Chunk): Handed {
    if (this.#last?.position !== position) {
      const result: IteratorResult<Chunk> = { done: false, value: chunk }
      this.#last = { position, result, promise: Promise.resolve(result) }
    }
    return this.#last
  }
}
