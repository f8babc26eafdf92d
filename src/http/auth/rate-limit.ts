import { checkNames } from '../../base/arguments.ts'
import type { Clock } from '../../base/clock.ts'
import { HeedError } from '../../base/errors.ts'

/** How many requests are answered within a time. */
export interface RateLimitOptions {
  /** The number of requests that a caller may make … */
  requests: number
  /** … in this many milliseconds. Defaults to a minute. */
  perMs?: number
}

/** How many callers are remembered; above it, the least recent ones are forgotten and start with a full bucket. */
const maxCallers = 10_000

/** A token bucket per caller: short bursts pass, a steady excess does not. */
export class RateLimit {
  readonly #size: number
  readonly #perMs: number
  readonly #clock: Clock
  readonly #buckets = new Map<string, { left: number; at: number }>()

  constructor(options: RateLimitOptions, clock: Clock, name = 'rateLimit') {
    checkNames(name, options, ['requests', 'perMs'])
    const { requests, perMs = 60_000 } = options
    if (!(requests >= 1) || !(perMs >= 1)) {
      throw new HeedError('invalid_argument', `${name} needs requests and perMs of at least 1.`, { details: { option: name } })
    }
    this.#size = requests
    this.#perMs = perMs
    this.#clock = clock
  }

  take(caller: string): void {
    const now = this.#clock.now()
    const left = this.#left(caller, now)
    this.#buckets.delete(caller)
    this.#buckets.set(caller, { left: left < 1 ? left : left - 1, at: now })
    const oldest = this.#buckets.size > maxCallers ? this.#buckets.keys().next().value : undefined
    if (oldest !== undefined) this.#buckets.delete(oldest)
    if (left < 1) throw this.#exceeded(left)
  }

  /** Throws if the caller may make no request now. Takes none. */
  check(caller: string): void {
    if (!this.#buckets.has(caller)) return
    const left = this.#left(caller, this.#clock.now())
    if (left < 1) throw this.#exceeded(left)
  }

  #left(caller: string, now: number): number {
    const bucket = this.#buckets.get(caller)
    const refilled = bucket ? bucket.left + (Math.max(0, now - bucket.at) * this.#size) / this.#perMs : this.#size
    return Math.min(this.#size, refilled)
  }

  #exceeded(left: number): HeedError {
    const retryAfterMs = Math.ceil(((1 - left) * this.#perMs) / this.#size)
    const message = `Too many requests: at most ${this.#size} in ${this.#perMs} ms. Wait, and try again.`
    return new HeedError('rate_limited', message, { retryable: true, details: { retryAfterMs } })
  }
}
