import type { Clock, Timer } from '../../base/clock.ts'
import { failureOf, type EmbedderFailure } from '../../store/contract/recall.ts'
import type { EnginePort } from '../index/engine.ts'
import { EmbedderBackoff } from './embedder-backoff.ts'
import type { Placement } from './placement.ts'

const removedAtOnce = 100

/**
 * Deletes in a vector store what is deleted in the index. The index has the list, so that a store that fails, or a process that ends,
 * delays a deletion and never loses it. Runs beside the storing of new vectors: neither waits for the other.
 */
export class Removals {
  readonly #engine: EnginePort
  readonly #placement: Placement
  readonly #clock: Clock
  readonly #signal: AbortSignal
  readonly #backoff: EmbedderBackoff
  #working: Promise<void> | undefined
  #isAwake = false
  #timer: Timer | undefined
  #failure: EmbedderFailure | undefined

  constructor(engine: EnginePort, placement: Placement, clock: Clock, signal: AbortSignal) {
    this.#engine = engine
    this.#placement = placement
    this.#clock = clock
    this.#signal = signal
    this.#backoff = new EmbedderBackoff(clock)
  }

  /** The last failure, until a deletion succeeds. */
  get failure(): EmbedderFailure | undefined {
    return this.#failure
  }

  wake(): void {
    this.#isAwake = true
    if (this.#working || this.#timer || this.#signal.aborted) return
    this.#working = this.#work().finally(() => {
      this.#working = undefined
      if (this.#isAwake) this.wake()
    })
  }

  async close(): Promise<void> {
    this.#timer?.cancel()
    await this.#working
  }

  async #work(): Promise<void> {
    try {
      for (this.#isAwake = false; !this.#signal.aborted;) {
        const removals = await this.#engine.call('removals', this.#placement.name, removedAtOnce)
        if (removals.length === 0) return
        await this.#placement.remove(removals, { signal: this.#signal, background: true })
        await this.#engine.call('removed', removals.map(({ number }) => number))
        this.#failure = undefined
        this.#backoff.reset()
      }
    } catch (error) {
      if (this.#signal.aborted) return
      this.#failure = failureOf(error)
      this.#backoff.recordFailure(error, 1)
      this.#timer = this.#clock.after(Math.max(1, this.#backoff.until - this.#clock.now()), () => {
        this.#timer = undefined
        this.wake()
      }, { background: true })
    }
  }
}
