import { belongingsOf, type Belongings } from '../store/contract/thread-dependents.ts'
import { policyOf, retentionOf } from '../store/retention.ts'
import type { Storage } from '../store/contract/storage.ts'
import type { Attendant } from '../thread/runtime/runnable.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'

/** How long after all threads were looked at they are looked at again. */
const everyMs = 3_600_000
/** Small transactions that follow each other before others have a longer turn. */
const pagesAtOnce = 100

/**
 * Removes what a storage's `retention` keeps no longer, a little with every sweep. How far that got is in the store: processes share
 * the work, and one that doesn't stay goes on where the last one stopped.
 */
export class Pruner implements Attendant {
  readonly #runtime: ThreadRuntime
  readonly #storage: () => Promise<Storage>
  #places: Promise<Belongings[]> | undefined
  #working: Promise<unknown> | undefined

  constructor(runtime: ThreadRuntime, storage: () => Promise<Storage>) {
    this.#runtime = runtime
    this.#storage = storage
  }

  idle(): void {}

  look(): void {
    if (this.#working) return
    this.#working = this.sweep()
      .catch((error: unknown) => {
        if (!this.#runtime.endedBy(error)) this.#runtime.logger.error('what is kept no longer could not be removed', { error: String(error) })
      })
      .finally(() => (this.#working = undefined))
  }

  /** Removes some of what is due, about `limit` at most. Answers how much that was. */
  async sweep(limit = Infinity): Promise<number> {
    await this.#runtime.open()
    const storage = await this.#storage()
    const { store, clock } = this.#runtime
    const retention = retentionOf(storage, store)
    if (!retention) return 0
    let gone = 0
    for (let pages = 0; pages < pagesAtOnce && gone < limit && !this.#runtime.closing; pages++) {
      const now = clock.now()
      const pruned = await store.pruneDue({ ...policyOf(retention, now), now, every: everyMs })
      if (!pruned) break
      gone += pruned.threadIds.length + pruned.messages.length + pruned.records
      if (pruned.threadIds.length > 0) for (const place of await this.#belongings(storage)) await place.forgetThreads(pruned.threadIds)
    }
    return gone
  }

  async close(): Promise<void> {
    await this.#working
  }

  #belongings(storage: Storage): Promise<Belongings[]> {
    this.#places ??= belongingsOf(storage).catch((error: unknown) => {
      this.#places = undefined
      throw error
    })
    return this.#places
  }
}
