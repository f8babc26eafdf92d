import type { NotificationPriority, NotificationStatus } from './notifications.ts'

/**
 * What a record can become. Pure, so that every store decides alike. A pending one is discarded or failed by Heed alone; whatever was
 * put away stays away; what failed may be tried again, or is discarded where its event came in another record.
 */
const table: Record<NotificationStatus, readonly NotificationStatus[]> = {
  pending: ['delivered', 'seen', 'dismissed', 'archived', 'discarded', 'failed'],
  delivered: ['seen', 'dismissed', 'archived', 'failed'],
  seen: ['dismissed', 'archived'],
  dismissed: ['archived'],
  archived: [],
  discarded: [],
  failed: ['pending', 'seen', 'dismissed', 'archived', 'discarded'],
}

export function canBecome(status: NotificationStatus, next: NotificationStatus): boolean {
  return table[status].includes(next)
}

export const notificationStatuses = Object.keys(table) as NotificationStatus[]

/** The most pressing first. */
export const notificationPriorities: readonly NotificationPriority[] = ['urgent', 'high', 'medium', 'low']

/** How long the id of a notification may be: its signals are named after it, and the id of a signal has an end. */
export const maxNotificationId = 200
