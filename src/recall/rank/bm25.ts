import { countOf, type Worth } from './worth.ts'

/** Passages that are ranked together, numbered in chronological order. Each array has one entry per passage; `-1` means none. */
export interface Collection {
  readonly count: number
  /** The number of terms in each passage. */
  readonly length: ArrayLike<number>
  /** The number of its session, from 0: the part of its thread that it belongs to. */
  readonly session: ArrayLike<number>
  readonly sessions: number
  /** The passage before it and the one after it in its thread. */
  readonly previous: ArrayLike<number>
  readonly next: ArrayLike<number>
  /** What the passage does: it states something, asks, or answers nothing. */
  readonly form: ArrayLike<number>
  /** When its message was written, in milliseconds. */
  readonly createdAt: ArrayLike<number>
  /** The number of terms of each session. Computed by the caller, so that several searches share it; else `bm25Scores` computes it. */
  readonly lengths?: ArrayLike<number>
  /** How much each passage counts where none is ignored, in the same way. */
  readonly worth?: Worth
}

/** The passages that contain a term of the question. */
export interface Posting {
  term: string
  /** Numbers of passages, each once. */
  passages: ArrayLike<number>
  /** The number of passages that contain the term, where `passages` has only some of them. */
  count?: number
}

/** Links each passage with its neighbors in its thread; the passages of a thread are in order. */
export function linkNeighbors(thread: ArrayLike<number>): { previous: Int32Array; next: Int32Array } {
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
  return { previous, next }
}

/** The parameters k1 and b of BM25. A posting has no frequency: a passage contains a term or does not. */
const saturation = 0.9
const lengthPenalty = 0.5

/** BM25 of each passage, of each with the one before it, and of each session as a whole; the best of each kind has 1. */
interface TermScores {
  own: Float32Array
  pair: Float32Array
  /** By number of the session. */
  session: Float32Array
  /** How much of the question the best passage contains, from 0 to 1: rare terms count more, and most of all those that no passage has. */
  share: number
}

/** `terms`: the number of terms of the question, of which `postings` has those that a passage contains. */
export function bm25Scores(
  collection: Collection, postings: readonly Posting[], worth: Worth, terms = postings.length,
): TermScores {
  const { count, length, session, sessions, previous, next } = collection
  const own = new Float32Array(count)
  const pair = new Float32Array(count)
  const ofSession = new Float32Array(sessions)
  const lengths = collection.lengths ?? lengthsOf(collection)
  const mean = worth.terms / worth.passages || 1
  const meanOfPairs = worth.termsOfPairs / worth.passages || 1
  const meanOfSessions = worth.terms / worth.sessions || 1
  const seen = new Uint8Array(count)
  const scored = new ScoredPassages(count)
  /** The score of a passage of mean length with all terms of the question. */
  let whole = Math.max(0, terms - postings.length) * rarity(worth.sum, 0) * weight(1, 1)
  for (const { passages, count: having } of postings) {
    const inSession = new Map<number, number>()
    let pairs = 0
    for (let n = 0; n < passages.length; n += 1) seen[passages[n] ?? 0] = 1
    for (let n = 0; n < passages.length; n += 1) {
      const after = next[passages[n] ?? 0] ?? -1
      pairs += (worth.of[passages[n] ?? 0] ?? 1) + (after >= 0 && seen[after] === 0 ? (worth.of[after] ?? 1) : 0)
    }
    const idf = having === undefined ? rarity(worth.sum, countOf(passages, worth)) : rarity(count, having)
    whole += idf * weight(1, 1)
    const idfInPairs = having === undefined
      ? rarity(worth.sum, Math.min(pairs, worth.sum))
      : rarity(count, count * (1 - (1 - having / count) ** 2))
    for (let n = 0; n < passages.length; n += 1) {
      const at = passages[n] ?? 0
      const words = length[at] ?? 0
      scored.add(at)
      own[at] = (own[at] ?? 0) + idf * weight(1, words / mean)
      const before = previous[at] ?? -1
      const times = before >= 0 && seen[before] === 1 ? 2 : 1
      pair[at] = (pair[at] ?? 0) + idfInPairs * weight(times, (words + lengthAt(collection, before)) / meanOfPairs)
      const after = next[at] ?? -1
      if (after >= 0 && seen[after] === 0) {
        scored.add(after)
        pair[after] = (pair[after] ?? 0) + idfInPairs * weight(1, (words + lengthAt(collection, after)) / meanOfPairs)
      }
      const of = session[at] ?? 0
      inSession.set(of, (inSession.get(of) ?? 0) + (worth.of[at] ?? 1))
    }
    // A term that only has a count is in nearly every session, and distinguishes none of them.
    if (having === undefined) for (const [of, times] of inSession) {
      ofSession[of] = (ofSession[of] ?? 0) + rarity(worth.sessions, inSession.size) * weight(times, (lengths[of] ?? 0) / meanOfSessions)
    }
    for (let n = 0; n < passages.length; n += 1) seen[passages[n] ?? 0] = 0
  }
  const touched = scored.list()
  let best = 0
  for (let n = 0; n < touched.length; n += 1) {
    const at = touched[n] as number
    own[at] = (own[at] as number) * (worth.of[at] as number)
    pair[at] = (pair[at] as number) * (worth.of[at] as number)
    if (own[at] > best) best = own[at]
  }
  const share = whole > 0 ? Math.min(1, best / whole) : 0
  scaleSome(own, touched)
  scaleSome(pair, touched)
  return { own, pair, session: scaleToBest(ofSession), share }
}

/** The passages that have a score: few of many, so that the others are not read again. */
class ScoredPassages {
  readonly #isScored: Uint8Array
  #list = new Int32Array(1_024)
  #size = 0

  constructor(count: number) {
    this.#isScored = new Uint8Array(count)
  }

  add(at: number): void {
    if (this.#isScored[at] === 1) return
    this.#isScored[at] = 1
    if (this.#size === this.#list.length) {
      const longer = new Int32Array(this.#size * 2)
      longer.set(this.#list)
      this.#list = longer
    }
    this.#list[this.#size] = at
    this.#size += 1
  }

  list(): Int32Array {
    return this.#list.subarray(0, this.#size)
  }
}

/** The number of terms of each session. */
export function lengthsOf({ count, length, session, sessions }: Omit<Collection, 'lengths'>): Float64Array {
  const lengths = new Float64Array(sessions)
  for (let at = 0; at < count; at += 1) {
    const of = session[at] ?? 0
    lengths[of] = (lengths[of] ?? 0) + (length[at] ?? 0)
  }
  return lengths
}

function lengthAt({ length }: Collection, at: number | undefined): number {
  return at === undefined || at < 0 ? 0 : (length[at] ?? 0)
}

function rarity(count: number, having: number): number {
  return Math.log(1 + (count - having + 0.5) / (having + 0.5))
}

function weight(times: number, relativeLength: number): number {
  return (times * (saturation + 1)) / (times + saturation * (1 - lengthPenalty + lengthPenalty * relativeLength))
}

/** Divides scores by the best of them, in place; negative scores become 0. */
function scaleToBest(scores: Float32Array): Float32Array {
  const { length } = scores
  let best = 0
  for (let at = 0; at < length; at += 1) if ((scores[at] as number) > best) best = scores[at] as number
  for (let at = 0; at < length; at += 1) scores[at] = scaled(scores[at] as number, best)
  return scores
}

/** The same where all scores but those of some passages are 0. */
function scaleSome(scores: Float32Array, passages: Int32Array): void {
  let best = 0
  for (let n = 0; n < passages.length; n += 1) best = Math.max(best, scores[passages[n] as number] as number)
  for (let n = 0; n < passages.length; n += 1) scores[passages[n] as number] = scaled(scores[passages[n] as number] as number, best)
}

/** A score in relation to the best one; 0 where it is negative. */
export function scaled(score: number, best: number): number {
  return score > 0 ? score / best : 0
}
