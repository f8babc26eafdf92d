import { notificationSql, touched } from './notification-sql.ts'
import type { Statements } from './statements.ts'

/** What is said of notifications and schedules when their thread goes, or becomes another's. */
export const belongingsSql = {
  forgetNotifications: `DELETE FROM heed_notifications WHERE thread_id = ?1 AND (?2 IS NULL OR resource_id = ?2)`,
  forgetBatches: `DELETE FROM heed_notification_batches WHERE thread_id = ?1 AND (?2 IS NULL OR resource_id = ?2)`,
  forgetSchedules: `DELETE FROM heed_schedules WHERE thread_id = ?1 AND (?2 IS NULL OR resource_id = ?2)`,
  // The resource is the second word of a slot.
  giveNotifications: `
    UPDATE heed_notifications SET resource_id = ?1, dedupe_slot = json_set(dedupe_slot, '$[1]', ?1), coalesce_slot = json_set(coalesce_slot, '$[1]', ?1), ${touched}
    WHERE thread_id = ?2`,
  // Those of a resource are one window: what comes from elsewhere takes in nothing more.
  giveBatches: `UPDATE heed_notification_batches SET resource_id = ?1, open = CASE WHEN resource_id = ?1 THEN open END WHERE thread_id = ?2`,
  giveSchedules: `UPDATE heed_schedules SET resource_id = ? WHERE thread_id = ?`,
} as const

export function forgetNotifications(statements: Statements, threadId: string, resourceId?: string): void {
  statements.run(belongingsSql.forgetNotifications, threadId, resourceId ?? null)
  statements.run(belongingsSql.forgetBatches, threadId, resourceId ?? null)
}

export function forgetSchedules(statements: Statements, threadId: string, resourceId?: string): void {
  statements.run(belongingsSql.forgetSchedules, threadId, resourceId ?? null)
}

/** Of a thread that goes, or is not there. */
export function forgetBelongings(statements: Statements, { threadId, resourceId }: { threadId: string; resourceId?: string }): void {
  forgetNotifications(statements, threadId, resourceId)
  forgetSchedules(statements, threadId, resourceId)
}

export function giveNotifications(statements: Statements, threadId: string, resourceId: string): void {
  statements.run(notificationSql.countChange)
  statements.run(belongingsSql.giveNotifications, resourceId, threadId)
  statements.run(belongingsSql.giveBatches, resourceId, threadId)
}

export function giveSchedules(statements: Statements, threadId: string, resourceId: string): void {
  statements.run(belongingsSql.giveSchedules, resourceId, threadId)
}
