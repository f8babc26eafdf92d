import type { Clock } from '../../base/clock.ts'
import { isHeedError } from '../../base/errors.ts'

/** For so long after a timeout, a search waits less: a slow service would delay every run otherwise. */
const cautiousMs = 60_000

/** Chooses how long a search waits for a service: an embedder, or a vector store. */
export class QuestionTimeout {
  readonly #clock: Clock
  readonly #timeoutMs: number
  readonly #shortMs: number
  #timedOutAt = Number.NEGATIVE_INFINITY

  /** `cautious`: the time within a minute after a timeout. */
  constructor(clock: Clock, ms: { timeout: number; cautious: number }) {
    this.#clock = clock
    this.#timeoutMs = ms.timeout
    this.#shortMs = ms.cautious
  }

  get ms(): number {
    return this.#clock.now() - this.#timedOutAt < cautiousMs ? this.#shortMs : this.#timeoutMs
  }

  recordFailure(error: unknown): void {
    if (isHeedError(error) && error.code === 'unreachable' && this.ms === this.#timeoutMs) this.#timedOutAt = this.#clock.now()
  }
}
