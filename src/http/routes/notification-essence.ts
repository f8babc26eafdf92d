import type { CheckedNotification } from '../../inbox/input.ts'
import { orderedJSON } from '../../base/json.ts'
import type { NotificationRecord } from '../../store/contract/notifications.ts'

/** Whether the record of this id was made of something else. Of one that newer states have replaced, what they leave is compared. */
export function isOther(record: NotificationRecord, sent: CheckedNotification | undefined): boolean {
  if (sent?.id !== record.id) return false
  const isReplaced = record.coalesceKey !== undefined && record.coalescedCount > 1
  return essence(record, isReplaced) !== essence(sent, isReplaced)
}

function essence({ source, kind, summary, priority = 'medium', payload, dedupeKey, coalesceKey, attributes = {}, metadata = {} }: NotificationRecord | CheckedNotification, isReplaced: boolean): string {
  return orderedJSON(isReplaced ? [source, coalesceKey] : [source, kind, summary, priority, payload, dedupeKey, coalesceKey, attributes, metadata])
}
