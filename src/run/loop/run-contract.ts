import type { Clock } from '../../base/clock.ts'
import type { JSONObject, JSONValue } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import type { ChildCall, Chunk, FinishReason, Tripwire, Usage } from '../../message/chunk.ts'
import type { MessageRow } from '../../message/row.ts'
import type { ProcessorPipeline } from '../../processors/pipeline.ts'
import type { SystemMessage } from '../../prompt/system.ts'
import type { RunTrace } from '../../tracing/run-trace.ts'
import type { ResolvedModel } from '../model/model.ts'
import type { AgentExecutionOptions } from '../options.ts'
import type { StructuredOutput } from '../output/structured-output.ts'
import type { RequestContext } from '../request-context.ts'
import type { CallHead } from '../step/prompt-head.ts'
import type { WaitingCall } from '../step/step-result.ts'
import type { ToolSet } from '../tools/tool-set.ts'
import type { ToolPayloadTransformPolicy } from '../tools/payloads.ts'

/** The input of a run. Everything is resolved: it has no functions of the request context. */
export interface RunSetup {
  id: string
  agent: { id: string; name: string }
  threadId?: string
  resourceId?: string
  requestContext: RequestContext
  options: AgentExecutionOptions
  models: ResolvedModel[]
  system: SystemMessage[]
  tools: ToolSet
  structured: StructuredOutput | undefined
  processors: ProcessorPipeline
  /** The sources of context rows, in the order in which their rows enter the prompt. */
  context: readonly ContextSource[]
  /** The agent's rule for the payloads of its tools. */
  transform: ToolPayloadTransformPolicy | undefined
  reservedTags: readonly string[]
  toolPolicy?: ToolPolicy | undefined
  /** The agent of a run of the thread; undefined for a run that is not known. */
  agentOf?: ((runId: string) => Promise<string | undefined>) | undefined
  /** Absent when tracing is off. */
  trace?: RunTrace | undefined
  clock: Clock
  logger: Logger
  newId(): string
  /** History and input, oldest first. */
  rows: MessageRow[]
  /** How many of the last rows are new input. */
  inputCount: number
  /** The number of steps of this run that an earlier process committed. */
  stepsDone: number
}

/** Decides whether an agent may run a call of a tool by itself; otherwise the call needs an approval. Never rejects. */
export type ToolPolicy = (call: {
  agentId: string
  resourceId: string | undefined
  toolName: string
  /** Where values in the prompt came from that outside senders chose. */
  taintedBy: readonly string[]
}) => Promise<boolean>

/**
 * A source of context rows. Called before every model call with the rows of the prompt; the block that it returns is stored as a
 * context row before the call, added to the end of the prompt, and stays there. Readers of the thread don't see it.
 */
export type ContextSource = (rows: readonly MessageRow[]) => Promise<ContextBlock | undefined>

export interface ContextBlock {
  text: string
  /** Stored with the row. `sources`: the ids of quoted messages of the thread, `quotes`: of other threads. It is deleted with them. */
  metadata: JSONObject
  /** The quoted messages with their text. If one has changed when the block is stored, the block is left out. */
  quoted?: ReadonlyArray<{ threadId: string; messageId: string; text: string }>
}

/** What a run needs of its surroundings: a call without a thread, or a durable thread. The run knows no store. */
export interface RunHost {
  /** Publishes a chunk. */
  emit(chunk: Chunk): void
  /**
   * Commits a step and drains the mailbox, in one transaction. With `drain` and `end`, the run only ends if the drain took nothing:
   * no signal can arrive between the two.
   */
  commit(commit: RunCommit): Promise<RunCommitted>
  /** Called before each model call: input processors have accepted the drained input. */
  beforeModelCall?(): void
  /** The published chunks of the run were rejected, and that is stored: later subscribers must not receive them. */
  withdraw?(): void
  /** Called right before a tool starts. A promise where the lease has to be confirmed first; if it is lost, the run is aborted. */
  beforeTool?(): Promise<void> | undefined
  /** The run was lost, and these calls, which were stored as begun, have not begun: stores that if the lease is still this process's. */
  withdrawBegun?(step: number, toolCallIds: string[]): Promise<void>
  /** The run is aborted, and a call of it waits for this call of a child thread: aborts the run there. */
  abortChild?(child: Pick<ChildCall, 'threadId' | 'runId'>): void
  /** Stores what input processors changed in drained input, before the model reads it. */
  reviseInput(change: InputChange): Promise<void>
  /** The lanes of the thread when the run began, with the last snapshot of each. */
  readonly lanes: ReadonlyArray<{ id: string; version: number; lastSnapshotId?: string }>
  /** Rows of history: the newest before a `seq`, or the oldest after one; in ascending order, without context rows. */
  history(query: { before: number; limit: number } | { after: number; limit: number }): Promise<MessageRow[]>
  /** The last snapshot of a lane that history has, and the deltas since, oldest first. `left`: the number of deltas left out. */
  laneRows(id: string): Promise<{ rows: MessageRow[]; left: number }>
}

/** Input as processors left it. Kept rows keep their order; added rows follow, in history as in the prompt. */
export interface InputChange {
  /** Rows with new contents. */
  revised: MessageRow[]
  /** Ids of messages to delete. */
  removed: string[]
  added: MessageRow[]
}

/** A model call for people who look at it later: what its prompt was made of, and how it ended. */
export interface CallRecord extends PromptRecord {
  startedAt: number
  head: CallHead
  provider?: string
  modelId?: string
  specification?: string
  finishReason: FinishReason
  usage: Usage
}

/** What the messages of a prompt were made of. */
export interface PromptRecord {
  /** The number of rows of the run's history. */
  rows: number
  messages: number
  hash: string
  /** The rows of this prompt alone, where a processor changed them: see `AlteredRows`. */
  altered?: JSONValue
}

export interface RunCommit {
  step: number
  rows: MessageRow[]
  /** What context rows of this commit quote. A row with a quote that has changed is left out. */
  quoted?: ReadonlyArray<NonNullable<ContextBlock['quoted']>[number] & { rowId: string }>
  /** Which of the rows is the state of a lane, and the key by which repeats are recognized. */
  lane?: { rowId: string; id: string; cacheKey: string; mode: 'snapshot' | 'delta' }
  /** Ids of tool calls that start after this commit. */
  started?: string[]
  /** Stored rows with new contents, and ids of stored rows to delete. */
  revised?: MessageRow[]
  removed?: string[]
  /** Drain the mailbox; `look`: only report whether there is input to drain. Either way the step is complete. */
  drain?: boolean | 'look'
  end?: RunCommitEnd
  /** The model call that ended before this commit. */
  call?: CallRecord
}

export type RunCommitEnd =
  | { status: 'finished' | 'failed' | 'aborted'; usage: Usage; error?: Error }
  /** A processor rejected the run: what it stored since its last seal is removed. */
  | { status: 'rejected'; tripwire: Tripwire }
  | { status: 'suspended'; calls: WaitingCall[]; usage: Usage }

export interface RunCommitted {
  /** The drained rows, in order, one group per signal. */
  entered: MessageRow[][]
  ended: boolean
  /** With `drain: 'look'`: there is input to drain. */
  waits?: boolean
  /** The rows as they were stored; absent where nothing is stored. */
  rows?: MessageRow[]
}
