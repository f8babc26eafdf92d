import type { Clock } from '../../base/clock.ts'
import { HeedError } from '../../base/errors.ts'

/** How long `auth` has to say who asks. */
const authMs = 30_000

/** Requests of which it isn't known yet who asks. A hook that never answers keeps none of them, nor the server that is being closed. */
export class AuthWaits {
  readonly #clock: Clock
  readonly #waiting = new Set<(reason: HeedError) => void>()
  #closed = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  async inTime<T>(work: Promise<T>): Promise<T> {
    const cut = Promise.withResolvers<never>()
    const timer = this.#clock.after(authMs, () => cut.reject(new HeedError('unauthorized', 'Who you are could not be found out in time. Try again.', { retryable: true })), { background: true })
    this.#waiting.add(cut.reject)
    if (this.#closed) cut.reject(closing())
    try {
      return await Promise.race([work, cut.promise])
    } finally {
      timer.cancel()
      this.#waiting.delete(cut.reject)
    }
  }

  /** They have begun nothing: whoever serves next can be asked the same. */
  close(): void {
    this.#closed = true
    for (const reject of this.#waiting) reject(closing())
  }
}

function closing(): HeedError {
  return new HeedError('closed', 'This server is being closed, and began nothing of what was asked. Ask again.', { retryable: true })
}
