import type { JSONValue } from '../../base/json.ts'
import type { Message, MessageContent, MessageRole } from '../../message/message.ts'
import type { Scope, ThreadRow } from './thread-row.ts'
import type { Quota } from './usage.ts'

/**
 * The operations of applications on threads: whole messages, copies, owners, retention. The rules of `ThreadStore` apply: each method is
 * one transaction, and order is `seq`.
 */
export interface Conversations {
  /** The first rows of messages, by `seq`: the newest unless `after` is given. Their contents are not read. */
  listMessageStarts(scope: Scope, query: MessageStartQuery): Promise<{ starts: MessageStart[]; more: boolean }>
  /** The number of messages; with `before`, of those that begin below this `seq`. */
  countMessages(scope: Scope, query?: { before?: number }): Promise<number>
  /** The threads that have a message with one of these ids; with `resourceId`, only those of that resource. */
  findMessages(messageIds: readonly string[], resourceId?: string): Promise<MessagePlace[]>
  /**
   * Appends whole messages, or replaces those that have their ids. A role can't change, and messages of the active run are rejected with
   * `thread_active`. All groups are written, or none.
   */
  saveMessages(groups: readonly MessageGroup[]): Promise<Message[]>
  /** Changes messages: `content` field by field, its `metadata` key by key (null removes a key). Rejects unknown ids by name. */
  updateMessages(groups: readonly MessagePatches[]): Promise<Message[]>
  /**
   * Copies a thread as it is now, within the database. The copy is idle. Its rows and messages have the ids of the source followed by a `~`
   * and a suffix of the copy, and so do the ids that they contain (`signal.id`, `sources`). Context rows are copied only with the whole
   * thread and within one resource. Rejects with `thread_exists` when the new id is taken.
   */
  cloneThread(scope: Scope, clone: ThreadClone): Promise<ThreadRow>
  /** Moves an idle thread with everything that belongs to it to another resource. Rejects with `thread_active` if it isn't idle. */
  transferThread(scope: Scope, resourceId: string, quota?: Quota): Promise<ThreadRow>
  /** Removes some of what the policy no longer keeps. If the result has `next`, there may be more: call again with `after: next`. */
  pruneSome(policy: PrunePolicy): Promise<Pruned>
  /**
   * The same, from where the last call stopped, in whichever process. Null if it is not due: the next pass is due `every` milliseconds
   * after the last one ended.
   */
  pruneDue(policy: DuePolicy): Promise<Pruned | null>
}

/** Which messages are listed by their first row. */
export interface MessageStartQuery {
  /** Below this `seq` (exclusive). */
  before?: number
  /** Above this `seq` (exclusive), oldest first. */
  after?: number
  limit: number
  /** Leaves out so many before the first. */
  offset?: number
  from?: Date
  to?: Date
}

/** Where a message begins in the history. */
export interface MessageStart {
  seq: number
  messageId: string
  createdAt: Date
}

/** The thread that has a message. */
export interface MessagePlace {
  messageId: string
  threadId: string
  resourceId: string
}

/** Messages to store on one thread. */
export interface MessageGroup {
  scope: Scope
  messages: readonly Message[]
  quota?: Quota
}

/** Changes of messages of one thread. */
export interface MessagePatches {
  scope: Scope
  patches: readonly MessagePatch[]
  /** Messages of this role are rejected with `forbidden`. */
  except?: MessageRole
  quota?: Quota
}

/** The fields of a message to change. */
export interface MessagePatch {
  id: string
  /** Must equal the message's role: a role can't change. */
  role?: MessageRole
  createdAt?: Date
  type?: string
  content?: Partial<MessageContent>
  /** Keeps so many characters of its text, and removes the text after them. Other parts stay. */
  keepCharacters?: number
}

/** A copy of a thread that is to be made. */
export interface ThreadClone {
  id: string
  /** The resource of the copy. Default: that of the source. */
  resourceId?: string
  /** Default: `Clone of` and the title of the source. */
  title?: string
  /** The store adds `clone`: `{ sourceThreadId, clonedAt, lastMessageId? }`. */
  metadata: Record<string, JSONValue>
  /** Copies at most this many messages, the newest. */
  limit?: number
  from?: Date
  to?: Date
  messageIds?: readonly string[]
  quota?: Quota
  now: number
}

/** What is old enough to be removed. */
export interface PrunePolicy {
  /** Removes idle threads without activity since this time, with everything that belongs to them. */
  threadsBefore?: number
  /** Removes messages from before this time from idle threads, oldest first, with the context rows that quote them. */
  messagesBefore?: number
  /**
   * Removes signals in a final state and ended runs, from before this time, from idle threads. A repeated send is then recognized only by
   * its message.
   */
  recordsBefore?: number
  /** The approximate maximum of each kind that this call removes. */
  limit: number
  /** Where the previous call stopped. */
  after?: number
}

/** A prune that one process at a time makes, when it is due. */
export interface DuePolicy extends Omit<PrunePolicy, 'after'> {
  now: number
  every: number
}

/** What a call removed. */
export interface Pruned {
  threadIds: string[]
  messages: Array<{ threadId: string; messageId: string }>
  /** The number of signals and runs. */
  records: number
  next?: number
}
