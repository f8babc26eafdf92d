import { describe } from '../base/errors.ts'
import { MessageList } from '../message/list/list.ts'
import type { Message } from '../message/message.ts'
import type { SystemMessage } from '../prompt/system.ts'

/*
 * What a hook returned is a stranger's until it was looked at. These throw what is wrong with it, in words that follow "Processor 'x'
 * failed in processInput: ".
 */

/** The object that a hook returned in place of messages; nothing when it returned messages or nothing. */
export function changeIn<T extends object>(returned: unknown, keys: readonly string[]): T | undefined {
  if (returned === undefined || returned instanceof MessageList || Array.isArray(returned)) return undefined
  return objectIn(returned, keys, `messages, an object with ${keys.join(' or ')}, or nothing`)
}

/** The object that a hook returned; nothing when it returned nothing. It may have these keys, and has one of them. */
export function objectIn<T extends object>(returned: unknown, keys: readonly string[], wanted = `an object with ${keys.join(' or ')}, or nothing`): T | undefined {
  if (returned === undefined) return undefined
  const names = typeof returned === 'object' && returned !== null && !Array.isArray(returned) ? Object.keys(returned) : []
  if (!names.some((name) => keys.includes(name))) throw new Error(`it returned ${described(returned)}. Return ${wanted}.`)
  const stranger = names.find((name) => !keys.includes(name))
  if (stranger !== undefined) throw new Error(`it returned an object with '${stranger}', which it can't change. Return ${wanted}.`)
  return returned as T
}

/** Puts the messages that a hook returned into the list it was given. Nothing, or what it was given, leaves it as it is. */
export function takeMessages(list: MessageList, given: Message[], returned: unknown, source: 'input' | 'response' | 'all'): void {
  if (returned === undefined || returned === given || returned === list) return
  if (returned instanceof MessageList) {
    throw new Error('it returned a MessageList of its own. Change the one it was given, or return an array of messages.')
  }
  if (!Array.isArray(returned)) throw new Error(`it returned ${described(returned)}. Return messages or nothing.`)
  const known = new Set<unknown>(given)
  for (const message of returned as unknown[]) if (!known.has(message)) checkMessage(message)
  const ids = new Set<string>()
  for (const { id } of returned as Message[]) {
    if (ids.has(id)) throw new Error(`it returned message '${id}' twice.`)
    ids.add(id)
  }
  list.replace(returned as Message[], source)
  if (ids.size === 0 && source !== 'response' && list.rows().length === 0) throw new Error("it left no message: a model can't be asked nothing. Refuse with abort().")
}

export function systemIn(returned: unknown): SystemMessage[] {
  if (!Array.isArray(returned)) throw new Error(`it returned ${described(returned)} as systemMessages. Return a list of them.`)
  // For its checks: it names what is no system message.
  new MessageList().addSystem(returned as SystemMessage[])
  return returned as SystemMessage[]
}

/** Whatever can't be stored is found here, and not by the store in the middle of a step. */
function checkMessage(message: unknown): void {
  if (!isMessage(message)) throw new Error(`it returned ${described(message)} among the messages.`)
  const where = `in message '${message.id}'`
  for (const part of message.content.parts as unknown[]) {
    if (typeof part !== 'object' || part === null || typeof (part as { type?: unknown }).type !== 'string') throw new Error(`it returned ${described(part)} among the parts ${where}.`)
    const { type, text, reasoning } = part as { type: string; text?: unknown; reasoning?: unknown }
    if (type === 'text' && typeof text !== 'string') throw new Error(`it returned a text part without text ${where}.`)
    if (type === 'reasoning' && typeof reasoning !== 'string') throw new Error(`it returned a reasoning part without reasoning ${where}.`)
  }
  jsonIn(message.content, where)
}

/** The value, if it is one that can be stored. */
export function jsonIn<T>(value: T, where: string): T {
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch (error) {
    throw new Error(`it returned what is no JSON ${where}: ${describe(error)}`, { cause: error })
  }
  if (text === undefined) throw new Error(`it returned ${described(value)} ${where}. Return JSON.`)
  return value
}

function isMessage(value: unknown): value is Message {
  const { id, content } = (value ?? {}) as Partial<Message>
  return typeof id === 'string' && typeof content === 'object' && content !== null && Array.isArray(content.parts)
}

export function described(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? `an object with ${Object.keys(value).join(', ') || 'nothing in it'}` : `a ${typeof value}`
}
