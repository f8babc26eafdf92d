import type { MessageContent, MessagePart } from '../../message/message.ts'

/** The searchable length of a tool's arguments, and of its result. */
const maxPayloadLength = 100_000

/** The text by which recall finds a message: its text, its tool calls with arguments and results. Empty for a transient signal. */
export function searchableText({ parts, content, metadata }: Pick<MessageContent, 'parts' | 'content' | 'metadata'>): string {
  if (metadata?.signal && (metadata.signal as { transient?: unknown }).transient === true) return ''
  const texts = parts.map(partText).filter((text) => text !== '')
  return texts.length === 0 ? (content ?? '') : texts.join('\n')
}

function partText(part: MessagePart): string {
  if (part.type === 'text') return part.text
  if (part.type === 'file') return part.filename ?? ''
  if (part.type === 'source') return part.source.title ?? ''
  if (part.type !== 'tool-invocation') return ''
  const { toolName, args, result, errorText } = part.toolInvocation
  return [toolName, payloadText(args), payloadText(result), errorText ?? ''].filter((text) => text !== '').join(' ')
}

/** JSON without its punctuation. */
function payloadText(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'string') return value.slice(0, maxPayloadLength)
  return JSON.stringify(value).replaceAll(/[{}[\]",]+/g, ' ').slice(0, maxPayloadLength).trim()
}
