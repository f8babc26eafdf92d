import type { JSONValue } from '../../base/json.ts'
import type { WatchEnd, WatchMode, WatchState, Verdict } from '../../watch/machine.ts'
import type { DueClaim } from './notifications.ts'
import type { NewReply, ReplyStore } from './replies.ts'
import type { ThreadDependents } from './thread-row.ts'
import type { ThreadStore } from './threads.ts'
import type { Quota } from './usage.ts'

/**
 * Inbound messages of channels, the watches that wait for them, and what is to be delivered to the threads that registered the watches (its
 * conformance suite is `watchConformance` in `heed/testing`).
 *
 * Every implementation keeps these rules:
 * - Each method is one transaction. `registerWatch` inserts the watch and finds earlier inbound messages in one; `addInbounds` and
 *   `annotateInbound` insert and find open watches in one. So a message that arrives during a registration is found by one of the two, and
 *   the pair of a watch and a message is one candidate.
 * - An inbound message and a watch meet only within one resource. A watch considers the messages that are stored after its registration, by
 *   their numbers, and those before it that were stored at `since` or later.
 * - A watch has at most one claimed candidate. Candidates of a watch are claimed in the order in which their messages were stored;
 *   one that waits for the categories of its message is left out until it has some, or until ten minutes after the expiry.
 * - A claim is fenced by its attempt: a settlement of an earlier attempt has no effect.
 * - A claim that ends without a report counts as a failed attempt. What fails too often gets a final state, and is claimed no more.
 * - The transition that ends a watch, or records a hit, inserts the delivery in the same transaction.
 * - A delivery to a thread that was given messages of a channel in mode `message` is inserted with a reply: to the message whose run
 *   registered the watch, else to the last one.
 * - Deliveries of an agent to a thread are claimed in the order in which they were inserted: a later one only with the earlier ones, or
 *   when those are over.
 */
export interface WatchStore extends ThreadDependents, ReplyStore {
  /** The store of the threads in the same database, if they are there: a registration creates its thread in its own transaction. */
  readonly threads?: ThreadStore
  open(): Promise<void>
  close(): Promise<void>
  /** Resolves when everything that was written before this call would survive a power loss. */
  flush(): Promise<void>

  // Inbound messages

  /**
   * Stores messages, those with `reply` with their reply. A repeated `providerId` of a channel is the stored message: `repeated`, with no
   * effect. One with `reply` whose `providerId` is that of a reply which the channel sent is an echo: it is not stored, and left out.
   */
  addInbounds(inbounds: readonly NewInbound[]): Promise<AddedInbound[]>
  /**
   * Claims messages of these channels that are to be annotated, oldest first, with an equal share of the limit for each channel. One
   * without categories whose claims ended too often without a report is returned with `failed`, and not claimed again.
   */
  claimInbounds(claim: InboundClaim): Promise<InboundRecord[]>
  /**
   * Stores the categories of a message, beside those that it has, and finds the open watches that expect them. False without effect if its
   * annotation is not due. It stays due where an open watch expects categories that were not offered meanwhile.
   */
  annotateInbound(annotation: InboundAnnotation): Promise<boolean>
  /**
   * The message is due again at `retryAt`. With `rules`, its annotator failed: open watches that expect these categories get it at once.
   * After three failures they are its categories, beside which later ones are stored; after twelve it is due no more.
   */
  deferInbound(failure: InboundDeferral): Promise<void>
  /** The categories that open watches of this resource expect. */
  expectedCategories(resourceId: string): Promise<string[]>

  // Watches

  /**
   * Creates the watch, its thread if there is none (see `threads`), and a candidate for each stored message since `since` that fits it,
   * up to the shares of their senders. The newest messages that pass its filters and whose annotator could not choose its categories are
   * due to be annotated again, as many as it may judge. A watch with this id of this agent on this thread is returned unchanged. Where
   * another resource has the id, the watch gets it with a suffix, and scopes with its `resourceId` find it by both. Rejects with
   * `id_taken` for the id of another watch of the resource, with `thread_forbidden` for the thread of another resource, with
   * `too_many_watches` at the limit of a resource, and with `too_many_categories` where its open watches would expect too many categories
   * together. What is rejected leaves nothing.
   */
  registerWatch(watch: NewWatch): Promise<{ watch: WatchRecord; added: boolean }>
  getWatch(scope: WatchScope): Promise<WatchRecord | null>
  /** By id, ascending. */
  listWatches(query: WatchQuery): Promise<{ watches: WatchRecord[]; more: boolean }>
  /** The messages that a watch considered, with what became of each, in their order. */
  listConsidered(query: { watchId: string; limit: number; after?: number }): Promise<{ considered: ConsideredInbound[]; more: boolean }>
  /** The candidates of a watch, in the order of their messages. */
  listCandidates(query: { watchId: string; limit: number; after?: number }): Promise<{ candidates: CandidateRecord[]; more: boolean }>
  /** Ends an open watch. Null if it doesn't exist; an ended one is returned unchanged. */
  endWatch(scope: WatchScope, end: { reason: WatchEnd; now: number }): Promise<WatchRecord | null>

  // Candidates

  /**
   * For due watches of these agents, the longest due first, with an equal share of the limit for each agent: claims the next candidate, or
   * ends the watch if it has expired. A watch expires only when every message that was stored by then is judged.
   */
  claimCandidates(claim: CandidateClaim): Promise<ClaimedCandidate[]>
  /**
   * Ends watches that have expired, whichever their agents are. One with messages to be judged only where no process has claimed one for
   * ten minutes. Returns how many it looked at.
   */
  expireWatches(expiry: { now: number; until: number; limit: number }): Promise<number>
  /** Stores a verdict. False without effect if the candidate was claimed again since, or the watch has ended. */
  settleCandidate(settlement: CandidateSettlement): Promise<boolean>
  /**
   * Gives a claimed candidate back: it is due again at `retryAt`; with `unannotated` instead as soon as its message has categories or is
   * annotated no more, and others are judged meanwhile. With an `error`, the attempt has failed; the third failure settles the candidate
   * as failed.
   */
  releaseCandidate(release: CandidateRelease): Promise<boolean>

  // Deliveries

  /** Claims deliveries for threads of these agents, the longest due first; those of one agent to one thread in their order. */
  claimDeliveries(claim: DueClaim): Promise<WatchDelivery[]>
  /** The thread stored the signal of the delivery. Its reply, if there is one, is `asked` and due. */
  confirmDelivery(delivery: { id: string; now: number }): Promise<void>
  /**
   * The signal could not be sent: due again at `retryAt`, and the later ones of its agent and thread after it. Without `retryAt`, the
   * delivery has failed.
   */
  deferDelivery(failure: { id: string; error: string; retryAt?: number; now: number }): Promise<void>
  /** What the thread of a watch has not received, in the order in which it was inserted. */
  listUndelivered(query: { watchId: string; limit: number }): Promise<UndeliveredRecord[]>

  /** Removes a watch with its candidates and deliveries, such as one whose thread was deleted. */
  forgetWatch(watch: { id: string; now: number }): Promise<void>
  /**
   * Removes up to `limit` watches that ended, and up to `limit` messages that were stored, before this time. A watch stays while a delivery
   * of it is not over; a message stays while it is a candidate or being annotated, and while an open watch of its resource considers it.
   * Returns how many it removed.
   */
  pruneWatches(policy: { before: number; limit: number }): Promise<number>

  /** When the next watch or delivery of these agents, message of these channels, or reply of these channels is due. */
  nextDue(agentIds: readonly string[], channelIds: readonly string[], replyChannelIds?: readonly string[]): Promise<number | undefined>
}

/** Who sent an inbound message, as its channel has it. */
export interface InboundSender {
  address: string
  /** What the sender calls itself. Nothing is matched by it. */
  name?: string
  /** The channel verified that the message is from this address. */
  verified: boolean
}

/** The contents of a message from outside. */
export interface InboundContent {
  text: string
  subject?: string
  attachments?: Array<{ filename?: string; mediaType?: string; size?: number }>
  /** The text is longer than what is stored. */
  truncated?: true
}

/** A message from outside that is to be stored. */
export interface NewInbound {
  id: string
  resourceId: string
  channelId: string
  /** The kind of the channel, such as `sms`. */
  kind: string
  /** The id that the provider gave the message. */
  providerId: string
  sender: InboundSender
  /** The contact that the verified address belongs to. */
  contactId?: string
  /** Since when the address is the contact's. Watches that were registered before do not count the sender as the contact. */
  contactSince?: number
  /** The conversation of the provider that a reply goes to. */
  conversation?: string
  content: InboundContent
  /** Set for channels in mode `message`. */
  reply?: NewReply
  now: number
}

/** A message from outside as it is stored. */
export interface InboundRecord extends Omit<NewInbound, 'now' | 'reply'> {
  /** Grows with each stored message. */
  seq: number
  /** Absent until it is annotated. */
  categories?: string[]
  receivedAt: Date
  attempts: number
  /** Claims that ended without a report. */
  lost: number
  /** It has no categories, and is not annotated any more: each process that tried ended. */
  failed?: true
  /**
   * Its annotator has failed so often that its categories are those of the rules alone. `for_now`: the annotator is asked again.
   * `for_good`: it is asked no more.
   */
  rulesOnly?: 'for_now' | 'for_good'
  /** The code of the last failure. */
  lastError?: string
}

/** A stored message, and whether it was stored before. */
export interface AddedInbound {
  inbound: InboundRecord
  repeated: boolean
}

/** The categories of a message. */
export interface InboundAnnotation {
  seq: number
  categories: readonly string[]
  /**
   * What the annotator could choose from. `all`: no annotator could choose more. `rules`: its annotator is not asked any more. Defaults to
   * the closed set.
   */
  offered?: readonly string[] | 'all' | 'rules'
  now: number
}

/** A message whose annotation failed and is tried again. */
export interface InboundDeferral {
  seq: number
  error: string
  retryAt: number
  now: number
  /** The categories that need no annotator. Absent where a close ended the attempt, which has not failed. */
  rules?: readonly string[]
}

/** A claim of messages that have no categories yet. */
export interface InboundClaim {
  channelIds: readonly string[]
  now: number
  until: number
  limit: number
  /** At most so many of a channel. */
  most?: Readonly<Record<string, number>>
}

/** A claim of candidates that are to be judged. */
export interface CandidateClaim extends DueClaim {
  /** At most so many of an agent. */
  most?: Readonly<Record<string, number>>
}

/** What a watch expects. At least one list is not empty. */
export interface WatchCriteria {
  categories: readonly string[]
  channels: readonly string[]
  contacts: readonly string[]
}

/** A watch that is to be registered. */
export interface NewWatch {
  id: string
  resourceId: string
  threadId: string
  agentId: string
  description: string
  criteria: WatchCriteria
  mode: WatchMode
  exclusive: boolean
  /** The judge may end a continuous watch. */
  mayEnd: boolean
  resultSchema?: JSONValue
  expiresAt: number
  maxEvaluations: number
  /** Messages that were stored at this time or later are candidates too. */
  since: number
  /**
   * When the thread was created: a later thread with its id is another one. Absent where the store has the threads too: it finds the
   * thread, or creates it.
   */
  threadCreatedAt?: number
  /** The run that registers it. What the thread answers is sent where that run was answered, if it was. */
  runId?: string
  /** How many open watches the resource may have. */
  limit: number
  quota?: Quota
  now: number
}

/** A watch as it is stored. */
export interface WatchRecord {
  id: string
  resourceId: string
  threadId: string
  agentId: string
  description: string
  criteria: WatchCriteria
  mode: WatchMode
  exclusive: boolean
  mayEnd: boolean
  resultSchema?: JSONValue
  state: WatchState
  /** Why it ended. Absent while it is open. */
  reason?: WatchEnd
  expiresAt: Date
  maxEvaluations: number
  /** How many candidates were judged. */
  evaluations: number
  hits: number
  /** Messages that fitted and were not judged, since their sender had used up its share of the evaluations. */
  skipped: number
  createdAt: Date
  /** Messages that were stored at this time or later are considered. */
  since: Date
  endedAt?: Date
}

/** A watch, within a resource, a thread and an agent if they are named. */
export interface WatchScope {
  id: string
  resourceId?: string
  threadId?: string
  agentId?: string
}

/** Which watches a list has, by id. */
export interface WatchQuery {
  resourceId?: string
  threadId?: string
  agentId?: string
  state?: WatchState
  limit: number
  /** The last id of the previous page. */
  after?: string
}

/**
 * `pending`: to be judged. `claimed`: being judged. `matched` and `rejected`: the verdict. `denied`: a policy forbids it. `failed`: no
 * verdict after the last attempt. `consumed`: an exclusive watch has matched it. `ended`: its watch ended first.
 */
export type CandidateState = 'pending' | 'claimed' | 'matched' | 'rejected' | 'denied' | 'failed' | 'consumed' | 'ended'

/** A message that a watch considered, with its verdict. */
export interface CandidateRecord {
  watchId: string
  seq: number
  inboundId: string
  channelId: string
  kind: string
  contactId?: string
  /** The expected categories that the message has. */
  categories: string[]
  state: CandidateState
  attempts: number
  /** The value that a matching verdict reported. */
  value?: JSONValue
  /** The ids of the policies that denied it, or the code of its last failure. */
  detail?: string
  receivedAt: Date
  settledAt?: Date
}

/** A message that a watch considered. Without its content and sender. */
export interface ConsideredInbound extends Pick<
  InboundRecord, 'id' | 'seq' | 'channelId' | 'kind' | 'contactId' | 'contactSince' | 'categories' | 'receivedAt' | 'failed'
> {
  /** A watch that was registered before has it: an exclusive one, or a `once` watch of the thread that it ended before the registration. */
  taken: boolean
  candidate?: CandidateRecord
}

/** A candidate that this process judges. */
export interface ClaimedCandidate {
  watch: WatchRecord
  inbound: InboundRecord
  /** Fences the settlement. */
  attempt: number
}

/** The verdict about a candidate. */
export interface CandidateSettlement {
  watchId: string
  seq: number
  attempt: number
  verdict: Verdict
  now: number
}

/** A candidate whose judgement failed and is tried again. */
export interface CandidateRelease extends Omit<CandidateSettlement, 'verdict'> {
  error?: string
  retryAt: number
  /** It waits for the categories of its message: it is due at once if that has some meanwhile. */
  unannotated?: true
}

/** A signal that is to be sent to the thread of a watch. */
export interface WatchDelivery {
  /** Also the id of the signal. */
  id: string
  watch: WatchRecord
  /** When the thread of the watch was created. */
  threadCreatedAt: number
  /** `hit`: a continuous watch recorded a match and stays open. */
  reason: WatchEnd | 'hit'
  value?: JSONValue
  /** The message that matched. */
  inbound?: Pick<InboundRecord, 'id' | 'seq' | 'channelId' | 'kind' | 'contactId' | 'sender' | 'categories' | 'rulesOnly'>
  /** What the thread answers is a reply (see `ReplyStore`): the signal is to have a run of its own. */
  answered?: true
  attempts: number
  createdAt: Date
}

/** A signal that the thread of a watch has not received. */
export interface UndeliveredRecord {
  /** The id that the signal has, or was to have. */
  signalId: string
  reason: WatchDelivery['reason']
  /** `pending`: it is sent, again where it has an `error`. `failed`: it is not sent any more. */
  state: 'pending' | 'failed'
  attempts: number
  /** The code of the last failure. */
  error?: string
  createdAt: Date
}

/** The most open watches of a resource, unless the operator sets another limit. */
export const defaultWatchLimit = 1_000
