import type { JSONValue } from '../base/json.ts'
import type { ProviderOptions, ToolApprovalRecord } from './message.ts'

/** An event of a run or a thread. `runId` names the run; on threads, `cursor` is the position in the stream. */
export type Chunk = RunChunk | DataChunk

/** What all chunks of a run have. */
export interface ChunkEnvelope<Type extends string, Payload> {
  type: Type
  runId: string
  from: ChunkSource
  payload: Payload
  cursor?: string
  /** What a display shows instead of the payload; see `transform`. */
  metadata?: Record<string, unknown>
}

/** Who a chunk is of. */
export type ChunkSource = 'AGENT' | 'USER' | 'SYSTEM'

type Meta = { providerMetadata?: ProviderOptions }
type Call = { toolCallId: string; toolName: string }
/** The decision about a call that needed one. */
type Approved = { approval?: ToolApprovalRecord }

/** The payload of each chunk type. Types and payloads are a wire format: see PROTOCOL.md. */
export interface ChunkPayloads {
  start: { id: string; messageId: string }
  'step-start': { messageId: string; request: Record<string, never>; warnings: unknown[]; startedAt: number }
  'response-metadata': { id?: string; timestamp?: string; modelId?: string }
  'text-start': { id: string } & Meta
  'text-delta': { id: string; text: string } & Meta
  'text-end': { id: string } & Meta
  'reasoning-start': { id: string } & Meta
  'reasoning-delta': { id: string; text: string } & Meta
  'reasoning-end': { id: string } & Meta
  source: { id: string; sourceType: 'url' | 'document'; url?: string; title?: string; mimeType?: string; filename?: string } & Meta
  file: { data: string; mimeType: string } & Meta
  'tool-call-input-streaming-start': Call & { providerExecuted?: boolean; dynamic?: boolean } & Meta
  'tool-call-delta': { toolCallId: string; toolName?: string; argsTextDelta: string } & Meta
  'tool-call-input-streaming-end': { toolCallId: string } & Meta
  'tool-call': Call & { args: JSONValue; providerExecuted?: boolean; dynamic?: boolean } & Meta
  /** `more`: a chunk about another call of the same suspension follows. */
  'tool-call-approval': Call & { args: JSONValue; resumeSchema: string; request?: ApprovalRequest; child?: ChildCall; more?: true }
  'tool-call-suspended': Call & {
    args: JSONValue
    suspendPayload: JSONValue
    resumeSchema: string
    request?: ApprovalRequest
    child?: ChildCall
    more?: true
  }
  'tool-output': Call & { output: unknown }
  'tool-result':
    & Call
    & { args: JSONValue; result: JSONValue; isError?: boolean; errorCode?: string; providerExecuted?: boolean; preliminary?: boolean }
    & Approved & Meta
  'tool-error': Call & { args: JSONValue; error: ChunkError } & Approved
  'tool-output-denied': Call & { args: JSONValue; by?: string; reason?: string }
  'step-finish': StepFinishPayload
  /** The part of a structured answer that is complete so far. */
  object: { object: unknown }
  'object-result': { object: unknown }
  tripwire: { reason: string; retry?: boolean; metadata?: unknown; processorId: string }
  raw: unknown
  error: { error: ChunkError }
  abort: Record<string, never>
  finish: FinishPayload
}

/** Why a processor rejected a run. Part of every kind of result, and the payload of the `tripwire` chunk. */
export interface Tripwire {
  reason: string
  retry?: boolean
  metadata?: unknown
  processorId: string
}

/** A request for a decision: the call that runs, or continues, once it is decided. Of an agent below, it is the call of that agent. */
export interface ApprovalRequest {
  /** Of this request alone: a call that needs another decision has another request. */
  id: string
  /** The ids of the agents, from the one of this thread to the one that made the call, and the name of the tool. */
  path: string[]
  toolName: string
  /** The arguments of the call, as displays may show them. */
  args: JSONValue
  /** Of the tool and its arguments. A decision over HTTP that names the request carries it back. */
  digest: string
  /** Where values in the prompt of the call came from that senders of messages from outside chose; absent if there are none. */
  taintedBy?: string[]
}

/** A suspended call of the run on a child thread, for which a call of the parent run is suspended. */
export interface ChildCall {
  threadId: string
  runId: string
  step: number
  toolCallId: string
  toolName: string
  /** The id of its request. */
  approvalId?: string
}

/** An error in a chunk: no stack, no cause. */
export interface ChunkError {
  name: string
  message: string
  code?: string
  retryable?: boolean
}

/** The end of a step, with its text and its tool calls. */
export interface StepFinishPayload {
  messageId: string
  stepResult: { reason: FinishReason; isContinued: boolean; warnings: unknown[] }
  output: { text: string; toolCalls: Array<Call & { args: JSONValue }>; usage: Usage }
  metadata: { providerMetadata?: ProviderOptions; modelId?: string }
}

/** The end of a run. */
export interface FinishPayload {
  messageId: string
  stepResult: { reason: FinishReason }
  output: { usage: Usage }
  metadata: Record<string, unknown>
}

/** Why a step or a run ended. */
export type FinishReason =
  | 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'error' | 'other' | 'interrupted' | 'aborted' | 'suspended' | 'tripwire'

/** The tokens of a model call, or the sum of several. */
export interface Usage {
  inputTokens: number
  outputTokens: number
  totalTokens: number
  reasoningTokens: number
  /** Input tokens that the provider read from its cache, and that it wrote to its cache. */
  cachedInputTokens: number
  cacheWriteTokens: number
}

/** A chunk of a run. */
export type RunChunk = { [Type in keyof ChunkPayloads]: ChunkEnvelope<Type, ChunkPayloads[Type]> }[keyof ChunkPayloads]

/** The data of a `data-watch` chunk: what happened to a watch of the thread. Nothing of a message is in it but its id. */
export type WatchEvent =
  | { event: 'registered'; watchId: string; mode: 'once' | 'continuous'; expiresAt: string }
  | { event: 'judged'; watchId: string; inboundId: string; verdict: 'matched' | 'rejected' | 'denied' }
  | { event: 'ended'; watchId: string; reason: 'matched' | 'completed' | 'failed' | 'expired' | 'exhausted' | 'cancelled' }

/** Application data, and the echo of a signal: `data-user-message`, `data-signal`. */
export interface DataChunk {
  type: `data-${string}`
  runId: string
  data: unknown
  id?: string
  transient?: boolean
  cursor?: string
}
