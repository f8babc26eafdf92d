import type { LanguageModelV4FunctionTool, LanguageModelV4ProviderTool, LanguageModelV4ToolChoice } from '@ai-sdk/provider'
import type { JSONValue } from '../base/json.ts'
import type { Logger } from '../base/logger.ts'
import type { MessageList } from '../message/list/list.ts'
import type { Message, ProviderOptions } from '../message/message.ts'
import type { SystemMessage } from '../prompt/system.ts'
import type { Chunk, FinishReason, Usage } from '../message/chunk.ts'
import type { LanguageModel, ModelSettings } from '../run/model/model.ts'
import type { RequestContext } from '../run/request-context.ts'
import type { StepResult } from '../run/step/step-result.ts'
import type { CreatedAgentSignal, SignalContents, SignalInput } from '../signals/signal.ts'

/**
 * Reads, changes or rejects the input and output of a model. Every hook is optional. The hooks of one kind run in the order of the list,
 * each on the result of the one before it. What a hook has left of its arguments counts, returned or changed in place: also
 * the array of messages, unless it returned other messages.
 */
export interface Processor<Id extends string = string> {
  readonly id: Id
  /** The name in errors and logs, beside the id. */
  readonly name?: string
  /** The state lane of `computeStateSignal`; the processor's id when absent. */
  readonly stateId?: string
  /** After this many deltas, `computeStateSignal` receives `hasSnapshot: false`, so that it returns a snapshot again. */
  readonly maxDeltas?: number
  /** The time limit of one call of a hook, 300,000 by default. After it the run fails with `processor_timeout`. */
  readonly timeoutMs?: number

  /**
   * Once for all input that enters: stored input that no model has answered, the input that starts a run, and input that it drains later.
   * `messages` is that input. Input of users has the role `user`, also when it was sent as a signal. It may change this input alone: a
   * change of other messages of the list fails the run.
   *
   * Also for other text before a model reads it; `source` says which. Such text is one message of the role `user` with a part for each
   * text: what the hook leaves of the parts counts, and messages that it adds are ignored.
   */
  processInput?(args: ProcessInputArgs): ProcessorReturn<MessagesResult | { messages: Message[]; systemMessages: SystemMessage[] }>
  /** Before every model call. Changes apply to that prompt only; history stays unchanged. */
  processInputStep?(args: ProcessInputStepArgs): ProcessorReturn<MessagesResult | InputStepChange>
  /** Before every model call, after `processInputStep`: returns the state of a lane when it has changed. */
  computeStateSignal?(args: ComputeStateSignalArgs): ProcessorReturn<StateSignalResult>
  /**
   * For every chunk before it is published, in order. Null drops a chunk, unless it reports the progress of the run. The text, reasoning,
   * files and sources that are left are stored. The end of a run is stored before it is published: a rejection of its last `step-finish`
   * or `finish` comes too late and is logged.
   */
  processOutputStream?(args: ProcessOutputStreamArgs): ProcessorReturn<Chunk | null>
  /**
   * After the model call of a step and before its tools run. A call that the result lacks is not executed. `abort(reason, { retry: true })`
   * calls the model again.
   */
  processOutputStep?(args: ProcessOutputStepArgs): ProcessorReturn<MessagesResult>
  /**
   * After each tool, before its result or error is published, and for its preliminary results. `abort(reason, { retry: true })` gives the
   * model the reason in place of the result.
   */
  processToolResult?(args: ProcessToolResultArgs): ProcessorReturn<{ result: JSONValue }>
  /** At the end of each segment, also after an abort, before its output is final. `messages` is the output of the segment. */
  processOutputResult?(args: ProcessOutputResultArgs): ProcessorReturn<MessagesResult>
  /** When a model call has failed after its retries, before the next model of the list is tried. */
  processAPIError?(args: ProcessAPIErrorArgs): ProcessorReturn<{ retry: boolean }>
}

/** Nothing leaves the messages as they are, with what the hook changed in them. */
export type MessagesResult = MessageList | Message[]
/** What a hook returns: a value that replaces what it was given, or nothing to leave it as it is. */
export type ProcessorReturn<T> = T | undefined | void | Promise<T | undefined | void>

/** The arguments of every hook. */
export interface ProcessorContext {
  agent: { id: string; name: string }
  runId: string
  threadId?: string | undefined
  resourceId?: string | undefined
  requestContext: RequestContext
  abortSignal: AbortSignal
  logger: Logger
  /** An object of this processor for this run. Another processor with the same id has another one. */
  state: Record<string, unknown>
  /** How often processors had the model called again. */
  retryCount: number
  /**
   * Rejects, by throwing; the rejection counts even when the hook catches the error. With `retry`, in `processOutputStep` and
   * `processToolResult`, the model receives the reason and continues, at most `maxProcessorRetries` times.
   */
  abort(reason?: string, options?: { retry?: boolean; metadata?: unknown }): never
  /**
   * Adds context at the end of the prompt. Await it to keep its position in the stream. Rejected with `no_active_run` once the end of the
   * run is stored, as during its last `step-finish` and its `finish`, and after this call has failed or timed out.
   */
  sendSignal(signal: SignalInput): Promise<CreatedAgentSignal>
}

/** What `processInput` receives: the input of a run before a model reads it. */
export interface ProcessInputArgs extends ProcessorContext {
  messages: Message[]
  messageList: MessageList
  systemMessages: SystemMessage[]
  source: InputSource
}

/**
 * What `processInput` is called with. `input`: what a run answers. `context`: working memory or recalled messages, which the run is about
 * to show to its model; rejected, they are left out and the run continues. `stored`: text that a request stores or a model writes into
 * working memory, outside of the input of a run; rejected, it is not stored.
 */
export type InputSource = 'input' | 'context' | 'stored'

/** What `processInputStep` receives before each model call. */
export interface ProcessInputStepArgs extends ProcessorContext {
  messages: Message[]
  messageList: MessageList
  systemMessages: SystemMessage[]
  stepNumber: number
  steps: readonly StepResult[]
  model: LanguageModel
  tools: ReadonlyArray<LanguageModelV4FunctionTool | LanguageModelV4ProviderTool>
  toolChoice: LanguageModelV4ToolChoice | undefined
  activeTools: readonly string[] | undefined
  modelSettings: ModelSettings
  providerOptions: ProviderOptions | undefined
}

/** The changes of `processInputStep` for the next step. */
export interface InputStepChange {
  messages?: Message[]
  messageList?: MessageList
  systemMessages?: SystemMessage[]
  model?: LanguageModel
  toolChoice?: LanguageModelV4ToolChoice | 'auto' | 'none' | 'required'
  activeTools?: string[]
  modelSettings?: ModelSettings
  providerOptions?: ProviderOptions
}

/** What `computeStateSignal` receives before each model call. */
export interface ComputeStateSignalArgs extends ProcessorContext {
  messages: Message[]
  messageList: MessageList
  stepNumber: number
  steps: readonly StepResult[]
  /** The signals of this lane in the window, oldest first. */
  activeStateSignals: CreatedAgentSignal[]
  /** False when the window has no snapshot of the lane, or `maxDeltas` deltas after it: return a snapshot. */
  contextWindow: { hasSnapshot: boolean }
  /** From history, when the window no longer has it. */
  lastSnapshot?: CreatedAgentSignal
  /** The deltas after that snapshot, oldest first. */
  deltasSinceSnapshot: CreatedAgentSignal[]
}

/** The state of a lane that a processor computes. An unchanged `cacheKey` sends nothing. */
export interface StateSignalResult {
  id?: string
  mode?: 'snapshot' | 'delta'
  cacheKey: string
  contents: SignalContents
  value?: unknown
  delta?: unknown
  tagName?: string
  attributes?: Record<string, string | number | boolean>
  metadata?: Record<string, unknown>
}

/** What `processOutputStream` receives for each chunk of the output. */
export interface ProcessOutputStreamArgs extends ProcessorContext {
  part: Chunk
  /** The earlier chunks of this run, newest last: at most the last 1,000. */
  streamParts: readonly Chunk[]
  /**
   * Publishes a chunk before this one, such as text that was held back. Throws for an invalid chunk. Without effect after the hook has
   * returned.
   */
  emit(chunk: Chunk): void
}

/** What `processOutputStep` receives after each model call, before its tools run. */
export interface ProcessOutputStepArgs extends ProcessorContext {
  messages: Message[]
  messageList: MessageList
  stepNumber: number
  steps: readonly StepResult[]
  text: string
  toolCalls: ReadonlyArray<{ toolCallId: string; toolName: string; args: JSONValue }>
  finishReason: FinishReason
  usage: Usage
}

/** What `processToolResult` receives for each result, before a model reads it. */
export interface ProcessToolResultArgs extends ProcessorContext {
  stepNumber: number
  toolName: string
  toolCallId: string
  args: JSONValue
  /** The tool's result; with `isError`, the message of its error. */
  result: JSONValue
  isError: boolean
  /** The tool continues: subscribers receive this result, the model does not. Rejected with `retry`, it is not published. */
  preliminary: boolean
}

/** What `processOutputResult` receives when a run has its answer, before the run ends. */
export interface ProcessOutputResultArgs extends ProcessorContext {
  messages: Message[]
  messageList: MessageList
  result: { text: string; usage: Usage; finishReason: FinishReason; steps: readonly StepResult[] }
}

/** What `processAPIError` receives when a provider rejects a call. */
export interface ProcessAPIErrorArgs extends ProcessorContext {
  error: unknown
  stepNumber: number
  messages: Message[]
  messageList: MessageList
}

export type { Tripwire } from '../message/chunk.ts'
