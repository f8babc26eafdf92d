import type { Posting } from '../../src/recall/rank/bm25.ts'
import { defaultWeights, rank, weightsOfWords, type Weights } from '../../src/recall/rank/rank.ts'
import { estimateTokens } from '../../src/prompt/tokens.ts'
import type { Conversation } from './conversations.ts'
import type { Kind } from './vectors.ts'

/**
 * How turns are ranked. "Plain" compares the turn alone; "neighbors": the four nearest vectors, each with the turns beside it; "fused, wasm":
 * with the vectors of the engine in WebAssembly.
 */
export type Way = 'plain words' | 'plain vectors' | 'neighbors' | 'words' | 'fused, wasm' | 'fused'

export interface Evaluated extends Conversation {
  /** Of each question, its cosines with the turns: by vectors of the words, and by those of all pieces alike. */
  cosines: Record<Kind, Float32Array[]>
}

export interface Result {
  category: string
  /** Which share of the turns that answer the question is among the first 5, 10 and 20. */
  at5: number
  at10: number
  at20: number
  /** The tokens of the first ten. */
  tokens: number
}

/** Words or vectors of the turn alone: what a search would be without the rest. */
const alone: Weights = {
  words: 1, wordsOfPair: 0, meaning: 1, meaningOfPair: 0, previous: 0, next: 0, thread: 0, wordsOfThread: 0, length: 0, time: 0, question: 0,
}

export function rankingOf({ questions, cosines }: Evaluated, at: number, way: Way, weights?: Weights): {
  postings: readonly Posting[]
  cosines: Float32Array | undefined
  options: Omit<Parameters<typeof rank>[3], 'limit'>
} {
  const question = questions[at]
  const ofVectors = way === 'plain vectors' || way === 'neighbors'
  const isPlain = ofVectors || way === 'plain words'
  const chosen = isPlain ? alone : (weights ?? (way === 'words' ? weightsOfWords : defaultWeights))
  return {
    postings: ofVectors ? [] : (question?.postings ?? []),
    cosines: way === 'words' || way === 'plain words' ? undefined : cosines[way === 'fused' ? 'words' : 'pieces'][at],
    options: { weights: chosen, terms: ofVectors ? 0 : (question?.terms ?? 0), ...(!isPlain && question && { times: question.times }) },
  }
}

export function evaluate(conversation: Evaluated, way: Way, weights?: Weights): Result[] {
  const { collection, questions, texts } = conversation
  return questions.map(({ category, evidence, named }, at) => {
    const { postings, cosines, options } = rankingOf(conversation, at, way, weights)
    const ranked = rank(collection, postings, cosines, { ...options, limit: 20 }).map((one) => one.at)
    const found = way === 'neighbors' ? withNeighbors(conversation, ranked.slice(0, 4)) : ranked
    const share = (most: number) => evidence.filter((turn) => found.slice(0, most).includes(turn)).length / named
    const tokens = found.slice(0, way === 'neighbors' ? 12 : 10).reduce((sum, turn) => sum + estimateTokens(texts[turn] ?? ''), 0)
    return { category, at5: share(5), at10: share(way === 'neighbors' ? 12 : 10), at20: share(20), tokens }
  })
}

function withNeighbors({ collection: { previous, next } }: Evaluated, turns: readonly number[]): number[] {
  return [...new Set(turns.flatMap((at) => [at, previous[at] ?? -1, next[at] ?? -1]))].filter((at) => at >= 0)
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / (values.length || 1)
}

/** Within which bounds the mean is in 95 of 100 sets of questions that are drawn from these, with a fixed seed. */
export function interval(values: readonly number[]): [low: number, high: number] {
  let state = 1
  const chance = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647
  const means = Array.from({ length: 1_000 }, () => mean(values.map(() => values[Math.floor(chance() * values.length)] ?? 0))).toSorted((a, b) => a - b)
  return [means[24] ?? 0, means[974] ?? 0]
}
