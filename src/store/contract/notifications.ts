import { isName, type JSONObject, type JSONValue } from '../../base/json.ts'
import { HeedError } from '../../base/errors.ts'
import { MAX_SIGNAL_BYTES } from '../../signals/contents.ts'
import type { ThreadDependents } from './thread-row.ts'
import type { Quota } from './usage.ts'

/**
 * The durable inbox: notifications, the decisions about their delivery, and when they are due.
 *
 * Every implementation keeps these rules (its conformance suite is `notificationConformance` in `heed/testing`):
 * - Each method is one transaction: all of its writes happen, or none.
 * - A `dedupeKey` is one record: concurrent sends with the same key are counted on it, from whichever process they come.
 * - A claimed record is hidden from every other claim until `until`; if the claimer dies, the next claim gets it.
 * - Ids of records mean nothing outside of their thread, and a scope with a `resourceId` never sees another resource.
 * - Lists are in the order in which records were stored, never by time.
 */
export interface NotificationStore extends ThreadDependents {
  open(): Promise<void>
  close(): Promise<void>
  /** Resolves when everything that was written before this call would survive a power loss. */
  flush(): Promise<void>

  // Ingress

  /**
   * Creates each record, or counts it on the record that has its key. A repeated id is `counted` and changes nothing; if that record
   * belongs to another resource, it is rejected with `id_taken`. A record that is not settled by `undecidedUntil` is due for a decision.
   */
  ingest(items: readonly NewNotification[]): Promise<Ingested[]>
  /**
   * Stores decisions about records. A decision never delays records that are scheduled already. It has no effect on a record that is not
   * pending any more or is being delivered.
   */
  settle(settlements: readonly Settlement[]): Promise<Settled[]>

  // Dispatch

  /** Claims what is due, oldest first, for agents of this process. Due summaries of one agent, resource and thread become one. */
  claimDue(claim: DueClaim): Promise<Due>
  /** Claims the records that wait until this thread is idle. Those for agents of other processes become due for them now. */
  claimIdle(threadId: string, claim: DueClaim): Promise<NotificationRecord[]>
  /** Whether any record waits until this thread is idle. */
  awaitsIdle(threadId: string): Promise<boolean>
  /** When the next record or summary is due for one of these agents. Reads one entry of an index. */
  nextDue(agentIds: readonly string[]): Promise<number | undefined>
  /** Records that the full text of these records reached the thread as a signal, even if they were read or dismissed meanwhile. */
  delivered(deliveries: readonly Delivery[]): Promise<void>
  /**
   * Makes these emitted summaries due again at `until`: if a process takes one back and dies before another summary counts its records, the
   * next process emits them.
   */
  holdBatches(batchIds: readonly string[], until: number): Promise<void>
  /**
   * Moves the records of earlier, unread summaries to this summary, which is emitted in their place. Skips summaries of another thread,
   * resource or agent. Null if the batch doesn't exist.
   */
  joinBatches(batchId: string, earlier: readonly string[]): Promise<SummaryBatch | null>
  /** The summary reached the thread, or had no records left. */
  summarised(batchId: string, signalId: string | undefined): Promise<void>
  /** A delivery failed: the record is due again at `retryAt`; without it, the record becomes `failed`. */
  failed(failure: DeliveryFailure): Promise<void>
  /** The delivery of a summary failed. Without `retryAt` its records become `failed`. */
  batchFailed(failure: { batchId: string; error: string; retryAt?: number; now: number }): Promise<void>

  /** The runs that took these records have ended and rejected none: they need no further check. */
  confirm(records: ReadonlyArray<{ threadId: string; id: string }>): Promise<void>

  // Reading and marking

  getNotification(scope: InboxScope & { id: string }): Promise<NotificationRecord | null>
  /** Newest first. */
  listNotifications(query: NotificationQuery): Promise<{ notifications: NotificationRecord[]; more: boolean }>
  /** Over all threads of a resource, or of all resources, newest first. */
  listInbox(query: InboxQuery): Promise<{ notifications: NotificationRecord[]; more: boolean; next?: string }>
  countNotifications(scope: InboxScope): Promise<Partial<Record<NotificationStatus, number>>>
  /**
   * Returns the changed records. `now` defaults to the store's clock. Skips records whose status can't change to `status`: see `canBecome`.
   */
  markNotifications(scope: InboxScope, ids: readonly string[], status: MarkedStatus, now?: number): Promise<NotificationRecord[]>
  /**
   * Makes failed records pending and due now, with their keys. Returns how many. A record whose `dedupeKey` now belongs to another record,
   * pending or remembered, is counted on that one and discarded.
   */
  retryNotifications(scope: InboxScope, ids: readonly string[], now?: number): Promise<number>

  // Watching

  /**
   * The records of a resource that changed after a cursor, each once in its current state, in the order of their last changes. Without
   * `after`: none, and the current cursor.
   */
  listChanges(query: ChangeQuery): Promise<InboxChanges>
  /**
   * Calls the listener when the inboxes of these resources were changed through this object. `due`: something became due now, and not by a
   * call of the dispatcher. Returns a function that removes the listener. The listener must not throw.
   */
  onChange(listener: (resourceIds: readonly string[], due: boolean) => void): () => void
}

/** How urgent a notification is. */
export type NotificationPriority = 'low' | 'medium' | 'high' | 'urgent'
/** What became of a notification. */
export type NotificationStatus = 'pending' | 'delivered' | 'seen' | 'dismissed' | 'archived' | 'discarded' | 'failed'
/** How a reader can mark a notification. */
export type MarkedStatus = 'seen' | 'dismissed' | 'archived'
/** What a delivery policy does with a notification. */
export type NotificationDeliveryAction = 'deliver' | 'queue' | 'defer' | 'summarize' | 'persist' | 'discard'

/** A notification as it is stored. */
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
  /** The number of sends that this record stands for. */
  coalescedCount: number
  attributes?: Record<string, string | number | boolean>
  metadata?: JSONObject
  createdAt: Date
  updatedAt: Date
  /** When its full text is due. */
  deliverAt?: Date
  /** When the summary that counts it is due. Absent once that was emitted. */
  summaryAt?: Date
  /** The decision about its delivery. Absent while it is undecided. */
  deliveryAction?: NotificationDeliveryAction
  /** The reason that the policy gave for the decision. */
  deliveryReason?: string
  /** What decided: `decide`, `sources.<source>`, `priorities.<priority>` or `default` of the policy, or `table`, the agents' default. */
  deliveryRule?: string
  deliveryAttempts: number
  lastDeliveryAttemptAt?: Date
  lastDeliveryError?: string
  /** The signal that carried its full text. */
  deliveredSignalId?: string
  /** The signal of the summary that counted it. */
  summarySignalId?: string
  deliveredAt?: Date
  seenAt?: Date
  dismissedAt?: Date
  archivedAt?: Date
  discardedAt?: Date
}

/** The inbox that a call addresses. In-process callers may leave out the resource; HTTP never does. */
export interface InboxScope {
  threadId: string
  resourceId?: string
}

/** A notification that is to be stored. */
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
  /**
   * The thread doesn't exist yet, and its id was chosen by the sender: rejected with `thread_forbidden` if another resource has records for
   * this thread.
   */
  awaitsThread?: boolean
  /** The id must be new: if a record has it, the call is rejected with `id_taken` and stores nothing. */
  isNew?: boolean
  quota?: Quota
  /** How long its `dedupeKey` is remembered after it is no longer pending. */
  rememberMs?: number
  /** When it is due for a decision if it is not settled before. */
  undecidedUntil: number
  /** A decision that is known already: stored with the record if this call creates it, otherwise ignored. */
  settlement?: SettlementTerms
}

/** A stored notification, and whether it is new. */
export interface Ingested {
  record: NotificationRecord
  /**
   * `created`; `coalesced` into a pending record; `counted` on a record with its `dedupeKey`, which needs no new decision unless the
   * delivery of that record is complete.
   */
  outcome: 'created' | 'coalesced' | 'counted'
  /** The result of its settlement, if it had one and was created. `record` is the state before it. */
  settled?: Settled
}

/** The decision about one record. */
export interface Settlement extends SettlementTerms {
  threadId: string
  id: string
}

/** A decision as it is stored. Times are milliseconds since the epoch. */
export interface SettlementTerms {
  action: NotificationDeliveryAction
  reason?: string
  /** The part of the policy that decided. */
  rule?: string
  deliverAt?: number
  /** The full text waits for an idle thread; `recheckAt` is when to check if no process reports it. */
  whenIdle?: { recheckAt: number }
  /** For `summarize`: a time of its own, or the window that it shares with all pending records. */
  summary?: SummaryTime
  now: number
  /** A record that is sent at once is hidden from other claims until then. */
  claimUntil: number
}

/** When a summary is sent. */
export type SummaryTime =
  /** Now, with all pending records and all records of the same call, unless a summary has counted it already. */
  | { form: 'now' }
  /** After a quiet period, but at most `maxWaitMs` after the first record. */
  | { form: 'window'; quietMs: number; maxWaitMs: number }
  /** At this time, with other records whose time is at most `withinMs` away. Never earlier. */
  | { form: 'timed'; at: number; withinMs: number }

/** Whether a change was applied, and the record after it. */
export interface Settled {
  /** The record after the call. Absent if it doesn't exist. */
  record?: NotificationRecord
  /** False if the record was decided before. */
  applied: boolean
  /** The summary to emit now, claimed for the caller; the same for all records of one call that it counts. */
  batch?: SummaryBatch
}

/** A claim of what is due. */
export interface DueClaim {
  now: number
  until: number
  limit: number
  agentIds: readonly string[]
  /** Claims at most `limit` undecided records, until its `until`, and postpones the others to the end of the claim. Default: claims all. */
  undecided?: { limit: number; until: number }
  /**
   * A thread that records wait for is checked again after as long as they have waited, within these bounds; default: at `until`. It is one
   * check for all records of the thread.
   */
  recheckMs?: { least: number; most: number }
}

/** Notifications and summaries that are due. */
export interface Due {
  /** Records whose full text is to be sent. */
  records: NotificationRecord[]
  /** Records without a decision. */
  undecided: NotificationRecord[]
  /** Records that were sent; the outcome of their runs is to be checked. */
  unconfirmed: NotificationRecord[]
  batches: SummaryBatch[]
  /** Threads that records wait for until they are idle. */
  idleThreads: string[]
}

/** Notifications that are summarized together. */
export interface SummaryBatch {
  id: string
  threadId: string
  resourceId: string
  agentId: string
  attempts: number
  /** By source, in the order in which they first occurred. Counts pending records only. */
  sources: Array<{ source: string; count: number }>
  priorities: Partial<Record<NotificationPriority, number>>
  /** False if all records have a low priority or will also be delivered in full: then the summary starts no run. */
  wakes: boolean
}

/** A notification that a thread received. */
export interface Delivery {
  threadId: string
  id: string
  /** Whose inbox it is in, where the caller knows that: a store may then do deliveries of several inboxes together. */
  resourceId?: string
  signalId: string
  /** The new status of a pending record. */
  status: 'delivered' | 'seen'
  now: number
  /** Until when sends with its `dedupeKey` are only counted. */
  rememberUntil?: number
  /** When to check whether the run rejected it. Absent if that is impossible. */
  confirmAt?: number
}

/** A delivery that failed, and when it is tried again. */
export interface DeliveryFailure {
  threadId: string
  id: string
  error: string
  /** The delivery that was rejected. The failure changes nothing once the record is retried, or was delivered with another signal. */
  signalId?: string
  retryAt?: number
  now: number
}

/** Which notifications a list has. */
export interface NotificationQuery extends InboxScope, NotificationPage {
  status?: NotificationStatus | readonly NotificationStatus[]
  priority?: NotificationPriority | readonly NotificationPriority[]
}

/** `after`: the `next` of the previous page. */
export interface InboxQuery extends Omit<NotificationQuery, 'threadId'> {
  threadId?: string
}

/** Selects a page of notifications, also in requests. */
export interface NotificationPage {
  source?: string
  kind?: string
  /** Case-insensitive search in summaries, sources and kinds, in all scripts. At most 1,000 characters. */
  search?: string
  /** Defaults to 100; at most 10,000. */
  limit?: number
  /** The id of the last record of the previous page. */
  after?: string
}

/** Selects notifications in a request, which has lists where a query may have a single value. */
export interface RequestedNotifications extends NotificationPage {
  status?: NotificationStatus[]
  priority?: NotificationPriority[]
}

/** Which changes of an inbox are read. */
export interface ChangeQuery {
  resourceId: string
  threadId?: string
  /** The cursor of a change, or of a list of changes. */
  after?: string
  limit: number
}

/** A notification that changed, with the cursor of the change. */
export interface InboxChange {
  record: NotificationRecord
  /** Later changes come after this cursor. */
  cursor: string
}

/** Changes of an inbox since a cursor. */
export interface InboxChanges {
  changes: InboxChange[]
  /** The `after` of the next query. */
  cursor: string
  /** May be true for an empty page: a store may scan only a part of the changes of other threads at a time. */
  more: boolean
}

/**
 * The transitions of a record's status, the same in every store. Only Heed discards or fails a pending record. A record that was dismissed
 * or archived stays so. A failed record may be retried, or is discarded if its event has another record.
 */
const statusTransitions: Record<NotificationStatus, readonly NotificationStatus[]> = {
  pending: ['delivered', 'seen', 'dismissed', 'archived', 'discarded', 'failed'],
  delivered: ['seen', 'dismissed', 'archived', 'failed'],
  seen: ['dismissed', 'archived'],
  dismissed: ['archived'],
  archived: [],
  discarded: [],
  failed: ['pending', 'seen', 'dismissed', 'archived', 'discarded'],
}

export function canBecome(status: NotificationStatus, next: NotificationStatus): boolean {
  return statusTransitions[status].includes(next)
}

export const notificationStatuses = Object.keys(statusTransitions) as NotificationStatus[]

/** The most urgent first. */
export const notificationPriorities: readonly NotificationPriority[] = ['urgent', 'high', 'medium', 'low']

const defaultLimit = 100
const maxLimit = 10_000
const markedStatuses: readonly string[] = ['seen', 'dismissed', 'archived'] satisfies MarkedStatus[]
const queryFields = new Set(['threadId', 'resourceId', 'status', 'priority', 'source', 'kind', 'search', 'limit', 'after'])

/** The maximum length of the id of a notification. Ids of its signals are derived from it, and those have a maximum length too. */
export const maxNotificationId = 200

/** The maximum length of a search: databases limit the length of a pattern. */
export const maxSearchLength = 1_000

/** Rejects an invalid query by the name of its field. Returns the limit. */
export function validateQuery(query: InboxQuery, scope: 'thread' | 'all' = 'thread'): number {
  if (scope === 'thread' || query.threadId !== undefined) validateInboxScope(query as InboxScope)
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && !queryFields.has(name)) throw invalidField(name, `is not known. Known: ${[...queryFields].join(', ')}`)
  }
  const { status, priority, source, kind, search, after, limit = defaultLimit } = query
  for (const [field, value] of Object.entries({ source, kind, search, after })) {
    if (value !== undefined && typeof value !== 'string') throw invalidField(field, 'must be a string')
  }
  if (search !== undefined && search !== '' && (!isName(search) || search.length > maxSearchLength)) {
    throw invalidField('search', `must be a string of at most ${maxSearchLength} characters (well-formed Unicode, no NUL)`)
  }
  for (const one of [status ?? []].flat()) {
    if (!notificationStatuses.includes(one)) throw invalidField('status', `must be one of ${notificationStatuses.join(', ')}`)
  }
  for (const one of [priority ?? []].flat()) {
    if (!notificationPriorities.includes(one)) throw invalidField('priority', `must be one of ${notificationPriorities.join(', ')}`)
  }
  if (!Number.isInteger(limit) || limit < 1 || limit > maxLimit) throw invalidField('limit', `must be an integer from 1 to ${maxLimit}`)
  return limit
}

export function validateInboxScope(scope: InboxScope): void {
  const { threadId, resourceId }: Partial<InboxScope> = typeof scope === 'object' && scope !== null ? scope : {}
  if (typeof threadId !== 'string' || threadId === '') throw invalidField('threadId', 'is missing or is not a string')
  if (resourceId !== undefined && typeof resourceId !== 'string') throw invalidField('resourceId', 'must be a string')
}

export function validateId(id: string): string {
  if (typeof id === 'string') return id
  throw invalidField('id', 'must be a string')
}

export function validateIds(ids: readonly string[]): readonly string[] {
  if (Array.isArray(ids) && ids.every((id) => typeof id === 'string')) return ids
  throw invalidField('ids', 'must be an array of strings')
}

/** Rejects a status that only Heed sets, such as `delivered`. Returns the ids. */
export function validateMark(ids: readonly string[], status: MarkedStatus): readonly string[] {
  if (!markedStatuses.includes(status)) throw invalidField('status', `must be one of ${markedStatuses.join(', ')}`)
  return validateIds(ids)
}

/** Rejects a text that is too long to store. With a `coalesceKey`, the joined text counts. Returns the text. */
export function validateTextSize(text: string, field: string): string {
  const bytes = Buffer.byteLength(text)
  if (bytes <= MAX_SIGNAL_BYTES) return text
  const problem = `${field} has ${bytes} bytes, counted with the text that its coalesceKey joins`
  throw new HeedError('invalid_argument', `Invalid notification: ${problem}; at most ${MAX_SIGNAL_BYTES} are allowed.`, {
    details: { field, bytes, limit: MAX_SIGNAL_BYTES },
  })
}

function invalidField(field: string, why: string): HeedError {
  return new HeedError('invalid_argument', `Invalid inbox call: ${field} ${why}.`, { details: { field } })
}
