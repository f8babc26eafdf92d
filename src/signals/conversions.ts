import { HeedError } from '../base/errors.ts'
import { isPlainObject, type JSONObject } from '../base/json.ts'
import { ownAttachments } from '../message/attachments.ts'
import { imageMediaType } from '../message/file-data.ts'
import type { Message, MessagePart, ProviderOptions } from '../message/message.ts'
import { firstString } from '../message/read/raw.ts'
import type { MessageRow } from '../message/row.ts'
import { canonicalContents, partsOf } from './contents.ts'
import { renderSignal } from './render.ts'
import type {
  CreatedAgentSignal, ModelSignal, Signal, SignalDataChunk, SignalDataPart, SignalInputType, SignalKind, SignalType, StoredAttributes,
  StoredContents, StoredPart,
} from './signal.ts'
import { isXMLName } from './tags.ts'

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

/** The row of a signal. It has the id of the signal, so that a repeated insert is recognized. */
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
  const createdAt = readTime(record.createdAt) ?? readTime(row.createdAt) ?? new Date(0).toISOString()
  const signal: Signal = Object.assign(modelSignalOf(row), { createdAt })
  const acceptedAt = readTime(record.acceptedAt)
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

export const SIGNAL_TYPES: readonly SignalType[] = ['user', 'state', 'reactive', 'notification']

const kinds: ReadonlyMap<string, SignalKind> = new Map<SignalInputType, SignalKind>([
  ['user', { type: 'user', tagName: 'user' }],
  ['state', { type: 'state', tagName: 'state' }],
  ['reactive', { type: 'reactive', tagName: 'system-reminder' }],
  ['notification', { type: 'notification', tagName: 'notification' }],
  ['user-message', { type: 'user', tagName: 'user' }],
  ['system-reminder', { type: 'reactive', tagName: 'system-reminder' }],
])

/** The type and the default tag of a written type; undefined for an unknown one. */
export function kindOf(type: unknown): SignalKind | undefined {
  return typeof type === 'string' ? kinds.get(type) : undefined
}

/** Values of a row's type that name the format of a message, not a signal. */
const messageFormats: ReadonlySet<unknown> = new Set(['v1', 'v2', 'text', 'tool-call', 'tool-result'])

// Older rows have one name for both the type and the tag, and it may be any text. The signal's own type counts before that of its row,
// which may add the tag to one of the four types.
function kindOfRow(row: Pick<StoredMessage, 'role' | 'type'>, record: Record<string, unknown>): SignalKind {
  if (row.role === 'user') return { type: 'user', tagName: 'user' }
  const rowType = messageFormats.has(row.type) ? undefined : row.type
  const type = record.type ?? rowType ?? 'user-message'
  const kind = kindOf(type)
  const ofRow = SIGNAL_TYPES.includes(type as SignalType) ? [kindOf(rowType)?.tagName, rowType] : []
  const tag = isXMLName(record.tagName) ? record.tagName : [...ofRow, kind?.tagName, type].find(isXMLName)
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

function readTime(time: unknown): string | undefined {
  if (!(time instanceof Date) && typeof time !== 'string') return undefined
  // The two texts that were formatted last are valid.
  if (typeof time === 'string' && (time === text || time === textBefore)) return time
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

function signalToDataPart(signal: Signal): SignalDataPart {
  return { type: signal.type === 'user' ? 'data-user-message' : 'data-signal', data: withoutGuard(signal), transient: true }
}

export function signalToDataChunk(signal: Signal, runId: string): SignalDataChunk {
  return Object.assign(signalToDataPart(signal), { runId })
}

function withoutGuard(signal: Signal): Omit<Signal, 'guarded'> {
  if (!signal.guarded) return { ...signal }
  const { guarded: _, ...data } = signal
  return data
}

/** The signal of a receipt. */
export function createdSignal(signal: Signal): CreatedAgentSignal {
  return new Created(signal) as Created & Omit<CreatedAgentSignal, keyof Created>
}

/** The fields are own properties; the conversions are methods of the class, so that no function is created for each signal. */
class Created implements Pick<CreatedAgentSignal, 'toDBMessage' | 'toLLMMessage' | 'toDataPart'> {
  declare createdAt: Date
  declare acceptedAt?: Date
  readonly #signal: Signal

  constructor(signal: Signal) {
    this.#signal = signal
    Object.assign(this, signal)
    this.createdAt = dateOf(signal.createdAt)
    if (signal.acceptedAt !== undefined) this.acceptedAt = dateOf(signal.acceptedAt)
  }

  /** The signal itself, whose times are ISO texts already. */
  toJSON(): Signal {
    return this.#signal
  }

  toDBMessage(owner: Parameters<CreatedAgentSignal['toDBMessage']>[0]): ReturnType<CreatedAgentSignal['toDBMessage']> {
    return signalToMessage(this.#signal, owner)
  }

  toLLMMessage(): ReturnType<CreatedAgentSignal['toLLMMessage']> {
    return renderSignal(this.#signal)
  }

  toDataPart(): ReturnType<CreatedAgentSignal['toDataPart']> {
    return signalToDataPart(this.#signal)
  }
}

const dayMs = 86_400_000
/** The first millisecond of the year 10,000, which has another ISO format. */
const year10000 = 253_402_300_800_000

const sixtieths = Array.from({ length: 60 }, (_, number) => String(number).padStart(2, '0'))
const thousandths = Array.from({ length: 1_000 }, (_, number) => String(number).padStart(3, '0'))

let last = Number.NaN
let text = ''
let textBefore = ''
let lastDay = Number.NaN
let date = ''

/** A time in ISO 8601. The text of a millisecond is formatted once, its date once a day: recall compares many times. */
export function isoTime(time: number): string {
  if (time !== last) {
    textBefore = text
    text = formatTime(time)
    last = time
  }
  return text
}

/** The date of an ISO text. The text that was formatted last is not parsed. */
function dateOf(iso: string): Date {
  return new Date(iso === text ? last : iso)
}

function formatTime(time: number): string {
  if (!Number.isInteger(time) || time < 0 || time >= year10000) return new Date(time).toISOString()
  const day = Math.floor(time / dayMs)
  if (day !== lastDay) {
    date = new Date(time).toISOString().slice(0, 11)
    lastDay = day
  }
  const rest = time - day * dayMs
  const hours = sixtieths[Math.floor(rest / 3_600_000)]
  const minutes = sixtieths[Math.floor(rest / 60_000) % 60]
  return `${date}${hours}:${minutes}:${sixtieths[Math.floor(rest / 1_000) % 60]}.${thousandths[rest % 1_000]}Z`
}
