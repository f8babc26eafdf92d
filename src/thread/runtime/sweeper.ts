import type { Timer } from '../../base/clock.ts'
import { isHeedError } from '../../base/errors.ts'
import type { ThreadRuntime } from './runtime.ts'

/** Looks again and again for what nobody runs. It ends with its runtime, and so does its timer. */
export class Sweeper {
  readonly #runtime: ThreadRuntime
  readonly #look: () => void
  /** How many a sweep takes up at most; when it did, there may be more. */
  readonly #page: number
  #timer: Timer | undefined

  /** `look` is what else is to be looked for. */
  constructor(runtime: ThreadRuntime, page: number, look: () => void) {
    this.#runtime = runtime
    this.#page = page
    this.#look = look
  }

  /** The first look comes at once: an earlier process may have left something. */
  start(delay = 0): void {
    const runtime = this.#runtime
    if (runtime.closing) return
    this.#timer = runtime.clock.after(delay, () => {
      const later = () => runtime.sweepMs * (0.75 + Math.random() / 2)
      this.#look()
      runtime.sweep().finally(() => runtime.peers.tick()).then(
        (taken) => this.start(taken === this.#page ? 0 : later()),
        (error: unknown) => {
          if (!runtime.endedBy(error)) runtime.logger.error('looking for orphaned threads failed', { error: String(error) })
          this.start(later())
        },
      )
    }, { background: true })
  }

  end(): void {
    this.#timer?.cancel()
  }
}

/** Whoever has the store closed it: whatever is asked of it will fail. */
export function isClosed(error: unknown): boolean {
  return isHeedError(error) && error.code === 'closed'
}
