/**
 * Passages that are ranked together, by number, in the order in which they were said. All arrays have one entry for each; `-1` stands
 * for none.
 */
export interface Collection {
  readonly count: number
  /** How many words each has. */
  readonly length: ArrayLike<number>
  /** The number of its thread, from 0 on. */
  readonly thread: ArrayLike<number>
  readonly threads: number
  /** The passage before it and the one after it in its thread. */
  readonly previous: ArrayLike<number>
  readonly next: ArrayLike<number>
  /** 1 where it ends with a question mark. */
  readonly question: ArrayLike<number>
  /** Where they are known already. */
  readonly lengths?: Lengths
}

export interface Lengths {
  total: number
  /** Of all passages, each with the one before it. */
  totalOfPairs: number
  /** By number of thread. */
  lengths: ArrayLike<number>
}

/** Where a word of the question is. */
export interface Posting {
  word: string
  /** Numbers of passages, each once. */
  passages: ArrayLike<number>
  /** In how many it is, where these are only some of them. */
  count?: number
}

/** Who follows whom in each thread, for passages that are in the order of their threads. */
export function neighbours(thread: ArrayLike<number>): { previous: Int32Array; next: Int32Array; threads: number } {
  const count = thread.length
  const previous = new Int32Array(count).fill(-1)
  const next = new Int32Array(count).fill(-1)
  const last: number[] = []
  for (let at = 0; at < count; at += 1) {
    const of = thread[at] ?? 0
    const before = last[of]
    if (before !== undefined) {
      previous[at] = before
      next[before] = at
    }
    last[of] = at
  }
  return { previous, next, threads: last.length }
}
