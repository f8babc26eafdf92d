import type { Clock, Timer } from '../../base/clock.ts'

/** How many subscriptions of disconnected clients are kept at once. */
const maxKept = 1_000

/**
 * Keeps the subscription of a client for a while after it disconnected: a client that reconnects with its cursor continues there, also
 * if the run ended in the meantime. Above the limit, the oldest subscriptions end, and their clients continue from a snapshot.
 */
export class GracePeriod {
  readonly #clock: Clock
  readonly #ms: number
  readonly #kept = new Map<() => void, Timer>()
  #closed = false

  constructor(clock: Clock, ms: number) {
    this.#clock = clock
    this.#ms = ms
  }

  /** Calls `unsubscribe` when the grace period is over. */
  release(unsubscribe: () => void): void {
    if (this.#closed || this.#ms <= 0) return unsubscribe()
    this.#kept.set(unsubscribe, this.#clock.after(this.#ms, () => this.#end(unsubscribe), { background: true }))
    const oldest = this.#kept.size > maxKept ? this.#kept.keys().next().value : undefined
    if (oldest) this.#end(oldest)
  }

  close(): void {
    this.#closed = true
    for (const unsubscribe of this.#kept.keys()) this.#end(unsubscribe)
  }

  #end(unsubscribe: () => void): void {
    this.#kept.get(unsubscribe)?.cancel()
    this.#kept.delete(unsubscribe)
    unsubscribe()
  }
}
