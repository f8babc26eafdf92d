import { createHash } from 'node:crypto'
import { isName } from '../base/arguments.ts'
import { describe, HeedError, isHeedError, type HeedErrorCode } from '../base/errors.ts'
import type { NotificationInput } from '../inbox/input.ts'
import type { Logger } from '../base/logger.ts'
import { maxNotificationId } from '../store/contract/notification-rules.ts'
import type { SubscriptionRecord } from '../store/contract/subscriptions.ts'
import type { SourceEvent } from './event.ts'

export interface Telling {
  sourceId: string
  logger: Logger
  subscribed(externalId: string): AsyncIterable<SubscriptionRecord>
  notify(subscription: SubscriptionRecord, notification: NotificationInput): Promise<void>
}

/**
 * Tells every thread that subscribed, each by itself: one that can't be told keeps it from no other. Throws when something is not stored that
 * could be, so that whoever sent the event sends it again; what is stored already is then stored once.
 */
export async function tell({ sourceId, logger, subscribed, notify }: Telling, { id, externalIds, notification }: SourceEvent): Promise<number> {
  const known = { id: notificationId(sourceId, id), source: sourceId }
  const told = new Set<string>()
  const failed = new Map<string, unknown>()
  for (const externalId of new Set(externalIds)) {
    for await (const subscription of subscribed(externalId)) {
      const { threadId } = subscription
      if (told.has(threadId)) continue
      try {
        const input = typeof notification === 'function' ? notification(subscription) : notification
        if (!input) continue
        await notify(subscription, { ...input, ...known })
        told.add(threadId)
        failed.delete(threadId)
      } catch (error) {
        failed.set(threadId, error)
      }
    }
  }
  if (failed.size > 0) refuse([...failed], { known, told: told.size, logger })
  return told.size
}

/** What the sender is told names no thread: it is a stranger to them. */
function refuse(failed: ReadonlyArray<readonly [string, unknown]>, { known: { id, source }, told, logger }: { known: { id: string; source: string }; told: number; logger: Logger }): void {
  const [, first] = failed[0] ?? []
  logger.error('threads could not be told of an event', { source, event: id, threads: failed.length, threadIds: failed.slice(0, 10).map(([threadId]) => threadId), error: describe(first) })
  const errors = failed.map(([, error]) => error)
  if (errors.some((error) => !isFinal(error))) {
    throw new HeedError('store_failed', 'Not all of this event could be stored. Send it again.', { retryable: true, cause: new AggregateError(errors) })
  }
  // Nobody was told because there is something wrong with the event itself.
  const wrong = told === 0 ? errors.find((error) => isHeedError(error) && error.code === 'invalid_argument') : undefined
  if (wrong !== undefined) throw wrong
}

const final: ReadonlySet<string> = new Set<HeedErrorCode>(['invalid_argument', 'thread_forbidden', 'id_taken'])

/** It would be refused again, however often it is sent. */
function isFinal(error: unknown): boolean {
  return isHeedError(error) && final.has(error.code)
}

/** The same for the same event, however long its own id is. */
function notificationId(sourceId: string, eventId: string): string {
  const id = `${sourceId}:${eventId}`
  return isName(id) && id.length <= maxNotificationId ? id : `event:${createHash('sha256').update(JSON.stringify([sourceId, eventId])).digest('hex')}`
}
