import type { LanguageModelV4ToolChoice } from '@ai-sdk/provider'
import type { JSONValue } from '../base/json.ts'
import type { ProviderOptions } from '../message/message.ts'
import type { Processor } from '../processors/processor.ts'
import type { Schema } from '../schema/schema.ts'
import type { CallScorers } from '../scorers/contract.ts'
import type { Chunk } from '../message/chunk.ts'
import type { SystemMessageInput } from '../prompt/system.ts'
import type { ModelConfig, ModelSettings } from './model/model.ts'
import type { RequestContext } from './request-context.ts'
import type { RunResult } from './output/run-result.ts'
import type { StepResult } from './step/step-result.ts'
import type { ToolsInput } from './tools/tool-set.ts'
import type { ToolPayloadTransformPolicy } from './tools/payloads.ts'

export const defaultMaxSteps = 20

/** Whether the model may, must or must not call a tool, or which one it must call. */
export type ToolChoice = 'auto' | 'none' | 'required' | { type: 'tool'; toolName: string }

/** The thread that stores the conversation. */
export interface MemoryTarget {
  /** With `title` or `metadata`: they are set on a new thread and on an existing one. Metadata is merged key by key. */
  thread: string | { id: string; title?: string; metadata?: Record<string, JSONValue> }
  resource?: string
  /** Overrides of the agent's memory options for this call. */
  options?: MemoryOptions
}

/** What a run reads of its thread's memory, and how. */
export interface MemoryOptions {
  /** The prompt always has the last N user and assistant messages; `false`: none. Defaults to 10. */
  lastMessages?: number | false
  /**
   * Exact bounds of the window: it grows to `high` messages and is then cut to `low`. With equal bounds it has exactly so many messages
   * before the input, and one more where it would begin with an answer.
   */
  window?: { low: number; high: number }
  workingMemory?: WorkingMemoryOptions
  /**
   * Earlier messages that match the input are added to the end of the prompt: of all threads of the resource, unless `scope` is `thread`.
   * On unless `false`.
   */
  semanticRecall?: boolean | SemanticRecallOptions
  /** Working memory is part of the prompt and can't be changed. Messages are still stored. Defaults to false. */
  readOnly?: boolean
  /** `false`, for one call of `generate()` or `stream()`: the prompt has the history, and nothing of the call is stored. */
  save?: boolean
  /** After the first answer, a model writes a title for a thread without one, from the user's first message. Defaults to false. */
  generateTitle?: boolean | TitleOptions
}

/** How titles of threads are generated. */
export interface TitleOptions {
  /** The model that writes titles. Defaults to the agent's. */
  model?: ModelConfig | ((context: { requestContext: RequestContext }) => ModelConfig | Promise<ModelConfig>)
  instructions?: string | ((context: { requestContext: RequestContext }) => string | Promise<string>)
}

/** Which earlier messages are recalled, and how much of them enters the prompt. */
export interface SemanticRecallOptions {
  /** Defaults to true. */
  enabled?: boolean
  /** How many messages recall returns at most. Defaults to 6. */
  topK?: number
  /** How many neighboring messages are added to each. Defaults to 1. */
  messageRange?: number | { before: number; after: number }
  /**
   * Search all threads of the resource, or the thread alone. Defaults to `resource`: what a user wrote in one thread can be recalled in all
   * threads of the same `resourceId`.
   */
  scope?: 'resource' | 'thread'
  /** The lowest score, between 0 and 1, that a recalled message may have. Defaults to 0.15. */
  threshold?: number
  /** Only messages that match: by `thread_id`, `role`, `created_at`, and the metadata of their thread. */
  filter?: Record<string, unknown>
  /** About how many tokens one recall block has at most. Defaults to a third of what `maxWindowTokens` leaves. */
  maxTokens?: number
  /**
   * About how many tokens all recall blocks of a window have together at most. Blocks leave the prompt when the window is cut. Defaults to
   * 1,500, or to `maxTokens` where that is more.
   */
  maxWindowTokens?: number
  /** How vectors are indexed. The built-in index supports one kind and rejects the options of others. */
  indexConfig?: VectorIndexConfig
}

/** `m`, `efConstruction` and `lists` may also be nested under the type's name. */
export interface VectorIndexConfig {
  type?: 'flat' | 'hnsw' | 'ivfflat'
  metric?: 'cosine' | 'euclidean' | 'dotproduct'
  m?: number
  efConstruction?: number
  lists?: number
  hnsw?: { m?: number; efConstruction?: number }
  ivf?: { lists?: number }
}

/** What an agent keeps between runs: a text in the form of a `template`, or an object of a `schema`. */
export interface WorkingMemoryOptions {
  /** Defaults to true. */
  enabled?: boolean
  /** Shared by all threads of a resource, or separate for each thread. Defaults to `resource`. */
  scope?: 'resource' | 'thread'
  template?: string
  /** The schema of an object. Changes are merged: null removes a field, lists are replaced. */
  schema?: Schema
  /** The maximum length in characters, as text or as JSON. Defaults to 16,384. */
  maxLength?: number
}

/** An answer that matches a schema. */
export interface StructuredOutputOptions<S extends Schema = Schema> {
  schema: S
  /** Some providers pass the name and the description to the model. */
  name?: string
  description?: string
  /** Also write the schema into the prompt, for models that don't support response schemas. Defaults to false. */
  jsonPromptInjection?: boolean
}

/** Options of `generate()`, of `stream()`, and of runs that a signal starts. */
export interface AgentExecutionOptions<S extends Schema = Schema> {
  memory?: MemoryTarget
  /** The maximum number of model calls in one run. Defaults to 20. */
  maxSteps?: number
  /** The run ends after a step for which one of these conditions holds. */
  stopWhen?: StopCondition | StopCondition[]
  toolChoice?: ToolChoice
  /** Only these tools are offered. */
  activeTools?: string[]
  modelSettings?: ModelSettings
  providerOptions?: ProviderOptions
  requestContext?: RequestContext
  abortSignal?: AbortSignal
  structuredOutput?: StructuredOutputOptions<S>
  /** Replaces the agent's instructions. */
  instructions?: SystemMessageInput
  /** Added to the instructions. */
  system?: SystemMessageInput
  /** Replaces the agent's model. */
  model?: ModelConfig
  /** Added to the agent's tools. */
  tools?: ToolsInput
  /** Groups of tools that are added to the agent's, such as one per MCP server. */
  toolsets?: Record<string, ToolsInput | undefined>
  /** Tools that the caller executes: the run ends when the model calls one. */
  clientTools?: ToolsInput
  /** Suspend the run for an approval before any tool runs. */
  requireToolApproval?: boolean
  /** How many tool calls of one step run in parallel. Defaults to 10. */
  toolCallConcurrency?: number
  inputProcessors?: Processor[]
  outputProcessors?: Processor[]
  maxProcessorRetries?: number
  transform?: ToolPayloadTransformPolicy
  /** The id of the run. An id that another run has is rejected. */
  runId?: string
  /**
   * Runs with this version of the agent, published or not; 0: code without overrides; `draft`: the latest version of the agent and of its
   * prompt blocks. See `heed/editor`.
   */
  agentVersion?: number | 'draft'
  /** Score this run with these scorers in place of those of the agent; `{}`: with none. Each is one of the Heed or the agent, or its id. */
  scorers?: CallScorers
  /** Publish the provider's raw chunks as `raw` chunks. */
  includeRawChunks?: boolean
  onChunk?: (chunk: Chunk) => void | Promise<void>
  onStepFinish?: (step: StepResult) => void | Promise<void>
  onFinish?: (result: RunResult) => void | Promise<void>
  onError?: (event: { error: Error }) => void | Promise<void>
  onAbort?: (event: { steps: StepResult[] }) => void | Promise<void>
}

/** The default options of an agent's calls. Its memory may leave the thread to the call. */
export interface DefaultOptions extends Omit<AgentExecutionOptions, 'runId' | 'scorers' | 'memory'> {
  memory?: Partial<MemoryTarget>
}

/** Options of a run that a send starts. The target of the send is its thread; `memory` may repeat it. */
export interface WokenRunOptions extends Omit<AgentExecutionOptions, 'memory'> {
  memory?: {
    thread?: string | { id?: string; title?: string; metadata?: Record<string, JSONValue> }
    resource?: string
    /** Overrides of the agent's memory options for this run. */
    options?: MemoryOptions
  }
}

export function modelToolChoice(choice: ToolChoice | undefined): LanguageModelV4ToolChoice | undefined {
  if (choice === undefined) return undefined
  return typeof choice === 'string' ? { type: choice } : choice
}

/** Evaluated after each step that another step would follow. True ends the run. */
export type StopCondition = (context: { steps: readonly StepResult[] }) => boolean | Promise<boolean>

/** Holds after `count` steps. */
export function stepCountIs(count: number): StopCondition {
  return ({ steps }) => steps.length >= count
}

/** Holds after a step that called this tool. */
export function hasToolCall(toolName: string): StopCondition {
  return ({ steps }) => steps.at(-1)?.toolCalls.some((call) => call.toolName === toolName) ?? false
}
