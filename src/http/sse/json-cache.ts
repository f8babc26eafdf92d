const maxEntries = 256
const maxChars = 2 * 1024 * 1024
/** Longer texts are cached for as long as their value lives, which takes about as much memory already. */
const longChars = 64 * 1024

/**
 * Recent values as JSON: the subscribers of a thread need the same chunks at about the same time. A cached value must not change
 * afterwards.
 */
export class JsonCache {
  readonly #recent = new Map<object, string>()
  #long = new WeakMap<object, string>()
  #chars = 0

  /** The number of characters that the cache alone keeps in memory. */
  get chars(): number {
    return this.#chars
  }

  stringify(value: object): string {
    const cached = this.#recent.get(value) ?? this.#long.get(value)
    if (cached !== undefined) return cached
    const json = JSON.stringify(value)
    if (json.length > longChars) this.#long.set(value, json)
    else this.#add(value, json)
    return json
  }

  clear(): void {
    this.#recent.clear()
    this.#long = new WeakMap()
    this.#chars = 0
  }

  #add(value: object, json: string): void {
    this.#recent.set(value, json)
    this.#chars += json.length
    for (const [oldest, text] of this.#recent) {
      if (this.#recent.size <= maxEntries && this.#chars <= maxChars) return
      this.#recent.delete(oldest)
      this.#chars -= text.length
    }
  }
}
