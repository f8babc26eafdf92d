import type { LanguageModelV4FunctionTool, LanguageModelV4ProviderTool, LanguageModelV4ToolChoice } from '@ai-sdk/provider'
import type { Chunk, FinishReason, Usage } from '../run/chunk.ts'
import type { LanguageModel, ModelSettings } from '../run/model/model.ts'
import type { RequestContext } from '../run/request-context.ts'
import type { StepResult } from '../run/step/step-result.ts'
import type { JSONValue } from '../base/json.ts'
import type { Logger } from '../base/logger.ts'
import type { MessageList } from '../message/list/list.ts'
import type { Message, ProviderOptions } from '../message/message.ts'
import type { SystemMessage } from '../prompt/system.ts'
import type { CreatedAgentSignal, SignalContents, SignalInput } from '../signals/signal.ts'

/**
 * Looks at, changes or refuses what goes into a model and what comes out of it. Every hook is optional. Hooks of one kind run in the
 * order of the list, each on what the one before it left. `messages` and the messages in it are not yours to change: return new ones.
 */
export interface Processor<Id extends string = string> {
  readonly id: Id
  /** What errors and logs call it beside its id. */
  readonly name?: string
  /** The state lane of `computeStateSignal`; the processor's id when absent. */
  readonly stateId?: string
  /** After so many changes `computeStateSignal` is told that there is no snapshot, so that it tells the whole state again. */
  readonly maxDeltas?: number
  /** How long one call of a hook may take: 300,000 unless told. After that the run fails with `processor_timeout`. */
  readonly timeoutMs?: number

  /**
   * Once for all input that enters: what was stored before and no model has answered, what starts a run, and what joins it later. `messages` is that
   * input. What users said has the role `user`, however it was sent.
   */
  processInput?(args: ProcessInputArgs): ProcessorReturn<MessagesResult | { messages: Message[]; systemMessages: SystemMessage[] }>
  /** Before every model call. What it changes holds for that prompt; history stays as it is. */
  processInputStep?(args: ProcessInputStepArgs): ProcessorReturn<MessagesResult | InputStepChange>
  /** Before every model call, after `processInputStep`: the state of a lane, when it changed. */
  computeStateSignal?(args: ComputeStateSignalArgs): ProcessorReturn<StateSignalResult>
  /**
   * For every chunk before anybody sees it, one after the other. Null drops it, unless it says how the run goes. What is left of text, thoughts, files and
   * sources is what is kept. The end of a run is stored before it is shown: a refusal of its last `step-finish` or `finish` comes too late and is logged.
   */
  processOutputStream?(args: ProcessOutputStreamArgs): ProcessorReturn<Chunk | null>
  /** When the model has spoken and before its tools run; a call that is not in what it returns is not run. `abort(reason, { retry: true })` asks again. */
  processOutputStep?(args: ProcessOutputStepArgs): ProcessorReturn<MessagesResult>
  /**
   * After each tool, before anybody sees what it returned or threw, and what it returns on the way. `abort(reason, { retry: true })` gives the
   * model the reason in its place.
   */
  processToolResult?(args: ProcessToolResultArgs): ProcessorReturn<{ result: JSONValue }>
  /** Before what was said since input last entered stays, however that comes to be: `messages` is all of it. Asked again when more is said after input. */
  processOutputResult?(args: ProcessOutputResultArgs): ProcessorReturn<MessagesResult>
  /** When a model call failed for good, before the next model of the list is tried. */
  processAPIError?(args: ProcessAPIErrorArgs): ProcessorReturn<{ retry: boolean }>
}

/** Nothing, or the same messages, leave everything as it is. */
export type MessagesResult = MessageList | Message[]
export type ProcessorReturn<T> = T | undefined | void | Promise<T | undefined | void>

/** What every hook is given. */
export interface ProcessorContext {
  agent: { id: string; name: string }
  runId: string
  threadId?: string | undefined
  resourceId?: string | undefined
  requestContext: RequestContext
  abortSignal: AbortSignal
  logger: Logger
  /** This processor's own, for as long as the run lasts; another of the same id has another. */
  state: Record<string, unknown>
  /** How often the model was asked again because a processor wanted it. */
  retryCount: number
  /**
   * Refuses, by throwing; it counts even when that is caught. With `retry`, in `processOutputStep` and `processToolResult`, the model is told the reason
   * and goes on, `maxProcessorRetries` times at most.
   */
  abort(reason?: string, options?: { retry?: boolean; metadata?: unknown }): never
  /**
   * Adds context at the end of the prompt. Awaiting it keeps its place in the stream. Refused with `no_active_run` when the run is stored as over,
   * as while its last `step-finish` and its `finish` are looked at, and when this hook was given up.
   */
  sendSignal(signal: SignalInput): Promise<CreatedAgentSignal>
}

export interface ProcessInputArgs extends ProcessorContext {
  messages: Message[]
  messageList: MessageList
  systemMessages: SystemMessage[]
}

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

/** What `processInputStep` may change for the step that comes. */
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

export interface ComputeStateSignalArgs extends ProcessorContext {
  messages: Message[]
  messageList: MessageList
  stepNumber: number
  steps: readonly StepResult[]
  /** The signals of this lane that are in the window, oldest first. */
  activeStateSignals: CreatedAgentSignal[]
  /** False when the window has no snapshot of the lane, or one that `maxDeltas` changes followed: return a fresh one. */
  contextWindow: { hasSnapshot: boolean }
  /** From history, when the window has lost it. */
  lastSnapshot?: CreatedAgentSignal
  /** Every change since then, oldest first. */
  deltasSinceSnapshot: CreatedAgentSignal[]
}

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

export interface ProcessOutputStreamArgs extends ProcessorContext {
  part: Chunk
  /** What was said before in this run; the newest last. At most the last 1,000. */
  streamParts: readonly Chunk[]
  /** Shows a chunk before this one, such as words that were held back. Throws where it is none that a processor can make. Counts until the hook has returned. */
  emit(chunk: Chunk): void
}

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

export interface ProcessToolResultArgs extends ProcessorContext {
  stepNumber: number
  toolName: string
  toolCallId: string
  args: JSONValue
  /** What it returned; where `isError`, what went wrong in words. */
  result: JSONValue
  isError: boolean
  /** The tool goes on: watchers see this, the model does not. Refused with `retry`, it is not shown. */
  preliminary: boolean
}

export interface ProcessOutputResultArgs extends ProcessorContext {
  messages: Message[]
  messageList: MessageList
  result: { text: string; usage: Usage; finishReason: FinishReason; steps: readonly StepResult[] }
}

export interface ProcessAPIErrorArgs extends ProcessorContext {
  error: unknown
  stepNumber: number
  messages: Message[]
  messageList: MessageList
}

export type { Tripwire } from '../run/chunk.ts'
