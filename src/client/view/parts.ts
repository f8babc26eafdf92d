import type { UIMessage, UIPart, UIToolPart } from '../../message/ui/ui-message.ts'
import { messageOf, withMessage, type ThreadView } from './thread-view.ts'

/** Appends a part to the message that is being written. */
export function withPart(view: ThreadView, part: UIPart): ThreadView {
  const message = messageOf(view, view.writing)
  return message ? withMessage(view, { ...message, parts: [...message.parts, part] }) : view
}

/** Begins a text in the message that is being written. */
export function withOpenText(view: ThreadView, kind: 'text' | 'reasoning', id: string): ThreadView {
  const at = messageOf(view, view.writing)?.parts.length
  return at === undefined ? view : { ...withPart(view, { type: kind, text: '' }), openTexts: [...withoutOpenText(view, kind, id).openTexts, { kind, id, at }] }
}

/** Grows a text that was begun. */
export function withText(view: ThreadView, kind: 'text' | 'reasoning', id: string, text: string): ThreadView {
  const message = messageOf(view, view.writing)
  const at = view.openTexts.find((open) => open.kind === kind && open.id === id)?.at ?? -1
  const part = message?.parts[at]
  if (!message || !part || (part.type !== 'text' && part.type !== 'reasoning')) return view
  return withMessage(view, { ...message, parts: message.parts.with(at, { ...part, text: part.text + text }) })
}

export function withoutOpenText(view: ThreadView, kind: 'text' | 'reasoning', id: string): ThreadView {
  return { ...view, openTexts: view.openTexts.filter((open) => open.kind !== kind || open.id !== id) }
}

/** Changes a call wherever it stands: its result may come long after it. */
export function withCall(view: ThreadView, toolCallId: string, change: (part: UIToolPart) => UIToolPart): ThreadView {
  const message = view.messages.findLast((candidate) => candidate.parts.some((part) => isCall(part, toolCallId)))
  if (!message) return view
  return withMessage(view, { ...message, parts: message.parts.map((part) => (isCall(part, toolCallId) ? change(part) : part)) })
}

export function hasCall(message: UIMessage | undefined, toolCallId: string): boolean {
  return message?.parts.some((part) => isCall(part, toolCallId)) ?? false
}

export function isCall(part: UIPart, toolCallId: string): part is UIToolPart {
  return part.type.startsWith('tool-') && (part as UIToolPart).toolCallId === toolCallId
}
