import type {
  NotificationDeliveryAction, NotificationPriority, NotificationRecord, NotificationStatus,
} from '../../contract/notifications.ts'

/** A record as the database has it. */
export interface NotificationRow {
  key: number
  threadId: string
  id: string
  resourceId: string
  agentId: string
  status: NotificationStatus
  priority: NotificationPriority
  batch: number | null
  dueAt: number | null
  decided: number
  flight: number
  whenIdle: number | null
  rememberUntil: number | null
  coalescedCount: number
  attempts: number
  createdAt: number
  updatedAt: number
  deliverAt: number | null
  attemptedAt: number | null
  deliveredAt: number | null
  seenAt: number | null
  dismissedAt: number | null
  archivedAt: number | null
  discardedAt: number | null
  deliveredSignalId: string | null
  reason: string | null
  error: string | null
  dedupeKey: string | null
  coalesceKey: string | null
  source: string
  kind: string
  summary: string
  attributes: string | null
  metadata: string | null
  payload: string | null
  action: NotificationDeliveryAction | null
  changed: number
  rule: string | null
  summaryAt: number | null
  summarySignalId: string | null
  /** 1 if a summary that counts it was emitted, or is being sent. */
  summarized: number
}

/** A record without the numbers that the database gives it. */
export type UnnumberedRow = Omit<NotificationRow, 'key' | 'changed'>

export interface BatchRow {
  key: number
  id: string
  threadId: string
  resourceId: string
  agentId: string
  /** Null once a process has claimed it for sending. */
  open: number | null
  firstAt: number
  dueAt: number | null
  attempts: number
}

/** The record that the store returns. Null columns are absent keys. */
export function notificationOf(row: UnnumberedRow): NotificationRecord {
  const record: NotificationRecord = {
    id: row.id,
    threadId: row.threadId,
    resourceId: row.resourceId,
    agentId: row.agentId,
    source: row.source,
    kind: row.kind,
    priority: row.priority,
    status: row.status,
    summary: row.summary,
    coalescedCount: row.coalescedCount,
    createdAt: new Date(row.createdAt),
    updatedAt: new Date(row.updatedAt),
    deliveryAttempts: row.attempts,
  }
  // Key by key: an object for each of them would be most of what a notification allocates.
  if (row.payload !== null) record.payload = JSON.parse(row.payload) as NonNullable<NotificationRecord['payload']>
  if (row.attributes !== null) record.attributes = JSON.parse(row.attributes) as NonNullable<NotificationRecord['attributes']>
  if (row.metadata !== null) record.metadata = JSON.parse(row.metadata) as NonNullable<NotificationRecord['metadata']>
  if (row.dedupeKey !== null) record.dedupeKey = row.dedupeKey
  if (row.coalesceKey !== null) record.coalesceKey = row.coalesceKey
  if (row.action !== null) record.deliveryAction = row.action
  if (row.reason !== null) record.deliveryReason = row.reason
  if (row.rule !== null) record.deliveryRule = row.rule
  if (row.error !== null) record.lastDeliveryError = row.error
  if (row.deliveredSignalId !== null) record.deliveredSignalId = row.deliveredSignalId
  if (row.summarySignalId !== null) record.summarySignalId = row.summarySignalId
  if (row.deliverAt !== null) record.deliverAt = new Date(row.deliverAt)
  if (row.summaryAt !== null) record.summaryAt = new Date(row.summaryAt)
  if (row.attemptedAt !== null) record.lastDeliveryAttemptAt = new Date(row.attemptedAt)
  if (row.deliveredAt !== null) record.deliveredAt = new Date(row.deliveredAt)
  if (row.seenAt !== null) record.seenAt = new Date(row.seenAt)
  if (row.dismissedAt !== null) record.dismissedAt = new Date(row.dismissedAt)
  if (row.archivedAt !== null) record.archivedAt = new Date(row.archivedAt)
  if (row.discardedAt !== null) record.discardedAt = new Date(row.discardedAt)
  return record
}
