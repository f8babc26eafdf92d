/**
 * What this process stores on threads and will tell their watchers itself. Whoever finds it in the store before that waits for the telling, and
 * doesn't take it for something that was said elsewhere and not heard here.
 */
export class Announcing {
  readonly #threads = new Map<string, Count>()

  /** `work` stores, and has told when it resolves. */
  during<T>(threadId: string, work: () => Promise<T>): Promise<T> {
    this.#begin(threadId)
    return work().finally(() => this.#end(threadId))
  }

  #begin(threadId: string): void {
    let count = this.#threads.get(threadId)
    if (!count) this.#threads.set(threadId, (count = { begun: 0, told: 0, waiting: [] }))
    count.begun++
  }

  /** It was told, or is not to be. */
  #end(threadId: string): void {
    const count = this.#threads.get(threadId)
    if (!count) return
    count.told++
    for (let [first] = count.waiting; first && first.until <= count.told; [first] = count.waiting) {
      count.waiting.shift()
      first.resolve()
    }
    if (count.told === count.begun) this.#threads.delete(threadId)
  }

  /** Resolves when as much was told as is on its way now; nothing when nothing is. */
  soFar(threadId: string): Promise<void> | undefined {
    const count = this.#threads.get(threadId)
    if (!count) return undefined
    return new Promise((resolve) => count.waiting.push({ until: count.begun, resolve }))
  }
}

interface Count {
  begun: number
  told: number
  /** In their order. */
  waiting: Array<{ until: number; resolve(): void }>
}
