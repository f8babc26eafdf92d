import type { KeepAlive } from './keep-alive.ts'

/** One promise shared by all that wait for the same event. While it is awaited, the process stays alive. */
export class Notifier {
  readonly #keepAlive: KeepAlive | undefined
  #next: PromiseWithResolvers<void> | undefined

  constructor(keepAlive: KeepAlive | undefined) {
    this.#keepAlive = keepAlive
  }

  next(): Promise<void> {
    if (!this.#next) {
      this.#next = Promise.withResolvers()
      this.#keepAlive?.begin()
    }
    return this.#next.promise
  }

  notify(): void {
    if (!this.#next) return
    this.#next.resolve()
    this.#next = undefined
    this.#keepAlive?.end()
  }
}
