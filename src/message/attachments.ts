import { copyPlain, isObject, isSamePlain } from '../base/json.ts'
import { isURLText } from './file-data.ts'
import type { Attachment, FilePart, Message, MessageContent, MessagePart } from './message.ts'

/** The attachment of each file part, created once: a processor that returns the same object has not changed it. */
const partAttachments = new WeakMap<FilePart, Attachment>()

/** The file part or attachment behind each copy that processors receive. */
const originals = new WeakMap<object, object>()

function originalOf<T extends object>(copy: T): T {
  return (originals.get(copy) as T | undefined) ?? copy
}

/** A copy of a message for a processor, which may change it. Its files are still recognized as those of the message. */
export function copyMessage(message: Message): Message {
  return { ...message, content: copyContent(message.content) }
}

/** True when a processor has not changed the copy that it received. Times and owners count as unchanged: nothing reads them back. */
export function isSameMessage(copy: Message, message: Pick<Message, 'id' | 'role' | 'content'>): boolean {
  return copy.id === message.id && copy.role === message.role && isSamePlain(copy.content, message.content)
}

/** A copy of the content of a message, as of `copyMessage`. */
export function copyContent(content: MessageContent): MessageContent {
  const copy = copyPlain(content)
  if (!content.experimental_attachments) return copy
  follow(content.experimental_attachments, copy.experimental_attachments ?? [])
  follow(content.parts, copy.parts)
  return copy
}

function follow(values: readonly object[], copies: readonly object[]): void {
  for (const [index, copy] of copies.entries()) if (isObject(copy)) originals.set(copy, originalOf(values[index] ?? copy))
}

/**
 * A user's content with an attachment for each file part, before the attachments of its own: processors find all files in one place. A
 * file that has only a provider reference gets none.
 */
export function withAttachments(content: MessageContent): MessageContent {
  if (!content.parts.some(hasFileData)) return content
  return { ...content, experimental_attachments: [...content.parts.filter(hasFileData).map(attachmentOf), ...ownAttachments(content)] }
}

/** The attachments without those that repeat a file part: some programs write a file in both places. */
export function ownAttachments({ parts, experimental_attachments: attachments }: MessageContent): Attachment[] {
  const files = attachments?.length ? parts.filter(hasFileData) : []
  if (!attachments || files.length === 0) return attachments ?? []
  const inParts = new Set(files.map(({ data }) => fileKey(data)))
  return attachments.filter(({ url }) => !inParts.has(fileKey(url)))
}

/** Equal for equal bytes, as base64 or in a `data:` URL, and for equal URLs. */
function fileKey(data: string): string {
  const inline = /^data:[^,]*;base64,/i.exec(data)
  if (inline) return data.slice(inline[0].length)
  return /^https?:/i.test(data) && URL.canParse(data) ? new URL(data).href : data
}

/** The content without the attachments that `withAttachments` added for its file parts. */
export function withoutPartAttachments(content: MessageContent): MessageContent {
  const { experimental_attachments: attachments } = content
  if (!attachments) return content
  const ofParts = new Set(content.parts.filter(hasFileData).map((part) => partAttachments.get(originalOf(part))))
  if (!attachments.some((one) => ofParts.has(originalOf(one)))) return content
  return replaceAttachments(content, attachments.filter((one) => !ofParts.has(originalOf(one))))
}

/**
 * The content that a processor returned for a content of `withAttachments`. A changed attachment changes the file part behind it, a
 * missing one removes that part, and the others stay attachments: no file is lost or doubled.
 */
export function applyAttachmentChanges(before: MessageContent, after: MessageContent): MessageContent {
  const files = before.parts.filter(hasFileData)
  const attachments = after.experimental_attachments
  if (files.length === 0 || !attachments) return after
  const sameCount = attachments.length === files.length + ownAttachments(before).length
  const ofParts = new Set<Attachment>()
  const changes = new Map<FilePart, Attachment | undefined>()
  for (const [index, file] of files.entries()) {
    const shown = attachmentOf(file)
    const now = attachments.find((one) => originalOf(one) === shown) ?? (sameCount ? attachments[index] : undefined)
    if (now) ofParts.add(now)
    if (!now || !isSame(now, shown)) changes.set(file, now)
  }
  const own = attachments.filter((one) => !ofParts.has(one))
  const { parts, withoutPart } = changeFileParts(after.parts, files, changes)
  return replaceAttachments({ ...after, parts }, [...withoutPart, ...own])
}

/** Applies changes to file parts. A part is matched by identity, or by position when all file parts are still present. */
function changeFileParts(
  parts: readonly MessagePart[], files: readonly FilePart[], changes: ReadonlyMap<FilePart, Attachment | undefined>,
): { parts: MessagePart[]; withoutPart: Attachment[] } {
  if (changes.size === 0) return { parts: [...parts], withoutPart: [] }
  const now = parts.filter(hasFileData)
  const sameCount = now.length === files.length
  const matched = new Set<FilePart>()
  const changed = parts.flatMap((part): MessagePart[] => {
    if (!hasFileData(part)) return [part]
    const original = originalOf(part)
    const file = files.includes(original) ? original : sameCount ? files[now.indexOf(part)] : undefined
    if (!file || !changes.has(file)) return [part]
    matched.add(file)
    const attachment = changes.get(file)
    return attachment ? [filePart(part, attachment)] : []
  })
  const withoutPart = [...changes].flatMap(([file, attachment]) => (attachment && !matched.has(file) ? [attachment] : []))
  return { parts: changed, withoutPart }
}

function filePart({ filename: _, ...part }: FilePart, { url, contentType, name }: Attachment): FilePart {
  return { ...part, data: url, mimeType: contentType ?? part.mimeType, ...(name !== undefined && { filename: name }) }
}

function attachmentOf(part: FilePart): Attachment {
  let attachment = partAttachments.get(part)
  if (!attachment) {
    const { data, mimeType, filename } = part
    const url = isURLText(data) ? data : `data:${mimeType};base64,${data}`
    attachment = { url, contentType: mimeType, ...(filename !== undefined && { name: filename }) }
    partAttachments.set(part, attachment)
  }
  return attachment
}

function replaceAttachments(content: MessageContent, attachments: Attachment[]): MessageContent {
  const { experimental_attachments: _, ...rest } = content
  return attachments.length === 0 ? rest : { ...rest, experimental_attachments: attachments }
}

function hasFileData(part: MessagePart): part is FilePart {
  return part.type === 'file' && !part.reference && part.data !== ''
}

function isSame(a: Attachment, b: Attachment): boolean {
  return a === b || (a.url === b.url && a.contentType === b.contentType && a.name === b.name)
}
