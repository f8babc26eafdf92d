import { reservedIdPrefixes } from '../../../signals/normalize.ts'
import { annotationGraceMs, judged, lostClaim, maxJudgeFailures, type Verdict, type WatchEnd } from '../../../watch/machine.ts'
import type { CandidateClaim, CandidateRelease, CandidateSettlement, CandidateState, ClaimedCandidate } from '../../contract/watches.ts'
import type { SqlValue, Statements } from '../statements.ts'
import { completedId } from '../completed-id.ts'
import { addDelivery, type NewDelivery } from './deliveries.ts'
import { hasAnswered, inboundBySeq } from './inbounds.ts'
import { isTaken, unindexWatch } from './matching.ts'
import { claimInShares } from './shares.ts'
import { criteriaOf, inboundOf, lastSeq, watchColumns, watchOf, type WatchRow } from './rows.ts'

/** How long after its expiry a watch waits for its agent to judge what arrived in time. */
const unjudgedGraceMs = 600_000

export const candidateSql = {
  byOrd: `SELECT ${watchColumns} FROM heed_watches WHERE ord = ?`,
  byId: `SELECT ${watchColumns} FROM heed_watches WHERE id = ?`,
  byIds: `SELECT ${watchColumns} FROM heed_watches WHERE id IN (?, ?)`,
  due: `SELECT ${watchColumns} FROM heed_watches WHERE agent_id = ? AND due_at <= ? ORDER BY due_at, ord LIMIT ?`,
  // Watches that have expired; those with open candidates only where no process has claimed one since `?2`.
  over: `
    SELECT ${watchColumns} FROM heed_watches AS w WHERE state = 'open' AND expires_at < ?1 AND due_at <= ?1 AND (
      expires_at < ?2 AND due_at < ?2 OR NOT EXISTS (
        SELECT 1 FROM heed_watch_candidates AS c WHERE c.watch = w.ord AND c.state IN ('pending', 'claimed')))
    ORDER BY expires_at LIMIT ?3`,
  anyOver: `SELECT 1 AS found FROM heed_watches WHERE state = 'open' AND expires_at < ?1 AND due_at <= ?1 LIMIT 1`,
  nextDue: 'SELECT min(due_at) AS at FROM heed_watches WHERE agent_id = ? AND due_at IS NOT NULL',
  setDue: 'UPDATE heed_watches SET due_at = ? WHERE ord = ?',
  // A claim that ended without a settlement is claimed again, before later candidates. Those that wait for categories are the last.
  next: `
    SELECT seq, state, attempts, failures, waiting FROM heed_watch_candidates WHERE watch = ? AND state IN ('pending', 'claimed')
    ORDER BY waiting, seq LIMIT 1`,
  state: 'SELECT seq, state, attempts, failures, waiting FROM heed_watch_candidates WHERE watch = ? AND seq = ?',
  take: `
    UPDATE heed_watch_candidates SET state = 'claimed', attempts = attempts + 1, failures = ?, waiting = 0 WHERE watch = ? AND seq = ?`,
  release: `
    UPDATE heed_watch_candidates SET state = 'pending', waiting = ?, failures = ?, detail = coalesce(?, detail)
    WHERE watch = ? AND seq = ?`,
  settle: 'UPDATE heed_watch_candidates SET state = ?, value = ?, detail = ?, settled_at = ? WHERE watch = ? AND seq = ?',
  settleAll: `
    UPDATE heed_watch_candidates SET state = 'ended', settled_at = ?2 WHERE watch = ?1 AND state IN ('pending', 'claimed')`,
  // An older watch that may take the message (see `isTaken`) decides first.
  olderFirst: `
    SELECT 1 AS found FROM heed_watch_candidates c JOIN heed_watches w ON w.ord = c.watch
    WHERE c.seq = ?1 AND c.watch < ?2 AND c.state IN ('pending', 'claimed')
    AND (w.exclusive = 1 OR w.mode = 'once' AND w.thread_id = ?3 AND ?1 <= ?4) LIMIT 1`,
  consume: `
    UPDATE heed_inbounds SET consumed_by = ?1 WHERE seq = ?2
    AND (consumed_by IS NULL OR consumed_by IN (SELECT id FROM heed_watches WHERE id = consumed_by AND ord > ?3))`,
  consumeLater: `
    UPDATE heed_watch_candidates SET state = 'consumed', settled_at = ?3 WHERE seq = ?1 AND watch > ?2 AND state = 'pending'`,
  wakeOthers: `
    UPDATE heed_watches SET due_at = CASE WHEN due_at < ?3 THEN due_at ELSE ?3 END WHERE due_at IS NOT NULL AND ord IN (
      SELECT watch FROM heed_watch_candidates WHERE seq = ?1 AND watch <> ?2 AND state IN ('pending', 'consumed'))
    AND NOT EXISTS (SELECT 1 FROM heed_watch_candidates o WHERE o.watch = heed_watches.ord AND o.state = 'claimed')`,
  // Later watches need no longer wait for one that ends.
  wakeLater: `
    UPDATE heed_watches SET due_at = CASE WHEN due_at < ?2 THEN due_at ELSE ?2 END WHERE due_at IS NOT NULL AND ord IN (
      SELECT later.watch FROM heed_watch_candidates own JOIN heed_watch_candidates later ON later.seq = own.seq
      WHERE own.watch = ?1 AND own.state IN ('pending', 'claimed') AND later.watch > ?1 AND later.state = 'pending')
    AND NOT EXISTS (SELECT 1 FROM heed_watch_candidates o WHERE o.watch = heed_watches.ord AND o.state = 'claimed')`,
  unannotated: `
    SELECT 1 AS found FROM heed_inbounds WHERE resource_id = ? AND received_at <= ? AND due_at IS NOT NULL LIMIT 1`,
  count: 'UPDATE heed_watches SET evaluations = ?, hits = ? WHERE ord = ?',
  end: `UPDATE heed_watches SET state = 'ended', reason = ?, ended_at = ?, ended_seq = (${lastSeq}), due_at = NULL WHERE ord = ?`,
}

/** The part of a candidate that claims read. */
interface OpenCandidate {
  seq: number
  state: CandidateState
  attempts: number
  failures: number
  waiting: number
}

export function watchById(statements: Statements, id: string): WatchRow | undefined {
  return statements.one<WatchRow>(candidateSql.byId, id)
}

/** The watch of the resource with this id, and whether the id, and the completed one, are another resource's. */
export function watchOfResource(
  statements: Statements, id: string, resourceId: string,
): { own: WatchRow | undefined; taken: ReadonlySet<string> } {
  const rows = statements.all<WatchRow>(candidateSql.byIds, id, completedId(id, resourceId))
  const own = rows.filter((row) => row.resourceId === resourceId)
  return { own: own.find((row) => row.id === id) ?? own[0], taken: new Set(rows.map((row) => row.id)) }
}

export function watchByOrd(statements: Statements, ord: number): WatchRow | undefined {
  return statements.one<WatchRow>(candidateSql.byOrd, ord)
}

export function nextWatchDue(statements: Statements, agentId: string): number | undefined {
  return statements.one<{ at: number | null }>(candidateSql.nextDue, agentId)?.at ?? undefined
}

export function claimCandidates(statements: Statements, { now, until, limit, agentIds, most }: CandidateClaim): ClaimedCandidate[] {
  return claimInShares(agentIds, { now, limit, most }, (agentId) => nextWatchDue(statements, agentId), (agentId, free) =>
    statements.all<WatchRow>(candidateSql.due, agentId, now, free).flatMap((watch) => claimNext(statements, watch, now, until)))
}

/** Whether an open watch has expired. */
export function hasExpired(statements: Statements, now: number): boolean {
  return statements.one(candidateSql.anyOver, now) !== undefined
}

/**
 * Ends watches whose time is over, whichever their agents are: also of agents that no process has. One with messages to be judged ends when
 * its agent has left them for so long.
 */
export function expireWatches(statements: Statements, { now, until, limit }: { now: number; until: number; limit: number }): number {
  const over = statements.all<WatchRow>(candidateSql.over, now, now - unjudgedGraceMs, limit)
  for (const watch of over) {
    if (statements.one(candidateSql.next, watch.ord)) endWatch(statements, watch, { reason: 'expired', now })
    else expire(statements, watch, now, until)
  }
  return over.length
}

/** Claims the next candidate of a due watch, or ends the watch where it has expired. */
function claimNext(statements: Statements, watch: WatchRow, now: number, until: number): ClaimedCandidate[] {
  for (;;) {
    const next = statements.one<OpenCandidate>(candidateSql.next, watch.ord)
    if (!next) {
      expire(statements, watch, now, until)
      return []
    }
    const deadline = watch.expiresAt + annotationGraceMs
    if (next.waiting === 1 && now <= deadline) {
      statements.execute(candidateSql.setDue, deadline + 1, watch.ord)
      return []
    }
    // A candidate that is still claimed: its process ended, or did not report in time.
    const failures = next.failures + (next.state === 'claimed' ? 1 : 0)
    if (failures >= maxJudgeFailures) {
      failCandidate(statements, watch, next.seq, { now, detail: lostClaim })
      continue
    }
    statements.execute(candidateSql.setDue, until, watch.ord)
    if (statements.one(candidateSql.olderFirst, next.seq, watch.ord, watch.threadId, watch.registeredSeq)) return []
    const inbound = inboundBySeq(statements, next.seq)
    const taken = inbound && isTaken(statements, watch, inbound)
    if (inbound && !taken) {
      statements.execute(candidateSql.take, failures, watch.ord, next.seq)
      return [{ watch: watchOf(watch), inbound: inboundOf(inbound), attempt: next.attempts + 1 }]
    }
    settleState(statements, watch, next.seq, taken ? 'consumed' : 'ended', { now })
  }
}

/** Settles a candidate without a verdict: other watches of its message need not wait for this one. */
function failCandidate(statements: Statements, watch: WatchRow, seq: number, { now, detail }: { now: number; detail: string }): void {
  settleState(statements, watch, seq, 'failed', { now, detail })
  statements.execute(candidateSql.wakeOthers, seq, watch.ord, now)
}

function expire(statements: Statements, watch: WatchRow, now: number, until: number): void {
  if (now <= watch.expiresAt) {
    statements.execute(candidateSql.setDue, watch.expiresAt + 1, watch.ord)
    return
  }
  const isAwaited =
    criteriaOf(watch).categories.length > 0 && now <= watch.expiresAt + annotationGraceMs &&
    statements.one(candidateSql.unannotated, watch.resourceId, watch.expiresAt)
  if (isAwaited) statements.execute(candidateSql.setDue, until, watch.ord)
  else endWatch(statements, watch, { reason: 'expired', now })
}

export function settleCandidate(
  statements: Statements, { watchId, seq, attempt, verdict, now }: CandidateSettlement,
): boolean {
  const watch = findClaimed(statements, { watchId, seq, attempt })?.watch
  if (!watch) return false
  const isMatch = verdict.action === 'match' || verdict.action === 'complete'
  const inbound = inboundBySeq(statements, seq)
  if (isMatch && inbound && isTaken(statements, watch, inbound)) {
    settleState(statements, watch, seq, 'consumed', { now })
    return wakeWatch(statements, watch, now)
  }
  settleState(statements, watch, seq, stateOf(verdict), {
    now,
    ...(isMatch ? { value: JSON.stringify(verdict.value) } : {}),
    ...(verdict.action === 'deny' ? { detail: verdict.policies } : {}),
  })
  const { evaluations, hits, end, hit } = judged({ ...watch, mayEnd: watch.mayEnd === 1 }, verdict)
  statements.execute(candidateSql.count, evaluations, hits, watch.ord)
  if (isMatch && watch.exclusive === 1) {
    statements.execute(candidateSql.consume, watch.id, seq, watch.ord)
    statements.execute(candidateSql.consumeLater, seq, watch.ord, now)
  }
  statements.execute(candidateSql.wakeOthers, seq, watch.ord, now)
  const value = isMatch ? { value: verdict.value } : {}
  if (hit) addDelivery(statements, watch, { id: `${reservedIdPrefixes.hit}${seq}:${watch.id}`, reason: 'hit', seq, now, ...value })
  if (end) {
    endWatch(statements, watch, { reason: end, now, ...(end === 'matched' ? { seq, ...value } : {}) })
    return true
  }
  return wakeWatch(statements, watch, now)
}

/** The candidate is judged again at `retryAt`, or has failed with its last attempt. */
export function releaseCandidate(statements: Statements, release: CandidateRelease): boolean {
  const claimed = findClaimed(statements, release)
  if (!claimed) return false
  const { watch, candidate } = claimed
  const { seq, error, now } = release
  const isWaiting = release.unannotated === true && !hasCategories(statements, seq)
  const failures = candidate.failures + (error === undefined ? 0 : 1)
  if (error !== undefined && failures >= maxJudgeFailures) {
    failCandidate(statements, watch, seq, { now, detail: error })
    return wakeWatch(statements, watch, now)
  }
  statements.execute(candidateSql.release, isWaiting ? 1 : 0, failures, error ?? null, watch.ord, seq)
  if (release.unannotated) return wakeWatch(statements, watch, now)
  statements.execute(candidateSql.setDue, release.retryAt, watch.ord)
  return true
}

/** Also true where the message will have none, or no others. */
function hasCategories(statements: Statements, seq: number): boolean {
  const inbound = inboundBySeq(statements, seq)
  return !inbound || hasAnswered(inbound) || inbound.dueAt === null
}

/** Ends the watch, and inserts the delivery of its end. */
export function endWatch(
  statements: Statements, watch: WatchRow, { reason, now, ...more }: { reason: WatchEnd } & Omit<NewDelivery, 'id' | 'reason'>,
): void {
  statements.execute(candidateSql.wakeLater, watch.ord, now)
  statements.execute(candidateSql.settleAll, watch.ord, now)
  statements.execute(candidateSql.end, reason, now, watch.ord)
  unindexWatch(statements, watch)
  addDelivery(statements, watch, { id: deliveryId(watch.id), reason, now, ...more })
}

/** Of its end. Ids of watches are any texts: those of hits begin otherwise, and with a number, so that no two watches share one. */
function deliveryId(watchId: string): string {
  return reservedIdPrefixes.watch + watchId
}

/** A candidate that is still claimed by this attempt, with its watch. */
function findClaimed(
  statements: Statements, { watchId, seq, attempt }: { watchId: string; seq: number; attempt: number },
): { watch: WatchRow; candidate: OpenCandidate } | undefined {
  const watch = watchById(statements, watchId)
  if (watch?.state !== 'open') return undefined
  const candidate = statements.one<OpenCandidate>(candidateSql.state, watch.ord, seq)
  return candidate?.state === 'claimed' && candidate.attempts === attempt ? { watch, candidate } : undefined
}

function settleState(
  statements: Statements, { ord }: WatchRow, seq: number, state: CandidateState,
  { now, value, detail }: { now: number; value?: string; detail?: string },
): void {
  const values: SqlValue[] = [state, value ?? null, detail ?? null, now, ord, seq]
  statements.execute(candidateSql.settle, ...values)
}

/** The next candidate is due now; a watch without one, or whose candidates wait for categories, is due when it expires. */
function wakeWatch(statements: Statements, { ord, expiresAt }: WatchRow, now: number): true {
  const hasNext = statements.one<OpenCandidate>(candidateSql.next, ord)?.waiting === 0
  statements.execute(candidateSql.setDue, hasNext ? now : expiresAt + 1, ord)
  return true
}

function stateOf({ action }: Verdict): CandidateState {
  if (action === 'match' || action === 'complete') return 'matched'
  return action === 'deny' ? 'denied' : 'rejected'
}
