import { HeedError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { toRows, type AgentMessage } from '../message/read/input.ts'
import { joinRows } from '../message/join.ts'
import type { Message, MessageRole } from '../message/message.ts'
import { checkStorable } from '../message/read/invalid-message.ts'
import type { Scope, ThreadStore } from '../store/contract/threads.ts'
import { checkNames, checkName, refused, scopeOf } from './arguments.ts'
import { patchOf, type GivenPatch } from './message-patch.ts'

export interface SaveMessagesArgs {
  messages: readonly AgentMessage[]
  /** For messages that don't say which thread they are of. */
  threadId?: string
  resourceId?: string
}

export interface UpdateMessagesArgs {
  messages: readonly GivenPatch[]
  threadId?: string
  resourceId?: string
}

type Named = string | { id: string }

/** By id, by a list of ids, or all of a thread. */
export type DeleteMessagesArgs = Named | readonly Named[] | { threadId: string; messageIds?: readonly Named[]; resourceId?: string }

/** For whom messages are written, where that is not the program itself. */
export interface Writer {
  resourceId: string
  /** A role whose messages are not theirs to write. */
  except?: MessageRole
}

export async function saveMessages(store: ThreadStore, args: SaveMessagesArgs, now: number, writer?: Writer): Promise<Message[]> {
  checkNames('saveMessages()', args, ['messages', 'threadId', 'resourceId'])
  const resourceId = writer?.resourceId ?? args.resourceId
  if (!Array.isArray(args.messages)) throw refused('messages', 'a list of messages')
  if (args.messages.length === 0) return []
  const messages = joinRows(toRows(args.messages as AgentMessage[], { newId, now: () => new Date(now) }))
  for (const [index, message] of messages.entries()) checkStorable(message.content, index)
  if (messages.some(({ role }) => role === writer?.except)) throw new HeedError('forbidden', `You may not save messages of the role '${writer?.except}'. Nothing was saved.`, { details: { field: 'messages.role' } })
  const groups = grouped(messages, (message) => scopeOf(message.threadId ?? args.threadId, resourceId ?? message.resourceId))
  return store.saveMessages(groups.map(({ scope, items }) => ({ scope, messages: items })))
}

export async function updateMessages(store: ThreadStore, args: UpdateMessagesArgs, writer?: Writer): Promise<Message[]> {
  checkNames('updateMessages()', args, ['messages', 'threadId', 'resourceId'])
  const resourceId = writer?.resourceId ?? args.resourceId
  if (!Array.isArray(args.messages)) throw refused('messages', 'a list of changes, each with the id of a message')
  const patches = args.messages.map(patchOf)
  const homes = await homesOf(store, patches.flatMap(({ patch, threadId }) => (threadId ?? args.threadId ? [] : patch.id)), resourceId)
  const groups = grouped(patches, ({ patch, threadId = args.threadId ?? homes.get(patch.id)?.threadId, resourceId: own }) => {
    if (threadId === undefined) throw new HeedError('message_not_found', `There is no message ${patch.id}. Nothing was changed.`, { details: { messageId: patch.id } })
    return scopeOf(threadId, resourceId ?? own)
  })
  return store.updateMessages(groups.map(({ scope, items }) => ({ scope, patches: items.map(({ patch }) => patch), ...(writer?.except && { except: writer.except }) })))
}

/** Answers how many messages went. Ids that nobody has are passed over. */
export async function deleteMessages(store: ThreadStore, args: DeleteMessagesArgs, owner?: string): Promise<number> {
  if (typeof args === 'object' && args !== null && 'threadId' in args) {
    checkNames('deleteMessages()', args, ['threadId', 'messageIds', 'resourceId'])
    const { threadId, messageIds, resourceId } = args
    if (messageIds !== undefined && !Array.isArray(messageIds)) throw refused('messageIds', 'a list of ids')
    return store.deleteMessages(scopeOf(threadId, owner ?? resourceId), messageIds?.map(idOf))
  }
  const ids = [args].flat().map(idOf)
  const homes = await homesOf(store, ids, owner)
  let deleted = 0
  for (const [threadId, several] of Map.groupBy(ids.filter((id) => homes.has(id)), (id) => homes.get(id)?.threadId ?? '')) {
    deleted += await store.deleteMessages(scopeOf(threadId, owner), several)
  }
  return deleted
}

function idOf(named: unknown): string {
  const id = typeof named === 'object' && named !== null && 'id' in named ? named.id : named
  checkName('messageId', id)
  return id
}

/** In which thread each message is. An id alone must mean one. */
async function homesOf(store: ThreadStore, ids: readonly string[], owner: string | undefined): Promise<Map<string, { threadId: string }>> {
  const homes = new Map<string, { threadId: string }>()
  if (ids.length === 0) return homes
  for (const { messageId, threadId } of await store.findMessages(ids, owner)) {
    if (homes.has(messageId)) {
      throw new HeedError('invalid_argument', `Message ${messageId} is in several threads. Say which: { threadId, … }.`, { details: { field: 'threadId', messageId } })
    }
    homes.set(messageId, { threadId })
  }
  return homes
}

function grouped<Item>(items: readonly Item[], scopeOfItem: (item: Item) => Scope): Array<{ scope: Scope; items: Item[] }> {
  const groups = new Map<string, { scope: Scope; items: Item[] }>()
  for (const item of items) {
    const scope = scopeOfItem(item)
    const key = JSON.stringify([scope.threadId, scope.resourceId])
    const group = groups.get(key) ?? { scope, items: [] }
    group.items.push(item)
    groups.set(key, group)
  }
  return [...groups.values()]
}
