import type { Message, MessagePart } from '../../message/message.ts'

export type TextKind = 'text' | 'reasoning'
/** Gives what is to stand in place of a text. `part` is where it stands; absent for the text beside the parts. */
export type ChangeText = (text: string, part?: MessagePart) => string

/** What a message says and thinks, part by part. */
export function textsOf({ content }: Message, kinds: readonly TextKind[] = ['text']): string[] {
  const texts = content.parts.flatMap((part) => {
    if (part.type === 'text' && kinds.includes('text')) return [part.text]
    return part.type === 'reasoning' && kinds.includes('reasoning') ? [part.reasoning] : []
  })
  return content.parts.length === 0 && content.content ? [content.content] : texts
}

/** The message with its texts as `change` makes them: a copy, or the message itself when nothing changed. */
function withTexts(message: Message, change: ChangeText): Message {
  const { content } = message
  let changed = false
  const parts = content.parts.map((part) => {
    const made = changedPart(part, change)
    if (made !== part) changed = true
    return made
  })
  const plain = content.content === undefined ? undefined : change(content.content)
  if (!changed && plain === content.content) return message
  return { ...message, content: { ...content, parts, ...(plain === undefined ? {} : { content: plain }) } }
}

/** The messages with their texts changed; nothing when none did, so that a hook leaves everything as it is. */
export function withAllTexts(messages: readonly Message[], change: ChangeText): Message[] | undefined {
  const made = messages.map((message) => withTexts(message, change))
  return made.every((message, index) => message === messages[index]) ? undefined : made
}

function changedPart(part: MessagePart, change: ChangeText): MessagePart {
  if (part.type === 'text') {
    const text = change(part.text, part)
    return text === part.text ? part : { ...part, text }
  }
  if (part.type !== 'reasoning') return part
  const reasoning = change(part.reasoning, part)
  // A provider signs its thoughts and refuses one that its signature doesn't fit.
  return reasoning === part.reasoning ? part : { type: 'reasoning', reasoning }
}
