import { checkName, checkNames, checkObject, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { isObject } from '../base/json.ts'
import { joinRows } from '../message/join.ts'
import type { Message, MessageContent, MessagePart, MessageRole } from '../message/message.ts'
import { toRows, type AgentMessage } from '../message/read/input.ts'
import { checkStorable, invalidMessage } from '../message/read/raw.ts'
import { isCurrent, readParts } from '../message/read/stored-content.ts'
import type { MessagePatch } from '../store/contract/messages.ts'
import type { Scope, ThreadStore } from '../store/contract/threads.ts'
import { callerQuota } from '../store/contract/usage.ts'
import { parseScope, parseTime } from './arguments.ts'

/** Messages that `saveMessages()` stores. */
export interface SaveMessagesArgs {
  messages: readonly AgentMessage[]
  /** For messages without a `threadId` of their own. */
  threadId?: string
  resourceId?: string
}

export type GivenPatch = Omit<MessagePatch, 'keepCharacters'> & { threadId?: string; resourceId?: string }

/** Changes that `updateMessages()` makes. */
export interface UpdateMessagesArgs {
  messages: readonly GivenPatch[]
  threadId?: string
  resourceId?: string
}

type MessageId = string | { id: string; threadId?: string }

/** By id, by a list of ids, or all messages of a thread. */
export type DeleteMessagesArgs =
  MessageId | readonly MessageId[] | { threadId: string; messageIds?: readonly MessageId[]; resourceId?: string }

/** The user on whose behalf messages are written, when it is not the program itself. */
export interface Writer {
  resourceId: string
  /** A role whose messages the user may not write. */
  except?: MessageRole
}

const patchFields = ['id', 'threadId', 'resourceId', 'role', 'createdAt', 'type', 'content']
const contentFields = ['format', 'parts', 'content', 'experimental_attachments', 'metadata', 'providerMetadata']

export async function saveMessages(store: ThreadStore, args: SaveMessagesArgs, now: number, writer?: Writer): Promise<Message[]> {
  checkNames('saveMessages()', args, ['messages', 'threadId', 'resourceId'])
  const resourceId = writer?.resourceId ?? args.resourceId
  if (!Array.isArray(args.messages)) throw refused('messages', 'a list of messages')
  if (args.messages.length === 0) return []
  const messages = joinRows(toRows(args.messages as AgentMessage[], { newId, now: () => new Date(now) }))
  for (const [index, message] of messages.entries()) checkStorable(message.content, index)
  if (messages.some(({ role }) => role === writer?.except)) {
    const why = `You may not save messages of the role '${writer?.except}'. Nothing was saved.`
    throw new HeedError('forbidden', why, { details: { field: 'messages.role' } })
  }
  const groups = groupByScope(messages, (message) =>
    parseScope(message.threadId ?? args.threadId, ownerOf(message, resourceId)))
  return store.saveMessages(groups.map(({ scope, items }) => ({ scope, messages: items, ...callerQuota() })))
}

export async function updateMessages(store: ThreadStore, args: UpdateMessagesArgs, writer?: Writer): Promise<Message[]> {
  checkNames('updateMessages()', args, ['messages', 'threadId', 'resourceId'])
  const resourceId = writer?.resourceId ?? args.resourceId
  if (!Array.isArray(args.messages)) throw refused('messages', 'a list of changes, each with the id of a message')
  const patches = args.messages.map(parsePatch)
  const threads = await findThreads(
    store,
    patches.flatMap(({ patch, threadId }) => ((threadId ?? args.threadId) ? [] : patch.id)),
    resourceId,
  )
  const groups = groupByScope(patches, ({ patch, threadId = args.threadId ?? threads.get(patch.id)?.threadId, resourceId: own }) => {
    if (threadId === undefined)
      throw new HeedError('message_not_found', `Message ${patch.id} does not exist. Nothing was changed.`, {
        details: { messageId: patch.id },
      })
    return parseScope(threadId, ownerOf({ resourceId: own }, resourceId))
  })
  return store.updateMessages(
    groups.map(({ scope, items }) => ({
      scope,
      patches: items.map(({ patch }) => patch),
      ...(writer?.except && { except: writer.except }),
      ...callerQuota(),
    })),
  )
}

/** Returns the number of deleted messages. Unknown ids are ignored. */
export async function deleteMessages(store: ThreadStore, args: DeleteMessagesArgs, owner?: string): Promise<number> {
  if (typeof args === 'object' && args !== null && 'threadId' in args && !('id' in args)) {
    checkNames('deleteMessages()', args, ['threadId', 'messageIds', 'resourceId'])
    const { threadId, messageIds, resourceId } = args
    if (messageIds !== undefined && !Array.isArray(messageIds)) throw refused('messageIds', 'a list of ids')
    const named = messageIds?.map(parseMessageId)
    if (named?.some((one) => one.threadId !== undefined && one.threadId !== threadId)) {
      throw refused('messageIds.threadId', 'left out, or that of the call')
    }
    return store.deleteMessages(parseScope(threadId, owner ?? resourceId), named?.map(({ id }) => id))
  }
  const named = [args].flat().map(parseMessageId)
  const threads = await findThreads(store, named.flatMap(({ id, threadId }) => (threadId === undefined ? id : [])), owner)
  let deleted = 0
  for (const [threadId, several] of Map.groupBy(named, (one) => one.threadId ?? threads.get(one.id)?.threadId)) {
    if (threadId !== undefined) deleted += await store.deleteMessages(parseScope(threadId, owner), several.map(({ id }) => id))
  }
  return deleted
}

/** The id of a message, or a whole message, which may name its thread. */
function parseMessageId(named: unknown): { id: string; threadId?: string } {
  if (!isObject(named)) {
    checkName('messageId', named)
    return { id: named }
  }
  checkName('messageId', named.id)
  if (named.threadId === undefined) return { id: named.id }
  checkName('messageId.threadId', named.threadId)
  return { id: named.id, threadId: named.threadId }
}

/** The thread of each message. An id without a thread must name one message. */
async function findThreads(
  store: ThreadStore,
  ids: readonly string[],
  owner: string | undefined,
): Promise<Map<string, { threadId: string }>> {
  const threads = new Map<string, { threadId: string }>()
  if (ids.length === 0) return threads
  for (const { messageId, threadId } of await store.findMessages(ids, owner)) {
    if (threads.has(messageId)) {
      throw new HeedError('invalid_argument', `Message ${messageId} exists in several threads. Name one: { threadId, … }.`, {
        details: { field: 'threadId', messageId },
      })
    }
    threads.set(messageId, { threadId })
  }
  return threads
}

/** The resource of a message: that of the call, which the message may repeat. */
function ownerOf({ resourceId: own }: { resourceId?: string | undefined }, resourceId: string | undefined): string | undefined {
  if (own === undefined || resourceId === undefined || own === resourceId) return resourceId ?? own
  throw refused('messages.resourceId', 'left out, or that of the call and of the other messages of its thread')
}

/** The items of each thread, in their order. One that names no resource has that of the others. */
function groupByScope<Item>(items: readonly Item[], getScope: (item: Item) => Scope): Array<{ scope: Scope; items: Item[] }> {
  const groups = new Map<string, { scope: Scope; items: Item[] }>()
  for (const item of items) {
    const scope = getScope(item)
    const group = groups.get(scope.threadId) ?? { scope, items: [] }
    group.scope = parseScope(scope.threadId, ownerOf(scope, group.scope.resourceId))
    group.items.push(item)
    groups.set(scope.threadId, group)
  }
  return [...groups.values()]
}

/** Validates the change of a message: a message must stay readable. */
function parsePatch(
  given: GivenPatch,
  index: number,
): { patch: MessagePatch; threadId: string | undefined; resourceId: string | undefined } {
  checkNames('updateMessages()', given, patchFields)
  const { id, threadId, resourceId, role, type } = given
  checkName('messages.id', id)
  for (const [name, value] of Object.entries({ threadId, resourceId, role, type }))
    if (value !== undefined) checkName(`messages.${name}`, value)
  const createdAt = parseTime('messages.createdAt', given.createdAt)
  const content = parsePatchContent(given.content, index)
  const patch = {
    id,
    ...(role !== undefined && { role }),
    ...(createdAt && { createdAt }),
    ...(type !== undefined && { type }),
    ...(content && { content }),
  }
  return { patch, threadId, resourceId }
}

function parsePatchContent(content: unknown, index: number): MessagePatch['content'] {
  if (content === undefined) return undefined
  checkNames('messages.content', content, contentFields)
  const { format, ...rest } = content as Partial<MessageContent>
  const { parts, content: text, experimental_attachments: attachments, metadata, providerMetadata } = rest
  if (format !== undefined && format !== 2) throw refused('messages.content.format', '2, or left out')
  if (text !== undefined && typeof text !== 'string') throw refused('messages.content.content', 'a string')
  if (metadata !== undefined) checkObject('messages.content.metadata', metadata)
  if (providerMetadata !== undefined) checkObject('messages.content.providerMetadata', providerMetadata)
  if (attachments !== undefined && !(Array.isArray(attachments) && attachments.every(isAttachment))) {
    throw refused('messages.content.experimental_attachments', 'a list of objects with a url')
  }
  checkStorable(rest, index)
  return { ...rest, ...(parts !== undefined && { parts: parseParts(parts, index) }) }
}

function parseParts(parts: unknown, index: number): MessagePart[] {
  if (!Array.isArray(parts)) throw refused('messages.content.parts', 'a list of parts')
  const content = { format: 2, parts }
  if (isCurrent(content)) return content.parts
  return readParts(parts, (_, at, why) => {
    throw invalidMessage(index, `parts[${at}]: ${why}`, { part: at })
  })
}

function isAttachment(one: unknown): boolean {
  return typeof one === 'object' && one !== null && 'url' in one && typeof one.url === 'string'
}
