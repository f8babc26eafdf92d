import type { JSONObject, JSONValue } from '../../base/json.ts'
import type { NewScore } from './scores.ts'
import type { Scope } from './thread-row.ts'

/** A run of a workflow: the record beside its thread. */
export interface WorkflowRunRow {
  threadId: string
  resourceId: string
  workflowId: string
  runId: string
  status: string
  createdAt: number
  updatedAt: number
  /** What changes in the run: state, result, error. */
  head: JSONObject
}

/** A run in a list. */
export type ListedWorkflowRun = Omit<WorkflowRunRow, 'head'>

/** What a commit of a step records of the run of a workflow. */
export interface WorkflowCommit {
  workflowId: string
  runId: string
  status: string
  head: JSONObject
  /** Stored with the first commit of the run, and never changed. */
  input?: JSONValue
  /** Rows of steps, by their paths: new ones are added, others are replaced. */
  steps: ReadonlyArray<{ path: string; row: JSONObject }>
  /** The work to score steps that ended. */
  scores?: readonly NewScore[]
}

/**
 * A call that an agent made in a step, and that was decided on the agent's own thread; without `toolCallId`, all calls of its run. A run of
 * a workflow receives it as `{ workflow: { decided } }`, the options of a signal.
 */
export interface DecidedChild {
  threadId: string
  runId: string
  toolCallId?: string
  approvalId?: string
}

/** Which runs of a workflow are listed. */
export interface WorkflowRunQuery {
  workflowId: string
  resourceId?: string
  status?: readonly string[]
  /** When the run was created. Both are inclusive. */
  from?: number
  to?: number
  limit: number
  offset?: number
}

/** Runs of workflows. Part of `ThreadStore`: a run is a thread, and its rows are written by the commits of that thread. */
export interface WorkflowRunStore {
  /** The run of a thread with the rows of its steps; null for a thread without one. */
  getWorkflowRun(scope: Scope): Promise<(WorkflowRunRow & { input?: JSONValue; steps: JSONObject[] }) | null>
  /** Newest first. Reads no values of the runs. */
  listWorkflowRuns(query: WorkflowRunQuery): Promise<{ runs: ListedWorkflowRun[]; total: number }>
}
