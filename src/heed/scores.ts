import { checkName, checkNames, checkObject, checkText, checkWhole, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import type { JSONObject } from '../base/json.ts'
import type { RequestContext } from '../run/request-context.ts'
import type { ScoredEnd, ScorerLike, ScorerSampling, ScorerSelection } from '../scorers/contract.ts'
import { checkEnds, checkSelection, isScored, isScorer, knownScorer } from '../scorers/sampling.ts'
import { workflowRunner } from '../store/contract/thread-row.ts'
import type { RequestedScore, ScoreQuery, ScoreRow } from '../store/contract/scores.ts'
import { restoreOptions } from '../thread/send/stored-options.ts'
import type { Heed } from './heed.ts'
import type { Site } from './site.ts'

/** A page of scores. `next` is the `before` of the next page. */
export interface ScorePage {
  scores: ScoreRow[]
  next?: number | undefined
}

/** Which scores a list has: those that meet all conditions. */
export interface ScoreListQuery extends Partial<ScoreQuery> {
  /** Scores of steps of this workflow. */
  workflowId?: string
}

/** Which failed scores are retried: those that meet all conditions. */
export type ScoreRetry = Omit<ScoreListQuery, 'state' | 'before' | 'offset'>

/** A score that a person or another program gives a run. */
export interface ScoreInput {
  /** The agent of the run, where its threads are in a storage of its own. */
  agentId?: string
  threadId: string
  /** Only if the thread belongs to this resource. */
  resourceId?: string
  runId: string
  /** A name of your choice, such as `thumbs`. */
  scorerId: string
  /** Defaults to `1`. */
  version?: string
  score: number
  reason?: string
  metadata?: JSONObject
  /** Who gives it. Two of them are two scores; the same one replaces its score. */
  by?: string
  /** `test` for a run of an evaluation. Defaults to `live`. */
  source?: 'live' | 'test'
}

/** Which runs that have ended are to be scored, and by which scorer. */
export interface ScoreBackfill extends ScorerSelection {
  agentId: string
  /** A scorer of the agent or of the Heed, by its id. */
  scorer: string
  /** When the runs began. Both are inclusive. */
  from?: Date
  to?: Date
  /** Defaults to `['finished']`. */
  on?: readonly ScoredEnd[]
}

/** A scorer with who uses it. */
export interface ScorerUse {
  scorer: ScorerLike
  /** Of the first agent that has one. */
  sampling?: ScorerSampling
  agentIds: string[]
  agentNames: string[]
  workflowIds: string[]
  /** Whether it is one of the Heed. */
  isRegistered: boolean
}

const queryNames = [
  'threadId', 'resourceId', 'runId', 'agentId', 'workflowId', 'scorerId', 'stepId', 'source', 'state', 'before', 'limit', 'offset',
]
/** How many runs are read at once. */
const pageRuns = 200

/** Scorers by their ids. */
export function scorersById(scorers: Record<string, ScorerLike> = {}): Map<string, ScorerLike> {
  const byId = new Map<string, ScorerLike>()
  for (const [key, scorer] of Object.entries(scorers)) {
    if (!isScorer(scorer)) throw refused(`scorers.${key}`, 'a scorer of createScorer()')
    if (byId.has(scorer.id)) throw refused(`scorers.${key}`, `a scorer with an id of its own: another one has the id '${scorer.id}' too`)
    byId.set(scorer.id, scorer)
  }
  return byId
}

export async function listScores(heed: Heed, query: ScoreListQuery): Promise<ScorePage> {
  checkNames('listScores()', query, queryNames)
  const { threads, stored } = await found(heed, query)
  const { scores, more } = await threads.store.scores.list(stored)
  return { scores, ...(more ? { next: scores.at(-1)?.key } : {}) }
}

export async function countScores(heed: Heed, query: Omit<ScoreListQuery, 'before' | 'limit' | 'offset'>): Promise<number> {
  checkNames('countScores()', query, queryNames.filter((name) => !['before', 'limit', 'offset'].includes(name)))
  const { threads, stored } = await found(heed, query)
  return threads.store.scores.count(stored)
}

export async function retryScores(heed: Heed, query: ScoreRetry): Promise<number> {
  checkNames('retryScores()', query, queryNames.filter((name) => !['state', 'before', 'offset'].includes(name)))
  const { threads, stored, site } = await found(heed, query)
  const retried = await threads.store.scores.retry(stored, heed.clock.now())
  if (retried > 0) site.scoring.wake()
  return retried
}

async function found(heed: Heed, { workflowId, agentId, ...query }: ScoreListQuery) {
  const { limit = 100, offset = 0 } = query
  checkWhole('limit', limit, 1)
  checkWhole('offset', offset)
  if (workflowId !== undefined && agentId !== undefined) throw refused('workflowId', 'left out beside agentId')
  if (workflowId !== undefined) heed.getWorkflowById(workflowId)
  const site = await opened(heed, agentId)
  const runner = workflowId === undefined ? agentId : workflowRunner(workflowId)
  return { site, threads: site.threads, stored: { ...query, ...(runner === undefined ? {} : { agentId: runner }), limit, offset } }
}

async function opened(heed: Heed, agentId: string | undefined): Promise<Site> {
  const site = agentId === undefined ? heed.sites.of() : heed.getAgentById(agentId).site()
  await site.threads.open()
  return site
}

export async function saveScore(heed: Heed, input: ScoreInput): Promise<ScoreRow> {
  checkNames('saveScore()', input, [
    'agentId', 'threadId', 'resourceId', 'runId', 'scorerId', 'version', 'score', 'reason', 'metadata', 'by', 'source',
  ])
  const { agentId, version = '1', source = 'live', ...given } = input
  const { threadId, runId, scorerId, score, reason, metadata, by } = given
  for (const [name, value] of Object.entries({ threadId, runId, scorerId, version })) checkName(name, value)
  if (by !== undefined) checkName('by', by)
  if (reason !== undefined) checkText('reason', reason)
  if (!Number.isFinite(score)) throw refused('score', 'a number')
  if (metadata !== undefined) checkObject('metadata', metadata)
  if (source !== 'live' && source !== 'test') throw refused('source', "'live' or 'test'")
  const { threads } = await opened(heed, agentId)
  const saved = await threads.store.scores.save({ ...given, version, source }, heed.clock.now())
  if (saved) return saved
  throw new HeedError('not_found', `Thread '${threadId}' has no run '${runId}': a score belongs to a run that is stored.`, {
    details: { threadId, runId },
  })
}

/** Stores the work to score runs that have ended; it is done as that of new runs. */
export async function backfillScores(heed: Heed, input: ScoreBackfill): Promise<{ runs: number; added: number }> {
  checkNames('backfillScores()', input, ['agentId', 'scorer', 'from', 'to', 'on', 'filter', 'sampling'])
  const { agentId, scorer: scorerId, from, to, on = ['finished'] } = input
  checkSelection('backfillScores()', input)
  checkEnds('on', on)
  for (const [name, date] of Object.entries({ from, to }))
    if (date !== undefined && !(date instanceof Date && Number.isFinite(date.getTime()))) throw refused(name, 'a Date')
  const agent = heed.getAgentById(agentId)
  const scorer = knownScorer(scorerId, await agent.listScorers(), heed.scorers)
  const { threads, scoring } = await opened(heed, agentId)
  const { store } = threads
  const wanted = {
    agentId, status: [...on], limit: pageRuns, ...(from ? { from: from.getTime() } : {}),
    // Runs that begin meanwhile would move those behind them.
    to: Math.min(heed.clock.now(), to?.getTime() ?? Infinity),
  }
  const total = { runs: 0, added: 0 }
  for (let offset = 0; ; offset += pageRuns) {
    const runs = await store.listRuns({ ...wanted, offset })
    const selected = runs.filter(({ runId, threadId, resourceId, options }) => isScored(input, runId, {
      requestContext: restoreOptions(options, undefined).options.requestContext?.all ?? {}, entity: { id: agent.id, name: agent.name },
      entityType: 'agent', source: 'live', threadId, resourceId,
    }))
    const work = selected.map(({ threadId, runId }): RequestedScore => ({ threadId, runId, scorerId: scorer.id, version: scorer.version }))
    total.runs += selected.length
    if (work.length > 0) total.added += await store.scores.add(work, heed.clock.now())
    if (runs.length < pageRuns) break
  }
  if (total.added > 0) scoring.wake()
  return total
}

/** The scorers of the Heed, its agents and the steps of its workflows, by their ids. */
export async function scorersInUse(heed: Heed, requestContext?: RequestContext): Promise<Record<string, ScorerUse>> {
  const uses = new Map<string, ScorerUse>()
  const useOf = (scorer: ScorerLike): ScorerUse => {
    const use = uses.get(scorer.id) ?? { scorer, agentIds: [], agentNames: [], workflowIds: [], isRegistered: heed.scorers.has(scorer.id) }
    uses.set(scorer.id, use)
    return use
  }
  for (const scorer of heed.scorers.values()) useOf(scorer)
  for (const agent of Object.values(heed.listAgents())) {
    for (const entry of Object.values(await agent.listScorers(requestContext ? { requestContext } : {}))) {
      if (!entry) continue
      const use = useOf(entry.scorer)
      if (entry.sampling) use.sampling ??= entry.sampling
      use.agentIds.push(agent.id)
      use.agentNames.push(agent.name)
    }
  }
  for (const workflow of Object.values(heed.listWorkflows())) {
    for (const scorer of new Set(workflow.stepScorers?.())) {
      const { workflowIds } = useOf(scorer)
      if (!workflowIds.includes(workflow.id)) workflowIds.push(workflow.id)
    }
  }
  return Object.fromEntries(uses)
}
