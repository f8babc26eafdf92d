/**
 * Counts, per thread, the changes that this process stores and then publishes itself. Code that finds such a change in the store first waits
 * for the publication instead of taking it for a change of another process.
 */
export class PendingEchoes {
  readonly #threads = new Map<string, Count>()

  /** `work` stores the change, and has published it when it resolves. */
  during<T>(threadId: string, work: () => Promise<T>): Promise<T> {
    this.#begin(threadId)
    return work().finally(() => this.#end(threadId))
  }

  #begin(threadId: string): void {
    let count = this.#threads.get(threadId)
    if (!count) this.#threads.set(threadId, (count = { begun: 0, ended: 0, waiting: [] }))
    count.begun++
  }

  /** The change was published, or needs no publication. */
  #end(threadId: string): void {
    const count = this.#threads.get(threadId)
    if (!count) return
    count.ended++
    for (let [first] = count.waiting; first && first.until <= count.ended; [first] = count.waiting) {
      count.waiting.shift()
      first.resolve()
    }
    if (count.ended === count.begun) this.#threads.delete(threadId)
  }

  /** Resolves when the changes pending now are published; undefined when there are none. */
  flushed(threadId: string): Promise<void> | undefined {
    const count = this.#threads.get(threadId)
    if (!count) return undefined
    return new Promise((resolve) => count.waiting.push({ until: count.begun, resolve }))
  }
}

interface Count {
  begun: number
  ended: number
  /** In order of `until`. */
  waiting: Array<{ until: number; resolve(): void }>
}
