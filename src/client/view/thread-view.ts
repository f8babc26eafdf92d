import type { ThreadStatus } from '../../machine.ts'
import type { ApprovalRequest, Chunk, DataChunk, RunChunk } from '../../message/chunk.ts'
import type { Message, ToolApprovalRecord } from '../../message/message.ts'
import { toUIMessages } from '../../message/ui/to-ui.ts'
import type { UIMessage, UIPart, UIToolPart } from '../../message/ui/ui-message.ts'
import type { Signal } from '../../signals/signal.ts'
import type { ThreadSnapshot } from '../../thread/stream/subscription.ts'
import type { OverWire } from '../connection.ts'

/** A tool call of a suspended run. */
export interface WaitingApproval {
  runId: string
  /** The call of this thread. Of an agent below, it is the call that asks that agent. */
  toolCallId: string
  /** Names the request, which a later one of the same call does not share. Older servers send none. */
  approvalId?: string
  /** Goes back to the server with the decision. */
  digest?: string
  /** The ids of the agents, from the one of this thread to the one that made the call, and the name of the tool. */
  path?: readonly string[]
  /** The tool that runs, or continues, once it is decided, and its arguments. */
  toolName: string
  args: unknown
  /** `approval`: it is approved or declined. `suspend`: the tool waits for data. */
  kind: 'approval' | 'suspend'
  payload?: unknown
}

/** The client's state of a thread. Immutable: equal references have equal contents. */
export interface ThreadView {
  messages: readonly UIMessage[]
  /** The thread has older messages, which snapshots don't contain. */
  hasOlder: boolean
  status: ThreadStatus
  runId: string | null
  approvals: readonly WaitingApproval[]
  /** Why the last run failed, until the next one starts. */
  error: { message: string; code?: string } | null
  /** The id of the message that is being written. */
  writing: string | null
  /** Its unfinished texts: the model's id of each, and its index among the parts. */
  openTexts: ReadonlyArray<{ kind: 'text' | 'reasoning'; id: string; at: number }>
}

export const emptyView: ThreadView = {
  messages: [], hasOlder: false, status: 'idle', runId: null, approvals: [], error: null, writing: null, openTexts: [],
}

/** Replaces the message with the same id, or appends the message. */
function withMessage(view: ThreadView, message: UIMessage): ThreadView {
  const index = view.messages.findLastIndex(({ id }) => id === message.id)
  return { ...view, messages: index < 0 ? [...view.messages, message] : view.messages.with(index, message) }
}

function findMessage(view: ThreadView, id: string | null): UIMessage | undefined {
  return id === null ? undefined : view.messages.findLast((message) => message.id === id)
}

/** Appends a part to the message that is being written. */
function withPart(view: ThreadView, part: UIPart): ThreadView {
  const message = findMessage(view, view.writing)
  return message ? withMessage(view, { ...message, parts: [...message.parts, part] }) : view
}

/** Starts a text in the message that is being written. */
function withOpenText(view: ThreadView, kind: 'text' | 'reasoning', id: string): ThreadView {
  const at = findMessage(view, view.writing)?.parts.length
  if (at === undefined) return view
  const { openTexts } = withoutOpenText(view, kind, id)
  return { ...withPart(view, { type: kind, text: '' }), openTexts: [...openTexts, { kind, id, at }] }
}

/** Appends to an open text. */
function withText(view: ThreadView, kind: 'text' | 'reasoning', id: string, text: string): ThreadView {
  const message = findMessage(view, view.writing)
  const at = view.openTexts.find((open) => open.kind === kind && open.id === id)?.at ?? -1
  const part = message?.parts[at]
  if (!message || !part || (part.type !== 'text' && part.type !== 'reasoning')) return view
  return withMessage(view, { ...message, parts: message.parts.with(at, { ...part, text: part.text + text }) })
}

function withoutOpenText(view: ThreadView, kind: 'text' | 'reasoning', id: string): ThreadView {
  return { ...view, openTexts: view.openTexts.filter((open) => open.kind !== kind || open.id !== id) }
}

/** Changes a tool call in any message: its result may arrive long after the call. */
function withCall(view: ThreadView, toolCallId: string, change: (part: UIToolPart) => UIToolPart): ThreadView {
  const message = view.messages.findLast((candidate) => hasCall(candidate, toolCallId))
  if (!message) return view
  return withMessage(view, { ...message, parts: message.parts.map((part) => (isCall(part, toolCallId) ? change(part) : part)) })
}

/** The error of a tool that the provider executed, as history has it. */
export function failureText(result: unknown): string {
  return typeof result === 'string' ? result : JSON.stringify(result)
}

export function hasCall(message: UIMessage | undefined, toolCallId: string): boolean {
  return message?.parts.some((part) => isCall(part, toolCallId)) ?? false
}

export function isCall(part: UIPart, toolCallId: string): part is UIToolPart {
  return part.type.startsWith('tool-') && (part as UIToolPart).toolCallId === toolCallId
}

/** The view after one more chunk. The same chunks always give the same view. */
export function reduceChunk(view: ThreadView, chunk: Chunk): ThreadView {
  return 'payload' in chunk ? reduceRunChunk(view, chunk) : reduceDataChunk(view, chunk)
}

function reduceDataChunk(view: ThreadView, { type, data }: DataChunk): ThreadView {
  if (type === 'data-thread-snapshot') return fromSnapshot(data as OverWire<ThreadSnapshot>)
  // Not part of the conversation.
  if (type === 'data-inbox' || type === 'data-watch') return view
  if (type === 'data-user-message' || type === 'data-signal') {
    const signal = data as Signal
    return signal.transient ? view : withMessage(view, signalMessage(signal))
  }
  return view.writing === null ? view : withPart(view, { type, data: data as never })
}

/** Older servers don't send `hasOlder`. */
type ReceivedSnapshot = Omit<OverWire<ThreadSnapshot>, 'hasOlder'> & { hasOlder?: boolean }

function fromSnapshot({ messages, status, runId, suspended, hasOlder = false }: ReceivedSnapshot): ThreadView {
  const restored = messages.map((message) => ({ ...message, createdAt: new Date(message.createdAt) }) as unknown as Message)
  const approvals = suspended.map(({ toolCallId, toolName, args, kind, payload, request }) => {
    const shown = shownRequest({ toolName, args, request })
    return { runId: runId ?? '', toolCallId, ...shown, kind, ...(payload === undefined ? {} : { payload }) }
  })
  const view: ThreadView = { ...emptyView, messages: toUIMessages(restored), hasOlder, status, runId, approvals }
  // History contains the calls, but not that they need approval.
  return approvals.reduce((next, { kind, toolCallId, approvalId }) => {
    return kind === 'approval' ? withCall(next, toolCallId, (part) => requestApproval(part, approvalId)) : next
  }, view)
}

/** What a decision is about. Older servers send no request: then it is the call of this thread. */
function shownRequest(
  { toolName, args, request }: { toolName: string; args: unknown; request?: OverWire<ApprovalRequest> | undefined },
): Pick<WaitingApproval, 'toolName' | 'args' | 'approvalId' | 'digest' | 'path'> {
  if (!request) return { toolName, args }
  return { approvalId: request.id, digest: request.digest, path: request.path, toolName: request.toolName, args: request.args }
}

/** The same message as history will have for it. */
function signalMessage(signal: Signal): UIMessage {
  const { id, type, tagName, contents, attributes, metadata, createdAt, acceptedAt, providerOptions } = signal
  const parts = typeof contents === 'string' ? [{ type: 'text' as const, text: contents }] : contents.map(toMessagePart)
  const record = {
    id,
    type,
    tagName,
    createdAt,
    ...(acceptedAt === undefined ? {} : { acceptedAt }),
    ...(attributes ? { attributes } : {}),
    ...(metadata ? { metadata } : {}),
  }
  const message: Message = {
    id,
    role: 'signal',
    type: tagName,
    createdAt: new Date(acceptedAt ?? createdAt),
    content: { format: 2, parts, metadata: { signal: record }, ...(providerOptions ? { providerMetadata: providerOptions } : {}) },
  }
  return toUIMessages([message])[0] as UIMessage
}

type MessagePart = Message['content']['parts'][number]

function toMessagePart(part: Exclude<Signal['contents'], string>[number]): MessagePart {
  if (part.type === 'text') return { type: 'text', text: part.text }
  const { data, mediaType: mimeType, filename } = part
  return { type: 'file', data, mimeType, ...(filename === undefined ? {} : { filename }) }
}

function reduceRunChunk(view: ThreadView, chunk: RunChunk): ThreadView {
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
      return withPart(view, {
        type: 'file',
        mediaType: mimeType,
        url: /^(?:https?|data):/.test(data) ? data : `data:${mimeType};base64,${data}`,
      })
    }
    case 'source': {
      const { id, url, title, sourceType, mimeType = 'application/octet-stream' } = chunk.payload
      if (sourceType === 'url') {
        return withPart(view, { type: 'source-url', sourceId: id, url: url ?? '', ...(title === undefined ? {} : { title }) })
      }
      return withPart(view, { type: 'source-document', sourceId: id, mediaType: mimeType, title: title ?? '' })
    }
    case 'step-finish':
      return withoutUnmadeCalls({ ...view, openTexts: [] }, chunk.payload.output.toolCalls.map(({ toolCallId }) => toolCallId))
    case 'error': {
      const { message, code } = chunk.payload.error
      return endRun({ ...view, error: { message, ...(code === undefined ? {} : { code }) } })
    }
    case 'abort':
    case 'finish':
      return endRun(view)
    default:
      return reduceToolChunk(view, chunk)
  }
}

/** The approval of a finished call, as in history; empty where it needed none. */
function approvalOf({ toolCallId, approval }: { toolCallId: string; approval?: ToolApprovalRecord }) {
  return approval?.approved === true ? { approval: { id: toolCallId, ...approval, approved: true as const } } : {}
}

function reduceToolChunk(view: ThreadView, chunk: RunChunk): ThreadView {
  switch (chunk.type) {
    case 'tool-call': {
      const { toolCallId, toolName, args } = payloadOf(chunk)
      if (hasCall(findMessage(view, view.writing), toolCallId)) return view
      return withPart(view, { type: `tool-${toolName}`, toolCallId, input: args, state: 'input-available' })
    }
    case 'tool-call-approval':
    case 'tool-call-suspended': {
      const { toolCallId, toolName, args } = payloadOf(chunk)
      const kind = chunk.type === 'tool-call-approval' ? 'approval' : 'suspend'
      const payload = chunk.type === 'tool-call-suspended' ? { payload: chunk.payload.suspendPayload } : {}
      const others = view.approvals.filter((call) => call.toolCallId !== toolCallId)
      const shown = shownRequest({ toolName, args, request: chunk.payload.request })
      const approval = { runId: chunk.runId, toolCallId, ...shown, kind, ...payload } as const
      const suspended = { ...view, status: 'suspended' as const, approvals: [...others, approval] }
      return kind === 'approval' ? withCall(suspended, toolCallId, (part) => requestApproval(part, shown.approvalId)) : suspended
    }
    case 'tool-result':
      if (chunk.payload.preliminary) return view
      return finishCall(view, chunk.payload.toolCallId, (part) => ({
        ...callOf(part),
        ...(chunk.payload.isError
          ? { state: 'output-error', errorText: failureText(chunk.payload.result) }
          : { state: 'output-available', output: (payloadOf(chunk) as { result?: unknown }).result }),
        ...approvalOf(chunk.payload),
      }))
    case 'tool-error':
      return finishCall(view, chunk.payload.toolCallId, (part) => ({
        ...callOf(part),
        state: 'output-error',
        errorText: chunk.payload.error.message,
        ...approvalOf(chunk.payload),
      }))
    case 'tool-output-denied': {
      const { toolCallId, by, reason } = chunk.payload
      return finishCall(view, toolCallId, (part) => ({
        ...callOf(part),
        state: 'output-denied',
        approval: { id: toolCallId, approved: false, ...(by === undefined ? {} : { by }), ...(reason === undefined ? {} : { reason }) },
      }))
    }
    default:
      return view
  }
}

/** A step writes to the message with its id, which may exist already. Each step begins with a `step-start` part, as in history. */
function beginStep(view: ThreadView, id: string): ThreadView {
  const known = findMessage(view, id)
  const before = view.writing === id ? undefined : findMessage(view, view.writing)
  // A step that is repeated in another message wrote nothing to this one.
  const messages = before?.parts.every(({ type }) => type === 'step-start')
    ? view.messages.filter((message) => message !== before)
    : view.messages
  const writing = { ...view, messages, writing: id, openTexts: [] }
  return known
    ? withPart(writing, { type: 'step-start' })
    : withMessage(writing, { id, role: 'assistant', parts: [{ type: 'step-start' }] })
}

function endRun(view: ThreadView): ThreadView {
  return { ...view, status: 'idle', runId: null, approvals: [], writing: null, openTexts: [] }
}

function finishCall(view: ThreadView, toolCallId: string, change: (part: UIToolPart) => UIToolPart): ThreadView {
  // A suspended run only continues after all its calls are decided.
  return withCall(view.status === 'suspended' ? { ...view, approvals: [], status: 'running' } : view, toolCallId, change)
}

/** Shows a decision of this client. The server publishes it only when the run continues, which needs all decisions. */
export function withDecision(view: ThreadView, toolCallId: string, approval?: { approved: boolean; reason?: string }): ThreadView {
  const rest = { ...view, approvals: view.approvals.filter((call) => call.toolCallId !== toolCallId) }
  if (!approval) return rest
  return withCall(rest, toolCallId, (part) =>
    part.state === 'approval-requested' ? { ...part, state: 'approval-responded', approval: { id: part.approval.id, ...approval } } : part,
  )
}

function requestApproval(part: UIToolPart, approvalId = part.toolCallId): UIToolPart {
  return { ...callOf(part), state: 'approval-requested', approval: { id: approvalId } }
}

/** Removes the calls of an interrupted step, which are never made. */
function withoutUnmadeCalls(view: ThreadView, made: readonly string[]): ThreadView {
  const message = findMessage(view, view.writing)
  if (!message) return view
  const from = message.parts.findLastIndex(({ type }) => type === 'step-start')
  const parts = message.parts.filter(
    (part, index) =>
      index <= from ||
      !part.type.startsWith('tool-') ||
      made.some((id) => isCall(part, id)) ||
      (part as UIToolPart).state !== 'input-available',
  )
  return parts.length === message.parts.length ? view : withMessage(view, { ...message, parts })
}

/** The payload, in which a transform may have replaced fields that displays must not show. */
function payloadOf(chunk: RunChunk & { payload: { toolCallId: string } }): { toolCallId: string; toolName: string; args: unknown } {
  return chunk.payload as { toolCallId: string; toolName: string; args: unknown }
}

function callOf({ type, toolCallId, input }: UIToolPart): Pick<UIToolPart, 'type' | 'toolCallId' | 'input'> {
  return { type, toolCallId, input }
}

/** The displayed messages before the first message of a view, if the view continues them: a view begins with the newest messages only. */
export function olderThan<Shown extends { id: string }>(
  { hasOlder, messages }: Pick<ThreadView, 'hasOlder' | 'messages'>,
  shown: readonly Shown[],
): readonly Shown[] {
  const [first] = messages
  const index = hasOlder && first ? shown.findIndex(({ id }) => id === first.id) : -1
  return index <= 0 ? [] : shown.slice(0, index)
}
