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

export interface RankingOptions {
  weights?: Weights
  /** False for passages that must not be among the answers. They still are neighbours. */
  allowed?: (at: number) => boolean
  /** True for passages that are as though they said nothing: the question itself, which would be the best answer to it. */
  muted?: (at: number) => boolean
}

/** How many of a thread's best make up what the thread is worth. */
const bestOfThread = 3

/** The passages that answer a question best, best first. What speaks for none at all is not among them. */
export function rank(collection: Collection, postings: readonly Posting[], meanings: Meanings | undefined, options: RankingOptions & { limit: number }): Ranked[] {
  const best: Ranked[] = []
  for (const one of ranking(collection, postings, meanings, options)) {
    if (best.length >= options.limit) break
    best.push(one)
  }
  return best
}

/** The same, as many as whoever asks takes: what a passage is worth is known of all of them, their order only as far as it is asked for. */
export function* ranking(collection: Collection, postings: readonly Posting[], meanings: Meanings | undefined, options: RankingOptions = {}): Generator<Ranked, void, undefined> {
  const { weights = defaultWeights, allowed, muted } = options
  const { count, previous, next, thread, question } = collection
  const words = wordScores(collection, muted ? postings.map((posting) => ({ ...posting, passages: Array.from(posting.passages).filter((at) => !muted(at)) })) : postings)
  const own = meanings && relative(audible(meanings.own, muted))
  const pair = meanings && relative(audible(meanings.pair, muted))
  const first = new Float32Array(count)
  for (let at = 0; at < count; at += 1) {
    first[at] = weights.words * (words.own[at] ?? 0) + weights.wordsOfPair * (words.pair[at] ?? 0)
      + weights.meaning * (own?.[at] ?? 0) + weights.meaningOfPair * (pair?.[at] ?? 0)
  }
  const threads = threadScores(collection, first)
  const most = highest(weights, meanings !== undefined)
  const scores = new Float64Array(count)
  const candidates: number[] = []
  for (let at = 0; at < count; at += 1) {
    const alone = first[at] ?? 0
    const before = scoreAt(first, previous[at])
    const after = scoreAt(first, next[at])
    if (alone + before + after === 0 || (allowed && !allowed(at))) continue
    const of = thread[at] ?? 0
    scores[at] = alone + weights.previous * before + weights.next * after + weights.thread * (threads[of] ?? 0)
      + weights.wordsOfThread * (words.thread[of] ?? 0) - weights.question * (question[at] ?? 0)
    candidates.push(at)
  }
  for (const at of bestFirst(candidates, scores)) {
    yield {
      at,
      score: Math.max(0, (scores[at] ?? 0) / most),
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
    }
  }
}

function audible(scores: Float32Array, muted: RankingOptions['muted']): Float32Array {
  const kept = scores.slice()
  if (muted) for (let at = 0; at < kept.length; at += 1) if (muted(at)) kept[at] = 0
  return kept
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

/** From the best on; of equals, the one that was said first. A heap: to begin costs one look at each, and each one that is taken little. */
function* bestFirst(heap: number[], scores: Float64Array): Generator<number, void, undefined> {
  const better = (a: number, b: number) => {
    const difference = (scores[a] ?? 0) - (scores[b] ?? 0)
    return difference > 0 || (difference === 0 && a < b)
  }
  const sink = (from: number) => {
    for (let place = from; ;) {
      const left = 2 * place + 1
      let best = place
      if (left < heap.length && better(heap[left] ?? 0, heap[best] ?? 0)) best = left
      if (left + 1 < heap.length && better(heap[left + 1] ?? 0, heap[best] ?? 0)) best = left + 1
      if (best === place) return
      const moved = heap[place] ?? 0
      heap[place] = heap[best] ?? 0
      heap[best] = moved
      place = best
    }
  }
  for (let place = (heap.length >> 1) - 1; place >= 0; place -= 1) sink(place)
  for (let top = heap[0]; top !== undefined; top = heap[0]) {
    const last = heap.pop()
    if (heap.length > 0 && last !== undefined) {
      heap[0] = last
      sink(0)
    }
    yield top
  }
}
