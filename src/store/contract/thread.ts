import type { JSONValue } from '../../base/json.ts'
import type { ThreadStatus } from '../../machine.ts'
import type { MessageRow } from '../../message/row.ts'

/** The thread that a call addresses. In-process callers may leave out the resource; HTTP never does. */
export interface Scope {
  threadId: string
  resourceId?: string
}

/** Proof of a lease. It becomes stale as soon as another process claims the thread. */
export interface Fence {
  threadId: string
  owner: string
  epoch: number
}

/** A thread as its store returns it. */
export interface ThreadRow {
  id: string
  resourceId: string
  title: string
  metadata: Record<string, JSONValue>
  parentId?: string
  createdAt: Date
  updatedAt: Date
  status: ThreadStatus
  epoch: number
  owner?: string
  runId?: string
  agentId?: string
}

/** The lane of a state signal that is accepted or committed, and the key by which a repeated state is recognised. */
export interface LaneWrite {
  id: string
  cacheKey: string
  mode: 'snapshot' | 'delta'
}

/** A lane, described by its last signal. */
export interface LaneRow {
  threadId: string
  id: string
  /** The version of the last signal. A version is never reused, even if its signal is removed. */
  version: number
  cacheKey: string
  mode: 'snapshot' | 'delta'
  lastSignalId: string
  lastSnapshotId?: string
}

/** One signal of a lane. */
export interface LaneSignalRow {
  version: number
  cacheKey: string
  mode: 'snapshot' | 'delta'
  /** The signal is accepted and not yet in the history that a run reads. */
  waiting: boolean
  row: MessageRow
}

export interface LaneState extends LaneRow {
  /** The last snapshot and all deltas since, oldest first. If they are more than `maxLaneChain`, the snapshot and the newest deltas. */
  signals: LaneSignalRow[]
  /** The number of deltas between the snapshot and the newest that are not in `signals`. */
  left: number
}

/** The maximum length of `LaneState.signals`. */
export const maxLaneChain = 1_000

/**
 * Rows that are stored while a run is active and do not belong to it get a `seq` from here upwards, the tail band. They can be read at once
 * and sort after the rows of the run; when it ends they are renumbered to follow its last row.
 */
export const TAIL_SEQ = 2 ** 50

/** A store with records that belong to threads, and that may be in another database. Repeating either call has no further effect. */
export interface ThreadDependents {
  /** Removes all records of these threads; with `resourceId`, only those of that resource. */
  forgetThreads(threadIds: readonly string[], resourceId?: string): Promise<void>
  /** Moves the records of this thread to another resource. */
  giveThread(threadId: string, resourceId: string): Promise<void>
}
