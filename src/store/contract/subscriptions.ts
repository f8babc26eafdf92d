import type { JSONValue } from '../../base/json.ts'
import type { ThreadDependents } from './thread-row.ts'

/**
 * Which threads receive the events of which external things: a pull request, a mailbox, a build. Each method is one transaction. A scope
 * with a `resourceId` never sees another resource.
 */
export interface SubscriptionStore extends ThreadDependents {
  open(): Promise<void>
  close(): Promise<void>
  /** Creates the subscription; if it exists, merges its metadata. */
  putSubscription(subscription: NewSubscription): Promise<SubscriptionRecord>
  /** Returns the number of deleted subscriptions. Without `externalId`: all of the thread. */
  deleteSubscriptions(scope: SubscriptionScope & { externalId?: string }): Promise<number>
  /** By external id, then by thread, ascending. */
  listSubscriptions(query: SubscriptionQuery): Promise<{ subscriptions: SubscriptionRecord[]; more: boolean }>
  /** Claims or renews the poll of a source, which one process has at a time, until `until`. Null if another has it, or it is not due. */
  claimPoll(claim: PollClaim): Promise<PollTurn | null>
  /** Ends the poll: the next is due at `nextAt`. Keeps the cursor unless one is passed. False without effect if the claim was lost. */
  endPoll(end: { sourceId: string; holder: string; nextAt: number; cursor?: JSONValue }): Promise<boolean>
  /** Whether this delivery was recorded: the same id with the same time of signature. */
  isDelivered(delivery: SignedDelivery): Promise<boolean>
  /** Records a delivery whose events are all stored. The record is kept for longer than the signature is valid. */
  recordDelivery(delivery: SignedDelivery & { now: number }): Promise<void>
}

export interface PollClaim {
  sourceId: string
  /** The process that polls; the holder may renew its claim. */
  holder: string
  now: number
  until: number
}

export interface PollTurn {
  /** Where the last poll ended. */
  cursor?: JSONValue
}

/** A webhook with a valid signature. A retry has the same id and a new signature. */
export interface SignedDelivery {
  sourceId: string
  id: string
  /** When it was signed, in seconds since the epoch. */
  timestamp: number
}

/** The subscription of a thread to an external object. */
export interface SubscriptionRecord {
  sourceId: string
  /** The external thing, as its source names it: `owner/repo#12`. */
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
  /** The last subscription of the previous page. */
  after?: Pick<SubscriptionRecord, 'externalId' | 'threadId'>
  limit: number
}
