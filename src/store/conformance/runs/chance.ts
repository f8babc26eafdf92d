/** Numbers that look random and are the same for the same seed, so that a failure can be tried again. */
export class Chance {
  readonly seed: number
  #state: number

  constructor(seed = Math.floor(Math.random() * 2 ** 31)) {
    this.seed = seed
    this.#state = seed
  }

  /** A whole number from 0 to below `end`. */
  below(end: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % end
  }

  pick<Item>(items: readonly Item[]): Item {
    const item = items[this.below(items.length)]
    if (item === undefined) throw new RangeError('nothing to pick from')
    return item
  }

  shuffle<Item>(items: readonly Item[]): Item[] {
    const rest = [...items]
    const shuffled: Item[] = []
    while (rest.length > 0) shuffled.push(...rest.splice(this.below(rest.length), 1))
    return shuffled
  }
}

/** Runs a case with random choices; a failure says how to repeat it. */
export async function withChance(run: (chance: Chance) => Promise<void>): Promise<void> {
  const chance = new Chance()
  try {
    await run(chance)
  } catch (error) {
    throw new Error(`failed with seed ${chance.seed}`, { cause: error })
  }
}
