import type { JSONObject } from '../base/json.ts'
import { HeedError } from '../base/errors.ts'
import { dateOf, isWritten } from '../base/iso.ts'
import { ownAttachments } from '../message/attachments.ts'
import type { Message, MessagePart } from '../message/message.ts'
import type { MessageRow } from '../message/row.ts'
import { canonicalContents, partsOf } from './contents.ts'
import { isPlainObject } from './json-copy.ts'
import type { SignalKind } from './kinds.ts'
import { isXMLName, kindOf } from './kinds.ts'
import { decodePart, decodeStash, isProviderOptions } from './legacy.ts'
import type { ShownSignal, Signal, StoredAttributes, StoredContents, StoredPart } from './signal.ts'

/** What a row keeps of a signal besides its contents, at `content.metadata.signal`. */
export type SignalRecord = Omit<Signal, 'contents' | 'providerOptions'>

/** What a row and a message have in common. */
export type StoredMessage = Pick<MessageRow, 'id' | 'role' | 'createdAt' | 'type' | 'content'>

export function signalToMessage(signal: Signal, owner: { threadId?: string; resourceId?: string } = {}): Message {
  const { contents, providerOptions, ...record } = signal
  const content: Message['content'] = { format: 2, parts: partsOf(contents).map(rowPart), metadata: { signal: record satisfies SignalRecord } }
  if (providerOptions) content.providerMetadata = providerOptions
  const message: Message = { id: signal.id, role: 'signal', type: signal.tagName, createdAt: dateOf(signal.createdAt), content }
  if (owner.threadId !== undefined) message.threadId = owner.threadId
  if (owner.resourceId !== undefined) message.resourceId = owner.resourceId
  return message
}

/** The row of a signal. Its id is the signal's, so that storing it twice is storing it once. */
export function signalToRow(signal: Signal, owner: { threadId?: string; resourceId?: string; messageId?: string }): MessageRow {
  const message = signalToMessage(signal, owner)
  return Object.assign(message, { messageId: owner.messageId ?? signal.id })
}

/**
 * The signal that a row or message holds: equal to the one that was stored. Rows of older writers are read as well as they
 * allow, and never refused; a `user` message is a signal of type `user`.
 */
export function rowToSignal(row: StoredMessage): Signal {
  const record = recordOf(row)
  const createdAt = isoTime(record.createdAt) ?? isoTime(row.createdAt) ?? new Date(0).toISOString()
  const signal: Signal = Object.assign(shownSignal(row), { createdAt })
  const acceptedAt = isoTime(record.acceptedAt)
  if (acceptedAt !== undefined) signal.acceptedAt = acceptedAt
  return signal
}

/** The signal that a row or message holds, without its times: no model is shown those. */
export function shownSignal(row: StoredMessage): ShownSignal {
  if (row.role !== 'signal' && row.role !== 'user') {
    const details = { id: row.id, role: row.role }
    throw new HeedError('invalid_message', `Message ${row.id} is no signal: its role is ${row.role}.`, { details })
  }
  const record = recordOf(row)
  const attributes = readAttributes(record.attributes)
  const { providerMetadata } = row.content
  const { type, tagName } = kindOfRow(row, record)
  const id = typeof record.id === 'string' && record.id !== '' ? record.id : row.id
  const signal: ShownSignal = { id, type, tagName, contents: decodeStash(record.contents) ?? readContents(row) }
  if (attributes) signal.attributes = attributes
  if (isJSONObject(record.metadata)) signal.metadata = record.metadata
  if (isProviderOptions(providerMetadata)) signal.providerOptions = providerMetadata
  if (record.transient === true) signal.transient = true
  if (record.guarded === true) signal.guarded = true
  return signal
}

/** True for a signal that came from outside, and not from a run itself. */
export function wasSent(row: Pick<StoredMessage, 'role' | 'content'>): boolean {
  return row.role === 'signal' && recordOf(row).acceptedAt !== undefined
}

/** True for what a user said, whether it came as a message or as a signal. */
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

// Older rows have one name for the type and the tag, and it may be any.
function kindOfRow(row: Pick<StoredMessage, 'role' | 'type'>, record: Record<string, unknown>): SignalKind {
  if (row.role === 'user') return { type: 'user', tagName: 'user' }
  const type = record.type ?? row.type ?? 'user-message'
  const kind = kindOf(type)
  const tag = isXMLName(record.tagName) ? record.tagName : [kindOf(row.type)?.tagName, row.type, kind?.tagName, type].find(isXMLName)
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

// A row was JSON when it was written.
function isJSONObject(value: unknown): value is JSONObject {
  return isPlainObject(value)
}
