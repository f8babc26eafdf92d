import type { JSONObject, JSONValue } from '../../base/json.ts'
import type { Belongings } from './thread-dependents.ts'

/**
 * The durable inbox: what happened elsewhere, what was decided about it, and when it is due.
 *
 * What every implementation keeps (its conformance suite is `notificationConformance` in `heed/testing`):
 * - Each method is one transaction: all of it happened, or nothing.
 * - A key is one record: concurrent sends of one `dedupeKey` are counted on it, whichever process they come from.
 * - What is claimed is hidden from every other claim until `until`; a claimer that dies leaves it to the next.
 * - Ids of records mean nothing outside of their thread, and a scope with a `resourceId` sees nothing of another resource.
 * - Lists are in the order in which records came, never by time.
 */
export interface NotificationStore extends Belongings {
  open(): Promise<void>
  close(): Promise<void>
  /** Resolves when all that was written before this call would survive a power cut. */
  flush(): Promise<void>

  // Ingress

  /** Creates each record, or counts it on the one that has its key. One whose id is there is `counted` as it is, and refused with `id_taken` where that is another resource's. What is not settled soon is due for a decision. */
  ingest(items: readonly NewNotification[]): Promise<Ingested[]>
  /** Writes what was decided. What waits already comes no later for it. Nothing when the record isn't pending any more, or is on its way already. */
  settle(settlements: readonly Settlement[]): Promise<Settled[]>

  // Dispatch

  /** Takes what is due, oldest first, for agents of this process. Summaries of one agent, resource and thread that are due are one. */
  claimDue(claim: DueClaim): Promise<Due>
  /** Takes what waits for this thread to be idle. What waits there for agents of other processes is due for them now. */
  claimIdle(threadId: string, claim: DueClaim): Promise<NotificationRecord[]>
  /** Whether anything waits for this thread to be idle. */
  awaitsIdle(threadId: string): Promise<boolean>
  /** When the next thing is due for one of these agents. One look into an index. */
  nextDue(agentIds: readonly string[]): Promise<number | undefined>
  /** Their full text reached the thread as this signal. Also says so of a record that was read or dismissed meanwhile. */
  delivered(deliveries: readonly Delivery[]): Promise<void>
  /** These summaries, which were emitted, are due again then: whoever takes one back and dies before another counts it leaves it to the next. */
  holdBatches(batchIds: readonly string[], until: number): Promise<void>
  /**
   * What these summaries counted, which nobody saw, is counted by this one: it is to be emitted in their place. Those of another thread,
   * resource or agent are left. Null when there is no such batch.
   */
  joinBatches(batchId: string, earlier: readonly string[]): Promise<SummaryBatch | null>
  /** The summary reached the thread, or nothing was left to summarise. */
  summarised(batchId: string, signalId: string | undefined): Promise<void>
  /** Tried in vain: due again at `retryAt`, or failed for good. */
  failed(failure: DeliveryFailure): Promise<void>
  /** A summary tried in vain. Without `retryAt` its records become `failed`. */
  batchFailed(failure: { batchId: string; error: string; retryAt?: number; now: number }): Promise<void>

  /** Their runs are over and nothing was refused: they need no further look. */
  confirm(records: ReadonlyArray<{ threadId: string; id: string }>): Promise<void>

  // Reading and marking

  getNotification(scope: InboxScope & { id: string }): Promise<NotificationRecord | null>
  /** Newest first. */
  listNotifications(query: NotificationQuery): Promise<{ notifications: NotificationRecord[]; more: boolean }>
  countNotifications(scope: InboxScope): Promise<Partial<Record<NotificationStatus, number>>>
  /** Answers the records that were changed, as they are now. Without `now` it is now by the store's clock. Where `status` can't follow what a record is, it is left. */
  markNotifications(scope: InboxScope, ids: readonly string[], status: MarkedStatus, now?: number): Promise<NotificationRecord[]>
  /**
   * Failed records are pending again and due now, with their keys. Answers how many. One whose `dedupeKey` another record has by now, which waits or is remembered,
   * is counted on that and discarded.
   */
  retryNotifications(scope: InboxScope, ids: readonly string[], now?: number): Promise<number>

  // Watching

  /**
   * Records of a resource that changed after a cursor, each once and as it is now, in the order of its last change. Without `after`: none,
   * and the cursor of this moment.
   */
  listChanges(query: ChangeQuery): Promise<InboxChanges>
  /**
   * Calls when the inboxes of these resources were changed through this object, and whether something is due now that nobody who dispatches
   * asked for. Answers how to stop that. The listener must not throw.
   */
  onChange(listener: (resourceIds: readonly string[], due: boolean) => void): () => void
}

export type NotificationPriority = 'low' | 'medium' | 'high' | 'urgent'
export type NotificationStatus = 'pending' | 'delivered' | 'seen' | 'dismissed' | 'archived' | 'discarded' | 'failed'
export type MarkedStatus = 'seen' | 'dismissed' | 'archived'
export type NotificationDeliveryAction = 'deliver' | 'queue' | 'defer' | 'summarize' | 'persist' | 'discard'

export interface NotificationRecord {
  id: string
  threadId: string
  resourceId: string
  agentId: string
  source: string
  kind: string
  priority: NotificationPriority
  status: NotificationStatus
  summary: string
  payload?: JSONValue
  dedupeKey?: string
  coalesceKey?: string
  /** How many sends this record stands for. */
  coalescedCount: number
  attributes?: Record<string, string | number | boolean>
  metadata?: JSONObject
  createdAt: Date
  updatedAt: Date
  /** When its full text is due. */
  deliverAt?: Date
  /** When the summary that counts it is due. Gone once that was emitted. */
  summaryAt?: Date
  /** What was decided. Absent while nothing is. */
  deliveryAction?: NotificationDeliveryAction
  /** Why it goes the way it goes: the policy's word. */
  deliveryReason?: string
  deliveryAttempts: number
  lastDeliveryAttemptAt?: Date
  lastDeliveryError?: string
  /** The signal that carried its full text. */
  deliveredSignalId?: string
  /** The summary that counted it. */
  summarySignalId?: string
  deliveredAt?: Date
  seenAt?: Date
  dismissedAt?: Date
  archivedAt?: Date
  discardedAt?: Date
}

/** In-process callers may leave out the resource; HTTP never does. */
export interface InboxScope {
  threadId: string
  resourceId?: string
}

export interface NewNotification {
  id: string
  threadId: string
  resourceId: string
  agentId: string
  source: string
  kind: string
  priority?: NotificationPriority
  summary: string
  payload?: JSONValue
  dedupeKey?: string
  coalesceKey?: string
  attributes?: Record<string, string | number | boolean>
  metadata?: JSONObject
  now: number
  /** Its id is its sender's, and the thread is not there yet: it is refused with `thread_forbidden` where another resource was the first to have records for it. */
  awaitsThread?: boolean
  /** Its id is said to be new: with one that is there, nothing of the call is stored, and it is refused with `id_taken`. */
  isNew?: boolean
  /** How long its `dedupeKey` is remembered once it no longer waits. */
  rememberMs?: number
  /** When it is due for a decision, should nobody settle it. */
  undecidedUntil: number
  /** What is decided about it already: written with the record if that is created, and otherwise not at all. */
  settlement?: SettlementTerms
}

export interface Ingested {
  record: NotificationRecord
  /** `created`; `coalesced` into a record that waits; `counted` on one that has its `dedupeKey`: nothing is to be decided, unless all that is to be said of it was said. */
  outcome: 'created' | 'coalesced' | 'counted'
  /** What became of its settlement, if it had one and was created. `record` is as it was before. */
  settled?: Settled
}

/** What was decided about one record. */
export interface Settlement extends SettlementTerms {
  threadId: string
  id: string
}

/** A decision as it is written. Times are milliseconds since the epoch. */
export interface SettlementTerms {
  action: NotificationDeliveryAction
  reason?: string
  deliverAt?: number
  /** The full text waits for an idle thread; `recheckAt` is when to look should nobody tell. */
  whenIdle?: { recheckAt: number }
  /** For `summarize`: a time of its own, or the window that everything shares which waits. */
  summary?: SummaryTime
  now: number
  /** What is sent at once is hidden from others until then. */
  claimUntil: number
}

export type SummaryTime =
  /** With all that waits and all that comes in the same call, now; unless a summary has counted it already. */
  | { form: 'now' }
  /** After a quiet period, but no later than `maxWaitMs` after the first. */
  | { form: 'window'; quietMs: number; maxWaitMs: number }
  /** At this time, with others whose time is at most `withinMs` away. Never early. */
  | { form: 'timed'; at: number; withinMs: number }

export interface Settled {
  /** As it is now. Absent when there is no such record. */
  record?: NotificationRecord
  /** False when it was no longer to be decided. */
  applied: boolean
  /** The summary that is to be emitted now, taken for the caller; the same for all that one call decided about and it counts. */
  batch?: SummaryBatch
}

export interface DueClaim {
  now: number
  until: number
  limit: number
  agentIds: readonly string[]
  /** So many undecided ones are taken, hidden until `until`; those beyond are left until the end of the claim. Without it, as many as there are. */
  undecided?: { limit: number; until: number }
  /**
   * A thread for whose idleness something waits is looked at again after as long as that has waited, and within these. At `until` unless given. It is one look for all
   * that waits there.
   */
  recheckMs?: { least: number; most: number }
}

export interface Due {
  /** Their full text is to be sent. */
  records: NotificationRecord[]
  /** Nobody decided about these. */
  undecided: NotificationRecord[]
  /** Sent, and what their runs came to is to be looked up. */
  unconfirmed: NotificationRecord[]
  batches: SummaryBatch[]
  /** Threads on which something waits for idleness. */
  idleThreads: string[]
}

export interface SummaryBatch {
  id: string
  threadId: string
  resourceId: string
  agentId: string
  attempts: number
  /** By source, in the order in which they were first seen. Only what is still pending counts. */
  sources: Array<{ source: string; count: number }>
  priorities: Partial<Record<NotificationPriority, number>>
  /** False when all of it is of low priority or comes in full anyway: then no model is woken for it. */
  wakes: boolean
}

export interface Delivery {
  threadId: string
  id: string
  signalId: string
  /** What a pending record becomes. */
  status: 'delivered' | 'seen'
  now: number
  /** Until when sends of its `dedupeKey` are only counted. */
  rememberUntil?: number
  /** When to look whether the run refused it. Absent where nothing can. */
  confirmAt?: number
}

export interface DeliveryFailure {
  threadId: string
  id: string
  error: string
  retryAt?: number
  now: number
}

export interface NotificationQuery extends InboxScope {
  status?: NotificationStatus | readonly NotificationStatus[]
  priority?: NotificationPriority | readonly NotificationPriority[]
  source?: string
  kind?: string
  /** In summaries, sources and kinds, whatever the case, in every script that has one. At most 1,000 characters. */
  search?: string
  /** Defaults to 100; at most 10,000. */
  limit?: number
  /** The last record of the page before. */
  after?: string
}

export interface ChangeQuery {
  resourceId: string
  threadId?: string
  /** The cursor of a change, or of a list of them. */
  after?: string
  limit: number
}

export interface InboxChange {
  record: NotificationRecord
  /** What changed later comes after it. */
  cursor: string
}

export interface InboxChanges {
  changes: InboxChange[]
  /** Where to go on. */
  cursor: string
  /** Also of a page that has none: a store may look through a part of what others changed at a time. */
  more: boolean
}
