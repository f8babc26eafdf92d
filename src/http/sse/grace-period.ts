import type { Clock, Timer } from '../../base/clock.ts'

/** How many threads are kept at once for clients that may come back. */
const most = 1_000

/**
 * Keeps what a client watched for a while after it is gone: one whose connection broke comes back with its cursor and finds what it
 * missed, also when the run ended in between. Beyond the bound, those who left first find a snapshot.
 */
export class Lingering {
  readonly #clock: Clock
  readonly #ms: number
  readonly #kept = new Map<() => void, Timer>()
  #closed = false

  constructor(clock: Clock, ms: number) {
    this.#clock = clock
    this.#ms = ms
  }

  release(watched: () => void): void {
    if (this.#closed || this.#ms <= 0) return watched()
    this.#kept.set(watched, this.#clock.after(this.#ms, () => this.#end(watched), { background: true }))
    const oldest = this.#kept.size > most ? this.#kept.keys().next().value : undefined
    if (oldest) this.#end(oldest)
  }

  close(): void {
    this.#closed = true
    for (const watched of this.#kept.keys()) this.#end(watched)
  }

  #end(watched: () => void): void {
    this.#kept.get(watched)?.cancel()
    this.#kept.delete(watched)
    watched()
  }
}
