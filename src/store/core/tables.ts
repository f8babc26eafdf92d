import type { MessageRow } from '../../message/row.ts'
import type { StartRow } from './prune.ts'
import type { LaneRecord, LaneSignalRecord, MailRecord, RowRecord, RunRecord, ThreadRecord, TitleRecord, WorkingMemoryRecord } from './records.ts'

/**
 * What the transactions of this folder read and write. A store that implements it runs each of them as one unit: all of its writes
 * happen, or none. Transactions refuse before they write, so a store without rollback keeps that promise too.
 *
 * Records that are handed out may be changed by the caller; the change counts when it is put back.
 */
export interface ThreadTables {
  now(): number
  /** An id that nobody has. From here, because a transaction may be done again and must then take the same way. */
  newId(): string

  thread(id: string): ThreadRecord | undefined
  /** The threads right below it. */
  children(thread: ThreadRecord): ThreadRecord[]
  /** Adds a thread that is idle and empty. */
  addThread(thread: NewThreadRecord): ThreadRecord
  putThread(thread: ThreadRecord): void
  /** Gives the thread to another resource, with its runs, and without its context rows. */
  transferThread(thread: ThreadRecord, resourceId: string): ThreadRecord
  /** Copies the rows of one thread to another, which is empty; the tail band too. They have the ids of the copy: see copy-mark.ts. */
  copyAllRows(from: ThreadRecord, to: ThreadRecord, context: boolean): void
  /** Copies the rows of the wanted messages to a thread that is empty, numbered and counted anew. */
  copySomeRows(from: ThreadRecord, to: ThreadRecord, wanted: WantedMessages): void
  /** With everything that belongs to it. */
  removeThread(thread: ThreadRecord): void

  mail(thread: ThreadRecord, id: string): MailRecord | undefined
  /** What waits, by `ord`. */
  pending(thread: ThreadRecord): MailRecord[]
  /** What waits for one process alone. */
  boundMail(thread: ThreadRecord): MailRecord[]
  addMail(thread: ThreadRecord, mail: MailRecord): void
  /** Writes what can change, except `ord`. */
  putMail(thread: ThreadRecord, mail: MailRecord): void
  /** Gives these records the `ord` they carry now: the same numbers in another order. */
  reorderMail(thread: ThreadRecord, mail: readonly MailRecord[]): void
  /** What a run took, at these places (see places.ts), and was answered, or refused. */
  settleTaken(thread: ThreadRecord, places: string | null, state: 'consumed' | 'rejected', reason: string | null): void

  run(thread: ThreadRecord, runId: string): RunRecord | undefined
  /** False, and nothing, when the thread has a run of this id. */
  addRun(thread: ThreadRecord, run: RunRecord): boolean
  putRun(thread: ThreadRecord, run: RunRecord): void

  row(thread: ThreadRecord, id: string): RowRecord | undefined
  /** All rows of a message by `seq`, without context. */
  messageRows(thread: ThreadRecord, messageId: string): RowRecord[]
  hasMessage(thread: ThreadRecord, messageId: string): boolean
  /** False, and nothing, when the thread has a row of this id. */
  addRow(thread: ThreadRecord, row: RowRecord): boolean
  /** Other contents for the row of this id; its place stays. */
  reviseRow(thread: ThreadRecord, row: RowRecord): void
  /** Moves the tail band to the end of the thread as it is counted now. */
  settleTail(thread: ThreadRecord): void
  /** Rows from `seq` on, without the tail band. */
  rowsFrom(thread: ThreadRecord, seq: number): RowRecord[]
  /** Of a record that `rowsFrom` gave, the row: the same one again for the same record. Absent where records are not kept. */
  decoded?(thread: ThreadRecord, row: RowRecord): MessageRow
  removeRow(thread: ThreadRecord, id: string): void
  removeRowsFrom(thread: ThreadRecord, seq: number): void
  lastRow(thread: ThreadRecord): RowRecord | undefined
  /** The first counted message at or after `ordinal`. */
  countedFrom(thread: ThreadRecord, ordinal: number): CountedRow | undefined
  /** The `nth` counted message before and including `ordinal`, going back; 1 is the last. */
  countedBack(thread: ThreadRecord, ordinal: number, nth: number): CountedRow | undefined
  /** Answers whether there was one. Leaves context rows. */
  removeMessage(thread: ThreadRecord, messageId: string): boolean
  /** Removes the context rows that quote any of these messages, of this thread and of others. Those of messages that go need no word where the store sees to it. */
  removeQuotes(thread: ThreadRecord, messageIds: readonly string[]): void
  /** Answers how many messages went. */
  removeAllRows(thread: ThreadRecord): number

  /** By their keys. */
  threadsAfter(key: number, limit: number): ThreadRecord[]
  /** Where messages begin, from one end of the thread. */
  edgeStarts(thread: ThreadRecord, end: 'oldest' | 'newest', limit: number): StartRow[]
  /** Removes settled signals and runs that are over, from before this time; answers how many. */
  removeRecords(thread: ThreadRecord, before: number, limit: number): number

  /** How far the threads were looked at for what is kept no longer, and when to look next. */
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

  /** The newest version; `owner` is whose it is. */
  workingMemory(owner: string): WorkingMemoryRecord | undefined
  workingMemoryAt(owner: string, version: number): WorkingMemoryRecord | undefined
  /** Versions below `before`, newest first. */
  workingMemories(owner: string, before: number, limit: number): WorkingMemoryRecord[]
  hasWorkingMemoryChange(owner: string, changeId: string): boolean
  /** Adds the next version, and forgets those that are more than `kept` ago. */
  addWorkingMemory(owner: string, record: WorkingMemoryRecord, kept: number): void

  title(thread: ThreadRecord): TitleRecord | undefined
  putTitle(thread: ThreadRecord, title: TitleRecord): void
  removeTitle(thread: ThreadRecord): void
  /** Of one agent, oldest first. */
  dueTitles(agentId: string, now: number, limit: number): Array<TitleRecord & { threadId: string }>

  /** Until when the process said it lives. */
  aliveUntil(owner: string): number | undefined
  putProcess(owner: string, until: number): void
  removeProcess(owner: string): void
  /** Leaves every thread and every title of this owner without one, due now. */
  handOver(owner: string): void
  /** Cancels what waits for this process alone. */
  cancelBound(owner: string, reason: string): void
}

export type NewThreadRecord = Pick<ThreadRecord, 'id' | 'resourceId' | 'title' | 'metadata' | 'parentId' | 'createdAt'>

export interface PruningRecord {
  /** The key of the last thread that was looked at. */
  after: number
  dueAt: number
}

export type CountedRow = Pick<RowRecord, 'seq' | 'ordinal' | 'turn'>

/** Messages that meet all of these. Times are those at which a message began. */
export interface WantedMessages {
  from?: number
  to?: number
  messageIds?: readonly string[]
  /** At most so many, the newest. */
  limit?: number
}
