import type { JSONObject, JSONValue } from '../../base/json.ts'
import type { RequestContext } from '../../run/request-context.ts'
import type { WorkflowChunk } from '../chunk.ts'
import type { Command } from '../execution-host.ts'
import type { WorkflowRunStatus } from '../plan/machine.ts'
import type { StepRow } from '../plan/plan.ts'
import type { StoredRun, WorkflowRunInfo } from './stored-run.ts'

/** What a run begins with. */
export interface RunStart {
  runId: string
  resourceId: string | undefined
  input: JSONValue | undefined
  state: JSONObject
  requestContext: RequestContext
  /** It goes on one step at a time, with this one first. */
  perStep?: boolean
  turn?: string | undefined
  /** What an earlier run has recorded, which this one continues. */
  rows?: StepRow[]
}

export interface RunQuery {
  workflowId: string
  resourceId?: string | undefined
  status?: readonly WorkflowRunStatus[] | undefined
  from?: number | undefined
  to?: number | undefined
  limit: number
  offset: number
}

/** Names a run. With `resourceId`, only one of that resource. */
export interface RunName {
  runId: string
  resourceId?: string | undefined
}

/** Where the runs of a workflow are: in memory, or on threads of a storage. */
export interface RunPlace {
  /** Names a run and its owner before it is started: from here on, it is pending. Without effect where it exists. */
  create(run: RunName): Promise<void>
  /** Begins the run. False where a run of this id exists: it goes on as it was. */
  start(start: RunStart): Promise<boolean>
  /** Sends a command. False where one of this id was sent before. */
  send(run: RunName, id: string, command: Command): Promise<boolean>
  read(run: RunName): Promise<StoredRun | null>
  /**
   * Resolves when this holds for the run. It is asked when the run has ended, is suspended or is parked. Rejects with its reason when the
   * signal aborts: the run goes on.
   */
  when(run: RunName, holds: (stored: StoredRun) => boolean, signal?: AbortSignal): Promise<StoredRun>
  /**
   * The chunks from now on, also of a run that is started later; with `after`, from the chunk behind this cursor on.
   * Ends when the signal aborts.
   */
  subscribe(run: RunName, options: { after?: string | undefined; signal: AbortSignal }): Promise<AsyncIterable<WorkflowChunk>>
  /** The cursor of the newest chunk of a run that rests; undefined where chunks have none. */
  lastCursor(run: RunName): Promise<string | undefined>
  list(query: RunQuery): Promise<{ runs: WorkflowRunInfo[]; total: number }>
  delete(run: RunName): Promise<boolean>
}
