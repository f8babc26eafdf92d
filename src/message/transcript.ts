import type { Message, MessagePart } from './message.ts'

/** The replacement of a payload that a transcript must not show. */
export const withheldPayload = '[withheld]'

/** Messages as a transcript shows them: a payload with a `transform` is replaced by the transformed one. */
export function transcriptOf(messages: readonly Message[]): Message[] {
  return messages.map((message) => {
    if (!message.content.parts.some(isTransformed)) return message
    return { ...message, content: { ...message.content, parts: message.content.parts.map(transcriptPart) } }
  })
}

function isTransformed(part: MessagePart): boolean {
  return part.type === 'tool-invocation' && part.toolInvocation.transcript !== undefined
}

function transcriptPart(part: MessagePart): MessagePart {
  if (part.type !== 'tool-invocation' || !part.toolInvocation.transcript) return part
  // The model's output may quote the hidden payload.
  const { transcript, modelOutput: _, ...invocation } = part.toolInvocation
  return { ...part, toolInvocation: { ...invocation, ...transcript } }
}
