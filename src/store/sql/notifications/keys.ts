import { notificationSql as sql } from './sql.ts'
import type { NotificationRow } from './row.ts'
import type { Statements } from '../statements.ts'

/**
 * The value of a slot column: a key is unique for a source, thread, resource and agent. `transferNotifications` in `thread-dependents.ts`
 * changes the resource, at index 3.
 */
export function slotOf(
  { threadId, resourceId, agentId, source }: { threadId: string; resourceId: string; agentId: string; source: string },
  key: string | null | undefined,
): string | null {
  return key === undefined || key === null ? null : JSON.stringify([key, source, threadId, resourceId, agentId])
}

/** The record that has this key, or that counts a notification which had it. */
export function recordOfSlot(statements: Statements, slot: string): NotificationRow | undefined {
  return statements.one<NotificationRow>(sql.byDedupeSlot, slot) ?? countedOn(statements, sql.mergedBySlot, slot)
}

/** The record that counts a merged notification, which `text` finds. */
export function countedOn(statements: Statements, text: string, ...values: string[]): NotificationRow | undefined {
  const found = statements.one<{ record: number }>(text, ...values)
  return found && statements.one<NotificationRow>(sql.byKey, found.record)
}

/** Whether the record counts notifications with its key: it is pending, or its key is remembered. */
export function holdsKey({ status, rememberUntil }: NotificationRow, now: number): boolean {
  return status === 'pending' || (rememberUntil ?? 0) > now
}

/** Releases the key, so that the next record can have it. */
export function releaseKey(statements: Statements, slot: string, { key }: NotificationRow): void {
  statements.execute(sql.forgetKey, key)
  statements.execute(sql.forgetMergedKey, slot)
}

/**
 * Makes a failed record due again, with its keys. If another record has its `dedupeKey`, pending or remembered, this one is counted on that
 * one and discarded. If another record has its `coalesceKey`, this one is delivered without it. Returns whether it is due.
 */
export function retryRecord(statements: Statements, row: NotificationRow, now: number): boolean {
  const dedupeSlot = slotOf(row, row.dedupeKey)
  const same = dedupeSlot === null ? undefined : recordOfSlot(statements, dedupeSlot)
  if (dedupeSlot !== null && same && same.key !== row.key) {
    if (holdsKey(same, now)) {
      statements.execute(sql.count, now, same.key, row.coalescedCount)
      statements.execute(sql.discard, 'duplicate', now, now, null, row.key)
      return false
    }
    releaseKey(statements, dedupeSlot, same)
  }
  const coalesceSlot = slotOf(row, row.coalesceKey)
  const related = coalesceSlot === null ? undefined : statements.one<NotificationRow>(sql.byCoalesceSlot, coalesceSlot)
  statements.execute(sql.reopen, now, dedupeSlot, related ? null : coalesceSlot, row.key)
  return true
}
