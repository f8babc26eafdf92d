import type { UIMessage, UIPart, UIToolPart } from '../../message/ui-message.ts'
import { messageOf, withMessage, type ThreadView } from './thread-view.ts'

/** Appends a part to the message that is being written. */
export function withPart(view: ThreadView, part: UIPart): ThreadView {
  const message = messageOf(view, view.writing)
  return message ? withMessage(view, { ...message, parts: [...message.parts, part] }) : view
}

/** Grows the last text of its kind in the message that is being written. */
export function withText(view: ThreadView, type: 'text' | 'reasoning', text: string): ThreadView {
  const message = messageOf(view, view.writing)
  const index = message?.parts.findLastIndex((part) => part.type === type) ?? -1
  const part = message?.parts[index]
  if (!message || !part || (part.type !== 'text' && part.type !== 'reasoning')) return view
  return withMessage(view, { ...message, parts: message.parts.with(index, { ...part, text: part.text + text }) })
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
