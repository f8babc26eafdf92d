import type { Clock } from '../../base/clock.ts'
import { HeedError } from '../../base/errors.ts'

export interface RateLimitOptions {
  /** So many requests … */
  requests: number
  /** … in so many milliseconds. Defaults to a minute. */
  perMs?: number
}

/** Callers that are remembered; beyond it those who have been silent longest start afresh. */
const maxCallers = 10_000

/** Each caller has a bucket that fills evenly: short bursts pass, steady excess does not. */
export class RateLimit {
  readonly #size: number
  readonly #perMs: number
  readonly #clock: Clock
  readonly #buckets = new Map<string, { left: number; at: number }>()

  constructor({ requests, perMs = 60_000 }: RateLimitOptions, clock: Clock) {
    if (!(requests >= 1) || !(perMs >= 1)) throw new HeedError('invalid_argument', 'rateLimit needs requests and perMs of at least 1.', { details: { option: 'rateLimit' } })
    this.#size = requests
    this.#perMs = perMs
    this.#clock = clock
  }

  take(caller: string): void {
    const now = this.#clock.now()
    const bucket = this.#buckets.get(caller)
    const left = Math.min(this.#size, bucket ? bucket.left + (Math.max(0, now - bucket.at) * this.#size) / this.#perMs : this.#size)
    this.#buckets.delete(caller)
    this.#buckets.set(caller, { left: left < 1 ? left : left - 1, at: now })
    const oldest = this.#buckets.size > maxCallers ? this.#buckets.keys().next().value : undefined
    if (oldest !== undefined) this.#buckets.delete(oldest)
    if (left >= 1) return
    const retryAfterMs = Math.ceil(((1 - left) * this.#perMs) / this.#size)
    throw new HeedError('rate_limited', `Too many requests: at most ${this.#size} in ${this.#perMs} ms. Wait, and try again.`, { retryable: true, details: { retryAfterMs } })
  }
}
