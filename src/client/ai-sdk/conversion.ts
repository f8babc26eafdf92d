import { isPlainObject, type JSONValue } from '../../base/json.ts'
import type { Chunk, RunChunk } from '../../message/chunk.ts'
import type { UIMessage, UIPart, UIToolPart } from '../../message/ui/ui-message.ts'
import type { Tripwire } from '../../processors/processor.ts'
import type { Signal, SignalContents } from '../../signals/signal.ts'
import type { OverWire } from '../connection.ts'
import { failureText, hasCall, type ThreadView, type WaitingApproval } from '../view/thread-view.ts'

/** A tool that waits for data. `addToolOutput` gives it, as `output`. */
export type WaitingForData = {
  toolCallId: string
  toolName: string
  args: JSONValue
  /** The payload with which the tool suspended the run. */
  payload: JSONValue
  /** The tool no longer waits. A followed thread, and a page after a reload, have no part for it. */
  isOver?: true
}

/**
 * The `data-*` parts of a thread, for `useChat<UIMessage<unknown, HeedDataTypes>>()`. The `type` of a signal is `state` for a lane,
 * `notification` for a notification, and `reactive` for others.
 */
export type HeedDataTypes = {
  signal: OverWire<Omit<Signal, 'guarded'>>
  tripwire: OverWire<Tripwire>
  suspended: WaitingForData
  error: { message: string; name?: string; code?: string }
}

/** The chunks of the AI SDK's UI message stream that Heed writes. */
export type UIChunk =
  | { type: 'start'; messageId?: string }
  | { type: 'start-step' | 'finish-step' | 'finish' | 'abort' }
  | { type: 'text-start' | 'text-end' | 'reasoning-start' | 'reasoning-end'; id: string }
  | { type: 'text-delta' | 'reasoning-delta'; id: string; delta: string }
  | { type: 'tool-input-start'; toolCallId: string; toolName: string }
  | { type: 'tool-input-delta'; toolCallId: string; inputTextDelta: string }
  | { type: 'tool-input-available'; toolCallId: string; toolName: string; input: unknown }
  | { type: 'tool-approval-request'; approvalId: string; toolCallId: string }
  | { type: 'tool-output-available'; toolCallId: string; output: unknown; preliminary?: boolean }
  | { type: 'tool-output-error'; toolCallId: string; errorText: string }
  | { type: 'tool-output-denied'; toolCallId: string }
  | { type: 'source-url'; sourceId: string; url: string; title?: string }
  | { type: 'source-document'; sourceId: string; mediaType: string; title: string; filename?: string }
  | { type: 'file'; url: string; mediaType: string }
  | { type: `data-${string}`; id?: string; data: unknown; transient?: boolean }
  | { type: 'error'; errorText: string }

/** A chunk of a thread as chunks of the AI SDK's stream. Signals, lanes and notifications are `data-*` parts. */
export function uiChunks(chunk: Chunk): UIChunk[] {
  if ('payload' in chunk) return runUIChunks(chunk)
  const { type, data, id } = chunk
  const partId = id ?? (data as { id?: unknown } | null)?.id
  // `useChat` does not store transient parts in the message.
  const isTransient = (data as { transient?: unknown } | null)?.transient === true
  return [{ type, data, ...(typeof partId === 'string' ? { id: partId } : {}), ...(isTransient ? { transient: true } : {}) }]
}

function runUIChunks(chunk: RunChunk): UIChunk[] {
  switch (chunk.type) {
    case 'start':
      return [{ type: 'start', messageId: chunk.payload.messageId }]
    case 'step-start':
      return [{ type: 'start-step' }]
    case 'step-finish':
      return [{ type: 'finish-step' }]
    case 'text-start':
    case 'text-end':
    case 'reasoning-start':
    case 'reasoning-end':
      return [{ type: chunk.type, id: chunk.payload.id }]
    case 'text-delta':
    case 'reasoning-delta':
      return [{ type: chunk.type, id: chunk.payload.id, delta: chunk.payload.text }]
    case 'tool-call-input-streaming-start':
      return [{ type: 'tool-input-start', toolCallId: chunk.payload.toolCallId, toolName: chunk.payload.toolName }]
    case 'tool-call-delta':
      return [{ type: 'tool-input-delta', toolCallId: chunk.payload.toolCallId, inputTextDelta: chunk.payload.argsTextDelta }]
    case 'tool-call':
      return [
        { type: 'tool-input-available', toolCallId: chunk.payload.toolCallId, toolName: chunk.payload.toolName, input: chunk.payload.args },
      ]
    case 'tool-call-approval':
      return [{ type: 'tool-approval-request', approvalId: approvalIdOf(chunk.payload), toolCallId: chunk.payload.toolCallId }]
    case 'tool-call-suspended': {
      const { toolCallId, toolName, args, suspendPayload } = chunk.payload
      return [question({ toolCallId, toolName, args, payload: suspendPayload })]
    }
    case 'tool-result': {
      const { toolCallId, result, preliminary, isError } = chunk.payload
      if (isError) return [{ type: 'tool-output-error', toolCallId, errorText: failureText(result) }]
      return [{ type: 'tool-output-available', toolCallId, output: result, ...(preliminary ? { preliminary } : {}) }]
    }
    case 'tool-error':
      return [{ type: 'tool-output-error', toolCallId: chunk.payload.toolCallId, errorText: chunk.payload.error.message }]
    case 'tool-output-denied':
      return [{ type: 'tool-output-denied', toolCallId: chunk.payload.toolCallId }]
    case 'source': {
      const { id, url, title, sourceType, mimeType = 'application/octet-stream', filename } = chunk.payload
      if (sourceType === 'url') return [{ type: 'source-url', sourceId: id, url: url ?? '', ...(title === undefined ? {} : { title }) }]
      return [
        { type: 'source-document', sourceId: id, mediaType: mimeType, title: title ?? '', ...(filename === undefined ? {} : { filename }) },
      ]
    }
    case 'file': {
      const { data, mimeType } = chunk.payload
      return [{ type: 'file', mediaType: mimeType, url: /^(?:https?|data):/.test(data) ? data : `data:${mimeType};base64,${data}` }]
    }
    case 'tripwire':
      return [{ type: 'data-tripwire', data: chunk.payload }]
    case 'error':
      return [{ type: 'error', errorText: chunk.payload.error.message }]
    case 'abort':
      return [{ type: 'abort' }]
    case 'finish':
      return [{ type: 'finish' }]
    default:
      return []
  }
}

/** Older servers send no request: then the id of the call is also that of its approval. */
function approvalIdOf({ request, toolCallId }: { request?: { id: string }; toolCallId: string }): string {
  return request?.id ?? toolCallId
}

/** The data that a tool waits for, as a part of the message with its call. */
export function question(data: WaitingForData): { type: 'data-suspended'; id: string; data: WaitingForData } {
  return { type: 'data-suspended', id: data.toolCallId, data }
}

/** The chunks that produce a part. `id` is the id of a text. */
export function chunksOfPart(part: UIPart, id: string): UIChunk[] {
  if (part.type === 'text' || part.type === 'reasoning')
    return [
      { type: `${part.type}-start`, id },
      { type: `${part.type}-delta`, id, delta: part.text },
      { type: `${part.type}-end`, id },
    ]
  if (part.type === 'step-start') return [{ type: 'start-step' }]
  if (part.type.startsWith('tool-')) return callUIChunks(part as UIToolPart)
  if (part.type === 'file') return [{ type: 'file', url: part.url, mediaType: part.mediaType }]
  if (part.type === 'source-url')
    return [{ type: 'source-url', sourceId: part.sourceId, url: part.url, ...(part.title === undefined ? {} : { title: part.title }) }]
  return part.type.startsWith('data-') ? [part as UIChunk] : []
}

function callUIChunks(part: UIToolPart): UIChunk[] {
  const { toolCallId, input } = part
  const call: UIChunk = { type: 'tool-input-available', toolCallId, toolName: part.type.slice('tool-'.length), input }
  switch (part.state) {
    case 'output-available':
      return [call, { type: 'tool-output-available', toolCallId, output: part.output }]
    case 'output-error':
      return [call, { type: 'tool-output-error', toolCallId, errorText: part.errorText }]
    case 'output-denied':
      return [call, { type: 'tool-output-denied', toolCallId }]
    case 'approval-requested':
      return [call, { type: 'tool-approval-request', approvalId: part.approval.id, toolCallId }]
    default:
      return [call]
  }
}

/** A message of `useChat`. */
export interface ChatMessage {
  id: string
  role: 'system' | 'user' | 'assistant'
  parts: ReadonlyArray<{ type: string }>
  metadata?: unknown
}

/** The fields that parts of any version of the AI SDK may have. */
interface AnyPart {
  type: string
  id?: unknown
  text?: unknown
  url?: unknown
  mediaType?: unknown
  filename?: unknown
  toolCallId?: unknown
  state?: unknown
  input?: unknown
  output?: unknown
  approval?: { id?: unknown; approved?: unknown; reason?: unknown }
  data?: unknown
}

export function contentsOf({ parts }: ChatMessage): SignalContents {
  const contents = parts.flatMap((part: AnyPart): Exclude<SignalContents, string> => {
    if (part.type === 'text') return [{ type: 'text', text: String(part.text) }]
    if (part.type === 'file') {
      const filename = typeof part.filename === 'string' ? { filename: part.filename } : {}
      return [{ type: 'file', data: String(part.url), mediaType: String(part.mediaType), ...filename }]
    }
    return []
  })
  const [only] = contents
  return contents.length === 1 && only?.type === 'text' ? only.text : contents
}

/** The metadata that a page gave its message, without what Heed adds to messages that it shows. One of history has it in its signal. */
export function metadataOf({ metadata }: ChatMessage): Record<string, unknown> | undefined {
  if (!isPlainObject(metadata)) return undefined
  const { createdAt: _, sendError: __, signal, ...own } = metadata
  const kept = isPlainObject(signal) && isPlainObject(signal.metadata) ? signal.metadata : {}
  const all = { ...kept, ...own }
  return Object.keys(all).length > 0 ? all : undefined
}

/** The messages of a view for a chat: the data that a tool waits for is a part of the message with its call. */
export function chatMessages({ messages, approvals }: ThreadView): readonly UIMessage[] {
  const waiting = approvals.filter(({ kind }) => kind === 'suspend')
  if (waiting.length === 0) return messages
  return messages.map((message) => {
    const calls = waiting.filter(({ toolCallId }) => hasCall(message, toolCallId))
    const parts = calls.map(({ toolCallId, toolName, args, payload = null }) => {
      return question({ toolCallId, toolName, args: args as JSONValue, payload: payload as JSONValue })
    })
    return parts.length === 0 ? message : { ...message, parts: [...message.parts, ...parts] }
  })
}

/** The decision of a page about a call: an approval, or the data that the tool waits for. */
interface PageDecision {
  toolCallId: string
  /** The request in the view. Absent if the call no longer waits. */
  waiting?: WaitingApproval
  /** The page answered an earlier request of the call: this one is not decided by it. */
  isStale?: true
  approval?: { approved: boolean; reason?: string }
  resumeData: JSONValue
}

/** The decisions in a message about the calls of a suspended run. */
export function decisionsIn({ parts }: ChatMessage, { approvals }: ThreadView): PageDecision[] {
  return parts.flatMap(({ toolCallId, state, output, approval: { id, approved, reason } = {} }: AnyPart): PageDecision[] => {
    if (typeof toolCallId !== 'string') return []
    const waiting = approvals.find((call) => call.toolCallId === toolCallId)
    const shown = waiting ? { waiting } : {}
    if (state === 'approval-responded') {
      const approval = { approved: approved === true, ...(typeof reason === 'string' ? { reason } : {}) }
      const isStale = waiting?.approvalId !== undefined && id !== undefined && id !== waiting.approvalId
      return [{ toolCallId, ...shown, approval, resumeData: null, ...(isStale ? { isStale } : {}) }]
    }
    const waits = state === 'output-available' && waiting?.kind === 'suspend'
    return waits ? [{ toolCallId, ...shown, resumeData: (output ?? null) as JSONValue }] : []
  })
}

/** The calls that the page answered and that have no result yet, each as the chunk of the call. */
export function answeredCalls(message: ChatMessage): ReadonlyMap<string, UICall> {
  const questions = openQuestions(message)
  return new Map(message.parts.flatMap(({ type, toolCallId, state, input }: AnyPart): Array<[string, UICall]> => {
    if (typeof toolCallId !== 'string') return []
    const isAnswered = state === 'approval-responded' || (state === 'output-available' && questions.has(toolCallId))
    if (!isAnswered) return []
    return [[toolCallId, { type: 'tool-input-available', toolCallId, toolName: type.slice('tool-'.length), input }]]
  }))
}

type UICall = Extract<UIChunk, { type: 'tool-input-available' }>

/** The ids of the calls in a message whose tools wait for data. */
export function openQuestions({ parts }: ChatMessage): ReadonlySet<unknown> {
  const open = parts.filter(({ type, data }: AnyPart) => type === 'data-suspended' && (data as WaitingForData | undefined)?.isOver !== true)
  return new Set(open.map(({ id }: AnyPart) => id))
}

/**
 * For `sendAutomaticallyWhen` of `useChat`: true if the page has answered every call of a suspended run, with `addToolApprovalResponse`
 * and `addToolOutput`. The run continues when all are answered.
 */
export function answersWhatWaits({ messages }: { messages: readonly ChatMessage[] }): boolean {
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return false
  const calls: readonly AnyPart[] = last.parts.filter((part) => 'toolCallId' in part)
  const waiting = openQuestions(last)
  const questions = calls.filter(({ toolCallId }) => waiting.has(toolCallId))
  const isAnswered = ({ state }: AnyPart) => state === 'output-available'
  if (calls.some(({ state }) => state === 'approval-requested') || !questions.every(isAnswered)) return false
  return questions.length > 0 || calls.some(({ state }) => state === 'approval-responded')
}
