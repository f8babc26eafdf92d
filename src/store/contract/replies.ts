import type { NoReply, ReplyState } from '../../watch/replies/machine.ts'
import type { InboundClaim, InboundRecord } from './watches.ts'

/**
 * The outbox: the replies to messages of channels in mode `message`, and what their threads answer to watches. Part of `WatchStore`, so
 * that a message is stored with its reply in one transaction.
 *
 * Every implementation keeps these rules:
 * - A message, and a delivery of a watch, has at most one reply. Its text is stored once and never changes.
 * - The reply to a delivery is inserted with it: in the conversation of the run that registered the watch, else of the last message that
 *   the agent's thread was given. It is `received` until the delivery is confirmed, and then `asked`.
 * - A reply is claimed by one process at a time. A claim is fenced by its number: a settlement of an earlier claim has no effect.
 * - Of the messages of a channel that their thread does not have yet, only the first is due, and only when it is annotated.
 */
export interface ReplyStore {
  /** Claims due replies of these channels, the longest due first. */
  claimReplies(claim: InboundClaim): Promise<ClaimedReply[]>
  /** Stores what became of a claimed reply. False without effect if it was claimed again since, or is in another state. */
  settleReply(settlement: ReplySettlement): Promise<boolean>
  /** A run of this thread ended: its replies that are `asked` are due now. Their claims end. */
  wakeReplies(wake: { threadId: string; now: number }): Promise<void>
  getReply(scope: ReplyScope): Promise<ReplyRecord | null>
  /** In the order in which they were inserted. */
  listReplies(query: ReplyQuery): Promise<{ replies: ReplyRecord[]; more: boolean }>
  /** Makes a dead reply `pending`, with new attempts. Null if it does not exist; one that is not dead is returned unchanged. */
  retryReply(scope: ReplyScope, retry: { now: number }): Promise<ReplyRecord | null>
}

/** What a message of a channel in mode `message` is stored with. */
export interface NewReply {
  agentId: string
  threadId: string
  /** A program wrote the message: it gets no run and no reply. */
  automatic?: true
}

/** Why an attempt failed, without texts of a provider. */
export interface ReplyError {
  /** That of the error, such as `provider_error` or `unreachable`; else `timeout`, `run_parked`, `send_failed` or `failed`. */
  code: string
  /** The status of the provider's response. */
  status?: number
  /** The provider may have sent the reply nevertheless. */
  maybeSent?: boolean
}

/** A reply of a channel, from the message to the provider's answer. */
export interface ReplyRecord {
  /** `reply:` and the id of the signal. The idempotency key of every attempt to send it. */
  id: string
  /** The message in whose conversation it is sent. */
  inboundId: string
  /** The signal whose run writes it: the message, whose run has its id, or what a watch sent to the thread. */
  signalId: string
  /** Grows with each reply. */
  seq: number
  resourceId: string
  channelId: string
  agentId: string
  threadId: string
  state: ReplyState
  /** Why there is no reply. */
  reason?: NoReply
  /** The ids of the policies that denied it. */
  policies?: string
  text?: string
  /** The text was longer than the provider allows. */
  truncated?: true
  /** The provider's id of the sent reply. */
  providerId?: string
  /** How often the present state was worked on: of a reply with a text, how often it was sent. */
  attempts: number
  /** The error of the last attempt. */
  error?: ReplyError
  createdAt: Date
  /** When it is worked on next. */
  dueAt?: Date
  /** When it was sent, or given up. */
  settledAt?: Date
}

/** A reply that this process works on. */
export interface ClaimedReply {
  reply: ReplyRecord
  inbound: InboundRecord
  /** Fences the settlement. */
  claim: number
}

/** What happened to a reply. */
export type ReplyStep =
  /** The claim goes on: `checkAt` is when it ends. */
  | { type: 'ask'; checkAt: number }
  | { type: 'answer'; text: string; truncated?: true }
  | { type: 'send'; providerId?: string }
  | { type: 'give_up'; error: ReplyError }
  | { type: 'end'; reason: NoReply; policies?: string }
  /** Nothing changed, or an attempt failed: it is due again. `uncounted`: this process closes, and the attempt does not count. */
  | { type: 'defer'; dueAt: number; error?: ReplyError; uncounted?: true }

/** A step of a reply that a process claimed. */
export interface ReplySettlement {
  id: string
  claim: number
  step: ReplyStep
  now: number
}

/** A reply, within a resource if one is named. */
export interface ReplyScope {
  id: string
  resourceId?: string
}

/** Which replies a list has, in the order in which they were stored. */
export interface ReplyQuery {
  resourceId?: string
  channelId?: string
  threadId?: string
  state?: ReplyState
  limit: number
  /** The last `seq` of the previous page. */
  after?: number
}
