/** How many slots the keys without work may keep free at most. */
const mostReserved = 8

/** Gives a slot back. A second call has no effect. */
export type Release = () => void

interface Waiting {
  key: string
  start(release: Release): void
}

/**
 * The work of one kind that a process does at the same time, by keys such as channels or resources. Work that is asked for (`most`, `open`)
 * leaves a slot for each of the other keys: a slow provider or model delays its own messages alone. Work that waits for a slot gets it in
 * turns: one of each key, then the next one of the first.
 */
export class Slots {
  readonly #size: number
  readonly #taken = new Map<string, number>()
  readonly #waiting = new Map<string, Waiting>()
  /** The ids of the work that waits, by key. The first key is the next one. */
  readonly #turns = new Map<string, Set<string>>()
  #count = 0

  constructor(size: number) {
    this.#size = size
  }

  get free(): number {
    return this.#size - this.#count
  }

  /** How much work waits for a slot. */
  get waiting(): number {
    return this.#waiting.size
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
    const release = this.#take(key)
    try {
      await work()
    } finally {
      release()
    }
  }

  /** Takes a slot, if one is free. */
  take(key: string): Release | undefined {
    return this.free > 0 ? this.#take(key) : undefined
  }

  /** Calls `start` with a slot as soon as it is the turn of this work. `id` names it. */
  wait(key: string, id: string, start: (release: Release) => void): void {
    this.#waiting.set(id, { key, start })
    const ids = this.#turns.get(key)
    if (ids) ids.add(id)
    else this.#turns.set(key, new Set([id]))
    this.#startNext()
  }

  isWaiting(id: string): boolean {
    return this.#waiting.has(id)
  }

  /** Starts work that waits at once, without a slot. */
  letThrough(id: string): void {
    this.#remove(id)?.start(() => {})
  }

  /** It no longer waits, and is not started. */
  cancel(id: string): void {
    this.#remove(id)
  }

  #startNext(): void {
    while (this.free > 0) {
      const [next] = this.#turns
      const [id] = next?.[1] ?? []
      if (!next || id === undefined) return
      const [key, ids] = next
      const work = this.#remove(id)
      this.#turns.delete(key)
      if (ids.size > 0) this.#turns.set(key, ids)
      work?.start(this.#take(key))
    }
  }

  #remove(id: string): Waiting | undefined {
    const work = this.#waiting.get(id)
    if (!work) return undefined
    this.#waiting.delete(id)
    const ids = this.#turns.get(work.key)
    ids?.delete(id)
    if (ids?.size === 0) this.#turns.delete(work.key)
    return work
  }

  #take(key: string): Release {
    this.#count += 1
    this.#taken.set(key, (this.#taken.get(key) ?? 0) + 1)
    let released = false
    return () => {
      if (released) return
      released = true
      this.#count -= 1
      const left = (this.#taken.get(key) ?? 1) - 1
      if (left === 0) this.#taken.delete(key)
      else this.#taken.set(key, left)
      this.#startNext()
    }
  }
}
