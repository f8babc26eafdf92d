import { Agent } from '../../agent/agent.ts'
import { checkNames, checkWhole } from '../../base/arguments.ts'
import { describe, isHeedError } from '../../base/errors.ts'
import { linkAbort } from '../../base/promises.ts'
import type { Message } from '../../message/message.ts'
import type { AgentInput } from '../../message/read/input.ts'
import { checkedResult } from '../checked-result.ts'
import type { RunMetrics, ScorerLike, ScorerResult, ScorerRun } from '../contract.ts'
import { trajectoryOf } from '../messages.ts'
import { isEvalTurn, readItems, type EvalData, type EvalItem, type EvalTurn, type ScorerFunction } from './data.ts'
import { isWithin, readScorers, type EvalScorer, type EvalScorerGroups, type ReadScorer, type Threshold } from './eval-scorers.ts'
import { isWorkflow, targetOf, type EvalTarget, type TargetOptions, type TargetRun } from './target.ts'

/** What is evaluated, on which cases, by which scorers. */
export interface RunEvalsOptions<Input = AgentInput, Output = unknown> {
  target: EvalTarget<Input, Output>
  data: EvalData<Input>
  /** A list, or lists by what they look at. */
  scorers: readonly EvalScorer[] | EvalScorerGroups
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
  /** Where turns have scorers of their own: all turns of the conversation. */
  turns?: EvaluatedTurn[]
}

/** A turn of a conversation, as its own scorers scored it. */
export interface EvaluatedTurn extends Pick<EvaluatedItem, 'scores' | 'reasons' | 'notScorable' | 'errors' | 'runId' | 'output'> {
  /** Its gates that it missed. */
  missed: string[]
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
  const { target } = options
  const kind = target instanceof Agent ? 'agent' : isWorkflow(target) ? 'workflow' : 'function'
  const scorers = readScorers(options.scorers, options.gates ?? [], kind)
  const run = targetOf(target, options.targetOptions)
  const items = await readItems(options.data)
  const turns = items.flatMap(turnsOf)
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
  return summarize(done, scorers, turns.some(({ isGate }) => isGate))
}

interface Evaluation {
  item: EvalItem<unknown> & { id: string }
  trial: number
  run: ReturnType<typeof targetOf>
  scorers: readonly ReadScorer[]
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
  const { runId, metrics, output, turns } = ran
  Object.assign(evaluated, { output, ...(runId === undefined ? {} : { runId }), ...(metrics ? { metrics } : {}) })
  for (const one of scorers) {
    signal.throwIfAborted()
    await scoreItem(evaluated, one, item, ran, signal)
  }
  if (turns && item.turns?.some(isEvalTurn)) evaluated.turns = await evaluateTurns(item, turns, signal)
  return evaluated
}

/** The turns of a conversation, each by its own scorers and gates. */
async function evaluateTurns(item: EvalItem<unknown>, runs: readonly TargetRun[], signal: AbortSignal): Promise<EvaluatedTurn[]> {
  const turns: EvaluatedTurn[] = []
  for (const [index, ran] of runs.entries()) {
    const given = item.turns?.[index]
    const turn: Partial<EvalTurn> = given !== undefined && isEvalTurn(given) ? given : {}
    const { output, runId } = ran
    const found: EvaluatedTurn = {
      output, ...(runId === undefined ? {} : { runId }), scores: {}, reasons: {}, notScorable: {}, errors: {}, missed: [],
    }
    for (const one of scorersOfTurn(turn, '')) {
      signal.throwIfAborted()
      await scoreItem(found, one, { ...turn, ...(item.requestContext ? { requestContext: item.requestContext } : {}) }, ran, signal)
      if (one.isGate && found.scores[one.key] !== 1) found.missed.push(one.key)
    }
    turns.push(found)
  }
  return turns
}

/** The scorers of the turns of a case, checked. */
function turnsOf({ turns = [], id }: EvalItem<unknown>): ReadScorer[] {
  return turns.flatMap((turn, index) => (isEvalTurn(turn) ? scorersOfTurn(turn, `turns[${index}] of case '${id}': `) : []))
}

function scorersOfTurn({ scorers = [], gates = [] }: Partial<EvalTurn>, place: string): ReadScorer[] {
  return scorers.length + gates.length === 0 ? [] : readScorers(scorers, gates, 'agent', place)
}

type Expected = Pick<EvalItem<unknown>, 'groundTruth' | 'expectedTrajectory' | 'requestContext'>
type Scores = Pick<EvaluatedItem, 'scores' | 'reasons' | 'notScorable' | 'errors'>

async function scoreItem(
  found: Scores, { key, scorer, looksAt }: ReadScorer, expected: Expected, ran: TargetRun, abortSignal: AbortSignal,
): Promise<void> {
  const { groundTruth, expectedTrajectory, requestContext } = expected
  const { runId, metrics } = ran
  const given = {
    ...(groundTruth === undefined ? {} : { groundTruth }), ...(expectedTrajectory === undefined ? {} : { expectedTrajectory }),
    ...(requestContext === undefined ? {} : { requestContext }), ...(runId === undefined ? {} : { runId }), ...(metrics ? { metrics } : {}),
    abortSignal,
  }
  const score = async (pair: { input: unknown; output: unknown }) => {
    return checkedResult(scorer.id, await scorer.run({ ...given, ...pair } as ScorerRun<never, never>))
  }
  try {
    const results: ScorerResult[] = []
    for (const pair of pairsOf(ran, looksAt)) results.push(await score(pair))
    take(found, key, results)
  } catch (error) {
    found.errors[key] = failureOf(error)
  }
}

/** What a scorer gets of a run: one pair of input and output, or that of each time that a step ran. */
function pairsOf({ input, output, trajectory }: TargetRun, looksAt: ReadScorer['looksAt']): Array<{ input: unknown; output: unknown }> {
  if (looksAt === 'target') return [{ input, output }]
  if (looksAt === 'trajectory') return [{ input, output: trajectory ?? trajectoryOf(output as Message[]) }]
  return (trajectory ?? []).filter(({ name, success }) => name === looksAt.step && success)
    .map(({ toolArgs, toolResult }) => ({ input: toolArgs, output: toolResult }))
}

function take(found: Scores, key: string, results: readonly ScorerResult[]): void {
  const scored = results.filter((result) => result.notScorable === undefined)
  const lowest = scored.toSorted((one, other) => one.score - other.score)[0]
  if (!lowest) {
    found.notScorable[key] = results.length === 0 ? 'The step did not run.' : (results[0]?.notScorable?.reason ?? '')
    return
  }
  found.scores[key] = scored.reduce((sum, { score }) => sum + score, 0) / scored.length
  if (lowest.reason !== undefined) found.reasons[key] = lowest.reason
}

function failureOf(error: unknown): { code?: string; message: string } {
  return { ...(isHeedError(error) ? { code: error.code } : {}), message: describe(error) }
}

function hasFailed({ errors, turns = [] }: EvaluatedItem): boolean {
  return [errors, ...turns.map((turn) => turn.errors)].some((found) => Object.keys(found).length > 0)
}

function summarize(items: EvaluatedItem[], scorers: readonly ReadScorer[], hasTurnGates: boolean): EvalResult {
  const scores: Record<string, number> = {}
  const judged = { thresholds: [] as ThresholdResult[], gates: [] as ThresholdResult[] }
  for (const { key: id, threshold, isGate } of scorers) {
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
  const failedItems = items.filter(hasFailed).length
  const notScorable = items.filter((item) => Object.keys(item.notScorable).length > 0).length
  const asked = [...judged.gates, ...judged.thresholds]
  const turns = items.flatMap((item) => item.turns ?? [])
  const missed = failedItems > 0 || asked.some(({ passed }) => !passed) || turns.some((turn) => turn.missed.length > 0)
  const verdict = missed ? 'failed' : asked.length > 0 || hasTurnGates ? 'passed' : 'scored'
  return { scores, items, summary: { totalItems: items.length, failedItems, notScorable }, ...judged, verdict }
}
