import type { MessageRow, RowRole } from '../../message/row.ts'
import type { Route, SignalState, ThreadStatus, Waiting } from '../../machine.ts'
import type { RunStatus } from '../contract/threads.ts'
import type { Prepared } from './append.ts'

/** What stores keep of a thread, one flat record per thing, JSON as text. Times are milliseconds. */
export interface ThreadRecord {
  /** The store's own number for the thread; every other record hangs on it, so that ids of two threads can't meet. */
  readonly key: number
  readonly id: string
  readonly resourceId: string
  title: string
  metadata: string
  readonly parentId: string | null
  readonly createdAt: number
  updatedAt: number
  status: ThreadStatus
  epoch: number
  owner: string | null
  /** The run that is active or, before it began, the one that was promised to those who wait for it. */
  runId: string | null
  agentId: string | null
  /** 1 when `runId` has a record. */
  begun: number
  nextSeq: number
  nextOrd: number
  /** Counted messages so far, and the ordinal of the user's last: see window.ts. */
  ordinal: number
  turn: number
  /** The same for the tail band, counted from its own start. */
  tail: number
  tailOrdinal: number
  tailTurn: number
  /** Since when something should run here that nobody runs. A hint: it may be set in vain, never missing. */
  dueAt: number | null
  /** 0 when the thread has no lanes, where a store knows that without looking for them. */
  laned?: number
}

export interface RowRecord {
  readonly seq: number
  readonly id: string
  readonly messageId: string
  readonly role: RowRole
  readonly type: string | null
  readonly runId: string | null
  readonly step: number | null
  readonly content: string
  readonly createdAt: number
  readonly ordinal: number
  readonly turn: number
  /** 1: a counted message begins here. 2: the same, in the tail band. */
  readonly counted: number
  /** What it says, where that is at hand and need not be read from `content`. */
  decoded?: MessageRow | undefined
}

export interface MailRecord extends Waiting {
  ord: number
  readonly id: string
  readonly agentId: string
  readonly route: Route
  readonly kind: Waiting['kind']
  state: SignalState
  runId: string | null
  /** The id of the run that it starts, if it starts one. */
  readonly startRunId: string
  step: number | null
  /** While it waits: the rows, unless they are at hand. Once they are in history: their ids. */
  rows: string
  readonly options: string | null
  readonly boundTo: string | null
  reason: string | null
  readonly acceptedAt: number
  /** Only in the transaction that accepts it, and only where the run that it starts may begin there. */
  atHand?: AtHand | undefined
}

/** What is known of a signal that was just put into words, and need not be read again. */
export interface AtHand {
  readonly rows: readonly Prepared[]
  /** The id of its run was made for it: no run has it. */
  readonly newRun: boolean
}

export interface RunRecord {
  readonly runId: string
  readonly agentId: string
  status: RunStatus
  epoch: number
  step: number
  attempts: number
  readonly options: string
  started: string
  suspended: string
  readonly startedAt: number
  endedAt: number | null
  suspendedAt: number | null
  error: string | null
  usage: string | null
  /** Where its rows begin, and where the ones begin that a guardrail may still remove. */
  readonly firstSeq: number
  sealSeq: number
  /** Changes of working memory that count when the run is over or sealed; JSON, or null. */
  staged: string | null
  lost: string | null
  /** The thread's ordinal as the run began: its window stays where it was then. */
  readonly ordinal: number
  /** Where the signals are in the mailbox that it took and that are not settled: see places.ts. */
  taken: string | null
}

export interface LaneRecord {
  readonly id: string
  version: number
  cacheKey: string
  mode: 'snapshot' | 'delta'
  lastSignalId: string
  lastSnapshotId: string | null
  /** The highest version ever given. `version` is the last signal's, or 0 when none is left. */
  issued: number
}

export interface LaneSignalRecord {
  readonly lane: string
  readonly version: number
  readonly signalId: string
  readonly cacheKey: string
  /** `gone`: a snapshot stood here of which changes are left. They are none of the snapshot before it. */
  readonly mode: 'snapshot' | 'delta' | 'gone'
}

/** A thread that is to have a title. */
export interface TitleRecord {
  readonly agentId: string
  /** The process that makes it until `dueAt`. */
  readonly owner: string | null
  readonly dueAt: number
  readonly attempts: number
}

/** One version. `value` is JSON: a text or an object. */
export interface WorkingMemoryRecord {
  readonly version: number
  readonly value: string
  readonly at: number
  readonly changeId: string | null
}

export { TAIL_SEQ } from '../contract/tail.ts'
