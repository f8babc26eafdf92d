import type { MessageContent, MessagePart } from '../../message/message.ts'

/** Of a tool's arguments and results, so much is looked through. */
const mostOfPayload = 100_000

/** What a message can be found by: what was said, tools that were called, with what, and what they answered. Of what was for one run alone, nothing. */
export function searchableText({ parts, content, metadata }: Pick<MessageContent, 'parts' | 'content' | 'metadata'>): string {
  if (metadata?.signal && (metadata.signal as { transient?: unknown }).transient === true) return ''
  const texts = parts.map(textOf).filter((text) => text !== '')
  return texts.length === 0 ? (content ?? '') : texts.join('\n')
}

function textOf(part: MessagePart): string {
  if (part.type === 'text') return part.text
  if (part.type === 'file') return part.filename ?? ''
  if (part.type === 'source') return part.source.title ?? ''
  if (part.type !== 'tool-invocation') return ''
  const { toolName, args, result, errorText } = part.toolInvocation
  return [toolName, payload(args), payload(result), errorText ?? ''].filter((text) => text !== '').join(' ')
}

/** Its words, without the punctuation of JSON. */
function payload(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'string') return value.slice(0, mostOfPayload)
  return JSON.stringify(value).replaceAll(/[{}[\]",]+/g, ' ').slice(0, mostOfPayload).trim()
}
