import { defaultWeights, rank, type Weights } from '../../src/recall/rank/rank.ts'
import type { Conversation } from './conversations.ts'

export type Ways = 'words' | 'vectors' | 'fused'
export interface Evaluated extends Conversation {
  /** Of each question, its cosines with the turns. */
  cosines: Float32Array[]
}

/** Words or vectors of the message alone: what a search would be without the rest. */
const alone: Weights = { words: 1, wordsOfPair: 0, meaning: 1, meaningOfPair: 0, previous: 0, next: 0, thread: 0, wordsOfThread: 0, question: 0 }

/** Which share of the turns that answer it each question finds among its ten best. */
export function recallAt10({ collection, questions, cosines }: Evaluated, way: Ways | 'plain words' | 'plain vectors', weights: Weights = defaultWeights): Array<{ category: number; share: number }> {
  const used = way.startsWith('plain') ? alone : weights
  return questions.map(({ category, evidence, named, terms, postings }, at) => {
    const ranked = rank(collection, way.endsWith('vectors') ? [] : postings, way.endsWith('words') ? undefined : cosines[at], { limit: 10, weights: used, terms: way.endsWith('vectors') ? 0 : terms })
    const found = new Set(ranked.map((one) => one.at))
    return { category, share: evidence.filter((turn) => found.has(turn)).length / named }
  })
}

export function mean(shares: ReadonlyArray<{ share: number }>): number {
  return shares.reduce((sum, { share }) => sum + share, 0) / (shares.length || 1)
}

const steps: Readonly<Record<keyof Weights, readonly number[]>> = {
  words: [0.5, 0.7, 0.9],
  wordsOfPair: [0, 0.15, 0.3],
  meaning: [0.5, 0.7, 0.9],
  meaningOfPair: [0.3, 0.5, 0.7],
  previous: [0.1, 0.2, 0.3],
  next: [0, 0.1, 0.2],
  thread: [0.15, 0.3, 0.45],
  wordsOfThread: [0.1, 0.2, 0.3],
  question: [0, 0.1, 0.2],
}

/** Weights that are best for these conversations: one weight after the other, from a start that prefers nothing. */
export function chooseWeights(conversations: readonly Evaluated[], onStep: () => void): Weights {
  let weights: Weights = { words: 0.9, wordsOfPair: 0, meaning: 0.5, meaningOfPair: 0.3, previous: 0.1, next: 0, thread: 0.15, wordsOfThread: 0.1, question: 0 }
  let best = scoreOf(conversations, weights)
  for (const name of Object.keys(steps) as Array<keyof Weights>) {
    for (const value of steps[name]) {
      if (value === weights[name]) continue
      const tried = { ...weights, [name]: value }
      const score = scoreOf(conversations, tried)
      onStep()
      if (score > best) [best, weights] = [score, tried]
    }
  }
  return weights
}

function scoreOf(conversations: readonly Evaluated[], weights: Weights): number {
  return mean(conversations.flatMap((conversation) => recallAt10(conversation, 'fused', weights)))
}
