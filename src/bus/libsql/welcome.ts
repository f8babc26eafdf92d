import { systemClock, type Timer } from '../../base/clock.ts'

/** How long those who were there first are waited for: one that sleeps, or died a moment ago, never answers. Runs wait for it, so it keeps the process alive. */
const welcomeMs = 50

/** Those who were there as a member came, until each has spoken to it: by then it knows what they watch. */
export class Welcome {
  readonly #silent: Set<string>
  readonly #met = Promise.withResolvers<void>()
  readonly #timer: Timer

  constructor(processes: Iterable<string>) {
    this.#silent = new Set(processes)
    this.#timer = systemClock.after(welcomeMs, () => this.end())
    if (this.#silent.size === 0) this.end()
  }

  get met(): Promise<void> {
    return this.#met.promise
  }

  heard(process: string): void {
    if (this.#silent.delete(process) && this.#silent.size === 0) this.end()
  }

  end(): void {
    this.#timer.cancel()
    this.#met.resolve()
  }
}
