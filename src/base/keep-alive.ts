/** The longest delay of a timer. */
const longest = 2 ** 31 - 1

/**
 * Keeps the process alive while code waits for what a thread publishes next: a program that only reads has no other handle open. Each
 * `begin` has its `end`.
 */
export class KeepAlive {
  #waiting = 0
  #handle: NodeJS.Timeout | undefined
  #closed = false

  begin(): void {
    if (this.#waiting++ > 0 || this.#closed) return
    if (this.#handle) this.#handle.ref()
    else this.#handle = setInterval(() => {}, longest)
  }

  end(): void {
    if (--this.#waiting === 0) this.#handle?.unref()
  }

  /** From here on waiting code no longer keeps the process alive. */
  close(): void {
    this.#closed = true
    clearInterval(this.#handle)
    this.#handle = undefined
  }
}
