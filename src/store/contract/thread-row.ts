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

/** The lane of a state signal that is accepted or committed, and the key by which a repeated state is recognized. */
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

/** A lane with the signals that the prompt has of it. */
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

const childPrefix = 'child:'

/**
 * The id of the thread on which an agent answers this call of a thread. Only a child of that thread can be created under it; of different
 * calls, no two are equal.
 */
export function childThreadId(parentId: string, toolCallId: string): string {
  const parent = isChildThreadId(parentId) ? parentId : `${childPrefix}${escapeSlashes(parentId)}`
  return `${parent}/${escapeSlashes(toolCallId)}`
}

/** True for ids that only child threads may have. */
export function isChildThreadId(id: string): boolean {
  return id.startsWith(childPrefix)
}

/** How many calls of agents lie between a thread and the thread at the top. */
export function childDepth(id: string): number {
  return isChildThreadId(id) ? id.split('/').length - 1 : 0
}

/** The threads above a child thread, the nearest first. */
export function threadsAbove(id: string): string[] {
  if (!isChildThreadId(id)) return []
  const above: string[] = []
  for (let end = id.lastIndexOf('/'); end > 0; end = id.lastIndexOf('/', end - 1)) above.push(id.slice(0, end))
  return above.map((one, index) => (index === above.length - 1 ? unescapeSlashes(one.slice(childPrefix.length)) : one))
}

const workflowPrefix = 'workflow:'

/** What the threads of the runs of a workflow have as their parent, and its runner as its id. */
export function workflowRunner(workflowId: string): string {
  return `${workflowPrefix}${workflowId}`
}

/** The id of the thread that is a run of a workflow. Only such a run can be created under it. */
export function workflowThreadId(workflowId: string, runId: string): string {
  return `${workflowPrefix}${workflowId}/${runId}`
}

/** True for ids that only runs of workflows, and what stands above them, may have. */
export function isWorkflowThreadId(id: string): boolean {
  return id.startsWith(workflowPrefix)
}

function escapeSlashes(id: string): string {
  return id.replace(/[%/]/g, (character) => (character === '/' ? '%2F' : '%25'))
}

function unescapeSlashes(id: string): string {
  return id.replace(/%2F|%25/g, (escape) => (escape === '%2F' ? '/' : '%'))
}
