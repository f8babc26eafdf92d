import { withoutPartAttachments } from '../message/attachments.ts'
import { isURLText, parseDataURL } from '../message/file-data.ts'
import type { Attachment, FilePart, Message, MessagePart } from '../message/message.ts'

/** A file whose bytes are in the message. */
export interface InlineFile {
  owner: MessagePart | Attachment
  base64: string
  contentType: string
  name?: string
}

export function filesOf(message: Message): InlineFile[] {
  const content = withoutPartAttachments(message.content)
  const parts = content.parts.flatMap((part) => (part.type === 'file' ? inlinePart(part) : []))
  return [...parts, ...(content.experimental_attachments ?? []).flatMap(inlineAttachment)]
}

function inlinePart(part: FilePart): InlineFile[] {
  const { data, mimeType, filename } = part
  if (part.reference || data === '') return []
  const base64 = parseDataURL(data)?.base64 ?? (isURLText(data) ? undefined : data)
  return base64 === undefined ? [] : [{ owner: part, base64, contentType: mimeType, ...(filename === undefined ? {} : { name: filename }) }]
}

function inlineAttachment(attachment: Attachment): InlineFile[] {
  const inline = parseDataURL(attachment.url)
  if (!inline) return []
  const contentType = attachment.contentType ?? (inline.mediaType || 'application/octet-stream')
  const { name } = attachment
  return [{ owner: attachment, base64: inline.base64, contentType, ...(name === undefined ? {} : { name }) }]
}

/** The message with a note in place of each of these files, which says what became of it. */
export function withoutFiles(message: Message, files: ReadonlySet<object>, became: string): Message {
  const { parts, experimental_attachments: attachments } = message.content
  const lost = (attachments ?? []).filter((file) => files.has(file))
  if (lost.length === 0 && !parts.some((part) => files.has(part))) return message
  const { experimental_attachments: _, ...content } = message.content
  const kept = attachments?.filter((file) => !files.has(file))
  return {
    ...message,
    content: {
      ...content,
      parts: [
        ...parts.map((part) => (part.type === 'file' && files.has(part) ? noteOf(part.filename, became) : part)),
        ...lost.map(({ name }) => noteOf(name, became)),
      ],
      ...(kept && kept.length > 0 && { experimental_attachments: kept }),
    },
  }
}

function noteOf(name: string | undefined, became: string): MessagePart {
  return { type: 'text', text: `[${name === undefined ? 'A file' : `The file ${JSON.stringify(name)}`} ${became}.]` }
}

/** The message without the bytes of its files, after a processor failed that may have been to store them elsewhere. */
export function withoutInlineFiles(message: Message): Message {
  const own = { ...message, content: withoutPartAttachments(message.content) }
  const files = filesOf(own)
  return files.length === 0 ? message : withoutFiles(own, new Set(files.map(({ owner }) => owner)), 'was not kept: a processor failed')
}
