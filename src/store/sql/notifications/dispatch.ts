import { canBecome } from '../../contract/notifications.ts'
import type { Delivery, DeliveryFailure, Due, DueClaim, NotificationRecord } from '../../contract/notifications.ts'
import { takeBatch } from './ingress.ts'
import { notificationOf, type BatchRow, type NotificationRow } from './row.ts'
import { notificationSql as sql } from './sql.ts'
import type { Statements } from '../statements.ts'

/**
 * Claims due records, summaries and idle checks. Each agent first gets an equal share of `limit`; the rest goes to agents with more due.
 * The agents whose items have been due longest come first.
 */
export function claimDue(statements: Statements, { limit, agentIds, ...claim }: DueClaim): Due {
  const due: Due = { records: [], undecided: [], unconfirmed: [], batches: [], idleThreads: [] }
  const waiting = longestWaiting(agentIds, claim.now, (agentId) => nextDue(statements, [agentId]))
  const share = Math.max(1, Math.ceil(limit / Math.max(1, waiting.length)))
  let left = limit
  for (const most of [share, limit])
    for (const agentId of waiting) left -= takeOldest(statements, agentId, { ...claim, limit: Math.min(most, left) }, due)
  due.idleThreads = [...new Set(due.idleThreads)]
  return due
}

/** The agents or channels that have something due, the longest overdue first. */
export function longestWaiting(ids: readonly string[], now: number, nextDueOf: (id: string) => number | undefined): string[] {
  return ids.map((id) => ({ id, at: nextDueOf(id) ?? Infinity }))
    .filter(({ at }) => at <= now).toSorted((one, other) => one.at - other.at).map(({ id }) => id)
}

type Claim = Omit<DueClaim, 'agentIds' | 'limit'>

/** The timer of the records of an agent that are delivered when a thread is idle. */
interface Wait {
  threadId: string
  agentId: string
  since: number
  dueAt: number
}

/** Claims the longest overdue records, summaries and idle checks of one agent. Returns how many it claimed. */
function takeOldest(statements: Statements, agentId: string, { limit, ...claim }: Omit<DueClaim, 'agentIds'>, due: Due): number {
  if (limit <= 0) return 0
  const { now } = claim
  const merged = new Set<number>()
  const batches = statements.all<BatchRow>(sql.dueBatches, agentId, now, limit).map((batch) => ({
    dueAt: batch.dueAt ?? 0,
    take() {
      if (merged.has(batch.key)) return false
      const taken = takeBatch(statements, batch, claim)
      for (const key of taken.joined) merged.add(key)
      due.batches.push(taken.batch)
      return true
    },
  }))
  const rows = statements
    .all<NotificationRow>(sql.due, agentId, now, limit)
    .map((row) => ({ dueAt: row.dueAt ?? 0, take: () => takeRow(statements, row, claim, due) }))
  const waits = statements
    .all<Wait>(sql.dueWaits, agentId, now, limit)
    .map((wait) => ({ dueAt: wait.dueAt, take: () => takeWait(statements, wait, claim, due) }))
  const oldest = [...batches, ...rows, ...waits].toSorted((one, other) => one.dueAt - other.dueAt).slice(0, limit)
  return oldest.filter(({ take }) => take()).length
}

function takeRow(
  statements: Statements,
  row: NotificationRow,
  { now, until, undecided = { limit: Infinity, until }, recheckMs }: Claim,
  due: Due,
): boolean {
  if (row.decided === 1 && row.whenIdle === null && row.flight !== 2) {
    statements.execute(sql.take, until, row.key)
    due.records.push(notificationOf(row))
    return true
  }
  if (row.flight !== 2 && row.decided === 1) {
    // Its own time has come. From now on the timer of the thread covers it, as it does the other records.
    statements.execute(sql.postpone, null, row.key)
    statements.execute(sql.addWait, row.threadId, row.agentId, now, recheckMs ? now + recheckMs.least : until)
    due.idleThreads.push(row.threadId)
    return true
  }
  const asks = row.flight !== 2 && due.undecided.length < undecided.limit
  statements.execute(sql.postpone, asks ? undecided.until : until, row.key)
  if (asks) due.undecided.push(notificationOf(row))
  else if (row.flight === 2) due.unconfirmed.push(notificationOf(row))
  return true
}

/**
 * Claims a check of the thread, and sets the next one after as long as the records have waited. Checks need not be frequent: the process
 * that runs the thread reports when it becomes idle.
 */
function takeWait(statements: Statements, { threadId, agentId, since }: Wait, { now, until, recheckMs }: Claim, due: Due): boolean {
  if (statements.run(sql.endWait, threadId, agentId) > 0) return false
  const recheckAt = recheckMs ? now + Math.min(recheckMs.most, Math.max(recheckMs.least, now - since)) : until
  statements.execute(sql.moveWait, recheckAt, threadId, agentId)
  due.idleThreads.push(threadId)
  return true
}

/**
 * Claims the records that are delivered when the thread is idle, unless their own time is still to come. Makes those of agents in other
 * processes due now.
 */
export function claimIdle(statements: Statements, threadId: string, { now, until, limit, agentIds }: DueClaim): NotificationRecord[] {
  const ready = agentIds.flatMap((agentId) => statements.all<NotificationRow>(sql.idle, threadId, agentId, now, limit))
  const oldest = ready.toSorted((one, other) => one.key - other.key).slice(0, limit)
  for (const row of oldest) statements.execute(sql.take, until, row.key)
  for (const agentId of new Set(oldest.map((row) => row.agentId))) statements.execute(sql.endWait, threadId, agentId)
  const others = statements.all<{ agentId: string }>(sql.laterWaits, threadId, now).filter(({ agentId }) => !agentIds.includes(agentId))
  for (const { agentId } of others) statements.execute(sql.moveWait, now, threadId, agentId)
  return oldest.map(notificationOf)
}

export function nextDue(statements: Statements, agentIds: readonly string[]): number | undefined {
  let next: number | undefined
  for (const agentId of agentIds) {
    for (const text of [sql.nextDue, sql.nextBatchDue, sql.nextWaitDue]) {
      const at = statements.one<{ at: number | null }>(text, agentId)?.at ?? undefined
      if (at !== undefined && (next === undefined || at < next)) next = at
    }
  }
  return next
}

export function delivered(
  statements: Statements,
  { threadId, id, signalId, status, now, rememberUntil, confirmAt }: Delivery,
): NotificationRow | undefined {
  const row = statements.one<NotificationRow>(sql.byId, threadId, id)
  if (!row) return undefined
  const next = canBecome(row.status, status) ? status : row.status
  // A record that was seen, dismissed or archived needs no confirmation.
  const confirm = next === 'delivered' ? (confirmAt ?? null) : null
  statements.execute(sql.delivered, next, rememberUntil ?? null, signalId, now, row.key, confirm)
  return row
}

/** Stores a failed delivery. Returns undefined, and changes nothing, where the record's status no longer allows it. */
export function failed(
  statements: Statements, { threadId, id, error, signalId, retryAt, now }: DeliveryFailure,
): NotificationRow | undefined {
  const row = statements.one<NotificationRow>(sql.byId, threadId, id)
  if (!row || !canBecome(row.status, 'failed')) return undefined
  if (signalId !== undefined && (row.status === 'pending' || row.deliveredSignalId !== signalId)) return undefined
  if (retryAt === undefined) statements.execute(sql.fail, now, error, row.key)
  else if (row.status === 'pending') statements.execute(sql.retry, retryAt, now, error, row.key)
  return row
}

export function batchFailed(
  statements: Statements,
  { batchId, error, retryAt, now }: { batchId: string; error: string; retryAt?: number; now: number },
): BatchRow | undefined {
  const batch = statements.one<BatchRow>(sql.batch, batchId)
  if (!batch) return undefined
  if (retryAt !== undefined) {
    statements.execute(sql.retryBatch, retryAt, batch.key)
    return undefined
  }
  statements.execute(sql.failBatch, batch.key)
  statements.execute(sql.failCounted, now, error, batch.key)
  return batch
}

/** Stores that the summary was emitted, and touches the records that it counted. `signalId` is absent if it counted none. */
export function summarized(statements: Statements, batchId: string, signalId: string | undefined): BatchRow | undefined {
  statements.execute(sql.emitted, signalId ?? null, batchId)
  const batch = signalId === undefined ? undefined : statements.one<BatchRow>(sql.batch, batchId)
  if (batch) statements.execute(sql.touchCounted, batch.key)
  return batch
}

/** Ends the check of an unconfirmed record. */
export function confirm(statements: Statements, { threadId, id }: { threadId: string; id: string }): void {
  const row = statements.one<NotificationRow>(sql.byId, threadId, id)
  if (row?.flight === 2) statements.execute(sql.confirmed, row.key)
}
