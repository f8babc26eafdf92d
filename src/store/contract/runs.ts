import type { JSONObject, JSONValue } from '../../base/json.ts'
import type { Route, SignalState, Waiting } from '../../machine.ts'
import type { ApprovalRequest, ChildCall } from '../../message/chunk.ts'
import type { MessageRow } from '../../message/row.ts'
import type { RunEdit } from '../../editor/contract.ts'
import type { NewScore } from './scores.ts'
import type { ModelCall, PromptWindow } from './steps.ts'
import type { WorkflowCommit } from './workflows.ts'
import type { Fence, LaneRow, LaneWrite, ThreadRow } from './thread-row.ts'

export type { ApprovalRequest, ChildCall } from '../../message/chunk.ts'

/** The low and high mark of the window (see window.ts); `false`: only the rows of the run itself. */
export type Window = { low: number; high: number } | false

/** The agents that a process may run, by id, with the window of each. */
export interface Windows extends ReadonlyMap<string, Window> {
  /** The agents whose versions are edited: what a run of theirs gets is stored when it begins. */
  readonly edited?: ReadonlySet<string>
}

/** A signal in the mailbox of a thread. */
export interface MailboxRow {
  threadId: string
  ord: number
  id: string
  agentId: string
  route: Route
  kind: Waiting['kind']
  state: SignalState
  /** The run that was chosen for the signal; then the run that took it. */
  runId?: string
  step?: number
  rows: MessageRow[]
  options?: JSONObject
  boundTo?: string
  reason?: string
  acceptedAt: number
  /** When a run took it, in which process and under which epoch. */
  drainedAt?: number
  drainedBy?: string
  epoch?: number
  /** When it got its final state. */
  settledAt?: number
}

/** A run as its process begins or continues it. */
export interface BegunRun {
  run: RunRow
  thread: ThreadRow
  /** The window, oldest first; the rows that were just taken are its end. Do not change them: a later run may get the same objects. */
  rows: MessageRow[]
  /** The signals that started the run, in order; their `rows` have a `seq`. Empty when a run is continued. */
  taken: MailboxRow[]
  /** True when a run is continued that had begun before. */
  resumed: boolean
  /** The lanes of the thread when the run begins. */
  lanes: LaneRow[]
  window: PromptWindow
}

/** A step is done when its commit drains or ends the run, unless the end suspends or parks it: then `RunRow.step` is the next one. */
export interface StepCommit {
  runId: string
  step: number
  /** Appended in this order. A row whose id the thread has already is left as it is. */
  rows: MessageRow[]
  /** The quotes in context rows of this commit. A row with an outdated quote is left out. */
  quoted?: readonly Quoted[]
  /** The row of this commit that is the state of a lane: the same transaction gives it its version and advances the lane. */
  lane?: LaneWrite & { rowId: string }
  /** Rows of history with new contents, where processors changed the input. */
  revised?: MessageRow[]
  /** Ids of messages, or of rows, to remove from history, where processors removed them. */
  removed?: string[]
  /** Tool calls that start now: stored with the run until a row with their result follows, or until they are suspended. */
  started?: string[]
  /** Tool calls that were stored as started and did not start: the process that was to start them stopped. */
  notStarted?: string[]
  /** Options of the run that were lost with the process that began it: stored with the run. */
  lost?: string[]
  /**
   * Take the signals that may enter this run. If any enters, the signals that were taken before become `consumed`, and their rows are
   * sealed. `look` takes none and reports in `waits` whether any would have entered. Either way the step is done.
   */
  drain?: boolean | 'look'
  /** How the run ends with this commit. With `drain`, it ends only if no signal entered. */
  end?: RunEnd
  /** The model call of the step: in the first commit after it. */
  call?: ModelCall
  /** What the run of a workflow has done. */
  workflow?: WorkflowCommit
}

/**
 * `titleUntil`: if the run finished and its thread has no title, mark the thread; this process generates the title until then. With a time
 * in the past, any process may.
 */
export type RunEnd =
  | {
    status: 'finished' | 'failed' | 'aborted' | 'parked'
    error?: JSONObject
    usage?: JSONObject
    clearPending?: boolean
    titleUntil?: number
    /** The work to score the run. */
    scores?: readonly NewScore[]
  }
  /** Removes the rows of the run since it was last sealed, and rejects the signals that it took since then. */
  | { status: 'rejected'; error?: JSONObject }
  /** A call whose `child` is no longer suspended counts as decided; when all calls are decided, the run continues: `more`. */
  | { status: 'suspended'; calls: SuspendedCall[]; usage?: JSONObject }

/** A message that a context row quotes, with the text at the time it was read. */
export interface Quoted {
  rowId: string
  threadId: string
  messageId: string
  text: string
}

/** What the commit of a step stored, and whether the run goes on. */
export interface StepCommitted {
  /** The appended rows, with their `seq`. */
  rows: MessageRow[]
  /** The signals that entered, in order; their `rows` have a `seq`. */
  taken: MailboxRow[]
  ended: boolean
  waits?: boolean
  /** After an end: a signal is pending that this owner may run. It keeps the lease and calls `beginRun` next. Else it is released. */
  more: boolean
  /** After an end without `more`: a signal is pending that another process may run. */
  left?: boolean
  /** The thread was marked by this commit, and this process generates its title. */
  wantsTitle?: boolean
  /** After a rejection: the child threads that were deleted with the rows of the run. */
  gone?: string[]
}

/** What a run does, or how it ended. */
export type RunStatus = 'running' | 'suspended' | 'finished' | 'failed' | 'aborted' | 'rejected' | 'parked'

/** A run as it is stored. */
export interface RunRow {
  threadId: string
  resourceId: string
  runId: string
  agentId: string
  status: RunStatus
  epoch: number
  /** The next step to do. */
  step: number
  /** How often the run was begun or continued since it last made progress. Continuing after a decision does not count. */
  attempts: number
  options: JSONObject
  /** The version of the agent that it runs with, where the agent was edited when the run began. */
  edit?: RunEdit
  /** Names of options that are lost: they were not JSON, and the process that had them is gone. */
  lost?: string[]
  /** Tool calls that were started, have no result row yet, and are not suspended. A decided call is among them when it has begun. */
  started: string[]
  /** The calls that it is or was suspended for, with their decisions: kept until the step is done. */
  suspended: SuspendedCall[]
  startedAt: number
  endedAt?: number
  suspendedAt?: number
  error?: JSONObject
  usage?: JSONObject
  /** Until the run has ended, its rows from this `seq` on may still be removed. */
  sealSeq: number
}

/** Which runs a list has. Without a field, any value matches. */
export interface RunFilter {
  threadId?: string
  resourceId?: string
  agentId?: string
  status?: RunStatus[]
  /** When the run was started; with the status `suspended` alone, when it was suspended. Both are inclusive. */
  from?: number
  to?: number
}

/** Which runs a page of a list has. */
export interface RunPage extends RunFilter {
  limit?: number
  offset?: number
}

/** A tool call that needs a decision: an approval, or data to resume with. */
export interface SuspendedCall {
  toolCallId: string
  toolName: string
  args: JSONValue
  kind: 'approval' | 'suspend'
  payload?: JSONValue
  /** What the decision is about. */
  request?: ApprovalRequest
  /** An earlier request of this call, or of a call with its id in an earlier step, was decided: `toolCallId` does not name this request. */
  again?: true
  /** The call on a child thread that this one stands for. */
  child?: ChildCall
  /** Empty if the child was decided by itself: its run is followed. */
  decision?: { approved?: boolean; reason?: string; by?: string; resumeData?: JSONValue }
}

/** A decision about a suspended call: approved, declined, or data to resume with. */
export interface CallDecision {
  /** Repeating a decision with the same id has no effect and returns the result of the first. */
  id?: string
  runId?: string
  /** The step that made the call: some providers restart the numbering of calls in each step. */
  step?: number
  /** Optional if only one call needs a decision. Rejected where a call with this id was decided before in the run: see `approvalId`. */
  toolCallId?: string
  /** The id of the request. */
  approvalId?: string
  /** Rejected if the request has another digest. */
  digest?: string
  approved?: boolean
  reason?: string
  resumeData?: JSONValue
  /** Names the decider. */
  by?: string
}

/** A decision as it was stored. */
export interface MadeDecision {
  approvalId?: string
  approved?: boolean
  reason?: string
  by?: string
  at: number
}

/** The decision that counts, and the run that may go on. */
export interface Decided {
  runId: string
  toolCallId: string
  agentId: string
  /** Of a repeated decision, the first one. */
  made: MadeDecision
  /** The lease, if this was the last decision that the run needed. */
  fence?: Fence
  /** Parent threads whose runs continue by this decision: a process that runs their agents should claim them. */
  parents: string[]
  /** Child threads whose runs continue by this decision. The run that called their agents claims them, once it continues. */
  children: string[]
}

/** The end of a suspended run, with the calls that are denied by it. */
export interface SuspendedEnd {
  ended: boolean
  /** The suspended runs of agents that it had called, which the same transaction ended, in the order of their ends. */
  children?: Array<Pick<SuspendedEnd, 'denied' | 'more' | 'epoch'> & { threadId: string; runId: string }>
  /** Calls that needed an approval: they never started, and a row records that. */
  denied: Array<Pick<SuspendedCall, 'toolCallId' | 'toolName'> & { reason: string }>
  /** Signals are pending on the thread. */
  more: boolean
  /** The thread's epoch after the end. */
  epoch: number
  /** As in `Decided`. */
  parents: string[]
}
