import type { Collection, Posting } from './collection.ts'
import { defaultWeights, type Weights } from './weights.ts'
import { relative, wordScores } from './words-score.ts'

/** How near each passage is to the question: cosines, alone and with the message before it. 0 where there is no vector. */
export interface Meanings {
  own: Float32Array
  pair: Float32Array
}

export interface Ranked {
  /** The passage's number. */
  at: number
  /** Between 0 and 1: 1 if every reason that there can be spoke for it fully. */
  score: number
  reasons: Reasons
}

/** What each reason gave, before its weight: 1 is the best of all passages. `question` is 1 where it is one. */
export type Reasons = Record<keyof Weights, number>

export interface RankOptions {
  limit: number
  weights?: Weights
  /** False for passages that must not be among the answers. They still are neighbours. */
  allowed?: (at: number) => boolean
}

/** How many of a thread's best make up what the thread is worth. */
const bestOfThread = 3

/** The passages that answer a question best, best first. What speaks for none at all is not among them. */
export function rank(collection: Collection, postings: readonly Posting[], meanings: Meanings | undefined, options: RankOptions): Ranked[] {
  const { weights = defaultWeights, limit, allowed } = options
  const { count, previous, next, thread, question } = collection
  const words = wordScores(collection, postings)
  const own = meanings && relative(meanings.own.slice())
  const pair = meanings && relative(meanings.pair.slice())
  const first = new Float32Array(count)
  for (let at = 0; at < count; at += 1) {
    first[at] = weights.words * (words.own[at] ?? 0) + weights.wordsOfPair * (words.pair[at] ?? 0)
      + weights.meaning * (own?.[at] ?? 0) + weights.meaningOfPair * (pair?.[at] ?? 0)
  }
  const threads = threadScores(collection, first)
  const most = highest(weights, meanings !== undefined)
  const best = new Best(limit)
  for (let at = 0; at < count; at += 1) {
    const alone = first[at] ?? 0
    const before = scoreAt(first, previous[at])
    const after = scoreAt(first, next[at])
    if (alone + before + after === 0 || (allowed && !allowed(at))) continue
    const of = thread[at] ?? 0
    const score = alone + weights.previous * before + weights.next * after + weights.thread * (threads[of] ?? 0)
      + weights.wordsOfThread * (words.thread[of] ?? 0) - weights.question * (question[at] ?? 0)
    best.offer(at, score)
  }
  return best.taken().map(({ at, score }) => ({
    at,
    score: Math.max(0, score / most),
    reasons: {
      words: words.own[at] ?? 0,
      wordsOfPair: words.pair[at] ?? 0,
      meaning: own?.[at] ?? 0,
      meaningOfPair: pair?.[at] ?? 0,
      previous: scoreAt(first, previous[at]),
      next: scoreAt(first, next[at]),
      thread: threads[thread[at] ?? 0] ?? 0,
      wordsOfThread: words.thread[thread[at] ?? 0] ?? 0,
      question: question[at] ?? 0,
    },
  }))
}

function scoreAt(scores: Float32Array, at: number | undefined): number {
  return at === undefined || at < 0 ? 0 : (scores[at] ?? 0)
}

/** What the best of each thread have on average, between 0 for the worst thread and 1 for the best. */
function threadScores({ count, thread, threads }: Collection, scores: Float32Array): Float32Array {
  const top = new Float32Array(threads * bestOfThread)
  const sizes = new Uint8Array(threads)
  for (let at = 0; at < count; at += 1) {
    const of = thread[at] ?? 0
    if ((sizes[of] ?? 0) < bestOfThread) sizes[of] = (sizes[of] ?? 0) + 1
    let score = scores[at] ?? 0
    for (let place = of * bestOfThread; place < (of + 1) * bestOfThread; place += 1) {
      const there = top[place] ?? 0
      if (score <= there) continue
      top[place] = score
      score = there
    }
  }
  const means = new Float32Array(threads)
  for (let of = 0; of < threads; of += 1) {
    let sum = 0
    for (let place = of * bestOfThread; place < (of + 1) * bestOfThread; place += 1) sum += top[place] ?? 0
    means[of] = sum / (sizes[of] || 1)
  }
  const low = means.reduce((least, mean) => Math.min(least, mean), Number.POSITIVE_INFINITY)
  const high = means.reduce((most, mean) => Math.max(most, mean), 0)
  return means.map((mean) => (high > low ? (mean - low) / (high - low) : 0))
}

/** The score of a passage for which everything speaks. */
function highest({ words, wordsOfPair, meaning, meaningOfPair, previous, next, thread, wordsOfThread }: Weights, withMeaning: boolean): number {
  const alone = words + wordsOfPair + (withMeaning ? meaning + meaningOfPair : 0)
  return alone * (1 + previous + next) + thread + wordsOfThread || 1
}

/** The best so far, best first; of equals, the one that was said first. */
class Best {
  readonly #limit: number
  readonly #taken: Array<{ at: number; score: number }> = []

  constructor(limit: number) {
    this.#limit = limit
  }

  offer(at: number, score: number): void {
    const last = this.#taken.at(-1)
    if (this.#taken.length >= this.#limit && (!last || score <= last.score)) return
    let place = this.#taken.length
    while (place > 0 && (this.#taken[place - 1]?.score ?? 0) < score) place -= 1
    this.#taken.splice(place, 0, { at, score })
    if (this.#taken.length > this.#limit) this.#taken.pop()
  }

  taken(): ReadonlyArray<{ at: number; score: number }> {
    return this.#taken
  }
}
