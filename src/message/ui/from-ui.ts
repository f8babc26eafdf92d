import { checkNames, describeValue, refused } from '../../base/arguments.ts'
import { isObject } from '../../base/json.ts'
import type { Message, MessagePart } from '../message.ts'
import { invalidMessage, placeOf, readTime, type Raw } from '../read/raw.ts'
import { readContent, readParts } from '../read/stored-content.ts'

/** How UI messages become stored ones. */
export interface FromUIOptions {
  /** The time of a message without one. */
  now(): Date
  /** The id of a message without one. Without it, such a message is rejected. */
  newId?(): string
  /**
   * Read signals as signals. Only for messages of the program itself: a client could otherwise write a message that the model reads as a
   * notification. When false, a user's signal becomes a user message and every other signal is skipped.
   */
  signals?: boolean
}

/** The inverse of `toUIMessages`, except that payloads which a transcript replaced stay replaced. */
export function fromUIMessages(messages: Iterable<unknown>, options: FromUIOptions): Message[] {
  checkNames('fromUIMessages()', options, ['now', 'newId', 'signals'])
  if (typeof options.now !== 'function') throw refused('now', 'a function that returns the time of messages without one')
  return Array.from(messages, (message, index) => fromUIMessage(message, index, options)).filter(message => message !== undefined)
}

/** Undefined for a signal that is skipped. */
export function fromUIMessage(message: unknown, index: number, { now, newId, signals = false }: FromUIOptions): Message | undefined {
  if (!isObject(message)) throw invalidMessage(index, `a message is an object, not ${describeValue(message)}`)
  const { role } = message
  const id = message.id === undefined ? newId?.() : message.id
  if (typeof id !== 'string' || id === '') throw invalidMessage(index, 'a message of a user interface needs an `id`')
  if (role !== 'user' && role !== 'assistant' && role !== 'system') {
    throw invalidMessage(index, `unknown role ${describeValue(role)}; use user, assistant or system`, { role })
  }
  const { createdAt: time, signal, ...metadata } = isObject(message.metadata) ? message.metadata : {}
  const createdAt = readTime(time, index, 'metadata.createdAt') ?? readTime(message.createdAt, index) ?? now()
  const isSignal = isObject(signal)
  if (isSignal && !signals && role === 'system') return undefined

  const onUnreadable = (_: unknown, part: number, reason: string): never => {
    throw invalidMessage(index, `parts[${part}]: ${reason}`, { part })
  }
  const kept = Object.keys(metadata).length > 0 ? { metadata } : {}
  const content = readContent({ ...message, metadata: kept.metadata }, onUnreadable)
  if (!isSignal || !signals) {
    return { id, role, createdAt, ...placeOf(message), content: { ...content, parts: content.parts.map(restoreError) } }
  }
  const record = { id, ...signal, createdAt: createdAt.toISOString() }
  return {
    id,
    role: 'signal',
    ...(typeof signal.tagName === 'string' && { type: signal.tagName }),
    createdAt,
    content: { ...content, parts: signalParts(content.parts, onUnreadable), metadata: { ...metadata, signal: record } },
  }
}

function signalParts(parts: MessagePart[], onUnreadable: (part: unknown, index: number, reason: string) => never): MessagePart[] {
  return parts.flatMap(part => {
    if (part.type !== 'data-signal' || !('data' in part) || !isObject(part.data)) return [part]
    const contents: unknown = part.data.contents
    if (typeof contents === 'string') return [{ type: 'text', text: contents }]
    return Array.isArray(contents) ? readParts(contents, onUnreadable) : []
  })
}

/** The `error` part of a `data-error` part: user interfaces receive errors as data. */
function restoreError(part: MessagePart): MessagePart {
  if (part.type !== 'data-error' || !('data' in part) || !isObject(part.data)) return part
  const { name, message, code } = part.data as Raw
  if (typeof name !== 'string' || typeof message !== 'string') return part
  return { type: 'error', error: { name, message, ...(typeof code === 'string' && { code }) } }
}

