import type { LanguageModelV4ToolResultPart } from '@ai-sdk/provider'
import type { JSONObject, JSONValue } from '../base/json.ts'

/** Options for one provider, keyed by its name: `{ anthropic: { cacheControl: { type: 'ephemeral' } } }`. */
export type ProviderOptions = Record<string, JSONObject>

/**
 * A message as readers of history and processors see it.
 *
 * The steps of a segment are one message: a `step-start` part marks the begin of each step, and the part of a call holds its result. In
 * the store a message may be several rows (see `MessageRow`), which reading joins.
 */
export interface Message {
  id: string
  role: MessageRole
  createdAt: Date
  threadId?: string
  resourceId?: string
  /** For signals: the tag the model sees. */
  type?: string
  content: MessageContent
}

/** Who a stored message is of. A `signal` is context that a system sent. */
export type MessageRole = 'user' | 'assistant' | 'system' | 'signal'

/** The contents of a stored message. */
export interface MessageContent {
  format: 2
  parts: MessagePart[]
  /** The plain text that older writers stored beside the parts. Read only when `parts` is empty. */
  content?: string
  /** Files beside the parts. The model receives them after the parts. */
  experimental_attachments?: Attachment[]
  metadata?: Record<string, unknown>
  /** Provider options of the whole message. */
  providerMetadata?: ProviderOptions
}

/** A file of a message in the older form; new messages have `FilePart`. */
export interface Attachment {
  url: string
  contentType?: string
  name?: string
}

/** One part of a message, in the order in which it was produced. */
export type MessagePart =
  | TextPart
  | ReasoningPart
  | FilePart
  | StepStartPart
  | ToolInvocationPart
  | SourcePart
  | ErrorPart
  | CustomPart
  | DataPart

interface Part {
  providerMetadata?: ProviderOptions
}

/** Text of a user, a model or a signal. */
export interface TextPart extends Part {
  type: 'text'
  text: string
}

/** What a model reasoned before its answer. */
export interface ReasoningPart extends Part {
  type: 'reasoning'
  /** The text of the reasoning; empty for redacted reasoning. */
  reasoning: string
}

/** A file: its bytes, its URL, or the reference of a provider. */
export interface FilePart extends Part {
  type: 'file'
  /** A URL (`http:`, `https:`, `data:`) or base64. Empty when there is a `reference`. */
  data: string
  mimeType: string
  filename?: string
  /** The file's id at each provider it was uploaded to. */
  reference?: Record<string, string>
  /** Set when a model produced the file while it reasoned. */
  reasoning?: boolean
}

/** Where a step begins within an answer of several steps. */
export interface StepStartPart extends Part {
  type: 'step-start'
}

/** A tool call with its result, if it has one. */
export interface ToolInvocationPart extends Part {
  type: 'tool-invocation'
  toolInvocation: ToolInvocation
  providerExecuted?: boolean
  /** The provider's metadata of the result. `providerMetadata` is that of the call. */
  resultProviderMetadata?: ProviderOptions
}

/** How far a tool call is: called, waiting for approval, answered, failed or denied. */
export type ToolInvocationState = 'call' | 'approval-requested' | 'result' | 'output-error' | 'output-denied'

/** The outcome of a tool call as a model receives it. */
export type ModelToolOutput = LanguageModelV4ToolResultPart['output']

/** A decision about a tool call, as history keeps it. */
export interface ToolApprovalRecord {
  approved?: boolean
  by?: string
  reason?: string
}

/** A tool call: its arguments, its state and its result or error. */
export interface ToolInvocation {
  toolCallId: string
  /** The id that the provider gave the call, where an earlier call of the step has it too. Prompts have this one. */
  providerCallId?: string
  toolName: string
  args: JSONValue
  state: ToolInvocationState
  /** `result`: what the tool returned, as JSON. */
  result?: JSONValue
  /** `output-error`: the text that the model receives. */
  errorText?: string
  /** The code of the error, where the tool itself failed: that of a `HeedError`, else `tool_failed`. */
  errorCode?: string
  /** The decision about a call that needed one. `by` names the decider. */
  approval?: ToolApprovalRecord
  /** The result of `toModelOutput`, stored so that every later prompt has the same bytes. */
  modelOutput?: ModelToolOutput
  /** The replacements of the payloads in a transcript, where the tool or the agent has a `transform`. */
  transcript?: { args?: JSONValue; result?: JSONValue; errorText?: string }
}

/** A source that a model or a provider's search named. */
export interface SourcePart extends Part {
  type: 'source'
  source:
    | { sourceType: 'url'; id: string; url: string; title?: string }
    | { sourceType: 'document'; id: string; mediaType: string; title: string; filename?: string }
}

/** The error of a provider after all retries. Shown in transcripts, never sent to a model. */
export interface ErrorPart extends Part {
  type: 'error'
  error: { name: string; message: string; code?: string }
}

/** Content of one provider, such as a compaction block. */
export interface CustomPart extends Part {
  type: 'custom'
  kind: `${string}.${string}`
}

/** For user interfaces; never sent to a model. */
export interface DataPart extends Part {
  type: `data-${string}`
  id?: string
  data: JSONValue
}
