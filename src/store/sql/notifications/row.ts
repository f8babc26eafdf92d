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
  return {
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
    ...json('payload', row.payload),
    ...json('attributes', row.attributes),
    ...json('metadata', row.metadata),
    ...text('dedupeKey', row.dedupeKey),
    ...text('coalesceKey', row.coalesceKey),
    ...(row.action === null ? {} : { deliveryAction: row.action }),
    ...text('deliveryReason', row.reason),
    ...text('deliveryRule', row.rule),
    ...text('lastDeliveryError', row.error),
    ...text('deliveredSignalId', row.deliveredSignalId),
    ...text('summarySignalId', row.summarySignalId),
    ...time('deliverAt', row.deliverAt),
    ...time('summaryAt', row.summaryAt),
    ...time('lastDeliveryAttemptAt', row.attemptedAt),
    ...time('deliveredAt', row.deliveredAt),
    ...time('seenAt', row.seenAt),
    ...time('dismissedAt', row.dismissedAt),
    ...time('archivedAt', row.archivedAt),
    ...time('discardedAt', row.discardedAt),
  }
}

function time<Field extends string>(field: Field, value: number | null): { [Key in Field]?: Date } {
  return value === null ? {} : ({ [field]: new Date(value) } as { [Key in Field]?: Date })
}

function text<Field extends string>(field: Field, value: string | null): { [Key in Field]?: string } {
  return value === null ? {} : ({ [field]: value } as { [Key in Field]?: string })
}

function json<Field extends 'payload' | 'attributes' | 'metadata'>(field: Field, value: string | null): Pick<NotificationRecord, Field> {
  return (value === null ? {} : { [field]: JSON.parse(value) as unknown }) as Pick<NotificationRecord, Field>
}
