import { checkNames, checkWhole, refused } from '../../base/arguments.ts'
import { describe, HeedError, isHeedError } from '../../base/errors.ts'
import { isObject } from '../../base/json.ts'
import { linkAbort } from '../../base/promises.ts'
import type { AgentInput } from '../../message/read/input.ts'
import { checkedResult } from '../checked-result.ts'
import type { RunMetrics, ScorerLike, ScorerRun } from '../contract.ts'
import { questionOf, textOf, trajectoryOf } from '../messages.ts'
import type { Message } from '../../message/message.ts'
import { readItems, type EvalData, type EvalItem } from './data.ts'
import { targetOf, type EvalTarget, type TargetOptions, type TargetRun } from './target.ts'

/** A scorer as a function, in the form of `autoevals`: texts go in, and `score: null` means that there is none. */
export type ScorerFunction = (run: { input: string; output: string; expected?: string }) => FunctionScore | Promise<FunctionScore>

/** What a scorer in the form of a function returns. */
export interface FunctionScore {
  name: string
  score: number | null
  metadata?: Record<string, unknown>
}

/** The mean that the scores of a scorer must have: at least a number, or a range. */
export type Threshold = number | { min?: number; max?: number }

/** A scorer of an evaluation, alone or with the mean that it must reach. */
export type EvalScorer = ScorerLike | ScorerFunction | { scorer: ScorerLike | ScorerFunction; threshold: Threshold }

/** What is evaluated, on which cases, by which scorers. */
export interface RunEvalsOptions<Input = AgentInput, Output = unknown> {
  target: EvalTarget<Input, Output>
  data: EvalData<Input>
  scorers: readonly EvalScorer[]
  /** Scorers whose every score must be 1. */
  gates?: ReadonlyArray<ScorerLike | ScorerFunction>
  /** Options of the calls of an agent. */
  targetOptions?: TargetOptions
  /** How many cases run at a time. Defaults to 1. */
  concurrency?: number
  /** How often each case is run. Defaults to 1. */
  trials?: number
  abortSignal?: AbortSignal
  onItemComplete?: (item: EvaluatedItem, progress: { done: number; total: number }) => void
}

/** One case after one trial. */
export interface EvaluatedItem {
  id: string
  /** From 1. */
  trial: number
  runId?: string
  /** Scores by the id of their scorer. */
  scores: Record<string, number>
  reasons: Record<string, string>
  /** Scorers that have no score for this case, with the reason. */
  notScorable: Record<string, string>
  /** What failed: `target`, or a scorer by its id. A failure is no score of 0. */
  errors: Record<string, { code?: string; message: string }>
  output?: unknown
  metrics?: RunMetrics
}

/** Whether the mean of a scorer is within its threshold. */
export interface ThresholdResult {
  scorerId: string
  threshold: Threshold
  mean: number | undefined
  passed: boolean
}

/** What `runEvals` found. It is JSON, if the outputs of the target are. */
export interface EvalResult {
  /** The mean of each scorer. A scorer without a score has none. */
  scores: Record<string, number>
  /** In the order of the data, trials of a case together. */
  items: EvaluatedItem[]
  summary: { totalItems: number; failedItems: number; notScorable: number }
  thresholds: ThresholdResult[]
  gates: ThresholdResult[]
  /** `failed`: a gate or a threshold was missed, or a case failed. `scored`: there was nothing to miss. */
  verdict: 'passed' | 'failed' | 'scored'
}

const optionNames = ['target', 'data', 'scorers', 'gates', 'targetOptions', 'concurrency', 'trials', 'abortSignal', 'onItemComplete']

/** Runs a target on every case and scores what it did. A case that fails is part of the result and does not end the others. */
export async function runEvals<Input = AgentInput, Output = unknown>(options: RunEvalsOptions<Input, Output>): Promise<EvalResult> {
  checkNames('runEvals()', options, optionNames)
  const { concurrency = 1, trials = 1, abortSignal, onItemComplete } = options
  checkWhole('concurrency', concurrency, 1)
  checkWhole('trials', trials, 1)
  const scorers = readScorers(options)
  const run = targetOf(options.target, options.targetOptions)
  const items = await readItems(options.data)
  const work = items.flatMap((item) => Array.from({ length: trials }, (_, trial) => ({ item, trial: trial + 1 })))
  const done: EvaluatedItem[] = []
  let [next, finished] = [0, 0]
  const stop = new AbortController()
  const unlink = linkAbort(stop, abortSignal)
  const worker = async () => {
    while (next < work.length) {
      stop.signal.throwIfAborted()
      const place = next++
      const { item, trial } = work[place]!
      const evaluated = await evaluate({ item, trial, run, scorers, signal: stop.signal })
      stop.signal.throwIfAborted()
      done[place] = evaluated
      onItemComplete?.(evaluated, { done: ++finished, total: work.length })
    }
  }
  try {
    await Promise.all(Array.from({ length: Math.min(concurrency, work.length) }, worker))
  } catch (error) {
    // The other workers stop too.
    stop.abort(error)
    throw error
  } finally {
    unlink()
  }
  return summarize(done, scorers)
}

interface EvalScorers {
  scorer: ScorerLike
  threshold?: Threshold
  isGate: boolean
}

function readScorers({ scorers, gates = [] }: Pick<RunEvalsOptions<never, never>, 'scorers' | 'gates'>): EvalScorers[] {
  if (!Array.isArray(scorers)) throw refused('scorers', 'a list of scorers')
  if (!Array.isArray(gates)) throw refused('gates', 'a list of scorers')
  const read: EvalScorers[] = [
    ...scorers.map((entry: EvalScorer, index) => ({ ...readScorer(entry, `scorers[${index}]`), isGate: false })),
    ...gates.map((entry: ScorerLike | ScorerFunction, index) => ({ scorer: toScorer(entry, `gates[${index}]`), isGate: true })),
  ]
  if (read.length === 0) throw refused('scorers', 'a list with at least one scorer')
  const ids = new Set<string>()
  for (const { scorer: { id } } of read) {
    if (ids.has(id)) throw refused(`scorer '${id}'`, 'in the lists once')
    ids.add(id)
  }
  return read
}

function readScorer(entry: EvalScorer, place: string): Omit<EvalScorers, 'isGate'> {
  if (typeof entry === 'function' || !isObject(entry) || !('threshold' in entry)) return { scorer: toScorer(entry, place) }
  checkNames(place, entry, ['scorer', 'threshold'])
  const { scorer, threshold } = entry as { scorer: unknown; threshold: Threshold }
  const range = typeof threshold === 'number' ? { min: threshold } : threshold
  checkNames(`threshold of ${place}`, range, ['min', 'max'])
  if (!Object.values(range).every((bound) => typeof bound === 'number' && Number.isFinite(bound))) {
    throw refused(`threshold of ${place}`, 'a number, or { min, max }')
  }
  return { scorer: toScorer(scorer, place), threshold }
}

function toScorer(value: unknown, place: string): ScorerLike {
  if (typeof value === 'function') return scorerOf(value as ScorerFunction, value.name === '' ? place : value.name)
  if (isObject(value) && typeof value.id === 'string' && typeof value.run === 'function') return value as object as ScorerLike
  throw refused(place, 'a scorer of createScorer(), or a function of { input, output, expected }')
}

/** A function of the form of `autoevals` as a scorer. */
export function scorerOf(score: ScorerFunction, id: string): ScorerLike {
  return {
    id, name: id, description: `The function ${id}.`, type: 'any', version: '1', better: 'higher',
    run: async ({ input, output, groundTruth, runId = '' }: ScorerRun) => {
      const scored = await score({
        input: questionOf(input), output: textOf(output), ...(groundTruth === undefined ? {} : { expected: textOf(groundTruth) }),
      })
      const { score: number, metadata } = checkedScore(scored, id)
      if (number === null) return { runId, notScorable: { step: 'generateScore' } }
      const reason = metadata?.rationale
      return { runId, score: number, prompts: {}, ...(typeof reason === 'string' ? { reason } : {}) }
    },
  }
}

function checkedScore(scored: unknown, id: string): FunctionScore {
  if (isObject(scored) && (scored.score === null || typeof scored.score === 'number')) return scored as object as FunctionScore
  throw new HeedError('scorer_failed', `The function ${id} returned no { name, score } with a number or null as its score.`, {
    details: { scorerId: id },
  })
}

interface Evaluation {
  item: EvalItem<unknown> & { id: string }
  trial: number
  run: ReturnType<typeof targetOf>
  scorers: readonly EvalScorers[]
  signal: AbortSignal
}

async function evaluate({ item, trial, run, scorers, signal }: Evaluation): Promise<EvaluatedItem> {
  const evaluated: EvaluatedItem = { id: item.id, trial, scores: {}, reasons: {}, notScorable: {}, errors: {} }
  let ran: TargetRun
  try {
    ran = await run(item, signal)
  } catch (error) {
    evaluated.errors.target = failureOf(error)
    return evaluated
  }
  const { runId, metrics, output } = ran
  Object.assign(evaluated, { output, ...(runId === undefined ? {} : { runId }), ...(metrics ? { metrics } : {}) })
  for (const { scorer } of scorers) {
    signal.throwIfAborted()
    await scoreItem(evaluated, scorer, item, ran, signal)
  }
  return evaluated
}

async function scoreItem(
  evaluated: EvaluatedItem, scorer: ScorerLike, item: EvalItem<unknown>, ran: TargetRun, abortSignal: AbortSignal,
): Promise<void> {
  const { groundTruth, requestContext } = item
  const { id } = scorer
  try {
    const result = checkedResult(id, await scorer.run({
      ...ran,
      output: scorer.type === 'trajectory' ? trajectoryOf(ran.output as Message[]) : ran.output,
      ...(groundTruth === undefined ? {} : { groundTruth }),
      ...(requestContext === undefined ? {} : { requestContext }),
      abortSignal,
    } as ScorerRun<never, never>))
    if (result.notScorable) evaluated.notScorable[id] = result.notScorable.reason ?? ''
    else {
      evaluated.scores[id] = result.score
      if (result.reason !== undefined) evaluated.reasons[id] = result.reason
    }
  } catch (error) {
    evaluated.errors[id] = failureOf(error)
  }
}

function failureOf(error: unknown): { code?: string; message: string } {
  return { ...(isHeedError(error) ? { code: error.code } : {}), message: describe(error) }
}

function summarize(items: EvaluatedItem[], scorers: readonly EvalScorers[]): EvalResult {
  const scores: Record<string, number> = {}
  const judged = { thresholds: [] as ThresholdResult[], gates: [] as ThresholdResult[] }
  for (const { scorer: { id }, threshold, isGate } of scorers) {
    const values = items.flatMap((item) => item.scores[id] ?? [])
    const mean = values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length
    if (mean !== undefined) scores[id] = mean
    if (isGate) {
      const passed = values.length > 0 && values.every((one) => one === 1)
      judged.gates.push({ scorerId: id, threshold: { min: 1, max: 1 }, mean, passed })
    } else if (threshold !== undefined) {
      judged.thresholds.push({ scorerId: id, threshold, mean, passed: mean !== undefined && isWithin(mean, threshold) })
    }
  }
  const failedItems = items.filter(({ errors }) => Object.keys(errors).length > 0).length
  const notScorable = items.filter((item) => Object.keys(item.notScorable).length > 0).length
  const asked = [...judged.gates, ...judged.thresholds]
  const missed = failedItems > 0 || asked.some(({ passed }) => !passed)
  const verdict = missed ? 'failed' : asked.length > 0 ? 'passed' : 'scored'
  return { scores, items, summary: { totalItems: items.length, failedItems, notScorable }, ...judged, verdict }
}

function isWithin(mean: number, threshold: Threshold): boolean {
  const { min = -Infinity, max = Infinity } = typeof threshold === 'number' ? { min: threshold } : threshold
  return mean >= min && mean <= max
}
