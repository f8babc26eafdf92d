import { HeedError } from '../../base/errors.ts'
import { ownAttachments } from '../attachments.ts'
import { fromUIMessage } from '../ui/from-ui.ts'
import { describe, invalidMessage, saidTime } from './invalid.ts'
import type { Attachment, Message, MessagePart, MessageRole } from '../message.ts'
import type { Raw } from './raw.ts'
import { dateOf, isRaw, optionsOf } from './raw.ts'
import type { MessageRow, RowRole } from '../row.ts'
import { splitMessage } from '../split.ts'
import type { OnUnreadable } from './stored-content.ts'
import { isCurrent, keepUnknown, readContent, readParts } from './stored-content.ts'
import type { UIMessage } from '../ui/ui-message.ts'

/** A message as the AI SDK's model functions take it: content in words or in parts. */
export interface ModelMessageInput {
  role: 'user' | 'assistant' | 'system' | 'tool'
  content: string | ReadonlyArray<object>
  id?: string
  providerOptions?: object
  /** Of a user's message: files beside what it says. */
  experimental_attachments?: Message['content']['experimental_attachments']
}

/** A message of a user interface, also of a newer or older version than `UIMessage` describes. */
export interface UIMessageInput {
  id: string
  role: 'user' | 'assistant' | 'system'
  parts: ReadonlyArray<object>
  metadata?: unknown
}

export type AgentMessage = string | Message | MessageRow | UIMessage | UIMessageInput | ModelMessageInput

/** What an agent can be asked: a text, a message in any of the forms that programs have them, or a list of those. */
export type AgentInput = AgentMessage | readonly AgentMessage[]

export interface InputContext {
  newId(): string
  now(): Date
  /** Stored forms come from a store: rows are taken unseen, and parts of unknown types are kept where they would be refused. */
  lenient?: boolean
}

/** Input as rows. Refuses with `invalid_message` what no model could be asked, and says which message it is and why. */
export function toRows(input: AgentInput, context: InputContext): MessageRow[] {
  const rows: MessageRow[] = []
  for (const item of readInput(input, context)) {
    if ('messageId' in item) rows.push(item)
    else rows.push(...splitMessage(item))
  }
  return rows
}

/** Input as what it is: whole messages, and rows where it has no more than rows. */
export function readInput(input: AgentInput, context: InputContext): Array<Message | MessageRow> {
  const items: readonly unknown[] = Array.isArray(input) ? input : [input]
  if (items.length === 0) {
    throw new HeedError('invalid_message', 'There is no message. Pass a text, a message, or a list with at least one.')
  }
  const read: Array<Message | MessageRow> = []
  let turn: Turn | undefined
  for (const [index, item] of items.entries()) {
    const message = readItem(item, index, context, turn)
    if (!message) continue
    read.push(message)
    turn = turnAfter(message)
  }
  return read
}

/** The assistant's turn that the next model message may go on with. */
interface Turn {
  messageId: string
  lastRole: RowRole
}

function turnAfter(message: Message | MessageRow): Turn | undefined {
  const { role } = message
  if (role !== 'assistant' && role !== 'tool') return undefined
  return { messageId: 'messageId' in message ? message.messageId : message.id, lastRole: role }
}

/** Nothing for the view of a signal: see `fromUIMessages`. */
function readItem(item: unknown, index: number, context: InputContext, turn: Turn | undefined): Message | MessageRow | undefined {
  if (typeof item === 'string') return userText(item, context)
  if (!isRaw(item)) throw invalidMessage(index, `a message is a text or an object, not ${describe(item)}`)
  if (isRaw(item.content)) return readStored(item, item.content, index, context.lenient ?? false)
  if (Array.isArray(item.parts)) return fromUIMessage(item, index, { now: () => context.now() })
  return modelRow(item, index, context, turn)
}

function userText(text: string, { newId, now }: InputContext): Message {
  return { id: newId(), role: 'user', createdAt: now(), content: { format: 2, parts: [{ type: 'text', text }] } }
}

// What is in today's format is taken as it is, so that what is read back is the very object that was given.
function readStored(item: Raw, content: Raw, index: number, lenient: boolean): Message | MessageRow {
  const isRow = typeof item.messageId === 'string'
  const roles: readonly string[] = isRow ? rowRoles : messageRoles
  if (typeof item.role !== 'string' || !roles.includes(item.role)) {
    throw invalidMessage(index, `unknown role ${describe(item.role)}; use ${roles.join(', ')}`, { role: item.role })
  }
  if (typeof item.id !== 'string' || item.id === '') throw invalidMessage(index, 'a stored message needs an `id`')
  if (saidTime(item.createdAt, index) === undefined) throw invalidMessage(index, 'a stored message needs `createdAt`')
  if (!Array.isArray(content.parts)) throw invalidMessage(index, 'the content of a stored message needs `parts`')
  const isAsStored = item.createdAt instanceof Date && ((isRow && lenient) || isCurrent(content))
  const stored: unknown = isAsStored
    ? item
    : { ...item, createdAt: dateOf(item.createdAt), content: readContent(content, lenient ? keepUnknown : refuseIn(index)) }
  return stored as Message | MessageRow
}

const messageRoles: readonly MessageRole[] = ['user', 'assistant', 'system', 'signal']
const rowRoles: readonly RowRole[] = [...messageRoles, 'tool', 'context']

function modelRow(item: Raw, index: number, { newId, now }: InputContext, turn: Turn | undefined): MessageRow {
  const { role, content } = item
  if (role !== 'user' && role !== 'assistant' && role !== 'system' && role !== 'tool') {
    throw invalidMessage(index, `unknown role ${describe(role)}; use user, assistant, system or tool`, { role })
  }
  const id = typeof item.id === 'string' && item.id !== '' ? item.id : newId()
  const parts = modelParts(role, content, index)
  return {
    id,
    messageId: continues(role, item, turn) ? turn.messageId : id,
    role,
    createdAt: saidTime(item.createdAt, index) ?? now(),
    content: { format: 2, parts, ...attachmentsOf(item, parts, index), ...optionsOf(item) },
  }
}

/** Files as older programs attach them, beside the content. One that is a part of it too is kept as that part alone. */
function attachmentsOf({ role, experimental_attachments: given }: Raw, parts: MessagePart[], index: number): Pick<Message['content'], 'experimental_attachments'> {
  if (given === undefined) return {}
  if (role !== 'user' || !Array.isArray(given) || !given.every((one) => isRaw(one) && typeof one.url === 'string')) {
    throw invalidMessage(index, 'experimental_attachments are a list of objects with a url, on a user message')
  }
  const own = ownAttachments({ format: 2, parts, experimental_attachments: given as Attachment[] })
  return own.length > 0 ? { experimental_attachments: own } : {}
}

/** Results belong to the turn before them, and so does what the assistant says right after them. */
function continues(role: RowRole, { id }: Raw, turn: Turn | undefined): turn is Turn {
  if (!turn) return false
  return role === 'tool' || (role === 'assistant' && turn.lastRole === 'tool' && id === undefined)
}

function modelParts(role: string, content: unknown, index: number): MessagePart[] {
  if (typeof content === 'string') {
    if (role === 'tool') throw invalidMessage(index, 'the content of a tool message is a list of tool-result parts')
    return [{ type: 'text', text: content }]
  }
  if (!Array.isArray(content)) throw invalidMessage(index, `content is a text or a list of parts, not ${describe(content)}`)
  if (content.length === 0) throw invalidMessage(index, 'content is empty')
  const read = readParts(content, refuseIn(index))
  const parts = role === 'assistant' ? joinProviderResults(read) : read
  const allowed = partTypes[role]
  const stranger = allowed && parts.find(part => !allowed.includes(part.type) && !part.type.startsWith('data-'))
  if (stranger) throw invalidMessage(index, `a ${role} message can't have a part of type ${stranger.type}`)
  return parts
}

const partTypes: Readonly<Record<string, readonly string[]>> = {
  user: ['text', 'file'],
  system: ['text'],
  tool: ['tool-invocation'],
}

/** In a model message, what a provider ran itself has its result as a part of its own. */
function joinProviderResults(parts: MessagePart[]): MessagePart[] {
  const calls = new Map<string, number>()
  const joined: MessagePart[] = []
  for (const part of parts) {
    const callId = part.type === 'tool-invocation' ? part.toolInvocation.toolCallId : undefined
    const at = callId === undefined ? undefined : calls.get(callId)
    const call = at === undefined ? undefined : joined[at]
    if (at !== undefined && call?.type === 'tool-invocation' && part.type === 'tool-invocation') {
      const toolInvocation = { ...call.toolInvocation, ...part.toolInvocation, args: call.toolInvocation.args }
      const told = part.providerMetadata && { resultProviderMetadata: part.providerMetadata }
      joined[at] = { ...call, toolInvocation, providerExecuted: true, ...told }
      continue
    }
    joined.push(part)
    if (callId !== undefined) calls.set(callId, joined.length - 1)
  }
  return joined
}

function refuseIn(index: number): OnUnreadable {
  return (_, at, why) => {
    throw invalidMessage(index, `parts[${at}]: ${why}`, { part: at })
  }
}
