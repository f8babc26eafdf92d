import type { ThreadStatus } from '../../machine.ts'
import type { UIMessage, UIPart, UIToolPart } from '../../message/ui/ui-message.ts'

/** A tool call of a suspended run. */
export interface WaitingApproval {
  runId: string
  toolCallId: string
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
export function withMessage(view: ThreadView, message: UIMessage): ThreadView {
  const index = view.messages.findLastIndex(({ id }) => id === message.id)
  return { ...view, messages: index < 0 ? [...view.messages, message] : view.messages.with(index, message) }
}

export function findMessage(view: ThreadView, id: string | null): UIMessage | undefined {
  return id === null ? undefined : view.messages.findLast((message) => message.id === id)
}

/** Appends a part to the message that is being written. */
export function withPart(view: ThreadView, part: UIPart): ThreadView {
  const message = findMessage(view, view.writing)
  return message ? withMessage(view, { ...message, parts: [...message.parts, part] }) : view
}

/** Starts a text in the message that is being written. */
export function withOpenText(view: ThreadView, kind: 'text' | 'reasoning', id: string): ThreadView {
  const at = findMessage(view, view.writing)?.parts.length
  if (at === undefined) return view
  const { openTexts } = withoutOpenText(view, kind, id)
  return { ...withPart(view, { type: kind, text: '' }), openTexts: [...openTexts, { kind, id, at }] }
}

/** Appends to an open text. */
export function withText(view: ThreadView, kind: 'text' | 'reasoning', id: string, text: string): ThreadView {
  const message = findMessage(view, view.writing)
  const at = view.openTexts.find((open) => open.kind === kind && open.id === id)?.at ?? -1
  const part = message?.parts[at]
  if (!message || !part || (part.type !== 'text' && part.type !== 'reasoning')) return view
  return withMessage(view, { ...message, parts: message.parts.with(at, { ...part, text: part.text + text }) })
}

export function withoutOpenText(view: ThreadView, kind: 'text' | 'reasoning', id: string): ThreadView {
  return { ...view, openTexts: view.openTexts.filter((open) => open.kind !== kind || open.id !== id) }
}

/** Changes a tool call in any message: its result may arrive long after the call. */
export function withCall(view: ThreadView, toolCallId: string, change: (part: UIToolPart) => UIToolPart): ThreadView {
  const message = view.messages.findLast((candidate) => hasCall(candidate, toolCallId))
  if (!message) return view
  return withMessage(view, { ...message, parts: message.parts.map((part) => (isCall(part, toolCallId) ? change(part) : part)) })
}

export function hasCall(message: UIMessage | undefined, toolCallId: string): boolean {
  return message?.parts.some((part) => isCall(part, toolCallId)) ?? false
}

export function isCall(part: UIPart, toolCallId: string): part is UIToolPart {
  return part.type.startsWith('tool-') && (part as UIToolPart).toolCallId === toolCallId
}
