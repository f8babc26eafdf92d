import type { JSONObject, JSONValue } from '../base/json.ts'
import type { ModelToolOutput } from './tool-output.ts'

/** Options for one provider, keyed by its name: `{ anthropic: { cacheControl: { type: 'ephemeral' } } }`. */
export type ProviderOptions = Record<string, JSONObject>

/**
 * A message as it is stored and as processors see it.
 *
 * One turn of an assistant is one message, whatever number of steps it took: `step-start` parts mark where a step begins, and
 * a tool's result stands in the part of its call. In the store a message may be several rows (see `MessageRow`); reading joins
 * them.
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

export type MessageRole = 'user' | 'assistant' | 'system' | 'signal'

export interface MessageContent {
  format: 2
  parts: MessagePart[]
  /** The plain text, where a writer kept it beside the parts. Read only when `parts` is empty. */
  content?: string
  /** Files that came beside the text. They reach the model after the parts. */
  experimental_attachments?: Attachment[]
  metadata?: Record<string, unknown>
  /** Provider options of the whole message. */
  providerMetadata?: ProviderOptions
}

export interface Attachment {
  url: string
  contentType?: string
  name?: string
}

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

export interface TextPart extends Part {
  type: 'text'
  text: string
}

export interface ReasoningPart extends Part {
  type: 'reasoning'
  /** The text of the thought; empty for a redacted one. */
  reasoning: string
}

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

export interface StepStartPart extends Part {
  type: 'step-start'
}

export interface ToolInvocationPart extends Part {
  type: 'tool-invocation'
  toolInvocation: ToolInvocation
  providerExecuted?: boolean
  /** What the provider said with the result. `providerMetadata` is what it said with the call. */
  resultProviderMetadata?: ProviderOptions
}

export type ToolInvocationState = 'call' | 'approval-requested' | 'result' | 'output-error' | 'output-denied'

export interface ToolInvocation {
  toolCallId: string
  toolName: string
  args: JSONValue
  state: ToolInvocationState
  /** `result`: what the tool returned, as JSON. */
  result?: JSONValue
  /** `output-error`: what the model is told. */
  errorText?: string
  /** `approval-requested` and `output-denied`. */
  approval?: { approved?: boolean; reason?: string }
  /** What `toModelOutput` made of the result, kept so that the prompt has the same bytes for ever. */
  modelOutput?: ModelToolOutput
  /** What a transcript shows in place of the payloads, where the tool or the agent has a `transform`. */
  transcript?: { args?: JSONValue; result?: JSONValue; errorText?: string }
}

export interface SourcePart extends Part {
  type: 'source'
  source:
    | { sourceType: 'url'; id: string; url: string; title?: string }
    | { sourceType: 'document'; id: string; mediaType: string; title: string; filename?: string }
}

/** A provider that failed for good. Shown in transcripts, never sent to a model. */
export interface ErrorPart extends Part {
  type: 'error'
  error: { name: string; message: string; code?: string }
}

/** Content that only its provider understands, such as a compaction block. */
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
