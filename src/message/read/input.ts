import { describeValue } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import { isObject } from '../../base/json.ts'
import { ownAttachments } from '../attachments.ts'
import type { Attachment, Message, MessagePart, MessageRole } from '../message.ts'
import type { MessageRow, RowRole } from '../row.ts'
import { splitMessage } from '../join.ts'
import { fromUIMessage } from '../ui/from-ui.ts'
import type { UIMessage } from '../ui/ui-message.ts'
import { invalidMessage, placeOf, parseDate, providerMetadataOf, readTime, type Raw } from './raw.ts'
import type { OnUnreadable } from './stored-content.ts'
import { isCurrent, keepUnknown, readContent, readParts } from './stored-content.ts'

/** A message of the AI SDK's model functions: content as a text or as parts. */
export interface ModelMessageInput {
  role: 'user' | 'assistant' | 'system' | 'tool'
  content: string | ReadonlyArray<object>
  id?: string
  /** Where `saveMessages` stores it. */
  threadId?: string
  resourceId?: string
  providerOptions?: object
  /** Files of a user's message, beside its content. */
  experimental_attachments?: Message['content']['experimental_attachments']
  /** Stored with the message; no model reads it. */
  metadata?: Record<string, unknown>
}

/** A message of a user interface, also of a newer or older version than `UIMessage` describes. */
export interface UIMessageInput {
  /** Generated when absent. */
  id?: string
  role: 'user' | 'assistant' | 'system'
  parts: ReadonlyArray<object>
  metadata?: unknown
  /** Where `saveMessages` stores it. */
  threadId?: string
  resourceId?: string
}

/** A message in any of the forms that calls accept. */
export type AgentMessage = string | Message | MessageRow | UIMessage | UIMessageInput | ModelMessageInput

/** The input of a run: a text, a message in any form, or a list of these. */
export type AgentInput = AgentMessage | readonly AgentMessage[]

export interface InputContext {
  newId(): string
  now(): Date
  /** For messages from a store: rows are not validated, and parts of unknown types are kept instead of rejected. */
  lenient?: boolean
}

/** Input as rows. Rejects with `invalid_message` a message that no model accepts; the error has its index and the reason. */
export function toRows(input: AgentInput, context: InputContext): MessageRow[] {
  const rows: MessageRow[] = []
  for (const item of readInput(input, context)) {
    if ('messageId' in item) rows.push(item)
    else rows.push(...splitMessage(item))
  }
  return rows
}

/** Input as messages and rows: model messages become rows, every other form stays whole. */
export function readInput(input: AgentInput, context: InputContext): Array<Message | MessageRow> {
  const items: readonly unknown[] = Array.isArray(input) ? input : [input]
  if (items.length === 0) {
    throw new HeedError('invalid_message', 'The list of messages is empty. Pass a text, a message, or a list with at least one.')
  }
  const read: Array<Message | MessageRow> = []
  let open: OpenMessage | undefined
  for (const [index, item] of items.entries()) {
    const message = readItem(item, index, context, open)
    if (!message) continue
    read.push(message)
    open = openAfter(message)
  }
  return read
}

/** The assistant's message that the next model message may continue. */
interface OpenMessage {
  messageId: string
  lastRole: RowRole
}

function openAfter(message: Message | MessageRow): OpenMessage | undefined {
  const { role } = message
  if (role !== 'assistant' && role !== 'tool') return undefined
  return { messageId: 'messageId' in message ? message.messageId : message.id, lastRole: role }
}

/** Undefined for a signal of a user interface: see `fromUIMessages`. */
function readItem(item: unknown, index: number, context: InputContext, open: OpenMessage | undefined): Message | MessageRow | undefined {
  if (typeof item === 'string') return userText(item, context)
  if (!isObject(item)) throw invalidMessage(index, `a message is a text or an object, not ${describeValue(item)}`)
  if (isObject(item.content)) {
    if (!context.lenient) checkStoredNames(item, item.content, index)
    return readStored(item, item.content, index, context.lenient ?? false)
  }
  if (item.role === undefined && 'messages' in item) {
    throw invalidMessage(index, 'an object with `messages` is no message. Pass the messages first, then the options: (messages, options)')
  }
  // Earlier versions of a user interface have the calls beside the content.
  const isOfInterface = Array.isArray(item.parts) || Array.isArray(item.toolInvocations)
  if (!context.lenient) checkFieldNames(item, index, isOfInterface ? uiNames : modelNames)
  return isOfInterface
    ? fromUIMessage(item, index, { now: () => context.now(), newId: () => context.newId() })
    : modelRow(item, index, context, open)
}

const ownNames = ['id', 'role', 'content', 'createdAt', 'threadId', 'resourceId', 'type']
const beside = ['metadata', 'experimental_attachments', 'providerOptions', 'providerMetadata', 'experimental_providerMetadata']
const earlier = ['toolInvocations', 'reasoning', 'annotations']
const modelNames: ReadonlySet<string> = new Set([...ownNames, ...beside])
/** `annotations`, `data`, `revisionId` and `status` are what user interfaces keep for themselves. */
const uiNames: ReadonlySet<string> = new Set([...ownNames, ...beside, ...earlier, 'parts', 'data', 'revisionId', 'status'])
const storedNames: ReadonlySet<string> = new Set([...ownNames, 'messageId', 'runId', 'step', 'seq'])
const contentNames: ReadonlySet<string> = new Set([...beside, ...earlier, 'format', 'parts', 'content'])

function checkStoredNames(item: Raw, content: Raw, index: number): void {
  checkFieldNames(item, index, storedNames)
  checkFieldNames(content, index, contentNames, 'content.')
}

/** Rejects a field that no reader would find again, and one that could not be read. */
function checkFieldNames(item: Raw, index: number, known: ReadonlySet<string>, path = ''): void {
  for (const name of ['threadId', 'resourceId', 'type']) {
    const value = item[name]
    if (path === '' && value !== undefined && value !== null && typeof value !== 'string') {
      throw invalidMessage(index, `${name} is a text, not ${describeValue(value)}`, { field: name })
    }
  }
  for (const name in item) {
    if (known.has(name) || item[name] === undefined) continue
    const place = known === storedNames || known === contentNames ? 'content.metadata' : 'metadata'
    throw invalidMessage(index, `there is no field '${path}${name}'; what is yours belongs in ${place}`, { field: `${path}${name}` })
  }
}

function userText(text: string, { newId, now }: InputContext): Message {
  return { id: newId(), role: 'user', createdAt: now(), content: { format: 2, parts: [{ type: 'text', text }] } }
}

// A message in the current format is not copied: a list returns the same object that was added.
function readStored(item: Raw, content: Raw, index: number, lenient: boolean): Message | MessageRow {
  const isRow = typeof item.messageId === 'string'
  const roles: readonly string[] = isRow ? rowRoles : messageRoles
  if (typeof item.role !== 'string' || !roles.includes(item.role)) {
    throw invalidMessage(index, `unknown role ${describeValue(item.role)}; use ${roles.join(', ')}`, { role: item.role })
  }
  if (typeof item.id !== 'string' || item.id === '') throw invalidMessage(index, 'a stored message needs an `id`')
  if (readTime(item.createdAt, index) === undefined) throw invalidMessage(index, 'a stored message needs `createdAt`')
  if (!Array.isArray(content.parts)) throw invalidMessage(index, 'the content of a stored message needs `parts`')
  const isUnchanged = item.createdAt instanceof Date && ((isRow && lenient) || isCurrent(content))
  const stored: unknown = isUnchanged
    ? item
    : { ...item, createdAt: parseDate(item.createdAt), content: readContent(content, lenient ? keepUnknown : rejectIn(index)) }
  return stored as Message | MessageRow
}

const messageRoles: readonly MessageRole[] = ['user', 'assistant', 'system', 'signal']
const rowRoles: readonly RowRole[] = [...messageRoles, 'tool', 'context']

function modelRow(item: Raw, index: number, { newId, now }: InputContext, open: OpenMessage | undefined): MessageRow {
  const { role, content } = item
  if (role !== 'user' && role !== 'assistant' && role !== 'system' && role !== 'tool') {
    throw invalidMessage(index, `unknown role ${describeValue(role)}; use user, assistant, system or tool`, { role })
  }
  const id = typeof item.id === 'string' && item.id !== '' ? item.id : newId()
  const parts = modelParts(role, content, index)
  return {
    id,
    messageId: continues(role, item, open) ? open.messageId : id,
    role,
    createdAt: readTime(item.createdAt, index) ?? now(),
    ...placeOf(item),
    content: { format: 2, parts, ...attachmentsOf(item, parts, index), ...metadataOf(item, index), ...providerMetadataOf(item) },
  }
}

/** The metadata of the caller. The record of a signal is not the caller's to write. */
function metadataOf({ metadata: given }: Raw, index: number): Pick<Message['content'], 'metadata'> {
  if (given === undefined || given === null) return {}
  if (!isObject(given)) throw invalidMessage(index, `metadata is an object, not ${describeValue(given)}`)
  const { signal: _, ...metadata } = given
  return Object.keys(metadata).length > 0 ? { metadata } : {}
}

/** The attachments beside the content, without those that repeat a file part. */
function attachmentsOf(item: Raw, parts: MessagePart[], index: number): Pick<Message['content'], 'experimental_attachments'> {
  const { role, experimental_attachments: attachments } = item
  if (attachments === undefined) return {}
  if (role !== 'user' || !Array.isArray(attachments) || !attachments.every((one) => isObject(one) && typeof one.url === 'string')) {
    throw invalidMessage(index, 'experimental_attachments are a list of objects with a url, on a user message')
  }
  const own = ownAttachments({ format: 2, parts, experimental_attachments: attachments as Attachment[] })
  return own.length > 0 ? { experimental_attachments: own } : {}
}

/** Results belong to the message before them, and so does an assistant message without an id that follows results. */
function continues(role: RowRole, { id }: Raw, open: OpenMessage | undefined): open is OpenMessage {
  if (!open) return false
  return role === 'tool' || (role === 'assistant' && open.lastRole === 'tool' && id === undefined)
}

function modelParts(role: string, content: unknown, index: number): MessagePart[] {
  if (typeof content === 'string') {
    if (role === 'tool') throw invalidMessage(index, 'the content of a tool message is a list of tool-result parts')
    return [{ type: 'text', text: content }]
  }
  if (!Array.isArray(content)) throw invalidMessage(index, `content is a text or a list of parts, not ${describeValue(content)}`)
  if (content.length === 0) throw invalidMessage(index, 'content is empty')
  const read = readParts(content, rejectIn(index))
  const parts = role === 'assistant' ? joinProviderResults(read) : read
  const allowed = partTypes[role]
  const unexpected = allowed && parts.find(part => !allowed.includes(part.type) && !part.type.startsWith('data-'))
  if (unexpected) throw invalidMessage(index, `a ${role} message can't have a part of type ${unexpected.type}`)
  return parts
}

const partTypes: Readonly<Record<string, readonly string[]>> = {
  user: ['text', 'file'],
  system: ['text'],
  tool: ['tool-invocation'],
}

/** Joins the calls and results of provider-executed tools: a model message has them as separate parts. */
function joinProviderResults(parts: MessagePart[]): MessagePart[] {
  const calls = new Map<string, number>()
  const joined: MessagePart[] = []
  for (const part of parts) {
    const callId = part.type === 'tool-invocation' ? part.toolInvocation.toolCallId : undefined
    const at = callId === undefined ? undefined : calls.get(callId)
    const call = at === undefined ? undefined : joined[at]
    if (at !== undefined && call?.type === 'tool-invocation' && part.type === 'tool-invocation') {
      const toolInvocation = { ...call.toolInvocation, ...part.toolInvocation, args: call.toolInvocation.args }
      const metadata = part.providerMetadata && { resultProviderMetadata: part.providerMetadata }
      joined[at] = { ...call, toolInvocation, providerExecuted: true, ...metadata }
      continue
    }
    joined.push(part)
    if (callId !== undefined) calls.set(callId, joined.length - 1)
  }
  return joined
}

function rejectIn(index: number): OnUnreadable {
  return (_, part, reason) => {
    throw invalidMessage(index, `parts[${part}]: ${reason}`, { part })
  }
}
