/** Samples of 16 bits that are written in one place and read in another, once. Its writer limits how many there are. */
export class SampleStream implements AsyncIterable<Uint8Array> {
  #pieces: Uint8Array[] = []
  #bytes = 0
  #ended = false
  #failure: unknown
  #wake: (() => void) | undefined

  /** All bytes that were written. */
  get bytes(): number {
    return this.#bytes
  }

  /** All samples are there. */
  get complete(): boolean {
    return this.#ended && this.#failure === undefined
  }

  push(piece: Uint8Array): void {
    if (this.#ended || piece.length === 0) return
    this.#pieces.push(piece)
    this.#bytes += piece.length
    this.#wake?.()
  }

  /** No more samples follow. With a failure, the reader gets it after the samples. */
  end(failure?: unknown): void {
    if (this.#ended) return
    this.#ended = true
    this.#failure = failure
    this.#wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      const piece = this.#pieces.shift()
      if (piece) yield piece
      else if (this.#ended) {
        if (this.#failure !== undefined) throw this.#failure
        return
      } else {
        const { promise, resolve } = Promise.withResolvers<void>()
        this.#wake = resolve
        await promise
      }
    }
  }
}
