import type { JSONValue } from '../../base/json.ts'
import type { Message, MessageContent, MessageRole } from '../../message/message.ts'
import type { Scope, ThreadRow } from './threads.ts'

/**
 * Threads and messages as programs work on them: whole messages, copies, owners. The rules of `ThreadStore` hold here too: one method
 * is one transaction, and order is `seq`.
 */
export interface Conversations {
  /** Where messages begin, by `seq`: the newest unless `after` is given. Nothing of their contents is read. */
  listMessageStarts(scope: Scope, query: MessageStartQuery): Promise<{ starts: MessageStart[]; more: boolean }>
  /** The threads that have a message of one of these ids; with `resourceId`, of that resource alone. */
  findMessages(messageIds: readonly string[], resourceId?: string): Promise<MessagePlace[]>
  /**
   * Appends whole messages, or puts them in place of those that have their ids. Roles don't change, and what a run writes right now is
   * refused with `thread_active`. All groups or none.
   */
  saveMessages(groups: readonly MessageGroup[]): Promise<Message[]>
  /** Changes messages: `content` field by field, its `metadata` key by key (null removes a key). Unknown ids are refused by name. */
  updateMessages(groups: readonly MessagePatches[]): Promise<Message[]>
  /**
   * Copies a thread as it is now, in the database. The copy is idle. Its rows and messages have ids of their own, those of the source with a `~` and a mark
   * of the copy behind them, and so does what they say of themselves and of each other (`signal.id`, `sources`). Context rows go along when all is copied within one resource. Refuses with `thread_exists` when the new id is taken.
   */
  cloneThread(scope: Scope, clone: ThreadClone): Promise<ThreadRow>
  /** Gives an idle thread and all that belongs to it to another resource. Refuses with `thread_active` while something runs. */
  transferThread(scope: Scope, resourceId: string): Promise<ThreadRow>
  /** Removes some of what is older than the policy keeps. With `next` in the answer there may be more: ask again `after` it. */
  pruneSome(policy: PrunePolicy): Promise<Pruned>
  /**
   * The same, where the last such call stopped, whichever process made it. Null while it isn't time: that is `every` milliseconds after
   * all threads were looked at.
   */
  pruneDue(policy: DuePolicy): Promise<Pruned | null>
}

export interface MessageStartQuery {
  /** Below this `seq` (exclusive). */
  before?: number
  /** Above this `seq` (exclusive), oldest first. */
  after?: number
  limit: number
  from?: Date
  to?: Date
}

export interface MessageStart {
  seq: number
  messageId: string
  createdAt: Date
}

export interface MessagePlace {
  messageId: string
  threadId: string
  resourceId: string
}

export interface MessageGroup {
  scope: Scope
  messages: readonly Message[]
}

export interface MessagePatches {
  scope: Scope
  patches: readonly MessagePatch[]
  /** Messages of this role are refused with `forbidden`. */
  except?: MessageRole
}

/** What of a message is different. */
export interface MessagePatch {
  id: string
  /** That which it has: a role doesn't change. */
  role?: MessageRole
  createdAt?: Date
  type?: string
  content?: Partial<MessageContent>
}

export interface ThreadClone {
  id: string
  /** Whose copy it is; the source's unless told. */
  resourceId?: string
  /** `Clone of` the source's unless told. */
  title?: string
  /** Beside its `clone`, which the store writes: `{ sourceThreadId, clonedAt, lastMessageId? }`. */
  metadata: Record<string, JSONValue>
  /** At most so many messages, the newest. */
  limit?: number
  from?: Date
  to?: Date
  messageIds?: readonly string[]
  now: number
}

export interface PrunePolicy {
  /** Idle threads that nothing happened on since this time go, with everything that belongs to them. */
  threadsBefore?: number
  /** Messages from before this time go from idle threads, from the oldest on, with the context that quotes them. */
  messagesBefore?: number
  /** Settled signals and runs that are over, from before this time, go from idle threads. A signal is then known by its message alone. */
  recordsBefore?: number
  /** About so many of each with this call. */
  limit: number
  /** Where the call before stopped. */
  after?: number
}

export interface DuePolicy extends Omit<PrunePolicy, 'after'> {
  now: number
  every: number
}

/** What went. */
export interface Pruned {
  threadIds: string[]
  messages: Array<{ threadId: string; messageId: string }>
  /** Signals and runs. */
  records: number
  next?: number
}
