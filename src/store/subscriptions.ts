import type { JSONValue } from '../json.ts'
import type { Belongings } from './belongings.ts'

/**
 * Which threads want to hear of which things outside: a pull request, a mailbox, a build. Each method is one transaction. A scope with
 * a `resourceId` sees nothing of another resource.
 */
export interface SubscriptionStore extends Belongings {
  open(): Promise<void>
  close(): Promise<void>
  /** Creates it; the same again merges its metadata. */
  putSubscription(subscription: NewSubscription): Promise<SubscriptionRecord>
  /** Answers how many went. Without `externalId`: all of the thread's. */
  deleteSubscriptions(scope: SubscriptionScope & { externalId?: string }): Promise<number>
  /** By thread, ascending within each external thing. */
  listSubscriptions(query: SubscriptionQuery): Promise<{ subscriptions: SubscriptionRecord[]; more: boolean }>
  /** One process asks a source at a time: true for whoever gets the turn until then. */
  claimPoll(sourceId: string, now: number, until: number): Promise<boolean>
  /**
   * Remembers a signed delivery for as long as its signature counts. `retried`: the same id, signed anew. `replayed`: the very same again,
   * by somebody who kept it.
   */
  takeDelivery(delivery: { sourceId: string; id: string; timestamp: number; now: number }): Promise<'new' | 'retried' | 'replayed'>
}

export interface SubscriptionRecord {
  sourceId: string
  /** The thing outside, as its source names it: `owner/repo#12`. */
  externalId: string
  threadId: string
  resourceId: string
  agentId: string
  metadata: Record<string, JSONValue>
  subscribedAt: Date
}

export interface NewSubscription extends Omit<SubscriptionRecord, 'subscribedAt'> {
  now: number
}

export interface SubscriptionScope {
  sourceId: string
  threadId: string
  resourceId?: string
}

export interface SubscriptionQuery {
  sourceId: string
  externalId?: string
  threadId?: string
  resourceId?: string
  /** The last one of the page before. */
  after?: Pick<SubscriptionRecord, 'externalId' | 'threadId'>
  limit: number
}
