import { toUIMessages } from '../../message/ui.ts'
import type { Message } from '../../message/message.ts'
import type { UIMessage, UIToolPart } from '../../message/ui-message.ts'
import type { Chunk, DataChunk, RunChunk } from '../../run/chunk.ts'
import type { Signal } from '../../signals/signal.ts'
import type { ThreadSnapshot } from '../../thread/subscription.ts'
import type { OverWire } from '../wire.ts'
import { hasCall, isCall, withCall, withPart, withText } from './parts.ts'
import { emptyView, messageOf, withMessage, type ThreadView } from './thread-view.ts'

/** What a display shows after one more chunk. The same chunks make the same view, wherever they were read. */
export function reduceChunk(view: ThreadView, chunk: Chunk): ThreadView {
  return 'payload' in chunk ? runChunk(view, chunk) : dataChunk(view, chunk)
}

function dataChunk(view: ThreadView, { type, data }: DataChunk): ThreadView {
  if (type === 'data-thread-snapshot') return fromSnapshot(data as OverWire<ThreadSnapshot>)
  if (type === 'data-user-message' || type === 'data-signal') return withMessage(view, signalMessage(data as Signal))
  return view.writing === null ? view : withPart(view, { type, data: data as never })
}

function fromSnapshot({ messages, status, runId, suspended }: OverWire<ThreadSnapshot>): ThreadView {
  const restored = messages.map((message) => ({ ...message, createdAt: new Date(message.createdAt) }) as unknown as Message)
  return {
    ...emptyView,
    messages: toUIMessages(restored),
    status,
    runId,
    approvals: suspended.map(({ toolCallId, toolName, args, kind, payload }) => ({ runId: runId ?? '', toolCallId, toolName, args, kind, ...(payload === undefined ? {} : { payload }) })),
  }
}

/** The same message that history will give for it. */
function signalMessage(signal: Signal): UIMessage {
  const { id, type, tagName, contents, attributes, metadata, createdAt, acceptedAt, providerOptions } = signal
  const parts: Message['content']['parts'] = typeof contents === 'string' ? [{ type: 'text', text: contents }] : contents.map((part) =>
    part.type === 'text' ? { type: 'text', text: part.text } : { type: 'file', data: part.data, mimeType: part.mediaType, ...(part.filename === undefined ? {} : { filename: part.filename }) })
  const record = { id, type, tagName, createdAt, ...(acceptedAt === undefined ? {} : { acceptedAt }), ...(attributes ? { attributes } : {}), ...(metadata ? { metadata } : {}) }
  const message: Message = {
    id, role: 'signal', type: tagName, createdAt: new Date(acceptedAt ?? createdAt), content: { format: 2, parts, metadata: { signal: record }, ...(providerOptions ? { providerMetadata: providerOptions } : {}) },
  }
  return toUIMessages([message])[0] as UIMessage
}

function runChunk(view: ThreadView, chunk: RunChunk): ThreadView {
  switch (chunk.type) {
    case 'start':
      return { ...view, status: 'running', runId: chunk.runId, error: null, writing: null }
    case 'step-start':
      return beginStep({ ...view, status: 'running', runId: chunk.runId }, chunk.payload.messageId)
    case 'text-start':
      return withPart(view, { type: 'text', text: '' })
    case 'text-delta':
      return withText(view, 'text', chunk.payload.text)
    case 'reasoning-start':
      return withPart(view, { type: 'reasoning', text: '' })
    case 'reasoning-delta':
      return withText(view, 'reasoning', chunk.payload.text)
    case 'file': {
      const { data, mimeType } = chunk.payload
      return withPart(view, { type: 'file', mediaType: mimeType, url: /^(?:https?|data):/.test(data) ? data : `data:${mimeType};base64,${data}` })
    }
    case 'source': {
      const { id, url, title, sourceType, mimeType = 'application/octet-stream' } = chunk.payload
      if (sourceType === 'url') return withPart(view, { type: 'source-url', sourceId: id, url: url ?? '', ...(title === undefined ? {} : { title }) })
      return withPart(view, { type: 'source-document', sourceId: id, mediaType: mimeType, title: title ?? '' })
    }
    case 'tool-call': {
      const { toolCallId, toolName, args } = shown(chunk)
      if (hasCall(messageOf(view, view.writing), toolCallId)) return view
      return withPart(view, { type: `tool-${toolName}`, toolCallId, input: args, state: 'input-available' })
    }
    case 'tool-call-approval':
    case 'tool-call-suspended': {
      const { toolCallId, toolName, args } = shown(chunk)
      const kind = chunk.type === 'tool-call-approval' ? 'approval' : 'suspend'
      const payload = chunk.type === 'tool-call-suspended' ? { payload: chunk.payload.suspendPayload } : {}
      const waiting = { ...view, status: 'suspended' as const, approvals: [...view.approvals, { runId: chunk.runId, toolCallId, toolName, args, kind, ...payload } as const] }
      return kind === 'approval' ? withCall(waiting, toolCallId, (part) => ({ ...base(part), state: 'approval-requested', approval: { id: toolCallId } })) : waiting
    }
    case 'tool-result':
      if (chunk.payload.preliminary) return view
      return settle(view, chunk.payload.toolCallId, (part) => ({ ...base(part), state: 'output-available', output: (shown(chunk) as { result?: unknown }).result }))
    case 'tool-error':
      return settle(view, chunk.payload.toolCallId, (part) => ({ ...base(part), state: 'output-error', errorText: chunk.payload.error.message }))
    case 'tool-output-denied': {
      const { toolCallId, reason } = chunk.payload
      return settle(view, toolCallId, (part) => ({ ...base(part), state: 'output-denied', approval: { id: toolCallId, approved: false, ...(reason === undefined ? {} : { reason }) } }))
    }
    case 'step-finish':
      return withoutUnmade(view, chunk.payload.output.toolCalls.map(({ toolCallId }) => toolCallId))
    case 'error':
      return ended({ ...view, error: { message: chunk.payload.error.message, ...(chunk.payload.error.code === undefined ? {} : { code: chunk.payload.error.code }) } })
    case 'abort':
    case 'finish':
      return ended(view)
    default:
      return view
  }
}

/** A step goes on in the message of its id, which may be there already; each step begins with its mark, as in history. */
function beginStep(view: ThreadView, id: string): ThreadView {
  const known = messageOf(view, id)
  const writing = { ...view, writing: id }
  return known ? withPart(writing, { type: 'step-start' }) : withMessage(writing, { id, role: 'assistant', parts: [{ type: 'step-start' }] })
}

function ended(view: ThreadView): ThreadView {
  return { ...view, status: 'idle', runId: null, approvals: [], writing: null }
}

function settle(view: ThreadView, toolCallId: string, change: (part: UIToolPart) => UIToolPart): ThreadView {
  const approvals = view.approvals.filter((call) => call.toolCallId !== toolCallId)
  const status = view.status === 'suspended' && approvals.length === 0 ? 'running' : view.status
  return withCall({ ...view, approvals, status }, toolCallId, change)
}

/** Calls of a step that was cut are never made. */
function withoutUnmade(view: ThreadView, made: readonly string[]): ThreadView {
  const message = messageOf(view, view.writing)
  if (!message) return view
  const from = message.parts.findLastIndex(({ type }) => type === 'step-start')
  const parts = message.parts.filter((part, index) => index <= from || !part.type.startsWith('tool-') || made.some((id) => isCall(part, id)) || (part as UIToolPart).state !== 'input-available')
  return parts.length === message.parts.length ? view : withMessage(view, { ...message, parts })
}

/** What a display may see of a payload, where a rule hides it. */
function shown(chunk: RunChunk & { payload: { toolCallId: string } }): { toolCallId: string; toolName: string; args: unknown } {
  return chunk.payload as { toolCallId: string; toolName: string; args: unknown }
}

function base({ type, toolCallId, input }: UIToolPart): Pick<UIToolPart, 'type' | 'toolCallId' | 'input'> {
  return { type, toolCallId, input }
}
