import type { ThreadRecord } from '../transaction/records.ts'

const mostThreads = 256
/** A thread that says more of itself is read again each time. */
const mostText = 4_000

/**
 * The threads of the last transactions as the database has them, so that the next one need not read them again. Whoever keeps this clears it
 * when anybody else wrote to threads. A record is here or in a transaction, never in both: there it changes.
 */
export class RecentThreads {
  /** One that was taken keeps its place: a thread that comes and goes with every transaction costs the map nothing. */
  readonly #threads = new Map<string, ThreadRecord | undefined>()

  has(id: string): boolean {
    return this.#threads.get(id) !== undefined
  }

  take(id: string): ThreadRecord | undefined {
    const thread = this.#threads.get(id)
    if (thread) this.#threads.set(id, undefined)
    return thread
  }

  keep(thread: ThreadRecord): void {
    if (thread.metadata.length + thread.title.length > mostText) return
    // The oldest go first, where many come.
    if (this.#threads.size > mostThreads / 2) this.#threads.delete(thread.id)
    this.#threads.set(thread.id, thread)
    if (this.#threads.size <= mostThreads) return
    for (const oldest of this.#threads.keys()) {
      this.#threads.delete(oldest)
      break
    }
  }

  clear(): void {
    this.#threads.clear()
  }
}
