import type { Collection, Posting } from './bm25.ts'
import { pointsOf, reasonsOf, termShares, type Reasons, type Scores } from './rank.ts'
import type { Worth } from './worth.ts'

/** What one reason does to the score of a message. */
export interface ExplainedReason {
  reason: keyof Reasons
  /** From 0 to 1, where 1 is the best of all messages. */
  value: number
  /** What it adds to the score of the message, or takes from it. The points of all reasons make up the score. */
  points: number
  /** The same in a sentence. */
  text: string
  /** Of `words` and `wordsOfPair`: the words of the question that match, those that count most first. */
  words?: ExplainedWord[]
  /** Of `meaning`: the cosine of the vectors of the message and of the question. */
  cosine?: number
}

/** A word of a question that a message has. */
export interface ExplainedWord {
  word: string
  /** Which part of the question it is, from 0 to 1: words that few messages have count more. */
  weight: number
}

/** What each reason says of a message. */
const texts: Record<keyof Reasons, string> = {
  words: 'It has words of the question',
  wordsOfPair: 'It has words of the question together with the message before it',
  meaning: 'It is near in meaning',
  meaningOfPair: 'It is near in meaning together with the message before it',
  previous: 'The message before it fits',
  next: 'The message after it fits',
  thread: 'The messages around it fit',
  wordsOfThread: 'The messages around it have words of the question',
  length: 'It says much: short messages count less',
  time: 'It is from the time that the question names, or mentions it',
  question: 'It asks, or answers nothing, which counts against it',
}
/** The same of the first message of a thread. */
const textsOfFirst: Partial<typeof texts> = {
  wordsOfPair: 'It has words of the question, and no message is before it',
  meaningOfPair: 'It is near in meaning, and no message is before it',
}

interface Asked {
  postings: readonly Posting[]
  cosines: Float32Array | undefined
  /** The number of terms of the question. */
  terms: number
  worth: Worth
  /** By term, the word of the question. */
  words: ReadonlyMap<string, string>
  /** What scores are multiplied with. */
  confidence: number
}

/** What makes up the score of a passage, the largest effect first. */
export function explainPassage(collection: Collection, scores: Scores, asked: Asked, at: number): ExplainedReason[] {
  const [values, points] = [reasonsOf(collection, scores, at), pointsOf(collection, scores, at)]
  const before = collection.previous[at] ?? -1
  const own = wordsIn(asked, [at])
  const pair = before < 0 ? own : wordsIn(asked, [at, before])
  const cosine = asked.cosines?.[at]
  const explain = (reason: keyof Reasons): ExplainedReason => {
    const words = { words: own, wordsOfPair: pair }[String(reason)]
    const named = words?.length ? `: ${words.map(({ word }) => `“${word}”`).join(', ')}` : ''
    const text = (before < 0 && textsOfFirst[reason]) || texts[reason]
    return {
      reason, value: values[reason], points: points[reason] * asked.confidence, text: `${text}${named}.`,
      ...(words && { words }), ...(reason === 'meaning' && cosine !== undefined && { cosine }),
    }
  }
  return (Object.keys(texts) as Array<keyof Reasons>)
    .filter((reason) => points[reason] * asked.confidence !== 0)
    .map(explain)
    .toSorted((a, b) => Math.abs(b.points) - Math.abs(a.points))
}

/** The score that these reasons make up. */
export function scoreOf(reasons: readonly ExplainedReason[]): number {
  return Math.min(1, Math.max(0, reasons.reduce((sum, { points }) => sum + points, 0)))
}

/**
 * The place of a passage among messages, from 1; undefined where it may be no result. `messageOf`: the number of the message of a
 * passage.
 */
export function placeOf({ candidates, scores }: Scores, at: number, messageOf: (at: number) => number): number | undefined {
  if (!candidates.includes(at)) return undefined
  const own = messageOf(at)
  let [place, last] = [1, -1]
  // The passages of a message follow each other.
  for (const other of candidates) {
    const isBetter = (scores[other] as number) > (scores[at] as number) || (scores[other] === scores[at] && other < at)
    if (!isBetter) continue
    const message = messageOf(other)
    if (message !== last && message !== own) place += 1
    last = message
  }
  return place
}

function wordsIn({ postings, words, terms, worth }: Asked, passages: readonly number[]): ExplainedWord[] {
  const shares = termShares(postings, terms, worth)
  return postings
    .map(({ term, passages: having }, n) => ({ having: Array.from(having), word: words.get(term) ?? term, weight: shares[n] ?? 0 }))
    .filter(({ having }) => passages.some((at) => having.includes(at)))
    .map(({ word, weight }) => ({ word, weight }))
    .toSorted((a, b) => b.weight - a.weight)
}
