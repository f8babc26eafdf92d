import type { Message, MessagePart } from './message.ts'

/** What stands for a payload of which a transcript may see nothing. */
export const withheldPayload = '[withheld]'

/** Messages as a transcript shows them: where a tool or an agent has rules, what they make of a payload stands in its place. */
export function transcriptOf(messages: readonly Message[]): Message[] {
  return messages.map((message) => {
    if (!message.content.parts.some(hides)) return message
    return { ...message, content: { ...message.content, parts: message.content.parts.map(shown) } }
  })
}

function hides(part: MessagePart): boolean {
  return part.type === 'tool-invocation' && part.toolInvocation.transcript !== undefined
}

function shown(part: MessagePart): MessagePart {
  if (part.type !== 'tool-invocation' || !part.toolInvocation.transcript) return part
  // What the model read may quote what the rules hide.
  const { transcript, modelOutput: _, ...invocation } = part.toolInvocation
  return { ...part, toolInvocation: { ...invocation, ...transcript } }
}
