import { isName } from '../base/arguments.ts'
import { isoTime } from '../base/iso.ts'
import { dateOf } from '../message/read/raw.ts'
import { normaliseAttributes, unsafeName } from './attributes.ts'
import { utf8Length } from './base64.ts'
import { checkSize, MAX_SIGNAL_BYTES, normaliseContents } from './contents.ts'
import { needsGuard, RESERVED_TAGS } from './forgery.ts'
import { attempt, copyJSONObject, copyProviderOptions } from './json-copy.ts'
import { isXMLName, kindOf, SIGNAL_TYPES } from './kinds.ts'
import { describe, refusal } from './refusal.ts'
import { ownId } from './reserved-ids.ts'
import type { MessageInput, Signal, SignalInput } from './signal.ts'
import { isPlain } from './signal.ts'

export interface NormaliseContext {
  /** For a signal that brings no id of its own. */
  id: string
  now: Date | number
  /** Tags that plain text must not forge, besides those that Heed writes. */
  reservedTags?: readonly string[]
  /** In place of `MAX_SIGNAL_BYTES`; metadata and provider options are held to it as well. */
  maxBytes?: number
}

const maxIdLength = 256
const sized = ['attributes', 'metadata', 'providerOptions'] as const

/**
 * The storable form of what a sender passed. Everything that could fail later fails here: the error (`invalid_signal`) has the
 * path of the field in `details.field`. The input is not changed, and nothing of it is shared with the result.
 */
export function normaliseSignal(input: SignalInput, context: NormaliseContext): Signal {
  if (!isObject(input)) throw refusal('signal', `must be an object with type and contents, not ${describe(input)}.`)
  checkFields(input, signalFields)
  checkTimes(input)
  const kind = kindOf(input.type)
  if (!kind) throw refusal('type', unknownType(input.type))
  const { metadata, providerOptions } = input
  const tagName = input.tagName ?? kind.tagName
  if (tagName !== kind.tagName && !isXMLName(tagName)) throw refusal('tagName', unsafeName('a tag'))

  const maxBytes = context.maxBytes ?? MAX_SIGNAL_BYTES
  const attributes = isGiven(input.attributes) ? attempt('attributes', () => normaliseAttributes(input.attributes)) : undefined
  const signal: Signal = {
    id: input.id === undefined || input.id === null ? checkId(context.id) : ownId(checkId(input.id)),
    type: kind.type,
    tagName,
    contents: normaliseContents(input.contents, maxBytes),
    createdAt: isoTime(Number(context.now)),
  }
  if (attributes && Object.keys(attributes).length > 0) signal.attributes = attributes
  if (isGiven(metadata)) signal.metadata = attempt('metadata', () => copyJSONObject(metadata, 'metadata'))
  if (isGiven(providerOptions)) signal.providerOptions = attempt('providerOptions', () => copyProviderOptions(providerOptions, 'providerOptions'))
  if (isTransient(input.transient, kind.type)) signal.transient = true
  for (const field of sized) if (signal[field]) checkSize(field, utf8Length(JSON.stringify(signal[field])), maxBytes)
  const forged = isPlain(signal) && needsGuard(signal.contents, context.reservedTags?.length ? [...RESERVED_TAGS, ...context.reservedTags] : RESERVED_TAGS)
  if (forged) signal.guarded = true
  return signal
}

/** What a user says, as a signal of type `user`. */
export function messageInputToSignal(input: MessageInput, context: NormaliseContext): Signal {
  if (typeof input === 'string' || Array.isArray(input)) return normaliseSignal({ type: 'user', contents: input }, context)
  if (!isObject(input)) {
    throw refusal('message', `must be a string, an array of parts or an object with contents, not ${describe(input)}.`)
  }
  checkFields(input, isUserSignal(input) ? signalFields : messageFields)
  checkTimes(input)
  const { id, contents, attributes, metadata, providerOptions } = input
  return normaliseSignal({ type: 'user', id, contents, attributes, metadata, providerOptions }, context)
}

// Besides what a sender writes: what a signal has that was handed out and is sent again.
const handedOut = ['createdAt', 'acceptedAt', 'guarded']
const messageFields = ['id', 'contents', 'attributes', 'metadata', 'providerOptions', ...handedOut]
const signalFields = ['type', 'tagName', 'transient', ...messageFields]

// A user's signal that was handed out is a user's message.
function isUserSignal(input: object): boolean {
  return 'type' in input && input.type === 'user' && 'tagName' in input && input.tagName === 'user'
}

/** A misspelt field would otherwise pass for one that isn't given. */
function checkFields(input: object, fields: readonly string[]): void {
  for (const field of Object.keys(input)) {
    if (!fields.includes(field) && isGiven(input[field as keyof typeof input])) throw refusal(field, `is not known. Known: ${fields.filter((name) => !handedOut.includes(name)).join(', ')}.`)
  }
}

/** The times of a signal are its acceptance's; one that says others which are none is mistaken in more. */
function checkTimes(input: object): void {
  const { createdAt, acceptedAt } = input as { createdAt?: unknown; acceptedAt?: unknown }
  for (const [field, time] of [['createdAt', createdAt], ['acceptedAt', acceptedAt]] as const) {
    if (isGiven(time) && dateOf(time) === undefined) throw refusal(field, `must be a time like 2026-01-31T12:00:00Z, or left out, not ${describe(time)}.`)
  }
}

// A signal that was handed out may be sent again, and it has a class.
function isObject(input: unknown): boolean {
  return typeof input === 'object' && input !== null && !Array.isArray(input)
}

// Writers in other languages send null for what they leave out.
function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}

function isTransient(given: unknown, type: Signal['type']): boolean {
  if (!isGiven(given)) return false
  if (typeof given !== 'boolean') throw refusal('transient', `must be true or false, not ${describe(given)}.`)
  if (given && type === 'state') throw refusal('transient', 'is not for states: a lane keeps what it was told.')
  return given
}

function checkId(id: unknown): string {
  if (isName(id) && id.length <= maxIdLength) return id
  throw refusal('id', `must be a string of 1 to ${maxIdLength} whole characters without NUL, not ${describe(id)}.`)
}

function unknownType(type: unknown): string {
  const types = SIGNAL_TYPES.map(name => `'${name}'`).join(', ')
  return (
    `is ${describe(type)}, which is no signal type. Use one of ${types} (or the older 'user-message' and 'system-reminder'), ` +
    'and set tagName for an XML tag of your own.'
  )
}
