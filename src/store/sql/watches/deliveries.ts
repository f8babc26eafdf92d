import type { UndeliveredRecord, WatchDelivery } from '../../contract/watches.ts'
import type { DueClaim } from '../../contract/notifications.ts'
import { longestWaiting } from '../notifications/dispatch.ts'
import type { Statements } from '../statements.ts'
import { inboundBySeq } from './inbounds.ts'
import { addWatchReply, endWatchReply, wakeWatchReply } from './replies.ts'
import { deliveryColumns, deliveryOf, undeliveredOf, watchColumns, type DeliveryRow, type WatchRow } from './rows.ts'

/*
 * The open deliveries of an agent to a thread are a line: first those that are due, which one process claims together, then the queued
 * ones. The first of a line is always due.
 */

const inLine = `EXISTS (SELECT 1 FROM heed_watch_deliveries WHERE thread_id = ?3 AND agent_id = ?4 AND state IN ('queued', 'due'))`

export const deliverySql = {
  add: `
    INSERT INTO heed_watch_deliveries (id, watch, thread_id, agent_id, reason, value, seq, created_at, state, due_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, CASE WHEN ${inLine} THEN 'queued' ELSE 'due' END, CASE WHEN ${inLine} THEN NULL ELSE ?8 END)
    ON CONFLICT DO NOTHING`,
  due: `SELECT ${deliveryColumns} FROM heed_watch_deliveries WHERE agent_id = ? AND due_at <= ? ORDER BY due_at, ord LIMIT ?`,
  line: `
    SELECT ${deliveryColumns} FROM heed_watch_deliveries WHERE thread_id = ? AND agent_id = ? AND state IN ('queued', 'due')
    ORDER BY ord LIMIT ?`,
  take: `UPDATE heed_watch_deliveries SET state = 'due', due_at = ?, attempts = attempts + 1 WHERE ord = ?`,
  queueAfter: `
    UPDATE heed_watch_deliveries SET state = 'queued', due_at = NULL
    WHERE thread_id = ?1 AND agent_id = ?2 AND state IN ('queued', 'due') AND ord > ?3 AND due_at IS NOT NULL`,
  // The first of a line, where none of it is due.
  release: `
    UPDATE heed_watch_deliveries SET state = 'due', due_at = ?3 WHERE state = 'queued' AND ord = (
      SELECT min(ord) FROM heed_watch_deliveries WHERE thread_id = ?1 AND agent_id = ?2 AND state IN ('queued', 'due'))`,
  watch: `SELECT ${watchColumns} FROM heed_watches WHERE ord = ?`,
  byId: `SELECT ${deliveryColumns} FROM heed_watch_deliveries WHERE id = ? AND due_at IS NOT NULL`,
  nextDue: 'SELECT min(due_at) AS at FROM heed_watch_deliveries WHERE agent_id = ? AND due_at IS NOT NULL',
  delivered: `UPDATE heed_watch_deliveries SET state = 'delivered', due_at = NULL, delivered_at = ?, error = NULL WHERE ord = ?`,
  defer: 'UPDATE heed_watch_deliveries SET due_at = ?, error = ? WHERE ord = ?',
  fail: `UPDATE heed_watch_deliveries SET state = 'failed', due_at = NULL, error = ? WHERE ord = ?`,
  undelivered: `
    SELECT ${deliveryColumns} FROM heed_watch_deliveries WHERE watch = ? AND state <> 'delivered' ORDER BY ord LIMIT ?`,
  removeReplies: `
    DELETE FROM heed_replies WHERE state = 'received' AND signal_id IN (SELECT id FROM heed_watch_deliveries WHERE watch = ?)`,
  remove: 'DELETE FROM heed_watch_deliveries WHERE watch = ?',
}

export interface NewDelivery {
  id: string
  reason: WatchDelivery['reason']
  value?: unknown
  seq?: number
  now: number
}

export function addDelivery(statements: Statements, watch: WatchRow, { id, reason, value, seq, now }: NewDelivery): void {
  const stored = value === undefined ? null : JSON.stringify(value)
  statements.execute(deliverySql.add, id, watch.ord, watch.threadId, watch.agentId, reason, stored, seq ?? null, now)
  addWatchReply(statements, watch, { id, now })
}

export function nextDeliveryDue(statements: Statements, agentId: string): number | undefined {
  return statements.one<{ at: number | null }>(deliverySql.nextDue, agentId)?.at ?? undefined
}

export function claimDeliveries(statements: Statements, { now, until, limit, agentIds }: DueClaim): WatchDelivery[] {
  const claimed: WatchDelivery[] = []
  const taken = new Set<number>()
  for (const agentId of longestWaiting(agentIds, now, (id) => nextDeliveryDue(statements, id))) {
    for (const { ord, threadId } of statements.all<DeliveryRow>(deliverySql.due, agentId, now, limit - claimed.length)) {
      if (taken.has(ord)) continue
      const line = statements.all<DeliveryRow>(deliverySql.line, threadId, agentId, limit - claimed.length)
      for (const row of line) {
        taken.add(row.ord)
        statements.execute(deliverySql.take, until, row.ord)
        const watch = statements.one<WatchRow>(deliverySql.watch, row.watch)
        if (watch) claimed.push(deliveryOf(row, watch, row.seq === null ? undefined : inboundBySeq(statements, row.seq)))
      }
      const last = line.at(-1)
      if (last) statements.execute(deliverySql.queueAfter, threadId, agentId, last.ord)
    }
  }
  return claimed
}

export function confirmDelivery(statements: Statements, { id, now }: { id: string; now: number }): void {
  const row = statements.one<DeliveryRow>(deliverySql.byId, id)
  if (!row) return
  statements.execute(deliverySql.delivered, now, row.ord)
  wakeWatchReply(statements, id, now)
  statements.execute(deliverySql.release, row.threadId, row.agentId, now)
}

export function deferDelivery(
  statements: Statements, { id, error, retryAt, now }: { id: string; error: string; retryAt?: number; now: number },
): void {
  const row = statements.one<DeliveryRow>(deliverySql.byId, id)
  if (!row) return
  if (retryAt === undefined) {
    statements.execute(deliverySql.fail, error, row.ord)
    endWatchReply(statements, id, error === 'id_taken' ? error : 'thread_forbidden', now)
    statements.execute(deliverySql.release, row.threadId, row.agentId, now)
    return
  }
  statements.execute(deliverySql.defer, retryAt, error, row.ord)
  statements.execute(deliverySql.queueAfter, row.threadId, row.agentId, row.ord)
}

export function listUndelivered(statements: Statements, { ord }: WatchRow, limit: number): UndeliveredRecord[] {
  return statements.all<DeliveryRow>(deliverySql.undelivered, ord, limit).map(undeliveredOf)
}

/** Removes the deliveries of a watch, with replies that wait for them. Others of its agent and thread that were behind them are due. */
export function removeDeliveries(statements: Statements, { ord, threadId, agentId }: WatchRow, now: number): void {
  statements.execute(deliverySql.removeReplies, ord)
  if (statements.run(deliverySql.remove, ord) > 0) statements.execute(deliverySql.release, threadId, agentId, now)
}
