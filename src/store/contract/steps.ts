import type { JSONObject, JSONValue } from '../../base/json.ts'
import type { MessageRow } from '../../message/row.ts'
import type { MadeDecision, RunRow } from './runs.ts'

/** The window of a run: where it begins in history, and the ordinal below which recall blocks are left out of it. */
export interface PromptWindow {
  from: number
  cut: number
}

/** What a prompt begins with. A hash names its contents, so that they are stored once for all calls that have them. */
export interface PromptHead {
  hash: string
  /** JSON: the system messages, and the tags that the agent reserves. Absent where the store is known to have it. */
  text?: string
  /** The definitions of the tools. `text` is JSON. */
  tools: { hash: string; text?: string }
}

/** A model call as the commit of its step stores it: with its rows, enough to make its prompt again. */
export interface ModelCall {
  startedAt: number
  provider?: string
  modelId?: string
  /** The version of the provider's interface: earlier ones receive another form of the same prompt. */
  specification?: string
  finishReason?: string
  usage?: JSONObject
  head: PromptHead
  window: PromptWindow
  /** How many rows of the run's history the prompt was made of, and how many messages it has. */
  rows: number
  messages: number
  /** Of the messages, without those of the head. */
  hash: string
  /** The rows of this call alone, where a processor changed them. */
  altered?: JSONValue
}

/** A step of a run: its model call, and the lease under which it was stored. */
export interface StepRow extends Omit<ModelCall, 'head'> {
  runId: string
  step: number
  epoch: number
  owner: string
  /** When the answer of the model was stored. */
  finishedAt: number
  /** The hash of the head. */
  head: string
}

/** A claim of a thread whose run, or whose next run, had another lease before. */
export interface Takeover {
  /** The epoch of the new lease. */
  epoch: number
  runId: string
  /** The step that the run continues with. */
  step: number
  /** The process that had the lease. Absent if it had released it. */
  from?: string
  to: string
  at: number
}

/** A decision about a call of a run, in the order in which they were made. */
export interface RunDecision extends MadeDecision {
  toolCallId: string
  toolName: string
  kind: 'approval' | 'suspend'
}

/** A run with its steps, takeovers and decisions. */
export interface RunDetails extends RunRow {
  steps: StepRow[]
  takeovers: Takeover[]
  decisions: RunDecision[]
}

/** What the prompt of a step is made of. */
export interface StoredPrompt {
  run: RunRow
  step: StepRow
  /** Absent if it was removed. */
  head?: Required<Pick<PromptHead, 'text'>> & { tools: string }
  /** The rows of its window, up to the answer; without those that were removed since. */
  rows: MessageRow[]
}

/** What a process says about itself with its heartbeat. */
export interface ProcessInfo {
  pid: number
  host: string
  version: string
  startedAt: number
}

/** A process that uses the store, or used it within the last week. */
export interface ProcessRow extends Partial<ProcessInfo> {
  owner: string
  /** The time of its last heartbeat, and when that expires. */
  seenAt: number
  expiresAt: number
  /** `closed`: it released its threads. `expired`: its heartbeats ended. */
  end?: 'closed' | 'expired'
  endedAt?: number
  /** The number of threads that it runs. */
  threads: number
}

/** What was done with threads, for people who look at it: the steps of runs, their prompts, and the processes. */
export interface StepStore {
  /** The runs of a thread, newest first, each with its steps, takeovers and decisions. */
  listRunDetails(scope: { threadId: string; resourceId?: string }, page: { limit: number; offset?: number }): Promise<RunDetails[]>
  /** Null if the thread has no such step. `previous`: that of the call before it on the thread, of any run. */
  readPrompt(
    scope: { threadId: string; resourceId?: string }, runId: string, step: number,
  ): Promise<(StoredPrompt & { previous?: StoredPrompt }) | null>
  /** Removes some heads that no step has and that no process used since `before`; `next` continues after the last that was checked. */
  pruneHeads(query: { before: number; after?: string; limit: number }): Promise<{ removed: number; next?: string }>
  /** The newest first. */
  listProcesses(): Promise<ProcessRow[]>
}
