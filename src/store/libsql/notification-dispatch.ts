import { canBecome } from '../notification-states.ts'
import type { DueClaim, Delivery, DeliveryFailure, Due, NotificationRecord } from '../notifications.ts'
import { takeBatch } from './notification-ingress.ts'
import { notificationOf, type BatchRow, type NotificationRow } from './notification-row.ts'
import { notificationSql as sql } from './notification-sql.ts'
import type { Statements } from './statements.ts'

/**
 * Takes what is due. No agent gets more than its share while others wait; what they leave is for whoever has more. Where there is less than one for each,
 * those come first who have waited longest.
 */
export function claimDue(statements: Statements, { now, until, limit, agentIds }: DueClaim): Due {
  const due: Due = { records: [], undecided: [], unconfirmed: [], batches: [], idleThreads: [] }
  const waiting = longestWaiting(agentIds, now, (agentId) => nextDue(statements, [agentId]))
  const share = Math.max(1, Math.ceil(limit / Math.max(1, waiting.length)))
  let left = limit
  for (const most of [share, limit]) for (const agentId of waiting) left -= takeOldest(statements, agentId, { now, until, limit: Math.min(most, left) }, due)
  due.idleThreads = [...new Set(due.idleThreads)]
  return due
}

/** Agents for whom something is due, by how long that has waited. */
export function longestWaiting(agentIds: readonly string[], now: number, nextDueOf: (agentId: string) => number | undefined): string[] {
  return agentIds.map((agentId) => ({ agentId, at: nextDueOf(agentId) ?? Infinity }))
    .filter(({ at }) => at <= now).toSorted((one, other) => one.at - other.at).map(({ agentId }) => agentId)
}

/** Of one agent, what has waited longest, be it a record or a summary. Answers how much that was. */
function takeOldest(statements: Statements, agentId: string, { now, until, limit }: Omit<DueClaim, 'agentIds'>, due: Due): number {
  if (limit <= 0) return 0
  const gone = new Set<number>()
  const batches = statements.all<BatchRow>(sql.dueBatches, agentId, now, limit).map((batch) => ({
    dueAt: batch.dueAt ?? 0,
    take() {
      if (gone.has(batch.key)) return false
      const taken = takeBatch(statements, batch, { now, until })
      for (const key of taken.joined) gone.add(key)
      due.batches.push(taken.batch)
      return true
    },
  }))
  const rows = statements.all<NotificationRow>(sql.due, agentId, now, limit).map((row) => ({ dueAt: row.dueAt ?? 0, take: () => takeRow(statements, row, until, due) }))
  const oldest = [...batches, ...rows].toSorted((one, other) => one.dueAt - other.dueAt).slice(0, limit)
  return oldest.filter(({ take }) => take()).length
}

function takeRow(statements: Statements, row: NotificationRow, until: number, due: Due): boolean {
  if (row.decided === 1 && row.whenIdle === null && row.flight !== 2) {
    statements.run(sql.take, until, row.key)
    due.records.push(notificationOf(row))
    return true
  }
  statements.run(sql.postpone, until, row.key)
  if (row.flight === 2) due.unconfirmed.push(notificationOf(row))
  else if (row.decided === 0) due.undecided.push(notificationOf(row))
  else due.idleThreads.push(row.threadId)
  return true
}

/** Takes what waits for the thread to be idle, unless its own time has yet to come. */
export function claimIdle(statements: Statements, threadId: string, { now, until, limit, agentIds }: DueClaim): NotificationRecord[] {
  const ready = agentIds.flatMap((agentId) => statements.all<NotificationRow>(sql.idle, threadId, agentId, now, limit))
  const oldest = ready.toSorted((one, other) => one.key - other.key).slice(0, limit)
  for (const row of oldest) statements.run(sql.take, until, row.key)
  return oldest.map(notificationOf)
}

export function nextDue(statements: Statements, agentIds: readonly string[]): number | undefined {
  let next: number | undefined
  for (const agentId of agentIds) {
    for (const text of [sql.nextDue, sql.nextBatchDue]) {
      const at = statements.one<{ at: number | null }>(text, agentId)?.at ?? undefined
      if (at !== undefined && (next === undefined || at < next)) next = at
    }
  }
  return next
}

export function delivered(statements: Statements, { threadId, id, signalId, status, now, rememberUntil, confirmAt }: Delivery): NotificationRow | undefined {
  const row = statements.one<NotificationRow>(sql.byId, threadId, id)
  if (!row) return undefined
  const next = canBecome(row.status, status) ? status : row.status
  // What was put away needs no confirmation.
  const confirm = next === 'delivered' ? (confirmAt ?? null) : null
  statements.run(sql.delivered, next, rememberUntil ?? null, signalId, now, row.key, confirm)
  return row
}

/** A record that was put away meanwhile has nothing to be tried for. */
export function failed(statements: Statements, { threadId, id, error, retryAt, now }: DeliveryFailure): NotificationRow | undefined {
  const row = statements.one<NotificationRow>(sql.byId, threadId, id)
  if (!row || !canBecome(row.status, 'failed')) return undefined
  if (retryAt === undefined) statements.run(sql.fail, now, error, row.key)
  else if (row.status === 'pending') statements.run(sql.retry, retryAt, now, error, row.key)
  return row
}

export function batchFailed(statements: Statements, { batchId, error, retryAt, now }: { batchId: string; error: string; retryAt?: number; now: number }): BatchRow | undefined {
  const batch = statements.one<BatchRow>(sql.batch, batchId)
  if (!batch) return undefined
  if (retryAt !== undefined) {
    statements.run(sql.retryBatch, retryAt, batch.key)
    return undefined
  }
  statements.run(sql.failBatch, batch.key)
  statements.run(sql.failCounted, now, error, batch.key)
  return batch
}

/** The summary is in the thread: what it counted says so. Nothing where there was nothing to count. */
export function summarised(statements: Statements, batchId: string, signalId: string | undefined): BatchRow | undefined {
  statements.run(sql.emitted, signalId ?? null, batchId)
  const batch = signalId === undefined ? undefined : statements.one<BatchRow>(sql.batch, batchId)
  if (batch) statements.run(sql.countedAnew, batch.key)
  return batch
}

/** Those that are still unconfirmed have nothing more to be looked at for. */
export function confirm(statements: Statements, { threadId, id }: { threadId: string; id: string }): void {
  const row = statements.one<NotificationRow>(sql.byId, threadId, id)
  if (row?.flight === 2) statements.run(sql.confirmed, row.key)
}
