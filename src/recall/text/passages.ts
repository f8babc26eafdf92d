import type { MessageContent, MessagePart } from '../../message/message.ts'

/** The searchable length of a tool's arguments, and of its result. */
const maxPayloadLength = 100_000

/**
 * The text by which recall finds a message: its text, the names of its files, the titles of its sources, and its tool calls with arguments
 * and results. Empty for a transient signal.
 */
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
  const { toolName, args, result, errorText, errorCode } = part.toolInvocation
  // The words of a tool that failed are for operators: a passage is shown to those who may search.
  const shown = errorCode === 'tool_failed' ? '' : (errorText ?? '')
  return [toolName, payloadText(args), payloadText(result), shown].filter((text) => text !== '').join(' ')
}

/** A string as it is; another value as JSON with spaces in place of braces, brackets, quotes and commas. */
function payloadText(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'string') return value.slice(0, maxPayloadLength)
  return JSON.stringify(value).replaceAll(/[{}[\]",]+/g, ' ').slice(0, maxPayloadLength).trim()
}

/** About what an embedding model of 256 tokens reads. */
const maxPassageLength = 1_000
/** The passages of a longer message are longer instead of more. */
export const maxPassages = 1_024

/**
 * Splits a text into passages, each short enough to have one topic: after a sentence where possible, else between words. The same text
 * always has the same passages.
 */
export function splitPassages(text: string): string[] {
  const longest = Math.max(maxPassageLength, Math.ceil((text.length * 2) / maxPassages))
  const passages: string[] = []
  let rest = text.trim()
  while (rest.length > longest) {
    const end = cutPosition(rest.slice(0, longest))
    passages.push(rest.slice(0, end).trim())
    rest = rest.slice(end).trim()
  }
  if (rest !== '') passages.push(rest)
  return passages
}

function cutPosition(text: string): number {
  const least = text.length / 2
  let best = 0
  for (const match of text.matchAll(/[.!?。！？]["')\]]?\s|\n/g)) best = match.index + match[0].length
  if (best > least) return best
  const space = text.lastIndexOf(' ')
  if (space > least) return space + 1
  // Not between the two halves of a surrogate pair.
  const last = text.charCodeAt(text.length - 1)
  return last >= 0xd800 && last <= 0xdbff ? text.length - 1 : text.length
}
