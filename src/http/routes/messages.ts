import type { Message } from '../../message/message.ts'
import type { IncludedMessage, RecallArgs } from '../../memory/recall.ts'
import { toUIMessages } from '../../message/ui/to-ui.ts'
import { HeedError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import { deletedMessages, messageList, messagePage } from '../schema/answer-schemas.ts'
import type { Memory } from '../../memory/memory.ts'
import type { ResourceMemory } from '../../memory/scoped.ts'
import { ownMemory, type MemoryQuery } from './memory-of.ts'
import { route, type Route } from '../route.ts'
import { closed, date, flag, id, object, page, perPage, record, text } from '../schema/schemas.ts'
import { isForbidden } from './unseen-thread.ts'
import { dateOf } from './approvals.ts'
import { given, of, threadOf } from './threads.ts'

interface MessagesQuery extends MemoryQuery {
  page?: number
  perPage?: number
  orderBy?: RecallArgs['orderBy']
  include?: IncludedMessage[]
  filter?: { dateRange?: { start?: string; end?: string; startExclusive?: boolean; endExclusive?: boolean } }
  cursor?: string
}

const neighbours = { type: 'integer', minimum: 0, maximum: 1_000 }
const include = {
  type: 'array', maxItems: 100, items: closed({ id, threadId: id, withPreviousMessages: neighbours, withNextMessages: neighbours }, ['id']),
  description: 'As JSON: these and their neighbours, beside the page; without page, perPage, cursor and filter these alone.',
}
const filter = object({ dateRange: object({ start: date, end: date, startExclusive: flag, endExclusive: flag }) })
const memoryPath = '/memory/threads/:threadId'

/** Messages as existing clients read and change them. */
export const messages: readonly Route[] = [
  route<never, MessagesQuery>({
    method: 'GET', path: `${memoryPath}/messages`, summary: 'The messages of a thread, the newest page unless told otherwise', answer: 'json', answers: messagePage, read: true,
    query: object({ ...of, page, perPage, orderBy: object({ field: { enum: ['createdAt'] }, direction: { enum: ['ASC', 'DESC'] } }), include, filter, cursor: text, includeSystemReminders: flag }),
    async handle(call) {
      const { page, perPage, orderBy, include, filter, cursor } = call.query
      const threadId = threadOf(call)
      const memory = await ownMemory(call)
      if (!(await memory.getThreadById({ threadId }))) throw new HeedError('thread_not_found', 'There is no such thread.', { details: { threadId } })
      const isPage = include === undefined || [page, perPage, cursor, filter].some((value) => value !== undefined)
      const recalled = await memory.recall({
        threadId,
        ...(isPage ? { perPage: perPage ?? 40, ...(cursor === undefined ? { page: page ?? 0 } : {}) } : {}),
        ...given({ orderBy, cursor, include: include && (await reachable(memory, include)), filter: filterOf(filter) }),
        ...(cursor === undefined ? { total: true } : {}),
      })
      return { ...recalled, uiMessages: toUIMessages(recalled.messages) }
    },
  }),
  route<{ messages: Message[] }, MemoryQuery>({
    method: 'POST', path: '/memory/save-messages', summary: 'Stores messages as they are', answer: 'json', answers: messageList, query: object(of), body: object({ messages: { type: 'array', items: record, maxItems: 10_000 } }, ['messages']),
    async handle(call) {
      const memory = await ownMemory(call, call.query.resourceId ?? call.body.messages[0]?.resourceId)
      return memory.saveMessages({ messages: call.body.messages.map(inParts) })
    },
  }),
  route<{ messageIds: string | string[] | { id: string } | Array<{ id: string }>; threadId?: string }, MemoryQuery>({
    method: 'POST', path: '/memory/messages/delete', summary: 'Deletes messages by their ids', answer: 'json', answers: deletedMessages, query: object(of), body: object({ messageIds: {}, threadId: id }, ['messageIds']),
    async handle(call) {
      const messageIds = [call.body.messageIds].flat().map((item) => (typeof item === 'object' && item !== null ? item.id : item))
      if (!messageIds.every((item) => typeof item === 'string' && item !== '')) throw new HeedError('invalid_argument', 'messageIds must be ids, or objects that have one.', { details: { field: 'messageIds' } })
      const { threadId } = call.body
      const deleted = await (await ownMemory(call)).deleteMessages(threadId === undefined ? messageIds : { messageIds, threadId })
      return { success: true, message: `${deleted} deleted`, deleted }
    },
  }),
  route<{ messages: Array<Partial<Message> & { id: string }> }, MemoryQuery>({
    method: 'POST', path: '/memory/messages/update', summary: 'Changes messages field by field; all or none', answer: 'json', answers: messageList, query: object(of),
    body: closed({ messages: { type: 'array', items: object({ id }, ['id']), maxItems: 10_000 } }, ['messages']),
    handle: async (call) => ({ messages: await (await ownMemory(call)).updateMessages({ messages: call.body.messages }) }),
  }),
]

/** Older clients write a message's content as a text. */
function inParts(message: Message): Message {
  const content: unknown = message.content
  return typeof content === 'string' ? { ...message, content: { format: 2, parts: [{ type: 'text', text: content }] } } : message
}

/** A thread of somebody else brings what one brings that isn't there: nothing. */
async function reachable(memory: Memory | ResourceMemory, include: readonly IncludedMessage[]): Promise<IncludedMessage[]> {
  return Promise.all(include.map(async (item) => {
    const { threadId } = item
    return threadId === undefined || (await memory.getThreadById({ threadId }).catch(absent)) ? item : { ...item, threadId: newId() }
  }))
}

function absent(error: unknown): null {
  if (isForbidden(error)) return null
  throw error
}

function filterOf(filter: MessagesQuery['filter']): RecallArgs['filter'] | undefined {
  const range = filter?.dateRange
  if (!range) return undefined
  const { start, end, ...exclusive } = range
  return { dateRange: { ...exclusive, ...(start === undefined ? {} : { start: dateOf('start', start) }), ...(end === undefined ? {} : { end: dateOf('end', end) }) } }
}
