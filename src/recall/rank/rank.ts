import { bestFirst } from './best-first.ts'
import { bm25Scores, scaleToBest, type Collection, type Posting } from './bm25.ts'
import { sameQuestion } from './copies.ts'
import { forms } from '../text/form.ts'
import { nearness, type NamedTime } from '../text/times.ts'
import { countOf, states, worthOf, type Worth } from './worth.ts'

/** How much each reason counts. The values were chosen on conversations: `npm run bench:recall` measures them and others. */
export interface Weights {
  /** Terms that the passage shares with the question. */
  words: number
  /** Terms that the passage and the one before it share with the question. */
  wordsOfPair: number
  /** Cosine of the passage's vector and the question's. */
  meaning: number
  /** The mean of that and of the cosine of the passage before it. */
  meaningOfPair: number
  /** The score of the passage before it, and of the one after it. */
  previous: number
  next: number
  /** The mean score of the best passages of its session: the part of its thread that it belongs to. */
  thread: number
  /** Terms that its whole session shares with the question. */
  wordsOfThread: number
  /** The number of its terms: a short passage mostly says little. */
  length: number
  /** How near it was written to a time that the question names, or 1 where it mentions that time. */
  time: number
  /** Subtracted from a passage that is, or ends with, a question or a request. */
  question: number
}

export const defaultWeights: Weights = {
  words: 0.1,
  wordsOfPair: 0.9,
  meaning: 0.85,
  meaningOfPair: 0.15,
  previous: 0.02,
  next: 0.1,
  thread: 0.25,
  wordsOfThread: 0.3,
  length: 0.6,
  time: 1.75,
  question: 0.4,
}

/** The weights of a question without a vector. */
export const weightsOfWords: Weights = {
  ...defaultWeights,
  words: 0.5,
  wordsOfPair: 0.7,
  previous: 0.08,
  next: 0.12,
  thread: 0.05,
  wordsOfThread: 0.4,
  length: 0.5,
  question: 0.25,
}

export interface Ranked {
  /** The number of the passage. */
  at: number
  /** Between 0 and 1; 1 when every reason has its highest value. */
  score: number
  reasons: Reasons
}

/** The value of each reason before its weight: 1 is the best of all passages. `question`: 1 for a passage that asks, or answers nothing. */
export type Reasons = Record<keyof Weights, number>

interface RankingOptions {
  weights?: Weights
  /** The number of terms of the question, also those that no passage contains. Defaults to the number of postings. */
  terms?: number
  /** The times that the question names. */
  times?: readonly NamedTime[]
  /** False for passages that must not be results. They still count as neighbors. */
  allowed?: (at: number) => boolean
  /** True for passages whose content must not count at all, such as the question itself, which would be its own best result. */
  ignored?: (at: number) => boolean
  /** What `worthOf` returns for the collection and the ignored passages, where the caller has computed it. */
  worth?: Worth
}

/** The number of best passages that make up the score of a session. */
const bestOfSession = 3
/** A passage with this many terms is long. */
const longPassage = 31

/** The number of best passages that `confidence` reads. */
export const judgedForConfidence = 10

/**
 * The `limit` best passages for a question, best first. Passages without any reason are left out. `cosines`: of each passage's vector with
 * the question's; 0 where it has none.
 */
export function rank(
  collection: Collection, postings: readonly Posting[], cosines: Float32Array | undefined, options: RankingOptions & { limit: number },
): Ranked[] {
  const best: Ranked[] = []
  for (const one of ranking(collection, postings, cosines, options)) {
    if (best.length >= options.limit) break
    best.push(one)
  }
  return best
}

/** Like `rank`, without a limit: all scores are computed first, and the passages are sorted only as far as the caller reads. */
export function* ranking(
  collection: Collection, postings: readonly Posting[], cosines: Float32Array | undefined, options: RankingOptions = {},
): Generator<Ranked, void, undefined> {
  const { session, form, length } = collection
  const { scores, candidates, most, first, mostAlone, words, own, pair, sessions, times } = scoresOf(collection, postings, cosines, options)
  for (const at of bestFirst(candidates, scores)) {
    const of = session[at] ?? 0
    yield {
      at,
      score: Math.max(0, (scores[at] ?? 0) / most),
      reasons: {
        words: words.own[at] ?? 0,
        wordsOfPair: words.pair[at] ?? 0,
        meaning: own?.[at] ?? 0,
        meaningOfPair: pair?.[at] ?? 0,
        previous: Math.min(1, scoreAt(first, collection.previous[at]) / mostAlone),
        next: Math.min(1, scoreAt(first, collection.next[at]) / mostAlone),
        thread: sessions[of] ?? 0,
        wordsOfThread: words.session[of] ?? 0,
        length: lengthScore(length[at]),
        time: times?.[at] ?? 0,
        question: asks(form[at]),
      },
    }
  }
}

/** The scores of all passages, those that may be results, and what the scores consist of. `most`: the highest possible score. */
function scoresOf(
  collection: Collection, postings: readonly Posting[], cosines: Float32Array | undefined, options: RankingOptions,
): Scores {
  const { allowed, ignored } = options
  const { count, previous, next, session, form, length } = collection
  const worth = options.worth ?? worthOf(collection, ignored)
  const counted = ignored ? postings.map((posting) => withoutIgnoredPassages(posting, ignored)) : postings
  const words = bm25Scores(collection, counted, worth, options.terms)
  const weights = weightsFor(options.weights ?? (cosines ? defaultWeights : weightsOfWords), cosines ? words.share : 1)
  const alike = cosines && byWorth(cosines, worth)
  const pair = alike && scaleToBest(withPrevious(alike, previous))
  const own = alike && scaleToBest(alike)
  const first = new Float32Array(count)
  for (let at = 0; at < count; at += 1) {
    first[at] = weights.words * (words.own[at] as number) + weights.wordsOfPair * (words.pair[at] as number)
      + (own && pair ? weights.meaning * (own[at] as number) + weights.meaningOfPair * (pair[at] as number) : 0)
  }
  const sessions = sessionScores(collection, first, worth)
  const times = options.times?.length ? timeScores(collection, postings, options.times) : undefined
  const scores = new Float64Array(count)
  const candidates = new Int32Array(count)
  let found = 0
  for (let at = 0; at < count; at += 1) {
    const alone = first[at] as number
    const before = scoreAt(first, previous[at])
    const after = scoreAt(first, next[at])
    if (alone + before + after === 0 || (allowed && !allowed(at))) continue
    const of = session[at] as number
    scores[at] = alone * (states(form[at]) ? 1 : withoutStatement) + weights.previous * before + weights.next * after
      + weights.thread * (sessions[of] as number) + weights.wordsOfThread * (words.session[of] as number)
      + weights.length * lengthScore(length[at]) + (times ? weights.time * (times[at] as number) : 0) - weights.question * asks(form[at])
    candidates[found] = at
    found += 1
  }
  const most = highestScore(weights, cosines !== undefined, times !== undefined)
  const mostAlone = highestAlone(weights, cosines !== undefined) || 1
  return { scores, candidates: candidates.subarray(0, found), most, first, mostAlone, words, own, pair, sessions, times }
}

interface Scores {
  scores: Float64Array
  candidates: Int32Array
  most: number
  /** Of each passage by itself, and the highest that is possible. */
  first: Float32Array
  mostAlone: number
  words: ReturnType<typeof bm25Scores>
  own: Float32Array | undefined
  pair: Float32Array | undefined
  sessions: Float32Array
  times: Float32Array | undefined
}

function byWorth(cosines: Float32Array, { of }: Worth): Float32Array {
  const alike = new Float32Array(cosines.length)
  for (let at = 0; at < alike.length; at += 1) alike[at] = (cosines[at] as number) * (of[at] as number)
  return alike
}

/** How much of its own score a passage keeps as a result that only asks, or answers nothing: it has the words of a fact, and no fact. */
const withoutStatement = 0.8
/** 1 for a passage that is, or ends with, a question, a request or an answer without content. */
function asks(form: number | undefined): number {
  return form === forms.statement ? 0 : 1
}

/** Where the best passage contains a smaller share of the question, terms count less beside meaning. Chosen as the weights were. */
const enoughOfQuestion = 0.25

/** The weights for a question of which the best passage contains this share: a common term alone says little about the topic. */
function weightsFor(weights: Weights, share: number): Weights {
  const certainty = Math.min(1, share / enoughOfQuestion) ** 2
  if (certainty === 1) return weights
  const { words, wordsOfPair, wordsOfThread } = weights
  return { ...weights, words: words * certainty, wordsOfPair: wordsOfPair * certainty, wordsOfThread: wordsOfThread * certainty }
}

/**
 * A test for passages that only repeat a question with so many terms: they consist of nearly its terms, and are questions themselves or,
 * as `isSame` knows, the same text. Such a passage would be the best result for the question, and answers nothing.
 */
export function isRepetition(
  { count, length, form }: Collection, terms: number, postings: readonly Posting[], isSame: (at: number) => boolean,
): (at: number) => boolean {
  const shared = new Uint16Array(count)
  for (const { passages } of postings) {
    for (let n = 0; n < passages.length; n += 1) {
      const at = passages[n] ?? 0
      shared[at] = (shared[at] ?? 0) + 1
    }
  }
  return (at) => {
    const both = shared[at] ?? 0
    if (both === 0 || both / (terms + (length[at] ?? 0) - both) < sameQuestion) return false
    return asks(form[at]) === 1 || isSame(at)
  }
}

function withoutIgnoredPassages(posting: Posting, ignored: (at: number) => boolean): Posting {
  return { ...posting, passages: Array.from(posting.passages).filter((at) => !ignored(at)) }
}

/** The mean cosine of each passage and the one before it, which it may refer to; its own where there is none with a vector. */
function withPrevious(cosines: Float32Array, previous: ArrayLike<number>): Float32Array {
  const means = new Float32Array(cosines.length)
  for (let at = 0; at < means.length; at += 1) {
    const own = cosines[at] as number
    const before = scoreAt(cosines, previous[at])
    means[at] = own === 0 || before === 0 ? own : (own + before) / 2
  }
  return means
}

function scoreAt(scores: Float32Array, at: number | undefined): number {
  return at === undefined || at < 0 ? 0 : (scores[at] ?? 0)
}

/** The mean of each session's best scores, scaled to 0 for the worst session and 1 for the best. */
function sessionScores({ count, session, sessions }: Collection, scores: Float32Array, worth: Worth): Float32Array {
  const top = new Float32Array(sessions * bestOfSession)
  const sizes = new Uint8Array(sessions)
  for (let at = 0; at < count; at += 1) {
    if (worth.of[at] === 0) continue
    const of = session[at] ?? 0
    if ((sizes[of] ?? 0) < bestOfSession) sizes[of] = (sizes[of] ?? 0) + 1
    let score = scores[at] ?? 0
    for (let slot = of * bestOfSession; slot < (of + 1) * bestOfSession; slot += 1) {
      const current = top[slot] ?? 0
      if (score <= current) continue
      top[slot] = score
      score = current
    }
  }
  const means = new Float32Array(sessions)
  for (let of = 0; of < sessions; of += 1) {
    let sum = 0
    for (let slot = of * bestOfSession; slot < (of + 1) * bestOfSession; slot += 1) sum += top[slot] ?? 0
    means[of] = sum / (sizes[of] || 1)
  }
  const low = means.reduce((least, mean, of) => (worth.hasSession[of] === 1 ? Math.min(least, mean) : least), Number.POSITIVE_INFINITY)
  const high = means.reduce((most, mean) => Math.max(most, mean), 0)
  return means.map((mean) => (high > low ? Math.max(0, mean - low) / (high - low) : 0))
}

/** How near each passage is to the times of the question: 1 where it was written then, or mentions one of them in the same words. */
function timeScores({ count, createdAt }: Collection, postings: readonly Posting[], times: readonly NamedTime[]): Float32Array {
  const spans = times.flatMap((one) => one.spans)
  const scores = new Float32Array(count)
  for (let at = 0; at < count; at += 1) scores[at] = nearness(createdAt[at] as number, spans)
  for (const { terms } of times) {
    const named = postings.filter(({ term }) => terms.includes(term))
    if (named.length < 2 || named.length < terms.length - 1) continue
    const shared = new Map<number, number>()
    for (const { passages } of named) for (const at of Array.from(passages)) shared.set(at, (shared.get(at) ?? 0) + 1)
    // A message seldom names the year.
    for (const [at, both] of shared) if (both >= Math.max(2, terms.length - 1)) scores[at] = 1
  }
  return scores
}

/** From 0 to 1: half of a long passage has most of its value. */
function lengthScore(terms = 0): number {
  return lengthScores[Math.min(terms, longPassage)] as number
}
const lengthScores = Float64Array.from({ length: longPassage + 1 }, (_, terms) => Math.log2(1 + terms) / Math.log2(1 + longPassage))

/** The score of a passage for which every reason has its highest value. */
function highestScore(weights: Weights, withMeaning: boolean, withTime: boolean): number {
  const { previous, next, thread, wordsOfThread, length, time } = weights
  return highestAlone(weights, withMeaning) * (1 + previous + next) + thread + wordsOfThread + length + (withTime ? time : 0) || 1
}

/** The same for its own words and meaning alone. */
function highestAlone({ words, wordsOfPair, meaning, meaningOfPair }: Weights, withMeaning: boolean): number {
  return words + wordsOfPair + (withMeaning ? meaning + meaningOfPair : 0)
}

/**
 * How likely one of the ranked passages answers the question, between 0 and 1; a rank alone only compares passages with each other. It is
 * the share of the question's terms that the best passages contain, rare terms counting more, or their cosine where that is higher.
 */
export function confidence(
  collection: Collection, terms: number, postings: readonly Posting[], ranked: readonly Ranked[], cosines: Float32Array | undefined,
  worth: Worth = worthOf(collection, undefined),
): number {
  const count = worth.sum
  const unknown = Math.log(1 + count)
  let whole = Math.max(0, terms - postings.length) * unknown
  const shares = new Map<number, number>(ranked.slice(0, judgedForConfidence).map(({ at }) => [at, 0]))
  for (const { passages, count: having = countOf(passages, worth) } of postings) {
    const rarity = having > 0 ? Math.log(1 + count / having) : unknown
    whole += rarity
    for (let n = 0; n < passages.length; n += 1) {
      const at = passages[n] ?? -1
      const share = shares.get(at)
      if (share !== undefined) shares.set(at, share + rarity)
    }
  }
  // A question of terms that nearly every passage contains distinguishes none of them.
  const distinctness = Math.min(1, whole / unknown)
  let best = 0
  for (const [at, share] of shares) best = Math.max(best, whole > 0 ? (share / whole) * distinctness : 0, cosines?.[at] ?? 0)
  return Math.min(1, best)
}
