import type { UIPart, UIToolPart } from '../../message/ui/ui-message.ts'
import type { Chunk, RunChunk } from '../../run/chunk.ts'
import type { WaitingForData } from './data-types.ts'

/** A chunk of the AI SDK's UI message stream, as far as it is written here. */
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

/** What one chunk of a thread is in the AI SDK's stream. Signals, lanes and notifications are `data-*` parts. */
export function uiChunks(chunk: Chunk): UIChunk[] {
  if ('payload' in chunk) return ofRun(chunk)
  const { type, data, id } = chunk
  const known = id ?? (data as { id?: unknown } | null)?.id
  // A page keeps what is no signal for one run alone.
  const isTransient = (data as { transient?: unknown } | null)?.transient === true
  return [{ type, data, ...(typeof known === 'string' ? { id: known } : {}), ...(isTransient ? { transient: true } : {}) }]
}

function ofRun(chunk: RunChunk): UIChunk[] {
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
      return [{ type: 'tool-input-available', toolCallId: chunk.payload.toolCallId, toolName: chunk.payload.toolName, input: chunk.payload.args }]
    case 'tool-call-approval':
      // One call has one approval: its id serves for both.
      return [{ type: 'tool-approval-request', approvalId: chunk.payload.toolCallId, toolCallId: chunk.payload.toolCallId }]
    case 'tool-call-suspended': {
      const { toolCallId, toolName, args, suspendPayload } = chunk.payload
      return [question({ toolCallId, toolName, args, payload: suspendPayload })]
    }
    case 'tool-result': {
      const { toolCallId, result, preliminary } = chunk.payload
      return [{ type: 'tool-output-available', toolCallId, output: result, ...(preliminary ? { preliminary } : {}) }]
    }
    case 'tool-error':
      return [{ type: 'tool-output-error', toolCallId: chunk.payload.toolCallId, errorText: chunk.payload.error.message }]
    case 'tool-output-denied':
      return [{ type: 'tool-output-denied', toolCallId: chunk.payload.toolCallId }]
    case 'source': {
      const { id, url, title, sourceType, mimeType = 'application/octet-stream', filename } = chunk.payload
      if (sourceType === 'url') return [{ type: 'source-url', sourceId: id, url: url ?? '', ...(title === undefined ? {} : { title }) }]
      return [{ type: 'source-document', sourceId: id, mediaType: mimeType, title: title ?? '', ...(filename === undefined ? {} : { filename }) }]
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

/** What a tool waits for, as a part of the message that has its call. */
export function question(data: WaitingForData): { type: 'data-suspended'; id: string; data: WaitingForData } {
  return { type: 'data-suspended', id: data.toolCallId, data }
}

/** A part that is there already, as the stream that would have made it. A text is called `id`. */
export function chunksOfPart(part: UIPart, id: string): UIChunk[] {
  if (part.type === 'text' || part.type === 'reasoning') return [{ type: `${part.type}-start`, id }, { type: `${part.type}-delta`, id, delta: part.text }, { type: `${part.type}-end`, id }]
  if (part.type === 'step-start') return [{ type: 'start-step' }]
  if (part.type.startsWith('tool-')) return ofCall(part as UIToolPart)
  if (part.type === 'file') return [{ type: 'file', url: part.url, mediaType: part.mediaType }]
  if (part.type === 'source-url') return [{ type: 'source-url', sourceId: part.sourceId, url: part.url, ...(part.title === undefined ? {} : { title: part.title }) }]
  return part.type.startsWith('data-') ? [part as UIChunk] : []
}

function ofCall(part: UIToolPart): UIChunk[] {
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
      return [call, { type: 'tool-approval-request', approvalId: toolCallId, toolCallId }]
    default:
      return [call]
  }
}
