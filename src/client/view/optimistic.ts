import type { UIMessage, UIPart } from '../../message/ui-message.ts'
import type { MessageInput, SignalContents } from '../../signals/signal.ts'

/** A message as it will look, before the server has said anything. `metadata.optimistic` tells it apart. */
export function optimisticMessage(id: string, message: MessageInput): UIMessage {
  const contents: SignalContents = typeof message === 'object' && !Array.isArray(message) ? message.contents : message
  const parts: UIPart[] = typeof contents === 'string' ? [{ type: 'text', text: contents }] : contents.flatMap((part) => (part.type === 'text' ? [{ type: 'text', text: part.text }] : []))
  return { id, role: 'user', parts, metadata: { optimistic: true } }
}
