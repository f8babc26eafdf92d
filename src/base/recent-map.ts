/** A map of bounded size: the entry that was not used for the longest time makes room for a new one. */
export class RecentMap<Value> {
  readonly #limit: number
  readonly #onRemove: ((value: Value) => void) | undefined
  /** In order of use. */
  readonly #entries = new Map<string, Value>()

  constructor(limit: number, onRemove?: (value: Value) => void) {
    this.#limit = limit
    this.#onRemove = onRemove
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: string): Value | undefined {
    const value = this.#entries.get(key)
    if (value === undefined) return undefined
    this.#entries.delete(key)
    this.#entries.set(key, value)
    return value
  }

  /** The value of the key before, if any, is replaced without `onRemove`. */
  set(key: string, value: Value): void {
    this.#entries.delete(key)
    this.#entries.set(key, value)
    const oldest = this.#entries.size > this.#limit ? this.#entries.keys().next().value : undefined
    if (oldest !== undefined) this.delete(oldest)
  }

  delete(key: string): void {
    const value = this.#entries.get(key)
    if (value === undefined) return
    this.#entries.delete(key)
    this.#onRemove?.(value)
  }
}
