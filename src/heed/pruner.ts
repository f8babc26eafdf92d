import { threadDependentsOf, watchStoreOf, type Storage } from '../store/contract/storage.ts'
import type { ThreadDependents } from '../store/contract/thread-row.ts'
import { findRetention, prunePolicy, pruneSomeWatches, type Retention } from '../store/retention.ts'
import type { BackgroundService } from '../thread/runtime/runnable.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'

/** The time between two passes over all threads. */
const everyMs = 3_600_000
/** The number of small transactions in one sweep. */
const pagesAtOnce = 100
/** Processes store a head that they use once an hour: one that was not stored for a day is used by none. */
const unusedMs = 86_400_000
const headsPerTransaction = 200

/**
 * Prunes a storage by its `retention`, a part with every sweep. The position is in the store: processes share the work, and a later one
 * continues where the last one stopped.
 */
export class Pruner implements BackgroundService {
  readonly #runtime: ThreadRuntime
  readonly #storage: () => Promise<Storage>
  #dependents: Promise<ThreadDependents[]> | undefined
  #working: Promise<unknown> | undefined
  /** When watches are pruned again: they have no position in the store, and little is read where nothing has expired. */
  #watchesDueAt = 0
  /** The first pass is within an hour, at no fixed time: so some processes of those that live shorter make one. */
  #headsDueAt: number
  #headsAfter: string | undefined

  constructor(runtime: ThreadRuntime, storage: () => Promise<Storage>) {
    this.#runtime = runtime
    this.#storage = storage
    this.#headsDueAt = runtime.clock.now() + everyMs * Math.random()
  }

  poll(): void {
    if (this.#working) return
    this.#working = this.sweep()
      .catch((error: unknown) => {
        if (!this.#runtime.isClosedBy(error)) this.#runtime.logger.error('expired records could not be pruned', { error: String(error) })
      })
      .finally(() => (this.#working = undefined))
  }

  /** Removes expired records, about `limit` at most. Returns how many it removed. */
  async sweep(limit = Infinity): Promise<number> {
    await this.#runtime.open()
    const storage = await this.#storage()
    const { store, clock } = this.#runtime
    await this.#pruneHeads()
    const retention = findRetention(storage, store)
    if (!retention) return 0
    let removed = 0
    for (let pages = 0; pages < pagesAtOnce && removed < limit && !this.#runtime.closing; pages++) {
      const now = clock.now()
      const pruned = await store.pruneDue({ ...prunePolicy(retention, now), now, every: everyMs })
      if (!pruned) break
      removed += pruned.threadIds.length + pruned.messages.length + pruned.records
      if (pruned.threadIds.length > 0)
        for (const dependents of await this.#dependentsOf(storage)) await dependents.forgetThreads(pruned.threadIds)
    }
    return removed + (await this.#pruneWatches(storage, retention, limit - removed))
  }

  /** Removes stored instructions and tools that no step refers to. Deleting a thread, and the retention, remove steps. */
  async #pruneHeads(): Promise<void> {
    const { clock, store } = this.#runtime
    const now = clock.now()
    if (now < this.#headsDueAt) return
    for (let pages = 0; pages < pagesAtOnce && !this.#runtime.closing; pages++) {
      const page = { before: now - unusedMs, limit: headsPerTransaction, ...(this.#headsAfter && { after: this.#headsAfter }) }
      const { next } = await store.pruneHeads(page)
      this.#headsAfter = next
      if (next !== undefined) continue
      this.#headsDueAt = now + everyMs
      return
    }
  }

  async #pruneWatches(storage: Storage, retention: Retention, limit: number): Promise<number> {
    const { clock } = this.#runtime
    if (retention.watches === undefined || clock.now() < this.#watchesDueAt) return 0
    const watches = await watchStoreOf(storage)
    let removed = 0
    for (let pages = 0; watches && pages < pagesAtOnce && removed < limit && !this.#runtime.closing; pages++) {
      const some = await pruneSomeWatches(watches, retention, clock.now())
      removed += some
      // The pass is complete; else the next sweep continues it.
      if (some === 0) this.#watchesDueAt = clock.now() + everyMs
      if (some === 0) break
    }
    return removed
  }

  async close(): Promise<void> {
    await this.#working
  }

  #dependentsOf(storage: Storage): Promise<ThreadDependents[]> {
    this.#dependents ??= threadDependentsOf(storage).catch((error: unknown) => {
      this.#dependents = undefined
      throw error
    })
    return this.#dependents
  }
}
