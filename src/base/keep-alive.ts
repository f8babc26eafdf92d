/** The longest that a timer can be set for. */
const longest = 2 ** 31 - 1

/**
 * Keeps the process alive while somebody here waits for what a thread says next: a program that only listens has no other reason to. Each
 * `begin` has its `end`.
 */
export class Vigil {
  #waiting = 0
  #handle: NodeJS.Timeout | undefined
  #over = false

  begin(): void {
    if (this.#waiting++ > 0 || this.#over) return
    if (this.#handle) this.#handle.ref()
    else this.#handle = setInterval(() => {}, longest)
  }

  end(): void {
    if (--this.#waiting === 0) this.#handle?.unref()
  }

  /** Whoever still waits does not keep anything alive any more. */
  close(): void {
    this.#over = true
    clearInterval(this.#handle)
    this.#handle = undefined
  }
}
