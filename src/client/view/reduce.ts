import { toUIMessages } from '../../message/ui/to-ui.ts'
import type { Message } from '../../message/message.ts'
import type { UIMessage, UIToolPart } from '../../message/ui/ui-message.ts'
import type { Chunk, DataChunk, RunChunk } from '../../run/chunk.ts'
import type { Signal } from '../../signals/signal.ts'
import type { ThreadSnapshot } from '../../thread/watch/subscription.ts'
import type { OverWire } from '../wire.ts'
import { hasCall, isCall, withCall, withOpenText, withoutOpenText, withPart, withText } from './parts.ts'
import { emptyView, messageOf, withMessage, type ThreadView } from './thread-view.ts'

/** What a display shows after one more chunk. The same chunks make the same view, wherever they were read. */
export function reduceChunk(view: ThreadView, chunk: Chunk): ThreadView {
  return 'payload' in chunk ? runChunk(view, chunk) : dataChunk(view, chunk)
}

function dataChunk(view: ThreadView, { type, data }: DataChunk): ThreadView {
  if (type === 'data-thread-snapshot') return fromSnapshot(data as OverWire<ThreadSnapshot>)
  // Beside the thread, and no part of what is said in it.
  if (type === 'data-inbox') return view
  if (type === 'data-user-message' || type === 'data-signal') return (data as Signal).transient ? view : withMessage(view, signalMessage(data as Signal))
  return view.writing === null ? view : withPart(view, { type, data: data as never })
}

/** Servers from before `hasOlder` say nothing of it. */
type ToldSnapshot = Omit<OverWire<ThreadSnapshot>, 'hasOlder'> & { hasOlder?: boolean }

function fromSnapshot({ messages, status, runId, suspended, hasOlder = false }: ToldSnapshot): ThreadView {
  const restored = messages.map((message) => ({ ...message, createdAt: new Date(message.createdAt) }) as unknown as Message)
  const approvals = suspended.map(({ toolCallId, toolName, args, kind, payload }) => ({ runId: runId ?? '', toolCallId, toolName, args, kind, ...(payload === undefined ? {} : { payload }) }))
  const view: ThreadView = { ...emptyView, messages: toUIMessages(restored), hasOlder, status, runId, approvals }
  // History has what was called; that somebody is asked is told beside it.
  return approvals.reduce((asked, { kind, toolCallId }) => (kind === 'approval' ? withCall(asked, toolCallId, requested) : asked), view)
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
      return { ...view, status: 'running', runId: chunk.runId, error: null, writing: null, openTexts: [] }
    case 'step-start':
      return beginStep({ ...view, status: 'running', runId: chunk.runId }, chunk.payload.messageId)
    case 'text-start':
      return withOpenText(view, 'text', chunk.payload.id)
    case 'text-delta':
      return withText(view, 'text', chunk.payload.id, chunk.payload.text)
    case 'text-end':
      return withoutOpenText(view, 'text', chunk.payload.id)
    case 'reasoning-start':
      return withOpenText(view, 'reasoning', chunk.payload.id)
    case 'reasoning-delta':
      return withText(view, 'reasoning', chunk.payload.id, chunk.payload.text)
    case 'reasoning-end':
      return withoutOpenText(view, 'reasoning', chunk.payload.id)
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
      const others = view.approvals.filter((call) => call.toolCallId !== toolCallId)
      const waiting = { ...view, status: 'suspended' as const, approvals: [...others, { runId: chunk.runId, toolCallId, toolName, args, kind, ...payload } as const] }
      return kind === 'approval' ? withCall(waiting, toolCallId, requested) : waiting
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
      return withoutUnmade({ ...view, openTexts: [] }, chunk.payload.output.toolCalls.map(({ toolCallId }) => toolCallId))
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
  const before = view.writing === id ? undefined : messageOf(view, view.writing)
  // A step that goes on after something else said nothing before it.
  const messages = before?.parts.every(({ type }) => type === 'step-start') ? view.messages.filter((message) => message !== before) : view.messages
  const writing = { ...view, messages, writing: id, openTexts: [] }
  return known ? withPart(writing, { type: 'step-start' }) : withMessage(writing, { id, role: 'assistant', parts: [{ type: 'step-start' }] })
}

function ended(view: ThreadView): ThreadView {
  return { ...view, status: 'idle', runId: null, approvals: [], writing: null, openTexts: [] }
}

function settle(view: ThreadView, toolCallId: string, change: (part: UIToolPart) => UIToolPart): ThreadView {
  // A run goes on when everything is decided, and not before.
  return withCall(view.status === 'suspended' ? { ...view, approvals: [], status: 'running' } : view, toolCallId, change)
}

/** What is shown of a call that was decided about here: nobody tells it until the run goes on, which it does when all are. */
export function withDecision(view: ThreadView, toolCallId: string, approval?: { approved: boolean; reason?: string }): ThreadView {
  const rest = { ...view, approvals: view.approvals.filter((call) => call.toolCallId !== toolCallId) }
  if (!approval) return rest
  return withCall(rest, toolCallId, (part) => (part.state === 'approval-requested' ? { ...part, state: 'approval-responded', approval: { id: toolCallId, ...approval } } : part))
}

function requested(part: UIToolPart): UIToolPart {
  return { ...base(part), state: 'approval-requested', approval: { id: part.toolCallId } }
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
