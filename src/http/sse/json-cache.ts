/** How many are kept, and how many characters of them in all. */
const most = 256
const mostChars = 2 * 1024 * 1024
/** Longer words last as long as what they are of: whoever keeps that keeps as much already. */
const longChars = 64 * 1024

/**
 * What was said lately, as JSON. Those who watch one thread ask for the same at about the same time. What is put into words here must not
 * change afterwards.
 */
export class Words {
  readonly #recent = new Map<object, string>()
  #long = new WeakMap<object, string>()
  #chars = 0

  /** How many characters are kept of what nobody else may have any more. */
  get chars(): number {
    return this.#chars
  }

  of(value: object): string {
    const known = this.#recent.get(value) ?? this.#long.get(value)
    if (known !== undefined) return known
    const words = JSON.stringify(value)
    if (words.length > longChars) this.#long.set(value, words)
    else this.#keep(value, words)
    return words
  }

  clear(): void {
    this.#recent.clear()
    this.#long = new WeakMap()
    this.#chars = 0
  }

  #keep(value: object, words: string): void {
    this.#recent.set(value, words)
    this.#chars += words.length
    for (const [oldest, its] of this.#recent) {
      if (this.#recent.size <= most && this.#chars <= mostChars) return
      this.#recent.delete(oldest)
      this.#chars -= its.length
    }
  }
}
