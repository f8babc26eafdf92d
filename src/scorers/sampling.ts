import { createHash } from 'node:crypto'
import { checkName, checkNames, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { isObject } from '../base/json.ts'
import type { AgentScorerEntry, AgentScorers, CallScorers, ScoredEnd, ScorerLike, ScorerSampling, ScorerSelection } from './contract.ts'
import { checkFilter, meets, type FilteredRun } from './filter.ts'

/** The names of what selects runs. */
export const selectionNames = ['filter', 'sampling']
const ends: readonly ScoredEnd[] = ['finished', 'failed', 'aborted']

/** A scorer of a run, and the ends of the run that it scores. */
export interface SelectedScorer {
  scorer: ScorerLike
  on: readonly ScoredEnd[]
}

/**
 * The scorers of this run. First the filters are asked; then samples depend on the id of the run alone: the runs of a lower rate are among
 * those of a higher one.
 */
export function selectScorers(scorers: AgentScorers, runId: string, about: FilteredRun): SelectedScorer[] {
  const place = placeOf(runId)
  return Object.values(scorers).flatMap((entry) => {
    if (!entry || !isSelected(entry, place, about)) return []
    const { scorer, on = ['finished'] } = entry
    return [{ scorer, on }]
  })
}

/** The scorers of a call with its entries. An id, and a scorer that is passed, are looked up among those of the agent and the Heed. */
export function scorersOfCall(called: CallScorers, own: AgentScorers, registered: ReadonlyMap<string, ScorerLike>): AgentScorers {
  return Object.fromEntries(Object.entries(called).flatMap(([name, entry]) =>
    entry ? [[name, { ...entry, scorer: knownScorer(entry.scorer, own, registered) }]] : []))
}

/** A scorer of the agent, else of the Heed, by its id. One that is passed must be of the same version. */
export function knownScorer(named: ScorerLike | string, own: AgentScorers, registered: ReadonlyMap<string, ScorerLike>): ScorerLike {
  const id = typeof named === 'string' ? named : named.id
  const scorer = Object.values(own).find((entry) => entry?.scorer.id === id)?.scorer ?? registered.get(id)
  if (scorer && (typeof named === 'string' || named.version === scorer.version)) return scorer
  const which = scorer ? `has another version of scorer '${id}'` : `knows no scorer '${id}'`
  const message = `The Heed ${which}. Another process may score the run: pass the scorer to new Heed({ scorers }), or to the agent.`
  throw new HeedError('unknown_scorer', message, { details: { scorerId: id } })
}

/** Rejects scorers of a call that cannot work. Whether they are known is found out when the run begins. */
export function checkCallScorers(scorers: unknown, of: string): asserts scorers is CallScorers {
  if (!isObject(scorers)) throw refused(`scorers of ${of}`, 'an object of { scorer, sampling } by name')
  const named = Object.entries(scorers).flatMap(([name, entry]) => {
    if (!isObject(entry) || typeof entry.scorer !== 'string') return [[name, entry]]
    checkName(`scorers.${name}.scorer`, entry.scorer)
    return [[name, { ...entry, scorer: { id: entry.scorer, run: () => {} } }]]
  })
  checkScorers(Object.fromEntries(named), `scorers of ${of}`)
}

function isSelected({ filter, sampling }: ScorerSelection, place: number, about: FilteredRun): boolean {
  return (filter === undefined || meets(filter, about)) && place < rateOf(sampling)
}

/** Whether a run of this id is to be scored. */
export function isScored(selection: ScorerSelection, runId: string, about: FilteredRun): boolean {
  return isSelected(selection, placeOf(runId), about)
}

/** A number from 0 to 1 (exclusive) that is evenly distributed over ids. */
function placeOf(runId: string): number {
  return createHash('sha256').update(runId).digest().readUIntBE(0, 6) / 2 ** 48
}

function rateOf(sampling: ScorerSampling | undefined): number {
  return sampling?.type === 'ratio' ? sampling.rate : 1
}

/** Scorers by names. `of` names them in errors; `names` are the fields of an entry. */
export function checkScorers(scorers: unknown, of: string, names = ['scorer', ...selectionNames, 'on']): asserts scorers is AgentScorers {
  if (!isObject(scorers)) throw refused(of, 'an object of { scorer, sampling } by name, or a function that returns one')
  const seen = new Map<string, string>()
  for (const [name, entry] of Object.entries(scorers)) {
    if (entry === undefined) continue
    checkNames(`${of}: '${name}'`, entry, names)
    const { scorer, on, filter, sampling } = entry as object as Partial<AgentScorerEntry>
    const field = `scorers.${name}.scorer`
    if (!isScorer(scorer)) throw refused(field, 'a scorer of createScorer()')
    if (scorer.type === 'values' && names.includes('on')) throw refused(field, 'a scorer of runs, without schemas of its own')
    const other = seen.get(scorer.id)
    if (other !== undefined) throw refused(field, `a scorer with an id of its own: '${other}' has the id '${scorer.id}' too`)
    seen.set(scorer.id, name)
    checkSelection(`scorers.${name}`, { filter, sampling })
    if (on !== undefined) checkEnds(`scorers.${name}.on`, on)
  }
}

/** Scorers of a step: the input and the output are values of the workflow. */
export function checkStepScorers(scorers: unknown, of: string): void {
  checkScorers(scorers, of, ['scorer', ...selectionNames])
  for (const [name, entry] of Object.entries(scorers)) {
    if (entry?.scorer.type !== 'agent' && entry?.scorer.type !== 'trajectory') continue
    throw refused(`scorers.${name}.scorer`, 'a scorer of any values, or with schemas: a step has no messages')
  }
}

export function isScorer(value: unknown): value is ScorerLike {
  return isObject(value) && typeof value.run === 'function' && typeof value.id === 'string'
}

export function checkSelection(field: string, { filter, sampling }: { filter?: unknown; sampling?: unknown }): void {
  if (filter !== undefined) checkFilter(`${field}.filter`, filter)
  if (sampling !== undefined) checkSampling(`${field}.sampling`, sampling)
}

/** A run that a processor rejected is no end to score: nothing of it is stored. */
export function checkEnds(field: string, on: unknown): void {
  const fits = Array.isArray(on) && on.length > 0 && on.every((end) => ends.includes(end as ScoredEnd))
  if (!fits) throw refused(field, `a list of ${ends.map((end) => `'${end}'`).join(', ')}`)
}

function checkSampling(field: string, sampling: unknown): void {
  checkNames(field, sampling, ['type', 'rate'])
  const { type, rate } = sampling as { type?: unknown; rate?: unknown }
  if (type !== 'ratio' && type !== 'none') throw refused(`${field}.type`, "'ratio' or 'none'")
  if (type === 'none' ? rate !== undefined : !(typeof rate === 'number' && rate >= 0 && rate <= 1)) {
    throw refused(`${field}.rate`, type === 'none' ? "left out beside type: 'none'" : 'a number from 0 to 1')
  }
}
