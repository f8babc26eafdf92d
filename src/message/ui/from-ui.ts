import { describe, invalidMessage, saidTime } from '../read/invalid.ts'
import type { Message, MessagePart } from '../message.ts'
import type { Raw } from '../read/raw.ts'
import { firstText, isRaw } from '../read/raw.ts'
import { readContent, readParts } from '../read/stored-content.ts'

export interface FromUIOptions {
  /** The time of a message that doesn't say its own. */
  now(): Date
  /**
   * Take signals as signals. Only for messages that this program made itself: otherwise a client could write what the model takes
   * for a notification. Without it, what a user said is a user message and every other signal is passed over.
   */
  signals?: boolean
}

/** The inverse of `toUIMessages`. Payloads that a transcript hid stay hidden: they aren't in what a user interface has. */
export function fromUIMessages(messages: Iterable<unknown>, options: FromUIOptions): Message[] {
  return Array.from(messages, (message, index) => fromUIMessage(message, index, options)).filter(message => message !== undefined)
}

/** Undefined for a signal that may not be taken as one. */
export function fromUIMessage(message: unknown, index: number, { now, signals = false }: FromUIOptions): Message | undefined {
  if (!isRaw(message)) throw invalidMessage(index, `a message is an object, not ${describe(message)}`)
  const { id, role } = message
  if (typeof id !== 'string' || id === '') throw invalidMessage(index, 'a message of a user interface needs an `id`')
  if (role !== 'user' && role !== 'assistant' && role !== 'system') {
    throw invalidMessage(index, `unknown role ${describe(role)}; use user, assistant or system`, { role })
  }
  const { createdAt: written, signal, ...metadata } = isRaw(message.metadata) ? message.metadata : {}
  const createdAt = saidTime(written, index, 'metadata.createdAt') ?? saidTime(message.createdAt, index) ?? now()
  const isSignal = isRaw(signal)
  if (isSignal && !signals && role === 'system') return undefined

  const onUnreadable = (_: unknown, part: number, why: string): never => {
    throw invalidMessage(index, `parts[${part}]: ${why}`, { part })
  }
  const kept = Object.keys(metadata).length > 0 ? { metadata } : {}
  const content = readContent({ ...message, metadata: kept.metadata }, onUnreadable)
  if (!isSignal || !signals) return { id, role, createdAt, content: { ...content, parts: content.parts.map(restored) } }
  const record = { id, ...signal, createdAt: createdAt.toISOString() }
  return {
    id,
    role: 'signal',
    ...(typeof signal.tagName === 'string' && { type: signal.tagName }),
    createdAt,
    content: { ...content, parts: signalParts(content.parts, onUnreadable), metadata: { ...metadata, signal: record } },
  }
}

function signalParts(parts: MessagePart[], onUnreadable: (part: unknown, index: number, why: string) => never): MessagePart[] {
  return parts.flatMap(part => {
    if (part.type !== 'data-signal' || !('data' in part) || !isRaw(part.data)) return [part]
    const contents: unknown = part.data.contents
    if (typeof contents === 'string') return [{ type: 'text', text: contents }]
    return Array.isArray(contents) ? readParts(contents, onUnreadable) : []
  })
}

/** A provider's failure, which user interfaces get as data. */
function restored(part: MessagePart): MessagePart {
  if (part.type !== 'data-error' || !('data' in part) || !isRaw(part.data)) return part
  const { name, message, code } = part.data as Raw
  if (typeof name !== 'string' || typeof message !== 'string') return part
  const coded = firstText(code)
  return { type: 'error', error: { name, message, ...(coded !== undefined && { code: coded }) } }
}

