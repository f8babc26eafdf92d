import { describeValue } from '../base/arguments.ts'
import { isName, isObject, isPlainObject } from '../base/json.ts'
import { parseDate } from '../message/read/raw.ts'
import { isoTime, kindOf, SIGNAL_TYPES } from './conversions.ts'
import { checkSize, MAX_SIGNAL_BYTES, normalizeContents, utf8Length } from './contents.ts'
import { copyJSON, copyJSONObject, copyProviderOptions, invalidSignal, readField } from './input-fields.ts'
import type { MessageInput, Signal, SignalInput, StoredAttributes } from './signal.ts'
import { isPlain, isXMLName, needsGuard, RESERVED_TAGS } from './tags.ts'

export interface NormalizeContext {
  /** For a signal without a caller id. */
  id: string
  now: Date | number
  /** Tags that plain text must not imitate, in addition to those that Heed writes. */
  reservedTags?: readonly string[]
  /** In place of `MAX_SIGNAL_BYTES`; also the limit of attributes, metadata and provider options, each. */
  maxBytes?: number
}

const sized = ['attributes', 'metadata', 'providerOptions'] as const

/**
 * Validates the input of a sender and returns its stored form. Rejects with `invalid_signal` everything that would fail later; the
 * error has the path of the field in `details.field`. The input is not changed and shares nothing with the result.
 */
export function normalizeSignal(input: SignalInput, context: NormalizeContext): Signal {
  if (!isObject(input)) throw invalidSignal('signal', `must be an object with type and contents, not ${describeValue(input)}.`)
  checkFields(input, signalFields)
  checkTimes(input)
  const kind = kindOf(input.type)
  if (!kind) throw invalidSignal('type', unknownType(input.type))
  const { metadata, providerOptions } = input
  const tagName = input.tagName ?? kind.tagName
  if (tagName !== kind.tagName && !isXMLName(tagName)) throw invalidSignal('tagName', unsafeName('a tag'))

  const maxBytes = context.maxBytes ?? MAX_SIGNAL_BYTES
  const attributes = isPresent(input.attributes) ? readField('attributes', () => normalizeAttributes(input.attributes)) : undefined
  const signal: Signal = {
    id: input.id === undefined || input.id === null ? checkSignalId(context.id) : checkCallerId(checkSignalId(input.id)),
    type: kind.type,
    tagName,
    contents: normalizeContents(input.contents, maxBytes),
    createdAt: isoTime(Number(context.now)),
  }
  if (attributes && Object.keys(attributes).length > 0) signal.attributes = attributes
  if (isPresent(metadata)) signal.metadata = readField('metadata', () => copyJSONObject(metadata, 'metadata'))
  if (isPresent(providerOptions)) {
    signal.providerOptions = readField('providerOptions', () => copyProviderOptions(providerOptions, 'providerOptions'))
  }
  if (isTransient(input.transient, kind.type)) signal.transient = true
  for (const field of sized) if (signal[field]) checkSize(field, utf8Length(JSON.stringify(signal[field])), maxBytes)
  const reserved = context.reservedTags?.length ? [...RESERVED_TAGS, ...context.reservedTags] : RESERVED_TAGS
  if (isPlain(signal) && needsGuard(signal.contents, reserved)) signal.guarded = true
  return signal
}

/** Validates a user's message and returns its signal, of type `user`. */
export function messageInputToSignal(input: MessageInput, context: NormalizeContext): Signal {
  if (typeof input === 'string' || Array.isArray(input)) return normalizeSignal({ type: 'user', contents: input }, context)
  if (!isObject(input)) {
    throw invalidSignal('message', `must be a string, an array of parts or an object with contents, not ${describeValue(input)}.`)
  }
  checkFields(input, isUserSignal(input) ? signalFields : messageFields)
  checkTimes(input)
  const { id, contents, attributes, metadata, providerOptions } = input
  return normalizeSignal({ type: 'user', id, contents, attributes, metadata, providerOptions }, context)
}

// The fields of a receipt's signal: a caller may send such a signal again.
const receiptFields = ['createdAt', 'acceptedAt', 'guarded']
const messageFields = ['id', 'contents', 'attributes', 'metadata', 'providerOptions', ...receiptFields]
const signalFields = ['type', 'tagName', 'transient', ...messageFields]

// The user's signal of a receipt may be sent again as a message.
function isUserSignal(input: object): boolean {
  return 'type' in input && input.type === 'user' && 'tagName' in input && input.tagName === 'user'
}

/** Unknown fields are rejected: a misspelt field would otherwise be ignored. */
function checkFields(input: object, fields: readonly string[]): void {
  for (const field of Object.keys(input)) {
    if (fields.includes(field) || !isPresent(input[field as keyof typeof input])) continue
    const known = fields.filter((name) => !receiptFields.includes(name))
    throw invalidSignal(field, `is not known. Known: ${known.join(', ')}.`)
  }
}

/** The store sets the times of a signal; times of the input are ignored, but invalid ones are rejected. */
function checkTimes(input: object): void {
  const { createdAt, acceptedAt } = input as { createdAt?: unknown; acceptedAt?: unknown }
  for (const [field, time] of [['createdAt', createdAt], ['acceptedAt', acceptedAt]] as const) {
    if (isPresent(time) && parseDate(time) === undefined) {
      throw invalidSignal(field, `must be a time like 2026-01-31T12:00:00Z, or left out, not ${describeValue(time)}.`)
    }
  }
}

// Clients in other languages send null for absent fields.
function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null
}

function isTransient(value: unknown, type: Signal['type']): boolean {
  if (!isPresent(value)) return false
  if (typeof value !== 'boolean') throw invalidSignal('transient', `must be true or false, not ${describeValue(value)}.`)
  if (value && type === 'state') throw invalidSignal('transient', "can't be set for a state: a lane stores its states.")
  return value
}

function unknownType(type: unknown): string {
  const types = SIGNAL_TYPES.map(name => `'${name}'`).join(', ')
  return (
    `is ${describeValue(type)}, which is not a signal type. Use one of ${types} (or the older 'user-message' and 'system-reminder'), ` +
    'and set tagName for an XML tag of your own.'
  )
}

/**
 * Attributes as they are stored and rendered: in the order of the input, without `null` and `undefined`, objects and arrays as JSON.
 * `field` is their name in errors: a send also normalizes `ifActive.attributes` and `ifIdle.attributes`.
 */
export function normalizeAttributes(attributes: unknown, field = 'attributes'): StoredAttributes {
  if (attributes === undefined || attributes === null) return {}
  if (!isPlainObject(attributes)) throw invalidSignal(field, `must be an object, not ${describeValue(attributes)}.`)
  const stored: Array<[string, string | number | boolean]> = []
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null) continue
    if (!isXMLName(name)) throw invalidSignal(`${field}.${name}`, unsafeName('an attribute name'))
    const copy = copyJSON(value, `${field}.${name}`)
    if (copy === null) continue
    stored.push([name, typeof copy === 'object' ? JSON.stringify(copy) : copy])
  }
  return Object.fromEntries(stored)
}

function unsafeName(kind: string): string {
  return `is not safe as ${kind}: use letters, digits, "_", "." and "-", and begin with a letter or "_".`
}

/** Prefixes of ids that Heed derives from a notification, an occurrence or a watch, so that a repeated delivery has the same id. */
export const reservedIdPrefixes = {
  full: 'notification:',
  retry: 'notification-retry:',
  summary: 'notification-summary:',
  occurrence: 'schedule:',
  watch: 'watch:',
  hit: 'watch-hit:',
} as const

const maxIdLength = 256

function checkSignalId(id: unknown): string {
  if (isName(id) && id.length <= maxIdLength) return id
  throw invalidSignal('id', `must be a string of 1 to ${maxIdLength} whole characters without NUL, not ${describeValue(id)}.`)
}

/**
 * Rejects a caller id with a reserved prefix: the thread would take the signal for the delivery of a notification, an occurrence or a
 * watch.
 */
export function checkCallerId(id: string, field = 'id'): string {
  const prefix = Object.values(reservedIdPrefixes).find((reserved) => id.startsWith(reserved))
  if (prefix === undefined) return id
  const why = `must not begin with '${prefix}', which is reserved for notifications, schedules and watches. Choose another id.`
  throw invalidSignal(field, why)
}
