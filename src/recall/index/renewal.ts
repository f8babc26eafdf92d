import type { Clock, Timer } from '../../base/clock.ts'
import { describe } from '../../base/errors.ts'

/** An embedder expires after seven days. */
const intervalMs = 86_400_000
const firstRetryMs = 60_000

/** Calls `renew` once a day. After a failure it retries in a minute, then after twice as long each time. */
export class Renewal {
  readonly #clock: Clock
  readonly #renew: () => Promise<void>
  readonly #onFailure: (error: string) => void
  #timer: Timer
  #retryMs = firstRetryMs
  #error: string | undefined
  #closed = false

  /** `onFailure` must not throw. */
  constructor(clock: Clock, renew: () => Promise<void>, onFailure: (error: string) => void) {
    this.#clock = clock
    this.#renew = renew
    this.#onFailure = onFailure
    this.#timer = this.#after(intervalMs)
  }

  /** The last failure, until a renewal succeeds. */
  get error(): string | undefined {
    return this.#error
  }

  close(): void {
    this.#closed = true
    this.#timer.cancel()
  }

  #after(ms: number): Timer {
    return this.#clock.after(ms, () => void this.#run(), { background: true })
  }

  async #run(): Promise<void> {
    try {
      await this.#renew()
      this.#error = undefined
      this.#retryMs = firstRetryMs
      if (!this.#closed) this.#timer = this.#after(intervalMs)
    } catch (error) {
      if (this.#closed) return
      this.#error = describe(error)
      this.#onFailure(this.#error)
      this.#timer = this.#after(this.#retryMs)
      this.#retryMs = Math.min(intervalMs, this.#retryMs * 2)
    }
  }
}
