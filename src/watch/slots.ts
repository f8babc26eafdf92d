/** How many slots the keys without work may keep free at most. */
const mostReserved = 8

/**
 * The work of one kind that a process does at the same time, by keys such as channels. Work of one key that takes long leaves a slot for
 * each of the others: a slow provider or model delays its own messages alone.
 */
export class Slots {
  readonly #size: number
  readonly #taken = new Map<string, number>()
  #count = 0

  constructor(size: number) {
    this.#size = size
  }

  get free(): number {
    return this.#size - this.#count
  }

  /** How many more of each key may begin. */
  most(keys: readonly string[]): Record<string, number> {
    const each = this.#size - Math.min(mostReserved, Math.max(0, keys.length - 1))
    return Object.fromEntries(keys.map((key) => [key, Math.max(0, each - (this.#taken.get(key) ?? 0))]))
  }

  /** Of these keys, those of which more may begin. */
  open(keys: readonly string[]): string[] {
    const most = this.most(keys)
    return this.free > 0 ? keys.filter((key) => (most[key] ?? 0) > 0) : []
  }

  /** Takes a slot until the work is over. */
  async run(key: string, work: () => Promise<void>): Promise<void> {
    this.#count += 1
    this.#taken.set(key, (this.#taken.get(key) ?? 0) + 1)
    try {
      await work()
    } finally {
      this.#count -= 1
      const left = (this.#taken.get(key) ?? 1) - 1
      if (left === 0) this.#taken.delete(key)
      else this.#taken.set(key, left)
    }
  }
}
