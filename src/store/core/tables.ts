import type { MessageRow } from '../../message/row.ts'
import type { EditReads } from '../../editor/contract.ts'
import type { NewScore } from '../contract/scores.ts'
import type { PromptHead, Window, WorkflowCommit } from '../contract/threads.ts'
import type { Added, Quota } from '../contract/usage.ts'
import type {
  CountedRow, HeartbeatRecord, LaneRecord, LaneSignalRecord, MailRecord, NewThreadRecord, PruningRecord, RowRecord, RunRecord, StartRow,
  StepRecord, TakeoverRecord, ThreadRecord, TitleRecord, WorkingMemoryRecord,
} from './records.ts'

/**
 * The tables that the transactions of this folder read and write. A store runs each transaction as one unit: all of its writes happen, or
 * none. Transactions reject before their first write, so a store without rollback keeps that promise too.
 *
 * The caller may change a record that it was given; the change is stored when the caller puts it back.
 */
export interface ThreadTables {
  now(): number
  /** A new id. The store generates it, because a transaction that is replayed must get the same one. */
  newId(): string

  /**
   * Locks these threads until the transaction ends; with `below`, all threads below the first of them too. A transaction that writes calls
   * it before its first read, with all threads that it reads to decide what to write. Returns whether one of them was not locked before:
   * then it may have changed since it was read. Absent where a transaction excludes all other writers.
   */
  lock?(threadIds: readonly string[], options?: { below?: boolean }): boolean
  /** Locks the threads that this process owns, and those with signals that only it may run. */
  lockOwned?(owner: string): void
  /** The same for all titles that are to be generated, or for the progress of pruning. */
  lockAll?(records: 'titles' | 'pruning'): void
  /** Reads the window of a thread before rows are added to it, where that saves a round trip. */
  foreseeWindow?(thread: ThreadRecord, window: Window): void

  /** Rejects a write that would exceed the quota. What it adds counts for later writes of this transaction, also before it is stored. */
  checkQuota(resourceId: string, quota: Quota, added: Added): void

  thread(id: string): ThreadRecord | undefined
  /** The direct children of the thread. */
  children(thread: ThreadRecord): ThreadRecord[]
  /** Adds a thread that is idle and empty. Its first epoch is the floor of the epochs. */
  addThread(thread: NewThreadRecord): ThreadRecord
  putThread(thread: ThreadRecord): void
  /** Moves the thread and its runs to another resource, and deletes its context rows. */
  transferThread(thread: ThreadRecord, resourceId: string): ThreadRecord
  /** Copies the rows of one thread to another, which is empty; the tail band too. The copies get new ids: see `copySuffix`. */
  copyAllRows(from: ThreadRecord, to: ThreadRecord, context: boolean): void
  /** Copies the rows of the wanted messages to a thread that is empty, with new `seq`s and ordinals. */
  copySomeRows(from: ThreadRecord, to: ThreadRecord, wanted: WantedMessages): void
  /** Removes the thread and all records of it. */
  removeThread(thread: ThreadRecord): void
  /** The bytes of the thread and of what belongs to it. */
  bytes(thread: ThreadRecord): number
  /** What a transfer moves: the bytes of the thread, its notifications, schedules and watches, and its schedules that are not done. */
  movable(thread: ThreadRecord): { bytes: number; schedules: number }
  /** The epoch with which the thread was created or restored. */
  life(thread: ThreadRecord): number
  /** The first epoch of new threads is at least this from here on. */
  raiseEpochFloor(epoch: number): void

  mail(thread: ThreadRecord, id: string): MailRecord | undefined
  /** The pending signals, by `ord`. */
  pending(thread: ThreadRecord): MailRecord[]
  /** The pending signals that only one process may run. */
  boundMail(thread: ThreadRecord): MailRecord[]
  addMail(thread: ThreadRecord, mail: MailRecord): void
  /** Writes the fields that can change, except `ord`. */
  putMail(thread: ThreadRecord, mail: MailRecord): void
  /** Stores the `ord` that each of these records has now: the same numbers in another order. */
  reorderMail(thread: ThreadRecord, mail: readonly MailRecord[]): void
  /** Sets the final state of the taken signals at these `ord`s (see `encodeOrdRanges`). */
  finishTaken(thread: ThreadRecord, ords: string | null, state: 'consumed' | 'rejected', reason: string | null): void

  run(thread: ThreadRecord, runId: string): RunRecord | undefined
  /** Adds the run and returns true, unless the thread has a run with this id. */
  addRun(thread: ThreadRecord, run: RunRecord): boolean
  putRun(thread: ThreadRecord, run: RunRecord): void

  row(thread: ThreadRecord, id: string): RowRecord | undefined
  /** All rows of a message by `seq`, without context rows. */
  messageRows(thread: ThreadRecord, messageId: string): RowRecord[]
  hasMessage(thread: ThreadRecord, messageId: string): boolean
  /** Adds the row and returns true, unless the thread has a row with this id. */
  addRow(thread: ThreadRecord, row: RowRecord): boolean
  /** Replaces the contents of the row with this id; its `seq` stays. */
  reviseRow(thread: ThreadRecord, row: RowRecord): void
  /** Renumbers the rows of the tail band to follow the last row of the thread. */
  mergeTail(thread: ThreadRecord): void
  /** Rows from `seq` on, without the tail band. */
  rowsFrom(thread: ThreadRecord, seq: number): RowRecord[]
  /** Decodes a record that `rowsFrom` returned: the same object each time for the same record. Absent where records are not cached. */
  decoded?(thread: ThreadRecord, row: RowRecord): MessageRow
  removeRow(thread: ThreadRecord, id: string): void
  removeRowsFrom(thread: ThreadRecord, seq: number): void
  lastRow(thread: ThreadRecord): RowRecord | undefined
  /** The first counted message at or after `ordinal`. */
  countedFrom(thread: ThreadRecord, ordinal: number): CountedRow | undefined
  /** The `nth` counted message before and including `ordinal`, counted backwards; 1 is the last. */
  countedBack(thread: ThreadRecord, ordinal: number, nth: number): CountedRow | undefined
  /** Returns whether the thread had the message. Keeps context rows. */
  removeMessage(thread: ThreadRecord, messageId: string): boolean
  /**
   * Removes the context rows, of this thread and of others, that quote any of these messages. A store that does this by itself when a
   * message is removed need not do it again here.
   */
  removeQuotes(thread: ThreadRecord, messageIds: readonly string[]): void
  /** Returns the number of messages that it removed. */
  removeAllRows(thread: ThreadRecord): number

  /** By key. */
  threadsAfter(key: number, limit: number): ThreadRecord[]
  /** The first rows of messages, from one end of the thread. */
  edgeStarts(thread: ThreadRecord, end: 'oldest' | 'newest', limit: number): StartRow[]
  /** Removes signals in a final state and ended runs, from before this time; returns how many. */
  removeRecords(thread: ThreadRecord, before: number, limit: number): number

  /** How far threads were checked for expired records, and when the next check is due. */
  pruning(): PruningRecord | undefined
  putPruning(pruning: PruningRecord): void

  lane(thread: ThreadRecord, id: string): LaneRecord | undefined
  putLane(thread: ThreadRecord, lane: LaneRecord): void
  /** By id, those above `after`. */
  lanes(thread: ThreadRecord, after?: string, limit?: number): LaneRecord[]
  addLaneSignal(thread: ThreadRecord, signal: LaneSignalRecord): void
  laneSignal(thread: ThreadRecord, signalId: string): LaneSignalRecord | undefined
  removeLaneSignal(thread: ThreadRecord, signal: LaneSignalRecord): void
  /** Newest first, below `before`. */
  laneSignals(thread: ThreadRecord, lane: string, before: number, limit: number): LaneSignalRecord[]

  readonly workingMemory: WorkingMemoryTable
  readonly titles: TitleTable
  readonly processes: ProcessTable
  readonly steps: StepTable
  readonly workflows: WorkflowTable
  readonly scores: ScoreTable
  readonly edits: EditTable

  /** Releases all threads and titles of this owner; they are due now. */
  handOver(owner: string): void
  /** Cancels the pending signals that only this process may run. */
  cancelBound(owner: string, reason: string): void
}

/** Versions of working memory. `owner` names a thread or a resource. */
export interface WorkingMemoryTable {
  newest(owner: string): WorkingMemoryRecord | undefined
  at(owner: string, version: number): WorkingMemoryRecord | undefined
  /** Versions below `before`, newest first. */
  list(owner: string, before: number, limit: number): WorkingMemoryRecord[]
  hasChange(owner: string, changeId: string): boolean
  /** Adds the next version, and removes all but the last `kept`. */
  add(owner: string, record: WorkingMemoryRecord, kept: number): void
  removeAll(owner: string): void
}

/** Threads whose title has to be generated. */
export interface TitleTable {
  get(thread: ThreadRecord): TitleRecord | undefined
  put(thread: ThreadRecord, title: TitleRecord): void
  remove(thread: ThreadRecord): void
  /** Those of one agent, oldest first. */
  due(agentId: string, now: number, limit: number): Array<TitleRecord & { threadId: string }>
}

/** The heartbeats of the processes, by owner. */
export interface ProcessTable {
  /** No lease is granted now: leases from before the database went back may still be in use. What needs a runner waits for one. */
  readonly isResting: boolean
  heartbeat(owner: string): HeartbeatRecord | undefined
  putHeartbeat(owner: string, heartbeat: HeartbeatRecord): void
  /** The process released its threads: it counts as gone. */
  close(owner: string): void
}

/** The steps of runs, the heads of their prompts, and the takeovers of threads. */
export interface StepTable {
  add(thread: ThreadRecord, step: StepRecord): void
  /** Stores the texts that the head has, unless they are stored. */
  putHead(head: PromptHead): void
  addTakeover(thread: ThreadRecord, takeover: TakeoverRecord): void
}

/** Runs of workflows and the rows of their steps. */
export interface WorkflowTable {
  put(thread: ThreadRecord, commit: WorkflowCommit): void
}

/** Scores of runs, and the work to make them. */
export interface ScoreTable {
  /** Adds the work, unless the run has it. */
  add(thread: ThreadRecord, run: Pick<RunRecord, 'agentId' | 'runId' | 'step'>, scores: readonly NewScore[], now: number): void
}

/** Versions of agents and of prompt blocks. */
export type EditTable = EditReads

/** Messages that meet all of these. A time is that of a message's first row. */
export interface WantedMessages {
  from?: number
  to?: number
  messageIds?: readonly string[]
  /** At most this many, the newest. */
  limit?: number
}
