import { bestFirst } from './best-first.ts'
import { bm25Scores, scaled, type Collection, type Posting } from './bm25.ts'
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
  /** Passages whose content must not count at all, such as the question itself, which would be its own best result. */
  ignored?: ReadonlySet<number>
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
  yield* rankedBy(collection, scoresOf(collection, postings, cosines, options))
}

/** The passages that may be results, best first. */
export function* rankedBy(collection: Collection, scores: Scores): Generator<Ranked, void, undefined> {
  for (const at of bestFirst(scores.candidates, scores.scores)) {
    yield { at, score: Math.max(0, (scores.scores[at] ?? 0) / scores.most), reasons: reasonsOf(collection, scores, at) }
  }
}

/** The value of each reason for a passage. */
export function reasonsOf(
  { session, form, length, previous, next }: Collection, { first, mostAlone, words, meaning, sessions, times }: Scores, at: number,
): Reasons {
  const of = session[at] ?? 0
  return {
    words: words.own[at] ?? 0,
    wordsOfPair: words.pair[at] ?? 0,
    meaning: meaning?.own(at) ?? 0,
    meaningOfPair: meaning?.pair(at) ?? 0,
    previous: Math.min(1, scoreAt(first, previous[at]) / mostAlone),
    next: Math.min(1, scoreAt(first, next[at]) / mostAlone),
    thread: sessions[of] ?? 0,
    wordsOfThread: words.session[of] ?? 0,
    length: lengthScore(length[at]),
    time: times?.[at] ?? 0,
    question: asks(form[at]),
  }
}

/**
 * What each reason adds to the score of a passage, or takes from it: the sum is its score, or below 0. A question also loses a part of
 * what its own words and meaning would add.
 */
export function pointsOf(collection: Collection, scores: Scores, at: number): Reasons {
  const { weights, first, most } = scores
  const reasons = reasonsOf(collection, scores, at)
  const alone = (first[at] ?? 0) * (states(collection.form[at]) ? 0 : 1 - withoutStatement)
  const points = {
    ...reasons,
    previous: scoreAt(first, collection.previous[at]),
    next: scoreAt(first, collection.next[at]),
  }
  for (const name of Object.keys(points) as Array<keyof Reasons>) points[name] = (points[name] * weights[name]) / most
  points.question = -points.question - alone / most
  return points
}

/** The scores of all passages, those that may be results, and what the scores consist of. `most`: the highest possible score. */
export function scoresOf(
  collection: Collection, postings: readonly Posting[], cosines: Float32Array | undefined, options: RankingOptions,
): Scores {
  const { allowed, ignored } = options
  const { count, previous, next, session, form, length } = collection
  const worth = options.worth ?? worthOf(collection, ignored)
  const counted = ignored?.size ? postings.map((posting) => withoutIgnoredPassages(posting, ignored)) : postings
  const words = bm25Scores(collection, counted, worth, options.terms)
  const weights = weightsFor(options.weights ?? (cosines ? defaultWeights : weightsOfWords), cosines ? words.share : 1)
  const meaning = cosines && new Meaning(cosines, worth, previous)
  const first = scoresAlone(words, meaning, weights, count)
  const sessions = sessionScores(collection, first, worth)
  const times = options.times?.length ? timeScores(collection, postings, options.times) : undefined
  const scores = new Float64Array(count)
  const candidates = new Int32Array(count)
  let found = 0
  for (let at = 0; at < count; at += 1) {
    const alone = first[at] as number
    const [placeBefore, placeAfter] = [previous[at] as number, next[at] as number]
    const before = placeBefore < 0 ? 0 : (first[placeBefore] as number)
    const after = placeAfter < 0 ? 0 : (first[placeAfter] as number)
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
  return { scores, candidates: candidates.subarray(0, found), most, first, mostAlone, words, meaning, sessions, times, weights }
}

export interface Scores {
  scores: Float64Array
  candidates: Int32Array
  most: number
  /** Of each passage by itself, and the highest that is possible. */
  first: Float32Array
  mostAlone: number
  words: ReturnType<typeof bm25Scores>
  meaning: Meaning | undefined
  sessions: Float32Array
  times: Float32Array | undefined
  /** As they count for this question. */
  weights: Weights
}

/**
 * The meaning of passages: the cosine of each, by its worth, and the mean of that and of the cosine of the passage before it, which it may
 * refer to: its own where there is none with a vector. The best of each kind has 1. Computed where they are read: lists of them would be
 * written and read again for every passage. Numbers are those of 32 bits, as in the lists.
 */
class Meaning {
  readonly #cosines: Float32Array
  readonly #worth: Float32Array
  readonly #previous: ArrayLike<number>
  readonly #best: number
  readonly #bestPair: number

  constructor(cosines: Float32Array, { of }: Worth, previous: ArrayLike<number>) {
    this.#cosines = cosines
    this.#worth = of
    this.#previous = previous
    let [best, bestPair] = [0, 0]
    for (let at = 0; at < cosines.length; at += 1) {
      const alone = Math.fround((cosines[at] as number) * (of[at] as number))
      const place = previous[at] as number
      const before = place < 0 ? 0 : Math.fround((cosines[place] as number) * (of[place] as number))
      const both = alone === 0 || before === 0 ? alone : Math.fround((alone + before) / 2)
      if (alone > best) best = alone
      if (both > bestPair) bestPair = both
    }
    this.#best = best
    this.#bestPair = bestPair
  }

  own(at: number): number {
    return Math.fround(scaled(this.#alone(at), this.#best))
  }

  pair(at: number): number {
    const place = this.#previous[at] as number
    const [alone, before] = [this.#alone(at), place < 0 ? 0 : this.#alone(place)]
    return Math.fround(scaled(alone === 0 || before === 0 ? alone : Math.fround((alone + before) / 2), this.#bestPair))
  }

  /** The score of each passage by its words and this. */
  writeScores(scores: Float32Array, { own, pair }: ReturnType<typeof bm25Scores>, weights: Weights): void {
    const [cosines, of, previous, best, bestPair] = [this.#cosines, this.#worth, this.#previous, this.#best, this.#bestPair]
    const { words: ofOwn, wordsOfPair: ofPair, meaning, meaningOfPair } = weights
    for (let at = 0; at < scores.length; at += 1) {
      const alone = Math.fround((cosines[at] as number) * (of[at] as number))
      const place = previous[at] as number
      const before = place < 0 ? 0 : Math.fround((cosines[place] as number) * (of[place] as number))
      const both = alone === 0 || before === 0 ? alone : Math.fround((alone + before) / 2)
      scores[at] = ofOwn * (own[at] as number) + ofPair * (pair[at] as number)
        + (meaning * Math.fround(scaled(alone, best)) + meaningOfPair * Math.fround(scaled(both, bestPair)))
    }
  }

  #alone(at: number): number {
    return Math.fround((this.#cosines[at] as number) * (this.#worth[at] as number))
  }
}

/** The score of each passage by its own words and meaning. */
function scoresAlone(words: ReturnType<typeof bm25Scores>, meaning: Meaning | undefined, weights: Weights, count: number): Float32Array {
  const first = new Float32Array(count)
  if (meaning) {
    meaning.writeScores(first, words, weights)
    return first
  }
  const { own, pair } = words
  const { words: ofOwn, wordsOfPair: ofPair } = weights
  for (let at = 0; at < count; at += 1) first[at] = ofOwn * (own[at] as number) + ofPair * (pair[at] as number)
  return first
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
 * The passages that only repeat a question with so many terms: they consist of nearly its terms, and are questions themselves or, as
 * `isSame` knows, the same text. Such a passage would be the best result for the question, and answers nothing.
 */
export function repetitionsOf(
  { count, length, form }: Collection, terms: number, postings: readonly Posting[], isSame: (at: number) => boolean,
): Set<number> {
  const shared = new Uint16Array(count)
  const found = new Set<number>()
  for (const { passages } of postings) for (let n = 0; n < passages.length; n += 1) (shared[passages[n] as number] as number) += 1
  for (const { passages } of postings) {
    for (let n = 0; n < passages.length; n += 1) {
      const at = passages[n] as number
      const both = shared[at] as number
      // Each passage once.
      shared[at] = 0
      if (both === 0 || both / (terms + (length[at] ?? 0) - both) < sameQuestion) continue
      if (asks(form[at]) === 1 || isSame(at)) found.add(at)
    }
  }
  return found
}

function withoutIgnoredPassages(posting: Posting, ignored: ReadonlySet<number>): Posting {
  return { ...posting, passages: Array.from(posting.passages).filter((at) => !ignored.has(at)) }
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
    const of = session[at] as number
    if ((sizes[of] as number) < bestOfSession) (sizes[of] as number) += 1
    let score = scores[at] as number
    const last = (of + 1) * bestOfSession
    if (score <= (top[last - 1] as number)) continue
    for (let slot = last - bestOfSession; slot < last; slot += 1) {
      const current = top[slot] as number
      if (score <= current) continue
      top[slot] = score
      score = current
    }
  }
  const means = new Float32Array(sessions)
  let [low, high] = [Number.POSITIVE_INFINITY, 0]
  for (let of = 0; of < sessions; of += 1) {
    let sum = 0
    for (let slot = of * bestOfSession; slot < (of + 1) * bestOfSession; slot += 1) sum += top[slot] as number
    means[of] = sum / (sizes[of] || 1)
    const mean = means[of] as number
    if (mean > high) high = mean
    if (mean < low && worth.hasSession[of] === 1) low = mean
  }
  for (let of = 0; of < sessions; of += 1) means[of] = high > low ? Math.max(0, (means[of] as number) - low) / (high - low) : 0
  return means
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
  const rarities = postings.map((posting) => rarityOf(posting, worth))
  const unknown = Math.log(1 + worth.sum)
  const whole = sumOfRarities(rarities, terms, worth)
  const shares = new Map<number, number>(ranked.slice(0, judgedForConfidence).map(({ at }) => [at, 0]))
  for (const [nth, { passages }] of postings.entries()) {
    for (let n = 0; n < passages.length; n += 1) {
      const at = passages[n] ?? -1
      const share = shares.get(at)
      if (share !== undefined) shares.set(at, share + (rarities[nth] ?? 0))
    }
  }
  // A question of terms that nearly every passage contains distinguishes none of them.
  const distinctness = Math.min(1, whole / unknown)
  let best = 0
  for (const [at, share] of shares) best = Math.max(best, whole > 0 ? (share / whole) * distinctness : 0, cosines?.[at] ?? 0)
  return Math.min(1, best)
}

/** Which part of the question the term of each posting is, from 0 to 1. */
export function termShares(postings: readonly Posting[], terms: number, worth: Worth): number[] {
  const rarities = postings.map((posting) => rarityOf(posting, worth))
  const whole = sumOfRarities(rarities, terms, worth) || 1
  return rarities.map((rarity) => rarity / whole)
}

function rarityOf({ passages, count }: Posting, worth: Worth): number {
  const having = count ?? countOf(passages, worth)
  return Math.log(1 + (having > 0 ? worth.sum / having : worth.sum))
}

/** Of a question with so many terms; those that no passage contains are the rarest. */
function sumOfRarities(rarities: readonly number[], terms: number, worth: Worth): number {
  return rarities.reduce((sum, rarity) => sum + rarity, Math.max(0, terms - rarities.length) * Math.log(1 + worth.sum))
}
