import { systemClock, type Timer } from '../../base/clock.ts'

/**
 * How long a new connection waits for answers: a process that is suspended, or died a moment ago, never answers. Runs wait for it, so the
 * timer keeps the process alive.
 */
const timeoutMs = 50

/** Waits until each process that was connected before has answered a new connection; by then the connection knows what they watch. */
export class Handshake {
  readonly #missing: Set<string>
  readonly #done = Promise.withResolvers<void>()
  readonly #timer: Timer

  constructor(processes: Iterable<string>) {
    this.#missing = new Set(processes)
    this.#timer = systemClock.after(timeoutMs, () => this.end())
    if (this.#missing.size === 0) this.end()
  }

  get done(): Promise<void> {
    return this.#done.promise
  }

  answered(process: string): void {
    if (this.#missing.delete(process) && this.#missing.size === 0) this.end()
  }

  end(): void {
    this.#timer.cancel()
    this.#done.resolve()
  }
}
