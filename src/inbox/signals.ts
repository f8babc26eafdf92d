import type { JSONValue } from '../base/json.ts'
import { joinTaint, taintOf } from '../message/taint.ts'
import { normalizeSignal, reservedIdPrefixes } from '../signals/normalize.ts'
import type { Signal } from '../signals/signal.ts'
import type { NotificationRecord, SummaryBatch } from '../store/contract/notifications.ts'

/**
 * The signal id of a record's full text, equal for all senders: the thread accepts it once. A rejected signal stays rejected: the retry of
 * its record has the next id.
 */
function fullSignalId({ id, deliveredSignalId }: Pick<NotificationRecord, 'id' | 'deliveredSignalId'>): string {
  if (deliveredSignalId === undefined) return reservedIdPrefixes.full + id
  const before = /^notification-retry:(\d+):/.exec(deliveredSignalId)?.[1]
  return `${reservedIdPrefixes.retry}${before === undefined ? 1 : Number(before) + 1}:${id}`
}

/** A cancelled signal stays cancelled: its replacement has the id of the next round. */
export function summarySignalId({ id }: Pick<SummaryBatch, 'id'>, round = 0): string {
  return round === 0 ? reservedIdPrefixes.summary + id : `${reservedIdPrefixes.summary}${id}:${round}`
}

/** The batch that a signal summarizes; undefined for other signals. */
export function batchIdOf(signalId: string): string | undefined {
  return signalId.startsWith(reservedIdPrefixes.summary) ? signalId.slice(reservedIdPrefixes.summary.length).split(':', 1)[0] : undefined
}

/** The sender of an event may be a stranger who chose its text. A program can name where else it came from, at `metadata.taintedBy`. */
export function taintOfNotification({ source, metadata }: Pick<NotificationRecord, 'source' | 'metadata'>): readonly string[] {
  return joinTaint(['notification', `notification/${source}`], taintOf({ metadata: { taintedBy: metadata?.taintedBy as JSONValue } }))
}

/** The signal with the full text. The four attributes that Heed writes come first and can't be replaced. */
export function fullSignal(record: NotificationRecord, now: number): Signal {
  const { source, kind, priority } = record
  const reserved = { source, type: kind, priority, status: 'delivered' }
  return normalizeSignal(
    {
      type: 'notification',
      contents: record.summary,
      attributes: { ...reserved, ...record.attributes, ...reserved },
      metadata: {
        notification: { signal: 'notification', id: record.id, source, kind, priority, coalescedCount: record.coalescedCount },
        taintedBy: [...taintOfNotification(record)],
      },
    },
    { id: fullSignalId(record), now },
  )
}

/** The signal with the number of pending notifications by source, in the order of their first occurrence. */
export function summarySignal(batch: SummaryBatch, now: number, round = 0): Signal {
  const pending = pendingIn(batch)
  const id = summarySignalId(batch, round)
  return normalizeSignal(
    {
      type: 'notification',
      tagName: 'notification-summary',
      contents: batch.sources.map(({ source, count }) => `${source}: ${count}`).join(', '),
      attributes: { pending },
      metadata: {
        notification: {
          signal: 'summary',
          pending,
          bySource: Object.fromEntries(batch.sources.map(({ source, count }) => [source, count])),
          byPriority: batch.priorities,
        },
        taintedBy: ['notification', ...batch.sources.map(({ source }) => `notification/${source}`)].toSorted(),
      },
    },
    { id, now },
  )
}

export function pendingIn(batch: SummaryBatch): number {
  return batch.sources.reduce((sum, { count }) => sum + count, 0)
}
