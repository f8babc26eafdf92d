import { checkNames, refused } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import { isObject } from '../../base/json.ts'
import type { ScorerLike, ScorerRun } from '../contract.ts'
import { questionOf, textOf } from '../messages.ts'
import type { FunctionScore, ScorerFunction } from './data.ts'

/** The mean that the scores of a scorer must have: at least a number, or a range. */
export type Threshold = number | { min?: number; max?: number }

/** A scorer of an evaluation, alone or with the mean that it must reach. */
export type EvalScorer = ScorerLike | ScorerFunction | { scorer: ScorerLike | ScorerFunction; threshold: Threshold }

/** Scorers of steps of a workflow, by the ids of the steps. Where a step runs several times in a case, the score is the mean. */
export type EvalStepScorers = Readonly<Record<string, readonly EvalScorer[]>>

/** Scorers by what they look at, where that is not the input and the output of the target alone. */
export interface EvalScorerGroups {
  /** The answers of the agent. */
  agent?: readonly EvalScorer[]
  /** The result of the workflow. */
  workflow?: readonly EvalScorer[]
  /** Steps of the workflow. */
  steps?: EvalStepScorers
  /** The tool calls of the agent, or the steps of the workflow, as a list of `TrajectoryStep`. */
  trajectory?: readonly EvalScorer[]
}

/** A scorer with what it looks at. */
export interface ReadScorer {
  /** Names its scores in the result: its id; of a step, with the id of the step before it. */
  key: string
  scorer: ScorerLike
  threshold?: Threshold
  isGate: boolean
  looksAt: 'target' | 'trajectory' | { step: string }
}

/** The scorers of an evaluation, checked. `target` is what they score. */
export function readScorers(scorers: unknown, gates: unknown, target: 'agent' | 'workflow' | 'function', of = ''): ReadScorer[] {
  if (!Array.isArray(gates)) throw refused(`${of}gates`, 'a list of scorers')
  const read: ReadScorer[] = [
    ...(Array.isArray(scorers) ? readList(scorers, `${of}scorers`, 'target') : readGroups(scorers, target)),
    ...gates.map((entry: unknown, index): ReadScorer => {
      const scorer = toScorer(entry, `${of}gates[${index}]`)
      return { key: scorer.id, scorer, isGate: true, looksAt: lookOf(scorer) }
    }),
  ]
  if (read.length === 0) throw refused('scorers', 'a list with at least one scorer')
  const keys = new Set<string>()
  for (const { key } of read) {
    if (keys.has(key)) throw refused(`scorer '${key}'`, 'in the lists once')
    keys.add(key)
  }
  return read
}

function readGroups(groups: unknown, target: 'agent' | 'workflow' | 'function'): ReadScorer[] {
  if (!isObject(groups))
    throw refused('scorers', 'a list of scorers, or lists by what they look at: { agent, workflow, steps, trajectory }')
  const known = { agent: ['agent', 'trajectory'], workflow: ['workflow', 'steps', 'trajectory'], function: [] }[target]
  if (known.length === 0) throw refused('scorers', 'a list: the target is a function, which has no steps')
  checkNames('scorers', groups, known)
  const listOf = (name: string) => {
    const list = groups[name] ?? []
    if (!Array.isArray(list)) throw refused(`scorers.${name}`, 'a list of scorers')
    return list as unknown[]
  }
  const { steps = {} } = groups
  if (!isObject(steps)) throw refused('scorers.steps', 'lists of scorers by the ids of steps')
  return [
    ...readList(listOf(target), `scorers.${target}`, 'target'),
    ...readList(listOf('trajectory'), 'scorers.trajectory', 'trajectory'),
    ...Object.entries(steps).flatMap(([step, list]) => {
      if (!Array.isArray(list)) throw refused(`scorers.steps.${step}`, 'a list of scorers')
      return readList(list, `scorers.steps.${step}`, { step })
    }),
  ]
}

function readList(list: readonly unknown[], of: string, looksAt: ReadScorer['looksAt']): ReadScorer[] {
  return list.map((entry, index) => {
    const place = `${of}[${index}]`
    const read = readEntry(entry, place)
    const { id, type } = read.scorer
    if (typeof looksAt === 'object' && (type === 'agent' || type === 'trajectory'))
      throw refused(place, 'a scorer of any values, or with schemas: a step has no messages')
    const key = typeof looksAt === 'object' ? `${looksAt.step}.${id}` : id
    return { ...read, key, isGate: false, looksAt: looksAt === 'target' ? lookOf(read.scorer) : looksAt }
  })
}

function lookOf({ type }: ScorerLike): ReadScorer['looksAt'] {
  return type === 'trajectory' ? 'trajectory' : 'target'
}

function readEntry(entry: unknown, place: string): Pick<ReadScorer, 'scorer' | 'threshold'> {
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

export function toScorer(value: unknown, place: string): ScorerLike {
  if (typeof value === 'function') return scorerOf(value as ScorerFunction, value.name === '' ? place : value.name)
  if (isObject(value) && typeof value.id === 'string' && typeof value.run === 'function') return value as object as ScorerLike
  throw refused(place, 'a scorer of createScorer(), or a function of { input, output, expected }')
}

export function isWithin(mean: number, threshold: Threshold): boolean {
  const { min = -Infinity, max = Infinity } = typeof threshold === 'number' ? { min: threshold } : threshold
  return mean >= min && mean <= max
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
