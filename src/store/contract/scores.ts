import type { JSONObject } from '../../base/json.ts'
import type { DueClaim } from './notifications.ts'

/** The work to score a run with one scorer: stored with the end of the run. */
export interface NewScore {
  scorerId: string
  /** The version of the scorer. A run has one score of a version. */
  version: string
  /** The span of the run, where the run is traced. */
  traceId?: string
  spanId?: string
  /** The version of the agent that the run had, where an editor gave it one. */
  agentVersion?: number
  /** The step of a workflow that is scored, by its path in the run and its id. */
  stepPath?: string
  stepId?: string
}

/** A score that is not made by a scorer of an agent: of a person, or of another program. Saved again, it replaces the one before. */
export interface GivenScore {
  threadId: string
  resourceId?: string
  runId: string
  scorerId: string
  version: string
  score: number
  reason?: string
  metadata?: JSONObject
  /** Who gave it: two of them are two scores. */
  by?: string
  source: 'live' | 'test'
}

/** Work to score a run that ended before. */
export type RequestedScore = Pick<NewScore, 'scorerId' | 'version'> & { threadId: string; runId: string }

/** `pending`: due, or claimed by a process. The others are final. */
export type ScoreState = 'pending' | 'scored' | 'not_scorable' | 'failed'

/** A score of a run, or the work to make it. */
export interface ScoreRow extends NewScore {
  /** Ascending in the order in which the scores were stored. */
  key: number
  threadId: string
  resourceId: string
  agentId: string
  runId: string
  /** How many steps the run took. Absent for scores of earlier versions of Heed. */
  steps?: number
  state: ScoreState
  /** `live`: of a run in use. `test`: of a run of an evaluation. */
  source: 'live' | 'test'
  /** Who gave a score that was saved. */
  by?: string
  metadata?: JSONObject
  /** How often it was claimed. */
  attempts: number
  /** How often it was retried after it had failed. */
  retries?: number
  score?: number
  /** Why it has this score, or none. */
  reason?: string
  error?: JSONObject
  /** What the judge took. */
  usage?: JSONObject
  createdAt: number
  /** When it got its final state. */
  settledAt?: number
}

/** What became of a claimed score. `retryAt`: it failed and is due again then. */
export type ScoreSettlement =
  | { state: 'scored'; score: number; reason?: string; usage?: JSONObject }
  | { state: 'not_scorable'; reason?: string }
  | { state: 'failed'; error: JSONObject; retryAt?: number }

/** Which scores are listed: those that meet all conditions. */
export interface ScoreQuery {
  threadId?: string
  resourceId?: string
  runId?: string
  agentId?: string
  scorerId?: string
  stepId?: string
  source?: 'live' | 'test'
  state?: ScoreState
  /** Those with a lower key. */
  before?: number
  limit: number
  /** How many are left out before the first. */
  offset?: number
}

/**
 * Scores of runs, in the database of the threads: the commit that ends a run stores the work. A claimed score is hidden from other claims
 * until `until`; if the claimer dies, the next claim gets it. Scores are deleted with their thread.
 */
export interface ScoreStore {
  claim(claim: Pick<DueClaim, 'now' | 'until' | 'limit' | 'agentIds'>): Promise<ScoreRow[]>
  /** False if the score was claimed again since this attempt, was settled, or is gone: nothing is stored. */
  settle(score: Pick<ScoreRow, 'key' | 'attempts'>, settlement: ScoreSettlement, now: number): Promise<boolean>
  /** When the next score of these agents is due. */
  nextDue(agentIds: readonly string[]): Promise<number | undefined>
  /** The newest first. */
  list(query: ScoreQuery): Promise<{ scores: ScoreRow[]; more: boolean }>
  count(query: Omit<ScoreQuery, 'before' | 'limit' | 'offset'>): Promise<number>
  /** Stores a score of a stored run. Null where the run is unknown, or another resource's. */
  save(score: GivenScore, now: number): Promise<ScoreRow | null>
  /** Stores the work to score runs, unless they have it. Returns how much was new. */
  add(scores: readonly RequestedScore[], now: number): Promise<number>
  /** Makes failed scores due again, up to `limit`. Returns how many. */
  retry(query: ScoreQuery, now: number): Promise<number>
}
