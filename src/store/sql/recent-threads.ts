import type { RunRecord, ThreadRecord } from '../core/records.ts'

const mostThreads = 256
/** A thread that says more of itself is read again each time. */
const mostText = 4_000

/** A thread, and the run that is at work on it where that is known. */
export interface RecentThread {
  readonly thread: ThreadRecord
  readonly run: RunRecord | undefined
}

/**
 * The threads of the last transactions as the database has them, so that the next one need not read them again. Whoever keeps this clears it
 * when anybody else wrote to threads or runs. A record is here or in a transaction, never in both: there it changes.
 */
export class RecentThreads {
  /** One that was taken keeps its place: a thread that comes and goes with every transaction costs the map nothing. */
  readonly #threads = new Map<string, RecentThread | undefined>()

  has(id: string): boolean {
    return this.#threads.get(id) !== undefined
  }

  take(id: string): RecentThread | undefined {
    const recent = this.#threads.get(id)
    if (recent) this.#threads.set(id, undefined)
    return recent
  }

  keep(thread: ThreadRecord, run: RunRecord | undefined): void {
    if (thread.metadata.length + thread.title.length + (run?.options.length ?? 0) + (run?.staged?.length ?? 0) > mostText) return
    // The oldest go first, where many come.
    if (this.#threads.size > mostThreads / 2) this.#threads.delete(thread.id)
    this.#threads.set(thread.id, { thread, run })
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
