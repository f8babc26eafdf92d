import type { Clock } from '../base/clock.ts'
import type { JSONObject, JSONValue } from '../base/json.ts'
import type { Logger } from '../base/logger.ts'
import type { Usage } from '../message/chunk.ts'
import type { RequestContext } from '../run/request-context.ts'
import type { DecidedChild } from '../store/contract/workflows.ts'
import type { SettledCall } from './call-step.ts'
import type { WorkflowChunk } from './chunk.ts'
import type { WorkflowGraph } from './plan/graph.ts'
import type { WorkflowRunStatus } from './plan/machine.ts'
import type { StepRow } from './plan/plan.ts'
import type { StepSeat } from './step.ts'

/** What is recorded of a run besides its steps. */
export interface RunHead {
  workflowId: string
  runId: string
  status: WorkflowRunStatus
  /** Grows when the run is begun again from a step. */
  generation: number
  state: JSONObject
  result?: JSONValue
  error?: JSONObject
  /** What the agents of its steps took. */
  usage?: Usage
  /** It goes on one step at a time. `turn` is the path of the step that it may run, and `turns` how many it was given. */
  perStep?: true
  turn?: string
  turns?: number
  /** It has ended, and `onFinish` or `onError` has not returned. */
  ending?: true
  createdAt: number
  updatedAt: number
}

/** What is sent to a run: by callers, and by the schedule of its sleeps. */
export type Command =
  | { type: 'resume'; path: string; count: number; data?: JSONValue; perStep?: true }
  /** A run that is paused behind this turn goes on: with `perStep` for one step more. */
  | { type: 'continue'; turn: number; perStep?: true }
  | { type: 'event'; id: string; name: string; data?: JSONValue }
  | { type: 'cancel' }
  | { type: 'wake' }
  /** A call of an agent of a step was decided on the thread of the agent. */
  | { type: 'decided'; child: DecidedChild }

/** One transaction of a run. */
export interface ExecutionCommit {
  /** Rows that are new or changed. */
  rows: StepRow[]
  head: RunHead
  /** Nothing runs and nothing can begin: if no command has arrived, the process leaves the run. */
  rest: boolean
  /** With `rest`: the earliest time at which a step goes on by itself. */
  dueAt?: number | undefined
}

/** What an execution needs of its surroundings: memory, or a durable thread. */
export interface ExecutionHost {
  readonly clock: Clock
  readonly logger: Logger
  /** Stores the rows and returns the commands that have arrived since, in one transaction. */
  commit(commit: ExecutionCommit): Promise<Command[]>
  emit(chunk: WorkflowChunk): void
  /** False where no reader has the chunks: none are made. */
  readonly isWatched?: boolean
  /** Executes an attempt of a step in a span. */
  traced?(about: { id: string; path: string; attempt: number }, work: () => Promise<SettledCall>): Promise<SettledCall>
  /** The thread of the run; absent in memory. */
  readonly seat?: StepSeat
  /** The process is about to close: no step begins any more. */
  readonly isLeaving?: boolean
}

export interface ExecutionInput {
  graph: WorkflowGraph
  head: RunHead
  rows: Map<string, StepRow>
  input: JSONValue | undefined
  requestContext: RequestContext
  resourceId?: string | undefined
}
