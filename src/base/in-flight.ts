/** Counts operations that must end before the process may close. Each `begin` has its `end`. */
export class InFlight {
  #count = 0
  #idle: PromiseWithResolvers<void> | undefined

  begin(): void {
    this.#count++
  }

  end(): void {
    if (--this.#count > 0) return
    this.#idle?.resolve()
    this.#idle = undefined
  }

  /** Resolves when no operation is in flight. */
  whenIdle(): Promise<void> {
    if (this.#count === 0) return Promise.resolve()
    this.#idle ??= Promise.withResolvers()
    return this.#idle.promise
  }
}
