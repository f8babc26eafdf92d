import { describe } from '../base/errors.ts'
import { isObject } from '../base/json.ts'
import { MessageList } from '../message/list/list.ts'
import type { Message } from '../message/message.ts'
import { systemMessages, type SystemMessage } from '../prompt/system.ts'

/*
 * Validation of the values that hooks return. The messages of these errors follow "Processor 'x' failed in processInput: ".
 */

/** The object that a hook returned in place of messages; undefined when it returned messages or nothing. */
export function readChange<T extends object>(returned: unknown, keys: readonly string[]): T | undefined {
  if (returned === undefined || returned instanceof MessageList || Array.isArray(returned)) return undefined
  return readObject(returned, keys, `messages, an object with ${keys.join(' or ')}, or nothing`)
}

/** The object that a hook returned, with at least one of `keys` and no other; undefined when it returned nothing. */
export function readObject<T extends object>(
  returned: unknown, keys: readonly string[], expected = `an object with ${keys.join(' or ')}, or nothing`,
): T | undefined {
  if (returned === undefined) return undefined
  const names = isObject(returned) ? Object.keys(returned) : []
  if (!names.some((name) => keys.includes(name))) throw new Error(`it returned ${describeResult(returned)}. Return ${expected}.`)
  const unknown = names.find((name) => !keys.includes(name))
  if (unknown !== undefined) throw new Error(`it returned an object with '${unknown}', which it can't change. Return ${expected}.`)
  return returned as T
}

/** Replaces messages of the list by those that a hook returned. `passed`: the messages that it received. */
export function applyMessages(list: MessageList, passed: Message[], returned: unknown, source: 'input' | 'response' | 'all'): void {
  if (returned === undefined || returned === passed || returned === list) return
  if (returned instanceof MessageList) {
    throw new Error('it returned a new MessageList. Change the list that it received, or return an array of messages.')
  }
  if (!Array.isArray(returned)) throw new Error(`it returned ${describeResult(returned)}. Return messages or nothing.`)
  const known = new Set<unknown>(passed)
  for (const message of returned as unknown[]) if (!known.has(message)) checkMessage(message)
  const ids = new Set<string>()
  for (const { id } of returned as Message[]) {
    if (ids.has(id)) throw new Error(`it returned message '${id}' twice.`)
    ids.add(id)
  }
  list.replace(returned as Message[], source)
  if (ids.size === 0 && source !== 'response' && list.rows().length === 0) {
    throw new Error('it removed every message: a prompt needs one. Reject the input with abort().')
  }
}

export function readSystemMessages(returned: unknown): SystemMessage[] {
  if (!Array.isArray(returned)) throw new Error(`it returned ${describeResult(returned)} as systemMessages. Return a list of them.`)
  // Validates: throws for an invalid system message.
  systemMessages(returned as SystemMessage[])
  return returned as SystemMessage[]
}

/** Rejects a message that a store would reject in the middle of a step. */
function checkMessage(message: unknown): void {
  if (!isMessage(message)) throw new Error(`it returned ${describeResult(message)} among the messages.`)
  const where = `in message '${message.id}'`
  for (const part of message.content.parts as unknown[]) {
    if (!isObject(part) || typeof part.type !== 'string') throw new Error(`it returned ${describeResult(part)} among the parts ${where}.`)
    const { type, text, reasoning } = part
    if (type === 'text' && typeof text !== 'string') throw new Error(`it returned a text part without text ${where}.`)
    if (type === 'reasoning' && typeof reasoning !== 'string') throw new Error(`it returned a reasoning part without reasoning ${where}.`)
  }
  checkJSON(message.content, where)
}

/** Returns the value, or throws when it can't be stored. */
export function checkJSON<T>(value: T, where: string): T {
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch (error) {
    throw new Error(`it returned a value that is not JSON ${where}: ${describe(error)}`, { cause: error })
  }
  if (text === undefined) throw new Error(`it returned ${describeResult(value)} ${where}. Return JSON.`)
  return value
}

function isMessage(value: unknown): value is Message {
  const { id, content } = (value ?? {}) as Partial<Message>
  return typeof id === 'string' && typeof content === 'object' && content !== null && Array.isArray(content.parts)
}

/** The result of a hook in an error message: unlike `describeValue`, with the keys of an object. */
export function describeResult(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? `an object with ${Object.keys(value).join(', ') || 'nothing in it'}` : `a ${typeof value}`
}
