import type { MessageContent, MessagePart, ToolInvocation } from './message.ts'

/** The parts of a message, also of one that only has a plain text. */
export function partsOf(content: MessageContent): MessagePart[] {
  if (content.parts.length > 0) return content.parts
  return content.content ? [{ type: 'text', text: content.content }] : []
}

/** What a message says in words, one line a part. */
export function textOf({ content }: { content: MessageContent }): string {
  return partsOf(content).flatMap(part => (part.type === 'text' ? [part.text] : [])).join('\n')
}

/** True once a call is over: it returned, failed or was denied. */
export function hasOutcome({ state }: ToolInvocation): boolean {
  return state === 'result' || state === 'output-error' || state === 'output-denied'
}
