import type { LanguageModelV4CallOptions, LanguageModelV4ToolChoice } from '@ai-sdk/provider'
import type { JSONValue } from '../base/json.ts'
import type { ProviderOptions } from '../message/message.ts'
import type { Processor } from '../processors/processor.ts'
import type { Schema } from '../schema/schema.ts'
import type { Chunk } from './chunk.ts'
import type { SystemMessageInput } from '../prompt/system.ts'
import type { ModelConfig } from './model/model.ts'
import type { RequestContext } from './request-context.ts'
import type { RunResult } from './output/run-result.ts'
import type { StepResult } from './step/step-result.ts'
import type { StopCondition } from './stop.ts'
import type { ToolsInput } from './tools/tool-set.ts'
import type { ToolPayloadTransformPolicy } from './tools/transform.ts'

export const defaultMaxSteps = 20
export const defaultMaxRetries = 2

export interface ModelSettings
  extends Pick<
    LanguageModelV4CallOptions,
    | 'maxOutputTokens' | 'temperature' | 'topP' | 'topK' | 'presencePenalty' | 'frequencyPenalty'
    | 'stopSequences' | 'seed' | 'headers' | 'reasoning'
  > {
  /** Retries of a failed call that may succeed, per model. Defaults to 2. */
  maxRetries?: number
}

export type ToolChoice = 'auto' | 'none' | 'required' | { type: 'tool'; toolName: string }

/** Where the conversation is kept. */
export interface MemoryTarget {
  thread: string | { id: string; title?: string; metadata?: Record<string, JSONValue> }
  resource?: string
  /** Overrides of the agent's memory options for this call. */
  options?: MemoryOptions
}

export interface MemoryOptions {
  /** The last N user and assistant messages are always in the prompt; `false`: none. Defaults to 10. */
  lastMessages?: number | false
  /** Exact marks of the window: it grows to `high` messages and is then cut to `low`. */
  window?: { low: number; high: number }
  workingMemory?: WorkingMemoryOptions
  /** Earlier messages that fit what is asked are shown at the end of the prompt. On unless `false`. */
  semanticRecall?: boolean | SemanticRecallOptions
  /** Working memory is shown and can't be changed. Messages are stored all the same. Defaults to false. */
  readOnly?: boolean
  /** `false`, for one call of `generate()` or `stream()`: the model is shown the history, and nothing of the call is stored. */
  save?: boolean
  /** Gives a thread without a title one, made of what its user said first, after the answer and apart from it. Defaults to false. */
  generateTitle?: boolean | TitleOptions
}

export interface TitleOptions {
  /** The model that writes titles. Defaults to the agent's. */
  model?: ModelConfig | ((context: { requestContext: RequestContext }) => ModelConfig | Promise<ModelConfig>)
  instructions?: string | ((context: { requestContext: RequestContext }) => string | Promise<string>)
}

/** Which earlier messages are recalled, and how much of them is shown. */
export interface SemanticRecallOptions {
  /** Defaults to true. */
  enabled?: boolean
  /** How many messages are looked for. Defaults to 6. */
  topK?: number
  /** How many messages around each are shown with it. Defaults to 1. */
  messageRange?: number | { before: number; after: number }
  /** In all threads of the resource, or in the thread alone. Defaults to `resource`. */
  scope?: 'resource' | 'thread'
  /** The least score, between 0 and 1, with which a message is shown. Defaults to 0.15. */
  threshold?: number
  /** Only messages of which this holds: `thread_id`, `role`, `created_at`, and the metadata of their thread. */
  filter?: Record<string, unknown>
  /** About how many tokens may be shown at most. Defaults to 2,000. */
  maxTokens?: number
  /** How vectors are kept. The built-in index has one way of its own and refuses what it can't honour. */
  indexConfig?: VectorIndexConfig
}

/** `m`, `efConstruction` and `lists` may also stand one level down, under the type's name. */
export interface VectorIndexConfig {
  type?: 'flat' | 'hnsw' | 'ivfflat'
  metric?: 'cosine' | 'euclidean' | 'dotproduct'
  m?: number
  efConstruction?: number
  lists?: number
  hnsw?: { m?: number; efConstruction?: number }
  ivf?: { lists?: number }
}

/** What an agent keeps in mind, as a text in the form of a `template` or as an object of a `schema`. */
export interface WorkingMemoryOptions {
  /** Defaults to true. */
  enabled?: boolean
  /** Whose it is: shared by all threads of a resource, or each thread's own. Defaults to `resource`. */
  scope?: 'resource' | 'thread'
  template?: string
  /** Of an object. Changes are merged: null removes a field, lists are replaced. */
  schema?: Schema
  /** How many characters it may have, as text or as JSON. Defaults to 16,384. */
  maxLength?: number
}

export interface StructuredOutputOptions<S extends Schema = Schema> {
  schema: S
  /** A name and description help some providers. */
  name?: string
  description?: string
  /** Also write the schema into the prompt, for models that don't take one. Defaults to false. */
  jsonPromptInjection?: boolean
}

/** Options of `generate()`, `stream()` and of runs that a signal wakes. */
export interface AgentExecutionOptions<S extends Schema = Schema> {
  memory?: MemoryTarget
  /** Model calls at most in one run. Defaults to 20. */
  maxSteps?: number
  /** Ends the run after a step for which one of these holds. */
  stopWhen?: StopCondition | StopCondition[]
  toolChoice?: ToolChoice
  /** Only these tools are offered. */
  activeTools?: string[]
  modelSettings?: ModelSettings
  providerOptions?: ProviderOptions
  requestContext?: RequestContext
  abortSignal?: AbortSignal
  structuredOutput?: StructuredOutputOptions<S>
  /** In place of the agent's own. */
  instructions?: SystemMessageInput
  /** Beside the agent's own instructions. */
  system?: SystemMessageInput
  /** In place of the agent's own. */
  model?: ModelConfig
  /** Beside the agent's own. */
  tools?: ToolsInput
  /** Groups of tools beside the agent's own, such as one per MCP server. */
  toolsets?: Record<string, ToolsInput | undefined>
  /** Tools that the caller runs: the run ends when one is called. */
  clientTools?: ToolsInput
  /** Ask a person before any tool runs. */
  requireToolApproval?: boolean
  /** How many tools of one step run at once. Defaults to 10. */
  toolCallConcurrency?: number
  inputProcessors?: Processor[]
  outputProcessors?: Processor[]
  maxProcessorRetries?: number
  transform?: ToolPayloadTransformPolicy
  runId?: string
  /** Includes the provider's own chunks as `raw`. */
  includeRawChunks?: boolean
  onChunk?: (chunk: Chunk) => void | Promise<void>
  onStepFinish?: (step: StepResult) => void | Promise<void>
  onFinish?: (result: RunResult) => void | Promise<void>
  onError?: (event: { error: Error }) => void | Promise<void>
  onAbort?: (event: { steps: StepResult[] }) => void | Promise<void>
}

export function modelToolChoice(choice: ToolChoice | undefined): LanguageModelV4ToolChoice | undefined {
  if (choice === undefined) return undefined
  return typeof choice === 'string' ? { type: choice } : choice
}
