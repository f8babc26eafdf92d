import type { JSONValue } from '../../base/json.ts'
import type { Belongings } from './thread-dependents.ts'

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
  /** One process asks a source at a time: the turn until then, for whoever comes first or has it already. Null while it is another's, or not yet time. */
  claimPoll(claim: PollClaim): Promise<PollTurn | null>
  /** The turn is over: nobody asks before `nextAt`. Without `cursor` it stays as it was. False, and nothing is changed, when the turn is no longer the holder's. */
  endPoll(end: { sourceId: string; holder: string; nextAt: number; cursor?: JSONValue }): Promise<boolean>
  /** Whether this very delivery was recorded: the same id, signed at the same time. */
  isDelivered(delivery: SignedDelivery): Promise<boolean>
  /** All of it is stored. It is remembered for longer than its signature counts. */
  recordDelivery(delivery: SignedDelivery & { now: number }): Promise<void>
}

export interface PollClaim {
  sourceId: string
  /** Who asks; the same again renews its turn. */
  holder: string
  now: number
  until: number
}

export interface PollTurn {
  /** Where the last turn ended. */
  cursor?: JSONValue
}

/** A webhook that was believed. A retry has the same id and is signed anew. */
export interface SignedDelivery {
  sourceId: string
  id: string
  /** When it was signed, in seconds since the epoch. */
  timestamp: number
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
