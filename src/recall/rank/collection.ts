/** Passages that are ranked together, numbered in chronological order. Each array has one entry per passage; `-1` means none. */
export interface Collection {
  readonly count: number
  /** The number of terms in each passage. */
  readonly length: ArrayLike<number>
  /** The number of its thread, from 0. */
  readonly thread: ArrayLike<number>
  readonly threads: number
  /** The passage before it and the one after it in its thread. */
  readonly previous: ArrayLike<number>
  readonly next: ArrayLike<number>
  /** 1 where the passage ends with a question mark. */
  readonly question: ArrayLike<number>
  /** Computed by the caller, so that several searches share it; else `bm25Scores` computes it. */
  readonly lengths?: Lengths
}

export interface Lengths {
  total: number
  /** Of all passages, each with the one before it. */
  totalOfPairs: number
  /** By number of the thread. */
  lengths: ArrayLike<number>
}

/** The passages that contain a term of the question. */
export interface Posting {
  term: string
  /** Numbers of passages, each once. */
  passages: ArrayLike<number>
  /** The number of passages that contain the term, where `passages` has only some of them. */
  count?: number
}

/** Links each passage with its neighbours in its thread; the passages of a thread are in order. */
export function linkNeighbours(thread: ArrayLike<number>): { previous: Int32Array; next: Int32Array; threads: number } {
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
