/** Counts what has to come to its end before a process may go. Every `begin` has its `end`. */
export class Underway {
  #count = 0
  #settled: PromiseWithResolvers<void> | undefined

  begin(): void {
    this.#count++
  }

  end(): void {
    if (--this.#count > 0) return
    this.#settled?.resolve()
    this.#settled = undefined
  }

  /** Resolves when nothing is underway. */
  settled(): Promise<void> {
    if (this.#count === 0) return Promise.resolve()
    this.#settled ??= Promise.withResolvers()
    return this.#settled.promise
  }
}
