import type { JSONObject } from '../../../base/json.ts'
import type { DueClaim } from '../../contract/notifications.ts'
import type {
  GivenScore, NewScore, RequestedScore, ScoreQuery, ScoreRow, ScoreSettlement, ScoreState, ScoreStore,
} from '../../contract/scores.ts'
import type { RunRecord, ThreadRecord } from '../../core/records.ts'
import type { ScoreTable } from '../../core/tables.ts'
import { SqlDomain } from '../domain.ts'
import { longestWaiting } from '../notifications/dispatch.ts'
import type { SqlValue, Statements } from '../statements.ts'

interface ScoreRecord {
  key: number
  threadId: string
  resourceId: string
  agentId: string
  runId: string
  scorerId: string
  version: string
  state: ScoreState
  attempts: number
  score: number | null
  reason: string | null
  error: string | null
  usage: string | null
  createdAt: number
  settledAt: number | null
  traceId: string | null
  spanId: string | null
  steps: number | null
  agentVersion: number | null
  stepPath: string
  stepId: string | null
  givenBy: string
  source: ScoreRow['source']
  retries: number
  metadata: string | null
}

const columns = `
  key, thread_id AS threadId, resource_id AS resourceId, agent_id AS agentId, run_id AS runId, scorer_id AS scorerId, version, state,
  attempts, score, reason, error, usage, created_at AS createdAt, settled_at AS settledAt, trace_id AS traceId, span_id AS spanId, steps,
  agent_version AS agentVersion, step_path AS stepPath, step_id AS stepId, given_by AS givenBy, source, retries, metadata`

/** The statements of scores. */
export const scoreSql = {
  add: `
    INSERT INTO heed_scores (
      thread, thread_id, resource_id, agent_id, run_id, scorer_id, version, state, due_at, attempts, created_at, trace_id, span_id, steps,
      agent_version, step_path, step_id)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'pending', ?8, 0, ?8, ?9, ?10, ?11, ?12, ?13, ?14) ON CONFLICT DO NOTHING`,
  give: `
    INSERT INTO heed_scores (
      thread, thread_id, resource_id, agent_id, run_id, scorer_id, version, state, attempts, steps, score, reason, metadata, given_by,
      source, created_at, settled_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'scored', 0, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?14)
    ON CONFLICT (run_id, thread, scorer_id, version, step_path, given_by) DO UPDATE SET
      state = excluded.state, score = excluded.score, reason = excluded.reason, metadata = excluded.metadata, source = excluded.source,
      due_at = NULL, error = NULL, usage = NULL, settled_at = excluded.settled_at`,
  given: `
    SELECT ${columns} FROM heed_scores
    WHERE run_id = ? AND thread_id = ? AND scorer_id = ? AND version = ? AND step_path = '' AND given_by = ?`,
  run: `
    SELECT t.key AS thread, t.id AS threadId, t.resource_id AS resourceId, r.agent_id AS agentId, r.step AS steps
    FROM heed_threads t JOIN heed_runs r ON r.thread = t.key WHERE t.id = ? AND r.run_id = ?`,
  retry: `
    UPDATE heed_scores SET state = 'pending', due_at = ?, retries = retries + 1, error = NULL, settled_at = NULL
    WHERE key = ? AND state = 'failed'`,
  due: `SELECT ${columns} FROM heed_scores WHERE agent_id = ? AND due_at IS NOT NULL AND due_at <= ? ORDER BY due_at LIMIT ?`,
  take: `UPDATE heed_scores SET due_at = ?, attempts = attempts + 1 WHERE key = ?`,
  nextDue: `SELECT min(due_at) AS at FROM heed_scores WHERE agent_id = ? AND due_at IS NOT NULL`,
  settle: `
    UPDATE heed_scores SET state = ?1, score = ?2, reason = ?3, error = ?4, usage = ?5, due_at = ?6, settled_at = ?7
    WHERE key = ?8 AND attempts = ?9 AND state = 'pending'`,
  transfer: `UPDATE heed_scores SET resource_id = ?1 WHERE thread = (SELECT t.key FROM heed_threads t WHERE t.id = ?2)`,
  purge: `DELETE FROM heed_scores WHERE key IN (SELECT key FROM heed_scores WHERE thread = ?1 ORDER BY key LIMIT ?2)`,
  removeBefore: `
    DELETE FROM heed_scores WHERE key IN (
      SELECT key FROM heed_scores WHERE thread = ?1 AND settled_at < ?2 ORDER BY key LIMIT ?3)`,
}

export class SqlScores implements ScoreTable {
  readonly #db: Statements

  constructor(statements: Statements) {
    this.#db = statements
  }

  add(
    thread: Pick<ThreadRecord, 'key' | 'id' | 'resourceId'>, run: Pick<RunRecord, 'agentId' | 'runId' | 'step'>,
    scores: readonly NewScore[], now: number,
  ): void {
    for (const { scorerId, version, traceId = null, spanId = null, agentVersion = null, stepPath = '', stepId = null } of scores) {
      this.#db.execute(
        scoreSql.add, thread.key, thread.id, thread.resourceId, run.agentId, run.runId, scorerId, version, now, traceId, spanId, run.step,
        agentVersion, stepPath, stepId,
      )
    }
  }

  /** Removes scores that were settled before this time; returns how many. */
  removeBefore(thread: ThreadRecord, before: number, limit: number): number {
    return this.#db.run(scoreSql.removeBefore, thread.key, before, limit)
  }
}

/** Scores, in the database of the threads. */
export class SqlScoreStore extends SqlDomain implements ScoreStore {
  claim(claim: Parameters<ScoreStore['claim']>[0]): Promise<ScoreRow[]> {
    return this.write((statements) => claimScores(statements, claim))
  }

  settle(score: Pick<ScoreRow, 'key' | 'attempts'>, settlement: ScoreSettlement, now: number): Promise<boolean> {
    return this.write((statements) => settleScore(statements, score, settlement, now))
  }

  nextDue(agentIds: readonly string[]): Promise<number | undefined> {
    return this.read((statements) => nextScoreDue(statements, agentIds))
  }

  list(query: ScoreQuery): Promise<{ scores: ScoreRow[]; more: boolean }> {
    return this.read((statements) => listScores(statements, query))
  }

  count(query: Parameters<ScoreStore['count']>[0]): Promise<number> {
    return this.read((statements) => countScores(statements, query))
  }

  async save(score: GivenScore, now: number): Promise<ScoreRow | null> {
    if (!(await this.write((statements) => saveScore(statements, score, now)))) return null
    return this.read((statements) => givenScore(statements, score))
  }

  add(scores: readonly RequestedScore[], now: number): Promise<number> {
    return this.write((statements) => addScores(statements, scores, now))
  }

  retry(query: ScoreQuery, now: number): Promise<number> {
    return this.write((statements) => retryScores(statements, query, now))
  }
}

function claimScores(
  statements: Statements, { now, until, limit, agentIds }: Pick<DueClaim, 'now' | 'until' | 'limit' | 'agentIds'>,
): ScoreRow[] {
  statements.lockDomain?.('scores')
  const nextOf = (agentId: string) => statements.one<{ at: number | null }>(scoreSql.nextDue, agentId)?.at ?? undefined
  const taken: ScoreRow[] = []
  for (const agentId of longestWaiting(agentIds, now, nextOf)) {
    const due = statements.all<ScoreRecord>(scoreSql.due, agentId, now, limit - taken.length)
    for (const record of due) {
      statements.execute(scoreSql.take, until, record.key)
      taken.push(scoreRow({ ...record, attempts: record.attempts + 1 }))
    }
  }
  return taken
}

function settleScore(
  statements: Statements, { key, attempts }: Pick<ScoreRow, 'key' | 'attempts'>, settlement: ScoreSettlement, now: number,
): boolean {
  const { state } = settlement
  const retryAt = state === 'failed' ? settlement.retryAt : undefined
  const changed = statements.run(
    scoreSql.settle,
    retryAt === undefined ? state : 'pending',
    state === 'scored' ? settlement.score : null,
    state === 'failed' ? null : (settlement.reason ?? null),
    state === 'failed' ? JSON.stringify(settlement.error) : null,
    state === 'scored' && settlement.usage ? JSON.stringify(settlement.usage) : null,
    retryAt ?? null,
    retryAt === undefined ? now : null,
    key,
    attempts,
  )
  return changed === 1
}

function nextScoreDue(statements: Statements, agentIds: readonly string[]): number | undefined {
  const times = agentIds.flatMap((agentId) => statements.one<{ at: number | null }>(scoreSql.nextDue, agentId)?.at ?? [])
  return times.length === 0 ? undefined : Math.min(...times)
}

/** A run of a conversation, with its thread. */
interface ScoredRun {
  thread: number
  threadId: string
  resourceId: string
  agentId: string
  steps: number
}

/** False where the run is unknown. */
function saveScore(statements: Statements, given: GivenScore, now: number): boolean {
  const { threadId, resourceId, runId, scorerId, version, score, reason = null, metadata, by = '', source } = given
  const run = statements.one<ScoredRun>(scoreSql.run, threadId, runId)
  if (!run || (resourceId !== undefined && run.resourceId !== resourceId)) return false
  statements.execute(
    scoreSql.give, run.thread, run.threadId, run.resourceId, run.agentId, runId, scorerId, version, run.steps, score, reason,
    metadata === undefined ? null : JSON.stringify(metadata), by, source, now,
  )
  return true
}

function givenScore(statements: Statements, { threadId, runId, scorerId, version, by = '' }: GivenScore): ScoreRow | null {
  const saved = statements.one<ScoreRecord>(scoreSql.given, runId, threadId, scorerId, version, by)
  return saved ? scoreRow(saved) : null
}

function addScores(statements: Statements, scores: readonly RequestedScore[], now: number): number {
  let added = 0
  for (const { threadId, runId, scorerId, version } of scores) {
    const run = statements.one<ScoredRun>(scoreSql.run, threadId, runId)
    if (!run) continue
    const { thread, resourceId, agentId, steps } = run
    added += statements.run(
      scoreSql.add, thread, threadId, resourceId, agentId, runId, scorerId, version, now, null, null, steps, null, '', null,
    )
  }
  return added
}

function retryScores(statements: Statements, query: ScoreQuery, now: number): number {
  const { scores } = listScores(statements, { ...query, state: 'failed' })
  return scores.reduce((count, { key }) => count + statements.run(scoreSql.retry, now, key), 0)
}

/** Rows of a deleted thread are removed some time after it. */
const exists = 'EXISTS (SELECT 1 FROM heed_threads e WHERE e.key = heed_scores.thread)'

function wantedScores({ threadId, resourceId, runId, agentId, scorerId, stepId, source, state, before }: Partial<ScoreQuery>): {
  where: string; values: SqlValue[]
} {
  const wanted = Object.entries({
    'thread = (SELECT t.key FROM heed_threads t WHERE t.id = ?)': threadId, 'resource_id = ?': resourceId, 'run_id = ?': runId,
    'agent_id = ?': agentId, 'scorer_id = ?': scorerId, 'step_id = ?': stepId, 'source = ?': source, 'state = ?': state, 'key < ?': before,
  }).filter((entry): entry is [string, string | number] => entry[1] !== undefined)
  return { where: [exists, ...wanted.map(([condition]) => condition)].join(' AND '), values: wanted.map(([, value]) => value) }
}

function listScores(statements: Statements, { limit, offset = 0, ...query }: ScoreQuery): { scores: ScoreRow[]; more: boolean } {
  const { where, values } = wantedScores(query)
  const text = `SELECT ${columns} FROM heed_scores WHERE ${where} ORDER BY key DESC LIMIT ? OFFSET ?`
  const found = statements.all<ScoreRecord>(text, ...values, limit + 1, offset)
  return { scores: found.slice(0, limit).map(scoreRow), more: found.length > limit }
}

function countScores(statements: Statements, query: Omit<ScoreQuery, 'before' | 'limit' | 'offset'>): number {
  const { where, values } = wantedScores(query)
  return statements.one<{ total: number }>(`SELECT count(*) AS total FROM heed_scores WHERE ${where}`, ...values)?.total ?? 0
}

function scoreRow({
  score, reason, error, usage, settledAt, traceId, spanId, steps, agentVersion, stepPath, stepId, givenBy, retries, metadata, ...record
}: ScoreRecord): ScoreRow {
  return {
    ...record,
    ...(traceId !== null && { traceId }),
    ...(spanId !== null && { spanId }),
    ...(steps !== null && stepId === null && { steps }),
    ...(agentVersion !== null && { agentVersion }),
    ...(stepId !== null && { stepPath, stepId }),
    ...(givenBy !== '' && { by: givenBy }),
    ...(retries > 0 && { retries }),
    ...(metadata !== null && { metadata: JSON.parse(metadata) as JSONObject }),
    ...(score !== null && { score }),
    ...(reason !== null && { reason }),
    ...(error !== null && { error: JSON.parse(error) as JSONObject }),
    ...(usage !== null && { usage: JSON.parse(usage) as JSONObject }),
    ...(settledAt !== null && { settledAt }),
  }
}
