import { notificationSql as sql } from './sql.ts'
import type { NotificationRow } from './row.ts'
import type { Statements } from '../statements.ts'

/** A key belongs to a source on a thread, for one agent. What is written here is also changed where a thread becomes another's. */
export function slotOf(
  { threadId, resourceId, agentId, source }: { threadId: string; resourceId: string; agentId: string; source: string }, key: string | null | undefined,
): string | null {
  return key === undefined || key === null ? null : JSON.stringify([key, source, threadId, resourceId, agentId])
}

/** The record that has this key, or on which one that had it is counted. */
export function ofDedupeSlot(statements: Statements, slot: string): NotificationRow | undefined {
  return statements.one<NotificationRow>(sql.byDedupeSlot, slot) ?? countedOn(statements, sql.mergedBySlot, slot)
}

/** The record on which something was counted. */
export function countedOn(statements: Statements, text: string, ...values: string[]): NotificationRow | undefined {
  const found = statements.one<{ record: number }>(text, ...values)
  return found && statements.one<NotificationRow>(sql.byKey, found.record)
}

/** Whether what has its key is counted on it: it waits, or is remembered. */
export function holdsKey({ status, rememberUntil }: NotificationRow, now: number): boolean {
  return status === 'pending' || (rememberUntil ?? 0) > now
}

/** Whoever comes next has the key. */
export function freeKey(statements: Statements, slot: string, { key }: NotificationRow): void {
  statements.run(sql.forgetKey, key)
  statements.run(sql.forgetMergedKey, slot)
}

/**
 * Makes a failed record due again, with its keys. Where another has its `dedupeKey` by now, and waits or is remembered, that one is the event: this one is
 * counted on it, and discarded. Where another has its `coalesceKey`, it comes by itself. Answers whether it is due.
 */
export function tryAgain(statements: Statements, row: NotificationRow, now: number): boolean {
  const dedupeSlot = slotOf(row, row.dedupeKey)
  const same = dedupeSlot === null ? undefined : ofDedupeSlot(statements, dedupeSlot)
  if (dedupeSlot !== null && same && same.key !== row.key) {
    if (holdsKey(same, now)) {
      statements.run(sql.count, now, same.key, row.coalescedCount)
      statements.run(sql.discard, 'duplicate', now, now, row.key)
      return false
    }
    freeKey(statements, dedupeSlot, same)
  }
  const coalesceSlot = slotOf(row, row.coalesceKey)
  const related = coalesceSlot === null ? undefined : statements.one<NotificationRow>(sql.byCoalesceSlot, coalesceSlot)
  statements.run(sql.again, now, dedupeSlot, related ? null : coalesceSlot, row.key)
  return true
}
