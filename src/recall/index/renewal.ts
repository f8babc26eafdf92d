import type { Clock, Timer } from '../../base/clock.ts'
import { describe } from '../../base/errors.ts'

/** Nobody is forgotten sooner than in seven days. */
const renewedMs = 86_400_000
const firstRetryMs = 60_000

/** Does something once a day. What fails is tried again after a minute, and then after twice as long each time. */
export class Renewal {
  readonly #clock: Clock
  readonly #renew: () => Promise<void>
  readonly #failed: (error: string) => void
  #timer: Timer
  #retryMs = firstRetryMs
  #error: string | undefined
  #closed = false

  /** `failed` must not throw. */
  constructor(clock: Clock, renew: () => Promise<void>, failed: (error: string) => void) {
    this.#clock = clock
    this.#renew = renew
    this.#failed = failed
    this.#timer = this.#after(renewedMs)
  }

  /** What went wrong the last time, until it goes right. */
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
      if (!this.#closed) this.#timer = this.#after(renewedMs)
    } catch (error) {
      if (this.#closed) return
      this.#error = describe(error)
      this.#failed(this.#error)
      this.#timer = this.#after(this.#retryMs)
      this.#retryMs = Math.min(renewedMs, this.#retryMs * 2)
    }
  }
}
