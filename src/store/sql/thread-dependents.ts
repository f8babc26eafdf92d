import { notificationSql, touched } from './notifications/sql.ts'
import { sql } from './sql.ts'
import type { Statements } from './statements.ts'
import { scoreSql } from './scores/scores.ts'
import { stepSql } from './steps/sql.ts'
import { forgetWatches, transferWatches } from './watches/watches.ts'
import { workflowSql } from './workflows/workflows.ts'

/** The statements for notifications, schedules and subscriptions whose thread is deleted or transferred. */
export const dependentsSql = {
  forgetNotifications: `DELETE FROM heed_notifications WHERE thread_id = ?1 AND (?2 IS NULL OR resource_id = ?2)`,
  forgetBatches: `DELETE FROM heed_notification_batches WHERE thread_id = ?1 AND (?2 IS NULL OR resource_id = ?2)`,
  // Records of other resources with this thread id keep the timer.
  forgetWaits: `
    DELETE FROM heed_notification_waits WHERE thread_id = ?1 AND NOT EXISTS (
      SELECT 1 FROM heed_notifications n WHERE n.thread_id = ?1 AND n.when_idle = 1)`,
  forgetSchedules: `DELETE FROM heed_schedules WHERE thread_id = ?1 AND (?2 IS NULL OR resource_id = ?2)`,
  forgetSubscriptions: `DELETE FROM heed_subscriptions WHERE thread_id = ?1 AND (?2 IS NULL OR resource_id = ?2)`,
  // The resource is the fourth element of a slot.
  transferNotifications: `
    UPDATE OR IGNORE heed_notifications SET resource_id = ?1, dedupe_slot = json_set(dedupe_slot, '$[3]', ?1),
      coalesce_slot = json_set(coalesce_slot, '$[3]', ?1), ${touched}
    WHERE thread_id = ?2`,
  // The new resource, or an earlier record, has the same key. These records stay without a key, and repetitions are counted on the other.
  transferKeyless: `
    UPDATE heed_notifications SET resource_id = ?1, dedupe_slot = NULL, coalesce_slot = NULL, ${touched}
    WHERE thread_id = ?2 AND resource_id <> ?1`,
  transferMerged: `
    UPDATE heed_notification_merged SET dedupe_slot = json_set(dedupe_slot, '$[3]', ?1)
    WHERE record IN (SELECT key FROM heed_notifications WHERE thread_id = ?2) AND dedupe_slot IS NOT NULL`,
  // A resource has one open window, so batches of the previous resource are closed.
  transferBatches: `
    UPDATE heed_notification_batches SET resource_id = ?1, open = CASE WHEN resource_id = ?1 THEN open END
    WHERE thread_id = ?2`,
  transferSchedules: `UPDATE heed_schedules SET resource_id = ? WHERE thread_id = ?`,
  transferSubscriptions: `UPDATE heed_subscriptions SET resource_id = ? WHERE thread_id = ?`,
} as const

export function forgetNotifications(statements: Statements, threadId: string, resourceId?: string): void {
  statements.lockDomain?.('notifications', [threadId])
  statements.execute(dependentsSql.forgetNotifications, threadId, resourceId ?? null)
  statements.execute(dependentsSql.forgetBatches, threadId, resourceId ?? null)
  statements.execute(dependentsSql.forgetWaits, threadId)
}

export function forgetSchedules(statements: Statements, threadId: string, resourceId?: string): void {
  statements.execute(dependentsSql.forgetSchedules, threadId, resourceId ?? null)
}

export function forgetSubscriptions(statements: Statements, threadId: string, resourceId?: string): void {
  statements.execute(dependentsSql.forgetSubscriptions, threadId, resourceId ?? null)
}

/** Locks the dependents of a thread that is transferred. */
export function lockDependents(statements: Statements, threadId: string): void {
  statements.lockDomain?.('notifications', [threadId])
  statements.lockDomain?.('watches')
}

/** Deletes the dependents of a thread that is deleted or does not exist. */
export function forgetDependents(statements: Statements, { threadId, resourceId }: { threadId: string; resourceId?: string }): void {
  forgetNotifications(statements, threadId, resourceId)
  forgetSchedules(statements, threadId, resourceId)
  forgetSubscriptions(statements, threadId, resourceId)
  forgetWatches(statements, threadId, resourceId)
}

export function transferNotifications(statements: Statements, threadId: string, resourceId: string): void {
  statements.lockDomain?.('notifications', [threadId])
  if (!statements.lockDomain) statements.execute(notificationSql.countChange)
  statements.execute(dependentsSql.transferNotifications, resourceId, threadId)
  statements.execute(dependentsSql.transferKeyless, resourceId, threadId)
  statements.execute(dependentsSql.transferMerged, resourceId, threadId)
  statements.execute(dependentsSql.transferBatches, resourceId, threadId)
}

export function transferSchedules(statements: Statements, threadId: string, resourceId: string): void {
  statements.execute(dependentsSql.transferSchedules, resourceId, threadId)
}

export function transferSubscriptions(statements: Statements, threadId: string, resourceId: string): void {
  statements.execute(dependentsSql.transferSubscriptions, resourceId, threadId)
}

/** Transfers the dependents of a thread to another resource. */
export function transferDependents(statements: Statements, threadId: string, resourceId: string, now: number): void {
  for (const transfer of [transferNotifications, transferSchedules, transferSubscriptions]) transfer(statements, threadId, resourceId)
  transferWatches(statements, threadId, resourceId, now)
  statements.execute(scoreSql.transfer, resourceId, threadId)
}

/** How many rows of each table one transaction deletes; others delete the rest. */
const purgeRows = 300

/** Deletes rows of a deleted thread. True when none is left. */
export function purgeThread(statements: Statements, key: number): boolean {
  const deleted = [
    statements.run(sql.purgeMessages, key, purgeRows),
    statements.run(sql.purgeMailbox, key, purgeRows),
    statements.run(sql.purgeRuns, key, purgeRows),
    statements.run(sql.purgeLaneSignals, key, purgeRows),
    statements.run(stepSql.purgeSteps, key, purgeRows),
    statements.run(stepSql.purgeUses, key, purgeRows),
    statements.run(stepSql.purgeTakeovers, key, purgeRows),
    statements.run(workflowSql.purgeSteps, key, purgeRows),
    statements.run(scoreSql.purge, key, purgeRows),
  ]
  statements.execute(sql.purgeLanes, key)
  statements.execute(workflowSql.purgeRun, key)
  return deleted.every((count) => count < purgeRows)
}
