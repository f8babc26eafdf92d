import { createHash } from 'node:crypto'
import { checkNames, refused } from '../base/arguments.ts'
import { isObject } from '../base/json.ts'
import type { AgentScorerEntry, AgentScorers, ScorerLike, ScorerSampling } from './contract.ts'

/** The scorers of this run. They depend on the id of the run alone: the runs of a lower rate are among those of a higher one. */
export function sampledScorers(scorers: AgentScorers, runId: string): ScorerLike[] {
  const place = placeOf(runId)
  return Object.values(scorers).flatMap((entry) => (entry && place < rateOf(entry.sampling) ? [entry.scorer] : []))
}

/** A number from 0 to 1 (exclusive) that is evenly distributed over ids. */
function placeOf(runId: string): number {
  return createHash('sha256').update(runId).digest().readUIntBE(0, 6) / 2 ** 48
}

function rateOf(sampling: ScorerSampling | undefined): number {
  return sampling?.type === 'ratio' ? sampling.rate : 1
}

export function checkScorers(scorers: unknown, agent: string): asserts scorers is AgentScorers {
  const of = `scorers of agent '${agent}'`
  if (!isObject(scorers)) throw refused(of, 'an object of { scorer, sampling } by name, or a function that returns one')
  const seen = new Map<string, string>()
  for (const [name, entry] of Object.entries(scorers)) {
    if (entry === undefined) continue
    checkNames(`${of}: '${name}'`, entry, ['scorer', 'sampling'])
    const { scorer, sampling } = entry as object as Partial<AgentScorerEntry>
    const field = `scorers.${name}.scorer`
    if (typeof scorer?.run !== 'function' || typeof scorer.id !== 'string') throw refused(field, 'a scorer of createScorer()')
    if (scorer.type === 'values') throw refused(field, 'a scorer of runs, without schemas of its own')
    const other = seen.get(scorer.id)
    if (other !== undefined) throw refused(field, `a scorer with an id of its own: '${other}' has the id '${scorer.id}' too`)
    seen.set(scorer.id, name)
    if (sampling !== undefined) checkSampling(`scorers.${name}.sampling`, sampling)
  }
}

function checkSampling(field: string, sampling: unknown): void {
  checkNames(field, sampling, ['type', 'rate'])
  const { type, rate } = sampling as { type?: unknown; rate?: unknown }
  if (type !== 'ratio' && type !== 'none') throw refused(`${field}.type`, "'ratio' or 'none'")
  if (type === 'none' ? rate !== undefined : !(typeof rate === 'number' && rate >= 0 && rate <= 1)) {
    throw refused(`${field}.rate`, type === 'none' ? "left out beside type: 'none'" : 'a number from 0 to 1')
  }
}
