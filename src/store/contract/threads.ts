import type { Bus } from '../../bus/contract.ts'
import type { JSONObject, JSONValue } from '../../base/json.ts'
import type { Message } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import type { Conversations } from './messages.ts'
import type { NewThread, ThreadQuery, ThreadRow } from './thread-row.ts'
import type { TitleStore } from './titles.ts'
import type { InitialWorkingMemory, WorkingMemoryStore } from './working-memory.ts'
import type { ActiveBehavior, IdleBehavior, Route, SendMode, SignalState, Waiting } from '../../machine.ts'
import type { CallDecision, Decided, SuspendedCall, SuspendedEnd } from './suspension.ts'
import type { LaneRow, LaneSignalRow, LaneState, LaneWrite } from './lanes.ts'

/**
 * The durable truth about threads: messages, mailbox, runs, leases and lanes, always in one database, so that a commit and its
 * fence are one transaction.
 *
 * What every implementation keeps (its conformance suite is `storeConformance` in `heed/testing`):
 * - Each method is one transaction: all of it happened, or nothing.
 * - Methods that take a `Fence` refuse with the code `fenced` when the thread's epoch or owner is another, and write nothing.
 * - Methods that take a `Scope` refuse with `thread_forbidden` when the thread belongs to another resource, and with
 *   `thread_not_found` when it doesn't exist and the method doesn't create it. A scope without `resourceId` is trusted.
 * - Order is `seq` within a thread and `ord` within a mailbox, both given by the store. Never a time.
 * - Ids of messages and signals are unique within their thread and mean nothing outside of it.
 * - Nothing here blocks the event loop for longer than one small transaction.
 */
export interface ThreadStore extends TitleStore, Conversations, WorkingMemoryStore {
  /** Creates or migrates the tables. Idempotent; implied by every other method. */
  open(): Promise<void>
  close(): Promise<void>
  /** Connects the processes that share this store, where the store can do that itself. */
  bus?(): Bus
  /**
   * Names the data of this store on a bus that serves many stores: equal in every process on the same data, and different for other data. It is
   * sent over the bus, so it holds no credentials. Without it, only runtimes that use this very object are connected.
   */
  readonly namespace?: string

  // Acceptance

  /**
   * Stores each send and decides where it goes, in the order given. Creates the thread when it is new. Where the route is `wake`
   * and the send carries a `claim`, the same transaction takes the lease, and may begin the run. The same `(thread, signal id)` again is one signal: the
   * answer describes the first and says `duplicate`. A refused send is answered with its error; it doesn't refuse its neighbours.
   * What is discarded, or skipped because its lane has it already, leaves no trace: `state` is then `cancelled`.
   */
  accept(sends: readonly Send[]): Promise<Array<Accepted | { error: Error }>>
  /** Resolves when everything committed before this call would survive a power cut. */
  flush(): Promise<void>

  // Runs

  /**
   * Takes the thread when it is idle and something waits, or when it runs and its owner is gone or has this lease `again`. Epoch + 1. Null when neither, or
   * when the run would be of an agent that is not among `agentIds`. Rows bound to a process that is gone are cancelled on the way.
   */
  claim(threadId: string, owner: string, agentIds?: readonly string[], again?: Fence): Promise<Claimed | null>
  /**
   * Starts the next run of a claimed thread, or continues the one that was interrupted: takes what starts it into history, and
   * loads its window: `options.window` of the run, else that of its agent in `windows`. With nothing to run for one of these agents it
   * releases the lease and answers null. A run that is continued has the window it began with, and what it appended since; where its
   * agent is not among them it is refused with `unknown_agent`.
   */
  beginRun(fence: Fence, windows: Windows): Promise<BegunRun | null>
  /** Appends rows, marks progress, takes what may enter, ends or suspends the run: see `StepCommit`. */
  commitStep(fence: Fence, commit: StepCommit): Promise<StepCommitted>
  /**
   * Records a decision about a suspended call. When it was the last one missing, takes the thread for `owner`: epoch + 1. Without
   * an owner the thread is left for whoever runs its agent. A call of the parent thread that waited for this one goes on with it.
   */
  decide(scope: Scope, decision: CallDecision, owner?: string): Promise<Decided>
  /** Ends a suspended run, and says whether something waits. `clearPending` cancels what waits. Epoch + 1: it happens on an idle thread. */
  endSuspended(scope: Scope, runId: string, options: { clearPending?: boolean }): Promise<SuspendedEnd>
  /**
   * Takes up a parked run where it stopped, with fresh attempts and without the messages `removed`. Refuses with `run_not_parked`
   * when it isn't parked, or when the thread is active or went on with other runs. The lease is as for a decision.
   */
  retryParked(scope: Scope, runId: string, options: { owner?: string; removed?: readonly string[] }): Promise<{ agentId: string; fence?: Fence }>
  /** Marks `owner` as alive until `until`. One row for all its threads. */
  heartbeat(owner: string, until: number): Promise<void>
  /** Hands over every thread of `owner`, so that others need not wait for its heartbeat to expire. Forgets its bound rows. */
  resign(owner: string): Promise<void>
  /**
   * Threads that nobody runs although something should: a run without a living owner, or an idle thread with waiting rows. With
   * `agentIds`, only those whose next run is of one of these agents.
   */
  listOrphans(now: number, limit: number, agentIds?: readonly string[]): Promise<Array<{ threadId: string; agentId: string }>>

  // Mailbox and runs, read and edited

  listSignals(scope: Scope, options?: { states?: SignalState[]; limit?: number; after?: number }): Promise<MailboxRow[]>
  getSignal(scope: Scope, id: string): Promise<MailboxRow | null>
  /** Cancels what is still pending; answers the ids that were. */
  cancelSignals(scope: Scope, ids: readonly string[]): Promise<string[]>
  /** Puts the pending queued rows in this order; ids that are no longer pending are passed over. Answers the new order. */
  reorderSignals(scope: Scope, ids: readonly string[]): Promise<string[]>
  getRun(scope: Scope, runId: string): Promise<RunRow | null>
  /** Finds a run by its id alone. For in-process callers that address a run and not a thread. */
  findRun(runId: string): Promise<RunRow | null>
  /** Newest first. */
  listRuns(filter: RunPage): Promise<RunRow[]>
  /** How many runs there are, counted along an index where the filter has one. */
  countRuns(filter: RunFilter): Promise<number>

  // Threads

  getThread(scope: Scope): Promise<ThreadRow | null>
  /** Creates the thread; an existing one of the same resource is answered as it is, `created: false`. */
  createThread(thread: NewThread): Promise<{ thread: ThreadRow; created: boolean }>
  /** Merges `metadata` key by key (null removes a key) and sets the title, atomically. `onlyIfUntitled` leaves a title that is there. */
  patchThread(scope: Scope, patch: { title?: string; metadata?: Record<string, JSONValue | undefined>; onlyIfUntitled?: boolean; workingMemory?: InitialWorkingMemory }): Promise<ThreadRow>
  /** Removes the thread with everything that belongs to it. False when there was none. */
  deleteThread(scope: Scope): Promise<boolean>
  listThreads(query: ThreadQuery): Promise<{ threads: ThreadRow[]; more: boolean; total?: number }>

  // Messages

  /** Rows by `seq`, ascending: the newest page unless the query says otherwise. Context rows only on request. */
  listRows(scope: Scope, query: RowQuery): Promise<{ rows: MessageRow[]; more: boolean }>
  /** The history that a run would begin with if `coming` messages of a user started it now. Context rows included. */
  readWindow(scope: Scope, window: Window, coming: number): Promise<MessageRow[]>
  /** Appends rows outside of a run; on an active thread they wait in the tail band. Rows whose id exists are replaced in place. */
  saveRows(scope: Scope, rows: readonly MessageRow[]): Promise<MessageRow[]>
  /**
   * Removes messages by id, with the context rows that quote them (`content.metadata.sources` has the ids); without ids, all of
   * them. Answers how many messages went.
   */
  deleteMessages(scope: Scope, messageIds?: readonly string[]): Promise<number>

  // Lanes. What goes from history or is cancelled goes from its lane too, which is then what it was before.

  /** By id. Lanes of which nothing is left are not among them. */
  listLanes(scope: Scope, query: { after?: string; limit: number }): Promise<LaneRow[]>
  /** Null when there is nothing of it. `placed`: only what has its place in history, as a run sees it. */
  readLane(scope: Scope, id: string, options?: { placed?: boolean }): Promise<LaneState | null>
  /** Newest first, below the version `before`. */
  listLaneSignals(scope: Scope, id: string, query: { before?: number; limit: number }): Promise<{ signals: LaneSignalRow[]; more: boolean }>
}

/** Who may touch what. In-process callers may leave out the resource; HTTP never does. */
export interface Scope {
  threadId: string
  resourceId?: string
}

/** Proof of the lease. It grows stale as soon as anyone else takes the thread. */
export interface Fence {
  threadId: string
  owner: string
  epoch: number
}

export interface Send {
  threadId: string
  resourceId: string
  agentId: string
  /** Signal id. The thread has it once. */
  id: string
  mode: SendMode
  ifActive: Branch<ActiveBehavior>
  ifIdle: Branch<IdleBehavior>
  /** What enters history, one signal row or the input of a call. Attributes of the chosen branch are merged into signal rows. */
  rows: MessageRow[]
  /** Ids of its own or of its rows that the sender chose: refused with `id_taken` where the thread has something else under them. */
  given?: readonly string[]
  /** The run that this send starts, if it starts one. */
  runId: string
  /** `runId` was made for this send, and is nobody else's. A store need not look for a run that has it. */
  newRunId?: boolean
  /** The process that takes the lease at a wake; absent when this process doesn't run the agent. */
  claim?: Claim
  /** Only this process may run it (a call whose caller holds its stream). It is cancelled when the process goes before it started. */
  boundTo?: string
  /** The JSON part of the options of the run it starts. Its `window`, a `Window`, takes the place of the agent's. */
  options?: JSONObject
  lane?: LaneWrite
  /** For threads that are created by this send. */
  thread?: { title?: string; metadata?: JSONObject; parentId?: string; workingMemory?: InitialWorkingMemory }
  /** Refuse with `no_active_run` where a thread of this store is given that has another run by now, or none: nobody waits for the answer. */
  askedBy?: { threadId: string; runId: string }
  /** Refuse with `thread_suspended` instead of waiting behind a suspended run. */
  refuseSuspended?: boolean
  now: number
}

export interface Claim {
  owner: string
  /**
   * What `beginRun` would be called with next. A store may do it at once, as the last step of the transaction that accepts, with all sends
   * that share this transaction: see `Accepted.begun`.
   */
  begin?: Windows
}

export interface Branch<Behavior> {
  behavior: Behavior
  attributes?: Record<string, string | number | boolean>
}

export interface Accepted {
  route: Route | 'skipped'
  /** The run it starts or enters; for `persist`, `discard` and `skipped` none. */
  runId?: string
  duplicate: boolean
  /** As it was accepted. A run that begins in the same transaction takes it after that. */
  state: SignalState
  /** The rows as they will be read, attributes merged. */
  rows: MessageRow[]
  /** The lease, when this send woke the thread for the claiming process. */
  fence?: Fence
  /** With `fence`, where the same transaction began the run: the answer of `beginRun`. Absent: it is still to be asked. */
  begun?: BegunRun | null
  /** The thread's epoch after this send: what happens on a thread that nobody runs takes one of its own. */
  epoch: number
  /** The process that runs the thread now. Absent on an active thread: it went, and whoever can should claim the thread. */
  owner?: string
  lane?: LaneRow
}

export interface Claimed {
  fence: Fence
  agentId: string
  /** True when an unfinished run is continued. */
  takenOver: boolean
}

/** `low` and `high` as in the window function of the prompt; `false`: only this run's own rows. */
export type Window = { low: number; high: number } | false

/** The agents that a process may run, by id, with the window of each. */
export type Windows = ReadonlyMap<string, Window>

export interface BegunRun {
  run: RunRow
  thread: ThreadRow
  /** The window, oldest first, with the rows that were just taken at its end. Not to be changed: a later run may be given the same. */
  rows: MessageRow[]
  /** What started the run: mailbox rows in order, their `rows` with their `seq`. Empty when a run is continued. */
  taken: MailboxRow[]
  /** True when this continues a run that had begun. */
  resumed: boolean
  /** The lanes of the thread as the run begins. */
  lanes: LaneRow[]
}

/** A step is over when it drains or ends the run, except by suspending or parking it: then `RunRow.step` is the one after it. */
export interface StepCommit {
  runId: string
  step: number
  /** Appended in this order. A row whose id the thread has already is left as it is. */
  rows: MessageRow[]
  /** What context rows of these quote. A row with a quote that is no longer so is left out. */
  quoted?: readonly Quoted[]
  /** The row of these that is the state of a lane: the same transaction gives it its version and moves the lane. */
  lane?: LaneWrite & { rowId: string }
  /** Rows that are in history already and get other contents, where processors changed what was taken. */
  revised?: MessageRow[]
  /** Ids of messages, or of rows of them, that go from history, where processors took them out. */
  removed?: string[]
  /** Tool calls that start now: kept with the run until a row with their result follows. */
  started?: string[]
  /** Options of the run that went with the process that began it: kept with the run. */
  lost?: string[]
  /**
   * Take what may enter this run. If anything enters, what was taken before is answered: it is consumed, and its rows stay for good. `look` takes
   * nothing and says in `waits` whether anything would have entered. Either way the step is over.
   */
  drain?: boolean | 'look'
  /** How the run ends here. With `drain`, it only ends if nothing entered. */
  end?: RunEnd
}

/** `titleUntil`: the thread of a run that finished is to have a title if it has none, and this process makes it until then; when that is past, whoever comes. */
export type RunEnd =
  | { status: 'finished' | 'failed' | 'aborted' | 'parked'; error?: JSONObject; usage?: JSONObject; clearPending?: boolean; titleUntil?: number }
  /** Removes the run's rows and rejects what it took, back to where input last entered it. */
  | { status: 'rejected'; error?: JSONObject }
  /** Calls that stand for a child's count as decided where the child waits no longer; when all do, the run goes on: `more`. */
  | { status: 'suspended'; calls: SuspendedCall[]; usage?: JSONObject }

/** A message that a context row quotes, as it was read. */
export interface Quoted {
  rowId: string
  threadId: string
  messageId: string
  text: string
}

export interface StepCommitted {
  /** The appended rows, with their `seq`. */
  rows: MessageRow[]
  /** What entered: mailbox rows in order, their `rows` with their `seq`. */
  taken: MailboxRow[]
  ended: boolean
  waits?: boolean
  /** After an end: something waits that this owner may run; the lease stays and `beginRun` comes next. Otherwise it is released. */
  more: boolean
  /** After an end without more: something waits that another process may run. */
  left?: boolean
  /** The thread was marked just now, and this process is the one that makes its title. */
  wantsTitle?: boolean
  /** After a rejection: the threads below that went with what the run had asked there. */
  gone?: string[]
}

export interface MailboxRow {
  threadId: string
  ord: number
  id: string
  agentId: string
  route: Route
  kind: Waiting['kind']
  state: SignalState
  /** The run it was promised, then the run that took it. */
  runId?: string
  step?: number
  rows: MessageRow[]
  options?: JSONObject
  boundTo?: string
  reason?: string
  acceptedAt: number
}

export type RunStatus = 'running' | 'suspended' | 'finished' | 'failed' | 'aborted' | 'rejected' | 'parked'

export interface RunRow {
  threadId: string
  resourceId: string
  runId: string
  agentId: string
  status: RunStatus
  epoch: number
  /** The next step to do. */
  step: number
  /** How often the run was begun, or continued without anyone having decided about its calls. */
  attempts: number
  options: JSONObject
  /** Names of options that were given and are lost: they were no JSON, and the process that had them is gone. */
  lost?: string[]
  /** Tool calls that were started and have no result row yet. */
  started: string[]
  /** The calls it waits for, or waited for, with what was decided: kept until the step is over. */
  suspended: SuspendedCall[]
  startedAt: number
  endedAt?: number
  suspendedAt?: number
  error?: JSONObject
  usage?: JSONObject
  /** Until it is over, its rows from this `seq` on may still be taken back. */
  sealSeq: number
}

export interface RunFilter {
  threadId?: string
  resourceId?: string
  agentId?: string
  status?: RunStatus[]
  /** When it was started; with the status `suspended` alone, since when it waits. Both included. */
  from?: number
  to?: number
}

export interface RunPage extends RunFilter {
  limit?: number
  offset?: number
}

/**
 * Rows that are stored while a run is active and do not belong to it get a `seq` from here upwards, the tail band. They can be read at once
 * and sort after the rows of the run; when it ends they are renumbered to follow its last row.
 */
export const TAIL_SEQ = 2 ** 50

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

export type {
  InitialWorkingMemory, WorkingMemoryChange, WorkingMemoryOf, WorkingMemoryRow, WorkingMemoryStore, WorkingMemoryValue, WorkingMemoryWriter,
} from './working-memory.ts'

export type * from './suspension.ts'
export type { NewThread, ThreadQuery, ThreadRow } from './thread-row.ts'
export type { TitleClaim, TitleStore, WantedTitle } from './titles.ts'
/** For readers of whole messages. */
export type { Message }
export type { LaneRow, LaneSignalRow, LaneState, LaneWrite } from './lanes.ts'
