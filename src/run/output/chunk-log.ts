import type { Chunk } from '../chunk.ts'

/** What one run said, for its caller: may be read by several readers, from the start, while it is still growing. */
export class ChunkLog {
  readonly #chunks: Chunk[] = []
  #ended = false
  #failure: { error: unknown } | undefined
  #news: PromiseWithResolvers<void> | undefined

  push(chunk: Chunk): void {
    this.#chunks.push(chunk)
    this.#ring()
  }

  end(): void {
    this.#ended = true
    this.#ring()
  }

  /** The run came to no end of its own. */
  fail(error: unknown): void {
    this.#failure = { error }
    this.end()
  }

  /**
   * A reader is an index into the log; all readers wait on one promise. One that is not shown the chunk which says why the run failed
   * is `throwing`: after all there is, its last read rejects with that error.
   */
  read<T = Chunk>(pick: (chunk: Chunk) => T | undefined, throwing = false): AsyncIterable<T> {
    return {
      [Symbol.asyncIterator]: (): AsyncIterator<T> => {
        let index = 0
        let closed = false
        return {
          next: async () => {
            for (;;) {
              while (!closed && index < this.#chunks.length) {
                const value = pick(this.#chunks[index++] as Chunk)
                if (value !== undefined) return { done: false, value }
              }
              if (!closed && throwing && this.#failure) {
                closed = true
                throw this.#failure.error
              }
              if (closed || this.#ended) return { done: true, value: undefined }
              this.#news ??= Promise.withResolvers()
              await this.#news.promise
            }
          },
          return: async () => {
            closed = true
            // A read that waits ends with its reader; the others look, see nothing new and wait on.
            this.#ring()
            return { done: true, value: undefined }
          },
        }
      },
    }
  }

  #ring(): void {
    this.#news?.resolve()
    this.#news = undefined
  }
}
