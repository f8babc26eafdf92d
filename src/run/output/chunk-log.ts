import type { Chunk } from '../../message/chunk.ts'

/** The chunks of one run, for its caller. Any number of readers read it from the start while it grows. */
export class ChunkLog {
  readonly #chunks: Chunk[] = []
  #ended = false
  #failure: { error: unknown } | undefined
  #grown: PromiseWithResolvers<void> | undefined

  push(chunk: Chunk): void {
    this.#chunks.push(chunk)
    this.#wake()
  }

  end(): void {
    this.#ended = true
    this.#wake()
  }

  /** The run threw instead of ending. */
  fail(error: unknown): void {
    this.#failure = { error }
    this.end()
  }

  /**
   * A reader is an index into the log; all readers wait for one promise. A `throwing` reader, whose `pick` skips the chunk with the
   * error of the run, rejects with that error after the last chunk.
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
              this.#grown ??= Promise.withResolvers()
              await this.#grown.promise
            }
          },
          return: async () => {
            closed = true
            // Ends the pending read of this reader; the other readers find no new chunk and wait again.
            this.#wake()
            return { done: true, value: undefined }
          },
        }
      },
    }
  }

  #wake(): void {
    this.#grown?.resolve()
    this.#grown = undefined
  }
}
