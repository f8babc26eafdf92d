import { HeedError } from '../base/errors.ts'
import { dateOf, isWritten } from '../base/iso.ts'
import { isPlainObject, type JSONObject } from '../base/json.ts'
import { ownAttachments } from '../message/attachments.ts'
import { imageMediaType } from '../message/file-data.ts'
import type { Message, MessagePart, ProviderOptions } from '../message/message.ts'
import { firstString } from '../message/read/raw.ts'
import type { MessageRow } from '../message/row.ts'
import { canonicalContents, partsOf } from './contents.ts'
import type { SignalKind } from './kinds.ts'
import { kindOf } from './kinds.ts'
import type { ModelSignal, Signal, StoredAttributes, StoredContents, StoredPart } from './signal.ts'
import { isXMLName } from './xml.ts'

/** The fields of a signal that its row stores beside the parts, at `content.metadata.signal`. */
type SignalRecord = Omit<Signal, 'contents' | 'providerOptions'>

/** The common fields of a row and a message. */
type StoredMessage = Pick<MessageRow, 'id' | 'role' | 'createdAt' | 'type' | 'content'>

export function signalToMessage(signal: Signal, owner: { threadId?: string; resourceId?: string } = {}): Message {
  const { contents, providerOptions, ...record } = signal
  const metadata = { signal: record satisfies SignalRecord }
  const content: Message['content'] = { format: 2, parts: partsOf(contents).map(rowPart), metadata }
  if (providerOptions) content.providerMetadata = providerOptions
  const message: Message = { id: signal.id, role: 'signal', type: signal.tagName, createdAt: dateOf(signal.createdAt), content }
  if (owner.threadId !== undefined) message.threadId = owner.threadId
  if (owner.resourceId !== undefined) message.resourceId = owner.resourceId
  return message
}

/** The row of a signal. It has the id of the signal, so that a repeated insert is recognised. */
export function signalToRow(signal: Signal, owner: { threadId?: string; resourceId?: string; messageId?: string }): MessageRow {
  const message = signalToMessage(signal, owner)
  return Object.assign(message, { messageId: owner.messageId ?? signal.id })
}

/**
 * The signal of a row or message, equal to the stored one. A `user` message is a signal of type `user`. Rows of older writers are never
 * rejected: fields that can't be read are left out.
 */
export function rowToSignal(row: StoredMessage): Signal {
  const record = recordOf(row)
  const createdAt = isoTime(record.createdAt) ?? isoTime(row.createdAt) ?? new Date(0).toISOString()
  const signal: Signal = Object.assign(modelSignalOf(row), { createdAt })
  const acceptedAt = isoTime(record.acceptedAt)
  if (acceptedAt !== undefined) signal.acceptedAt = acceptedAt
  return signal
}

/** The signal of a row or message as the model sees it: without its times. */
export function modelSignalOf(row: StoredMessage): ModelSignal {
  if (row.role !== 'signal' && row.role !== 'user') {
    const details = { id: row.id, role: row.role }
    throw new HeedError('invalid_message', `Message ${row.id} is not a signal: its role is ${row.role}.`, { details })
  }
  const record = recordOf(row)
  const attributes = readAttributes(record.attributes)
  const { providerMetadata } = row.content
  const { type, tagName } = kindOfRow(row, record)
  const id = typeof record.id === 'string' && record.id !== '' ? record.id : row.id
  const signal: ModelSignal = { id, type, tagName, contents: decodeOlderContents(record.contents) ?? readContents(row) }
  if (attributes) signal.attributes = attributes
  if (isJSONObject(record.metadata)) signal.metadata = record.metadata
  if (isProviderOptions(providerMetadata)) signal.providerOptions = providerMetadata
  if (record.transient === true) signal.transient = true
  if (record.guarded === true) signal.guarded = true
  return signal
}

/** True for a signal that a sender sent, as opposed to one that a run or a processor added. */
export function isSentSignal(row: Pick<StoredMessage, 'role' | 'content'>): boolean {
  return row.role === 'signal' && recordOf(row).acceptedAt !== undefined
}

/** True for input of a user, stored as a `user` message or as a signal. */
export function isUserAuthored(row: Pick<StoredMessage, 'role' | 'type' | 'content'>): boolean {
  return row.role === 'user' || (row.role === 'signal' && kindOfRow(row, recordOf(row)).type === 'user')
}

function rowPart(part: StoredPart): MessagePart {
  const options = part.providerOptions && { providerMetadata: part.providerOptions }
  if (part.type === 'text') return { type: 'text', text: part.text, ...options }
  const { data, mediaType, filename } = part
  return { type: 'file', data, mimeType: mediaType, ...(filename !== undefined && { filename }), ...options }
}

function recordOf(row: Pick<StoredMessage, 'role' | 'content'>): Record<string, unknown> {
  const record = row.role === 'signal' ? row.content.metadata?.signal : undefined
  return isPlainObject(record) ? record : {}
}

// Older rows have one name for both the type and the tag, and it may be any text.
function kindOfRow(row: Pick<StoredMessage, 'role' | 'type'>, record: Record<string, unknown>): SignalKind {
  if (row.role === 'user') return { type: 'user', tagName: 'user' }
  const type = record.type ?? row.type ?? 'user-message'
  const kind = kindOf(type)
  const older = [kindOf(row.type)?.tagName, row.type, kind?.tagName, type]
  const tag = isXMLName(record.tagName) ? record.tagName : older.find(isXMLName)
  return { type: kind?.type ?? 'reactive', tagName: tag ?? 'system-reminder' }
}

function readContents({ content }: Pick<StoredMessage, 'content'>): StoredContents {
  const parts: StoredPart[] = []
  if (content.parts.length === 0 && content.content) parts.push({ type: 'text', text: content.content })
  for (const part of content.parts) pushDecoded(parts, part)
  for (const file of ownAttachments(content)) pushDecoded(parts, { ...file, type: 'file' })
  return canonicalContents(parts)
}

function pushDecoded(parts: StoredPart[], part: unknown): void {
  const decoded = decodePart(part)
  if (decoded) parts.push(decoded)
}

function readAttributes(attributes: unknown): StoredAttributes | undefined {
  if (!isPlainObject(attributes)) return undefined
  const readable: Array<[string, string | number | boolean]> = []
  for (const [name, value] of Object.entries(attributes)) {
    if (!isXMLName(name) || value === null || value === undefined) continue
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') readable.push([name, value])
    else if (typeof value === 'object') readable.push([name, JSON.stringify(value)])
  }
  return readable.length > 0 ? Object.fromEntries(readable) : undefined
}

function isoTime(time: unknown): string | undefined {
  if (!(time instanceof Date) && typeof time !== 'string') return undefined
  if (typeof time === 'string' && isWritten(time)) return time
  const date = new Date(time)
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}

// Rows are stored as JSON.
function isJSONObject(value: unknown): value is JSONObject {
  return isPlainObject(value)
}

/**
 * The contents that older rows store beside their parts: a text, parts, a user message, or a list of parts and messages. Undefined for
 * anything else: the caller then reads the parts of the row.
 */
function decodeOlderContents(contents: unknown): StoredContents | undefined {
  const parts = olderParts(contents)
  return parts && parts.length > 0 ? canonicalContents(parts) : undefined
}

function olderParts(contents: unknown): StoredPart[] | undefined {
  if (typeof contents === 'string') return [{ type: 'text', text: contents }]
  if (isPlainObject(contents)) return contents.role === 'user' ? olderParts(contents.content) : undefined
  if (!Array.isArray(contents)) return undefined
  const parts: StoredPart[] = []
  for (const item of contents as unknown[]) {
    const part = decodePart(item)
    const decoded = part ? [part] : isPlainObject(item) ? olderParts(item) : undefined
    if (!decoded) return undefined
    parts.push(...decoded)
  }
  return parts
}

/** A text, file or image part with any of the field names that rows have; undefined for every other part. */
function decodePart(part: unknown): StoredPart | undefined {
  if (!isPlainObject(part)) return undefined
  const options = providerOptionsOf(part)
  if (part.type === 'text') return typeof part.text === 'string' ? { type: 'text', text: part.text, ...options } : undefined
  if (part.type !== 'file' && part.type !== 'image') return undefined
  const data = firstString(part.data, part.image, part.url)
  if (data === undefined) return undefined
  const mediaType = firstString(part.mediaType, part.mimeType, part.contentType)
  const fallback = part.type === 'image' ? imageMediaType(data) : 'application/octet-stream'
  const filename = firstString(part.filename, part.name)
  return { type: 'file', data, mediaType: mediaType ?? fallback, ...(filename !== undefined && { filename }), ...options }
}

function providerOptionsOf(part: Record<string, unknown>): { providerOptions?: ProviderOptions } {
  const options = part.providerOptions ?? part.providerMetadata
  return isProviderOptions(options) ? { providerOptions: options } : {}
}

function isProviderOptions(value: unknown): value is ProviderOptions {
  return isPlainObject(value) && Object.values(value).every(isPlainObject)
}
