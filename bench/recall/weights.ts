import { rank, type Reasons, type Weights } from '../../src/recall/rank/rank.ts'
import { rankingOf, type Evaluated, type Way } from './evaluate.ts'

/*
 * How weights are chosen: a score is a sum of reasons times weights, so that they are fitted to make each turn that answers a question likely
 * among those that do not (the logarithm of its share of all, by gradient ascent). Every question counts the same.
 */

const names: ReadonlyArray<keyof Weights> = [
  'words', 'wordsOfPair', 'meaning', 'meaningOfPair', 'previous', 'next', 'thread', 'wordsOfThread', 'length', 'time', 'question',
]
/** Where the choice begins, and by which the turns are found that are compared. */
const start: Weights = {
  words: 0.5, wordsOfPair: 0.5, meaning: 0.5, meaningOfPair: 0.5, previous: 0.1, next: 0.1, thread: 0.2, wordsOfThread: 0.2, length: 0.2, time: 1, question: 0.1,
}
const compared = 80
const rounds = 50
/** The scores of the fit are this many times those of the ranking: the share of the best turn is near 1 then. */
const scale = 4

interface Example {
  reasons: Float32Array
  count: number
  /** 1 for a turn that answers. */
  answers: Uint8Array
  worth: number
}

export function examplesOf(conversation: Evaluated, way: Way): Example[] {
  return conversation.questions.flatMap((question, at) => {
    const { postings, cosines, options } = rankingOf(conversation, at, way, start)
    const ranked = rank(conversation.collection, postings, cosines, { ...options, limit: compared })
    const evidence = new Set(question.evidence)
    const answers = Uint8Array.from(ranked, (one) => (evidence.has(one.at) ? 1 : 0))
    if (!answers.includes(1)) return []
    const reasons = Float32Array.from(ranked.flatMap((one) => names.map((name) => valueOf(one.reasons, name))))
    return { reasons, count: ranked.length, answers, worth: 1 / question.named }
  })
}

/** A question is subtracted. */
function valueOf(reasons: Reasons, name: keyof Weights): number {
  return name === 'question' ? -reasons[name] : reasons[name]
}

export function fitWeights(examples: readonly Example[]): Weights {
  const size = names.length
  const weights = names.map((name) => start[name] * scale)
  const [mean, square] = [new Float64Array(size), new Float64Array(size)]
  for (let round = 1; round <= rounds; round += 1) {
    const gradient = gradientOf(examples, weights)
    for (let n = 0; n < size; n += 1) {
      // The method of Adam, with steps that become shorter, and without negative weights.
      mean[n] = 0.9 * (mean[n] as number) + 0.1 * (gradient[n] as number)
      square[n] = 0.95 * (square[n] as number) + 0.05 * (gradient[n] as number) ** 2
      const step = (mean[n] as number) / (1 - 0.9 ** round) / (Math.sqrt((square[n] as number) / (1 - 0.95 ** round)) + 1e-9)
      weights[n] = Math.max(0, (weights[n] as number) + 0.4 * (1 - (round - 1) / rounds) * step)
    }
  }
  return Object.fromEntries(names.map((name, n) => [name, (weights[n] ?? 0) / scale])) as unknown as Weights
}

function gradientOf(examples: readonly Example[], weights: readonly number[]): Float64Array {
  const size = weights.length
  const gradient = new Float64Array(size)
  for (const { reasons, count, answers, worth } of examples) {
    const shares = new Float64Array(count)
    for (let row = 0; row < count; row += 1) {
      let sum = 0
      for (let n = 0; n < size; n += 1) sum += (weights[n] as number) * (reasons[row * size + n] as number)
      shares[row] = sum
    }
    const most = Math.max(...shares)
    let others = 1e-9
    for (let row = 0; row < count; row += 1) {
      shares[row] = Math.exp((shares[row] as number) - most)
      if (answers[row] === 0) others += shares[row] as number
    }
    let pulled = 0
    const pulls = new Float64Array(count)
    for (let row = 0; row < count; row += 1) {
      if (answers[row] === 0) continue
      pulls[row] = (1 - (shares[row] as number) / ((shares[row] as number) + others)) * worth
      pulled += pulls[row] as number
    }
    for (let row = 0; row < count; row += 1) {
      const pull = answers[row] === 0 ? (-pulled * (shares[row] as number)) / others : (pulls[row] as number)
      for (let n = 0; n < size; n += 1) gradient[n] = (gradient[n] as number) + (pull * (reasons[row * size + n] as number)) / examples.length
    }
  }
  // Weights that nothing supports stay small.
  for (let n = 0; n < size; n += 1) gradient[n] = (gradient[n] as number) - 0.0001 * (weights[n] as number)
  return gradient
}
