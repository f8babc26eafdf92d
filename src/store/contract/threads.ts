import type { Logger } from '../../base/logger.ts'
import type { JSONObject, JSONValue } from '../../base/json.ts'
import type { Bus } from '../../bus/contract.ts'
import type { ActiveBehavior, IdleBehavior, Route, SendMode, SignalState, ThreadStatus } from '../../machine.ts'
import type { Message } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import type { Conversations } from './messages.ts'
import type {
  BegunRun, CallDecision, Decided, MailboxRow, RunFilter, RunPage, RunRow, StepCommit, StepCommitted, SuspendedEnd, Window, Windows,
} from './runs.ts'
import type { EditStore } from '../../editor/contract.ts'
import type { ScoreStore } from './scores.ts'
import type { ProcessInfo, StepStore } from './steps.ts'
import type { Fence, LaneRow, LaneSignalRow, LaneState, LaneWrite, Scope, ThreadRow } from './thread-row.ts'
import type { Quota, Usage } from './usage.ts'
import type { WorkflowRunStore } from './workflows.ts'
import type { InitialWorkingMemory, WorkingMemoryStore } from './working-memory.ts'

/**
 * The durable state of threads: messages, mailbox, runs, leases and lanes, always in one database, so that a commit and the check of its
 * fence are one transaction.
 *
 * Every implementation keeps these rules (its conformance suite is `storeConformance` in `heed/testing`):
 * - Each method is one transaction: all of its writes happen, or none.
 * - Methods that take a `Fence` reject with the code `fenced` when the thread has another epoch or owner, and write nothing.
 * - Methods that take a `Scope` reject with `thread_forbidden` when the thread belongs to another resource, and with
 *   `thread_not_found` when it doesn't exist and the method doesn't create it. A scope without `resourceId` is trusted.
 * - Order is `seq` within a thread and `ord` within a mailbox, both assigned by the store. Never a time.
 * - Ids of messages and signals are unique within their thread and mean nothing outside of it.
 * - No method blocks the event loop for longer than one small transaction.
 */
export interface ThreadStore extends TitleStore, Conversations, WorkingMemoryStore, StepStore, WorkflowRunStore, EditStore {
  readonly scores: ScoreStore

  /** Creates or migrates the tables. Idempotent; all other methods imply it. */
  open(): Promise<void>
  close(): Promise<void>
  /** Connects the processes that share this store, if the store can do that itself. */
  bus?(): Bus
  /**
   * Names the data of this store on a bus that serves many stores: equal in every process on the same data, and different for other data.
   * It is sent over the bus, so it contains no credentials. Without it, only runtimes that use this very object are connected.
   */
  readonly namespace?: string

  /**
   * Calls the listener after threads were deleted or pruned through this process; without ids, after the database was restored. Returns a
   * function that removes the listener. A store without it reports nothing: the runs of ended threads are then found by their fences.
   */
  onThreadsEnded?(listener: ThreadsEnded): Promise<() => void>
  /**
   * Calls the listener when the database turned out to have gone back, before any call that was made since then is answered. Writes that
   * were requested before that are rejected with `store_rewound`. Absent where a database can't go back, or does not tell it.
   */
  onRewound?(listener: (rewound: Rewound) => void): Promise<() => void>
  /** The logger receives failures that no call reports. */
  reportTo?(logger: Logger): void

  // Acceptance

  /**
   * Routes and stores each send, in order. Creates the thread if it doesn't exist. If the route is `wake` and the send has a `claim`, the
   * same transaction grants the lease, and may begin the run. A repeated `(thread, signal id)` is one signal: the result describes the
   * first and has `duplicate`. A rejected send has its error as its result; the other sends are not affected. A send that is discarded, or
   * skipped because its lane has the same state, stores nothing: its `state` is `cancelled`.
   */
  accept(sends: readonly Send[]): Promise<Array<Accepted | { error: Error }>>
  /** Resolves when everything that was committed before this call would survive a power loss. */
  flush(): Promise<void>

  // Runs

  /**
   * Claims the thread if it is idle with pending signals, or if it runs and its owner is gone or has this lease `again`. The epoch grows by
   * one. Null otherwise, or when the next run is of an agent that is not among `agentIds`. Cancels pending signals that are bound to a
   * process that is gone. A process never claims its own thread except `again`.
   */
  claim(threadId: string, owner: string, agentIds?: readonly string[], again?: FormerLease): Promise<Claimed | null>
  /**
   * Begins the next run of a claimed thread, or continues the run that was interrupted: takes the signals that start it into history, and
   * loads its window: `options.window` of the run, else that of its agent in `windows`. If there is nothing to run for one of these agents,
   * it releases the lease and returns null. A continued run gets the window that it began with, and the rows that it appended since; if its
   * agent is not among `windows`, it is rejected with `unknown_agent`.
   */
  beginRun(fence: Fence, windows: Windows): Promise<BegunRun | null>
  /** Appends rows, records progress, takes signals that may enter, ends or suspends the run: see `StepCommit`. */
  commitStep(fence: Fence, commit: StepCommit): Promise<StepCommitted>
  /**
   * Records the decision about a suspended call. If it was the last one that the run needed, grants the lease to `owner`: the epoch grows
   * by one. Without an owner the thread is due for any process that runs its agent. A call of the parent thread that stands for this call
   * is decided with it.
   */
  decide(scope: Scope, decision: CallDecision, owner?: string): Promise<Decided>
  /**
   * Ends a suspended run, and reports whether signals are pending. `clearPending` cancels them. The epoch grows by one: the thread is idle
   * afterwards. The suspended runs that its calls have on child threads, and theirs, end with it.
   */
  endSuspended(scope: Scope, runId: string, options: { clearPending?: boolean }): Promise<SuspendedEnd>
  /**
   * Continues a parked run where it stopped, with fresh attempts and without the messages `removed`. Rejects with `run_not_parked` when it
   * isn't parked, or when the thread is active or has later runs. The lease is granted as for a decision.
   */
  retryParked(
    scope: Scope, runId: string, options: { owner?: string; removed?: readonly string[] },
  ): Promise<{ agentId: string; fence?: Fence }>
  /**
   * The time by the clock of the store, in which leases are stored. For a file it is the machine's, which all its processes share. A store
   * without it stores leases in the time of each process: their clocks must agree then.
   */
  now?(): number
  /**
   * Marks `owner` as alive until `until`, by the clock of the store. One row for all its threads. It is kept for a week after the last
   * heartbeat; `info` is that of the first.
   */
  heartbeat(owner: string, until: number, info?: ProcessInfo): Promise<void>
  /** Releases all threads of `owner`, so that others need not wait until its heartbeat expires. Cancels signals that are bound to it. */
  resign(owner: string): Promise<void>
  /**
   * Threads that need a runner and have none at `now`, by the clock of the store: a run whose owner is gone, or an idle thread with pending
   * signals. With `agentIds`, only those whose next run is of one of these agents.
   */
  listOrphans(now: number, limit: number, agentIds?: readonly string[]): Promise<Array<{ threadId: string; agentId: string }>>

  // Reading and editing the mailbox and runs

  /** In the order of `ord`: from `after` on, or, with `before`, the last below it, the newest first. Both bounds are exclusive. */
  listSignals(
    scope: Scope, options?: { states?: SignalState[]; limit?: number; after?: number; before?: number },
  ): Promise<MailboxRow[]>
  getSignal(scope: Scope, id: string): Promise<MailboxRow | null>
  /** Cancels the signals that are still pending; returns their ids. None where the thread is not the one that is `meant`. */
  cancelSignals(scope: Scope, ids: readonly string[], meant?: MeantThread): Promise<string[]>
  /** Puts the queued signals in this order; ignores ids that are no longer pending. Returns the new order. */
  reorderSignals(scope: Scope, ids: readonly string[]): Promise<string[]>
  getRun(scope: Scope, runId: string): Promise<RunRow | null>
  /** Finds a run by its id alone, for in-process callers that know the run and not its thread. */
  findRun(runId: string): Promise<RunRow | null>
  /** Newest first. */
  listRuns(filter: RunPage): Promise<RunRow[]>
  /** The number of runs, counted in an index if the filter has one. */
  countRuns(filter: RunFilter): Promise<number>

  // Threads

  getThread(scope: Scope): Promise<ThreadRow | null>
  /** What is stored of a resource; without one, of all. Each write counts in its transaction. */
  getUsage(resourceId?: string): Promise<Usage>
  /**
   * The first epoch of the thread with this id, since it was created or restored; if there is none, the one that a new thread would get.
   * Fences and cursors of an earlier thread with this id have lower epochs.
   */
  lifeOf(threadId: string): Promise<number>
  /** Creates the thread; an existing one of the same resource is returned as it is, with `created: false`. */
  createThread(thread: NewThread): Promise<{ thread: ThreadRow; created: boolean }>
  /** Merges `metadata` key by key (null removes a key) and sets the title, atomically. `onlyIfUntitled` keeps an existing title. */
  patchThread(scope: Scope, patch: {
    title?: string
    metadata?: Record<string, JSONValue | undefined>
    onlyIfUntitled?: boolean
    workingMemory?: InitialWorkingMemory
    quota?: Quota
  }): Promise<ThreadRow>
  /**
   * Removes the thread with everything that belongs to it. False if it didn't exist. The epochs of a thread that is created with its id
   * later begin above its last epoch, so that no fence and no cursor of the deleted thread fits the new one.
   */
  deleteThread(scope: Scope): Promise<boolean>
  listThreads(query: ThreadQuery): Promise<{ threads: ThreadRow[]; more: boolean; total?: number }>

  // Messages

  /** Rows by `seq`, ascending: the newest page unless the query names another. Context rows only with `context`. */
  listRows(scope: Scope, query: RowQuery): Promise<{ rows: MessageRow[]; more: boolean }>
  /** The history that a run would begin with if `coming` messages of a user started it now. Includes context rows. */
  readWindow(scope: Scope, window: Window, coming: number): Promise<MessageRow[]>
  /** Appends rows outside of a run; on an active thread they go to the tail band. Replaces rows whose id exists. */
  saveRows(scope: Scope, rows: readonly MessageRow[]): Promise<MessageRow[]>
  /**
   * Removes messages by id, with the context rows that quote them (`content.metadata.sources` has the ids); without ids, all messages.
   * Returns the number of messages that it removed.
   */
  deleteMessages(scope: Scope, messageIds?: readonly string[]): Promise<number>

  // Lanes. A signal that is cancelled or removed from history is removed from its lane, which returns to its state before it.

  /** By id. Without lanes that have no signals left. */
  listLanes(scope: Scope, query: { after?: string; limit: number }): Promise<LaneRow[]>
  /** Null if the lane has no signals. `placed`: only signals that are in history, as a run sees the lane. */
  readLane(scope: Scope, id: string, options?: { placed?: boolean }): Promise<LaneState | null>
  /** Newest first, below the version `before`. */
  listLaneSignals(
    scope: Scope, id: string, query: { before?: number; limit: number },
  ): Promise<{ signals: LaneSignalRow[]; more: boolean }>
}

/** One of the threads that had an id, one after the other. */
export interface MeantThread {
  /** The one that has exactly this epoch now: no process has claimed it since. */
  epoch?: number
  /** The one that existed at this epoch, and no later one: it was neither created nor restored after it. */
  since?: number
}

/** The database went back: after a failover to a server that may lack the last commits, or when a backup took its place. */
export interface Rewound {
  /** Epochs from before are below this, and those that are granted from here on are not: fences and cursors of before are void. */
  floor: number
  /** How many commits that the database had confirmed to this process it lacks, among those that the process remembers. */
  lost: number
  /**
   * For so many milliseconds the store grants no lease: a lease that was granted in a lost commit may be in use by a process that does not
   * know it yet, and by then that process relies on it no longer.
   */
  restMs: number
  /** What the database calls its history before and now. */
  from: string
  to: string
}

/** Called with the ids of deleted threads; without ids, all threads were replaced by those of a backup. */
export type ThreadsEnded = (threadIds?: readonly string[]) => void

/** A signal at the door of a store, with the route that its sender wants. */
export interface Send {
  threadId: string
  resourceId: string
  agentId: string
  /** The id of the signal, unique in the thread. */
  id: string
  mode: SendMode
  ifActive: Branch<ActiveBehavior>
  ifIdle: Branch<IdleBehavior>
  /** The rows for history: one signal row, or the input of a call. Attributes of the chosen branch are merged into signal rows. */
  rows: MessageRow[]
  /** Caller ids, of the signal or of its rows: rejected with `id_taken` if the thread has something else under them. */
  given?: readonly string[]
  /** The run that this send starts, if it starts one. */
  runId: string
  /** `runId` was generated for this send. A store need not check whether another run has it. */
  newRunId?: boolean
  /** `runId` is a caller id: rejected with `invalid_argument` if this send would start a run and the thread has one of this id. */
  givenRunId?: boolean
  /** The process that gets the lease at a wake; absent if this process doesn't run the agent. */
  claim?: Claim
  /** Only this process may run it (a call whose caller reads its stream). It is cancelled if the process ends before its run begins. */
  boundTo?: string
  /** The JSON part of the options of the run that it starts. Its `window`, a `Window`, replaces that of the agent. */
  options?: JSONObject
  lane?: LaneWrite
  /**
   * For a thread that this send creates. Of one that exists, the title is set, and metadata and working memory are merged as by
   * `updateThread`.
   */
  thread?: { title?: string; metadata?: JSONObject; parentId?: string; workingMemory?: InitialWorkingMemory }
  /** The run that made the call. Rejected with `no_active_run` if its thread is in this store and that run is not active any more. */
  askedBy?: { threadId: string; runId: string }
  /** Reject with `thread_suspended` on a suspended thread. */
  refuseSuspended?: boolean
  /** Not for child threads. */
  quota?: Quota
  /** Only to the thread that was created at this time: rejected with `thread_deleted` if there is none, or another one. */
  threadCreatedAt?: number
  now: number
}

/** A claim of the lease of a thread. */
export interface Claim {
  owner: string
  /**
   * The argument for `beginRun`. A store may begin the run as the last step of the transaction that accepts, with all signals that this
   * transaction accepted: see `Accepted.begun`.
   */
  begin?: Windows
}

/** What happens with a signal on an active or on an idle thread. */
export interface Branch<Behavior> {
  behavior: Behavior
  attributes?: Record<string, string | number | boolean>
}

/** What became of a send in its transaction. */
export interface Accepted {
  route: Route | 'skipped'
  /** The run that the signal starts or enters; absent for `persist`, `discard` and `skipped`. */
  runId?: string
  duplicate: boolean
  /** The state at acceptance. A run that begins in the same transaction takes the signal afterwards. */
  state: SignalState
  /** The rows as they will be read, with merged attributes. */
  rows: MessageRow[]
  /** The lease, if this send woke the thread for the claiming process. */
  fence?: Fence
  /** With `fence`, if the same transaction began the run: the result of `beginRun`. If absent, the caller calls `beginRun`. */
  begun?: BegunRun | null
  /** The thread's epoch after this send. An event on a thread without an owner has its own epoch. */
  epoch: number
  /** The process that runs the thread now. Absent on an active thread: its owner is gone, and any process may claim it. */
  owner?: string
  lane?: LaneRow
}

/** A lease that a process gave up without ending its run. `excused`: the store failed, so the attempt does not count towards parking. */
export interface FormerLease extends Fence {
  excused?: boolean
}

/** A lease that was claimed. */
export interface Claimed {
  fence: Fence
  agentId: string
  /** True when an unfinished run is continued. */
  takenOver: boolean
}

/** Which rows of a history are read. */
export interface RowQuery {
  /** Newest `limit` rows with `seq` below this (exclusive). */
  before?: number
  /** Oldest `limit` rows with `seq` above this (exclusive). */
  after?: number
  limit: number
  from?: Date
  to?: Date
  messageIds?: readonly string[]
  context?: boolean
}

/** A thread that is to be created. */
export interface NewThread {
  id: string
  resourceId: string
  title?: string
  metadata?: Record<string, JSONValue>
  parentId?: string
  /** Written with the thread, if this call creates it. */
  workingMemory?: InitialWorkingMemory
  quota?: Quota
  now: number
}

/** Which threads a list has, and in which order. */
export interface ThreadQuery {
  resourceId?: string
  metadata?: Record<string, string | number | boolean | null>
  status?: ThreadStatus[]
  /** Clones of this thread. */
  cloneOf?: string
  /** Child threads of this thread; `null`: threads that have no parent. Default: both. */
  parentId?: string | null
  orderBy?: { field: 'createdAt' | 'updatedAt'; direction: 'ASC' | 'DESC' }
  limit: number
  /** Keyset paging: the last thread of the previous page. */
  after?: { at: number; id: string }
  offset?: number
  total?: boolean
}

/**
 * Marks of threads that need a title. Part of `ThreadStore`: the transaction that ends a run marks its thread, so that the title is
 * generated even if the process ends first.
 */
export interface TitleStore {
  /** Claims marks that are due, oldest first, for `owner` until `until`: no other process gets them before then. */
  claimTitles(claim: TitleClaim): Promise<WantedTitle[]>
  /** Releases a mark, which is due again from `dueAt` on; null removes it. Setting a title removes it too. */
  returnTitle(threadId: string, dueAt: number | null): Promise<void>
}

/** A claim of threads that want a title. */
export interface TitleClaim {
  owner: string
  now: number
  until: number
  limit: number
  agentIds: readonly string[]
}

/** A thread that wants a title. */
export interface WantedTitle {
  threadId: string
  /** The agent whose run marked the thread. */
  agentId: string
  /** How often the mark was claimed, this time included. */
  attempts: number
}

/** For readers of whole messages. */
export type { Message }
export type * from './runs.ts'
export type * from './steps.ts'
export type { DecidedChild, ListedWorkflowRun, WorkflowCommit, WorkflowRunQuery, WorkflowRunRow, WorkflowRunStore } from './workflows.ts'
export type { Quota, Usage } from './usage.ts'
export type { Fence, LaneRow, LaneSignalRow, LaneState, LaneWrite, Scope, ThreadRow } from './thread-row.ts'
export type {
  InitialWorkingMemory, WorkingMemoryChange, WorkingMemoryOf, WorkingMemoryRow, WorkingMemoryStore, WorkingMemoryValue, WorkingMemoryWriter,
} from './working-memory.ts'
