import { refused } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import type { Memory } from '../../memory/memory.ts'
import type { IncludedMessage, RecallArgs } from '../../memory/recall.ts'
import type { ResourceMemory } from '../../memory/resource-memory.ts'
import type { Message } from '../../message/message.ts'
import { toUIMessages } from '../../message/ui/to-ui.ts'
import type { MemoryOptions } from '../../run/options.ts'
import { refKey } from '../../store/contract/recall.ts'
import { requireResource } from '../auth/principal.ts'
import {
  callerMemory, hasThread, isForbidden, memoryBody, memoryQuery, requireThread, threadIdOf, type MemoryQuery,
} from '../request/access.ts'
import { checkRoles, omitUndefined, parseDate } from '../request/fields.ts'
import { route, type Call, type Route } from '../route.ts'
import { deletedMessages, explainedRecall, messageList, messagePage, searchResults } from '../schema/response-schemas.ts'
import { date, flag, id, ignored, limit, object, open, page, perPage, record, text } from '../schema/schemas.ts'

interface MessagesQuery extends MemoryQuery {
  page?: number
  perPage?: number
  orderBy?: RecallArgs['orderBy']
  include?: IncludedMessage[]
  filter?: { dateRange?: { start?: string; end?: string; startExclusive?: boolean; endExclusive?: boolean } }
  cursor?: string
  around?: string
  before?: string
  after?: string
  at?: number
}

type MessageId = string | { id: string; threadId?: string }

interface SearchQuery extends MemoryQuery {
  searchQuery: string
  threadId?: string
  limit?: number
  memoryConfig?: MemoryOptions
}

interface ExplanationQuery extends SearchQuery {
  messageId?: string
  messageThreadId?: string
}

const query = object(memoryQuery)
const range = { type: 'integer', minimum: 0, maximum: 1_000 }
const include = {
  type: 'array', maxItems: 100, items: object({ id, threadId: id, withPreviousMessages: range, withNextMessages: range }, ['id']),
  description: 'As JSON: adds these messages and those around them to the page. Without page, perPage, cursor and filter, only these.',
}
const filter = object({ dateRange: object({ start: date, end: date, startExclusive: flag, endExclusive: flag }) })
const orderBy = object({ field: { enum: ['createdAt'] }, direction: { enum: ['ASC', 'DESC'] } })
/** The id of a message, or a message: existing clients send whole ones. */
const named = [id, open({ id, threadId: id }, ['id'])]
const messageIds = { anyOf: [...named, { type: 'array', items: { anyOf: named } }] }
const searchQuery = { ...text, minLength: 1, maxLength: 10_000 }

const searchFields = { ...memoryQuery, searchQuery, threadId: id, limit: { ...limit, maximum: 100 }, memoryConfig: record }

const places = {
  around: { ...id, description: 'The page has this message in its middle.' },
  before: { ...id, description: 'The page ends before this message.' },
  after: { ...id, description: 'The page begins after this message.' },
  at: { type: 'integer', minimum: 0, description: 'The page begins with the message at this place of the thread, from 0.' },
}

const defaultPerPage = 40
/** The number of messages before and after each result of a search. */
const defaultRange = 2

/** Messages, as existing clients read, change and search them. */
export const messages: readonly Route[] = [
  route<never, MessagesQuery>({
    method: 'GET', path: '/memory/threads/:threadId/messages', summary: 'The messages of a thread, by default the newest page',
    response: 'json', responseSchema: messagePage, read: true,
    query: object({ ...memoryQuery, page, perPage, orderBy, include, filter, cursor: text, includeSystemReminders: ignored, ...places }),
    handle: listMessages,
  }),
  route<{ messages: Message[] }, MemoryQuery>({
    method: 'POST', path: '/memory/save-messages', summary: 'Stores messages', response: 'json', responseSchema: messageList, query,
    body: object({ ...memoryBody, messages: { type: 'array', items: record, maxItems: 10_000 } }, ['messages']),
    async handle(call) {
      checkRoles(call, call.body.messages)
      const memory = await callerMemory(call, call.query.resourceId ?? call.body.messages[0]?.resourceId)
      return memory.saveMessages({ messages: call.body.messages.map(withParts) })
    },
  }),
  route<{ messageIds: MessageId | MessageId[]; threadId?: string }, MemoryQuery>({
    method: 'POST', path: '/memory/messages/delete', summary: 'Deletes messages by their ids', response: 'json',
    responseSchema: deletedMessages, query, body: object({ messageIds, threadId: id }, ['messageIds']),
    async handle(call) {
      const { threadId, messageIds: given } = call.body
      const messageIds = [given].flat()
      const deleted = await (await callerMemory(call)).deleteMessages(threadId === undefined ? messageIds : { messageIds, threadId })
      return { success: true, message: `${deleted} deleted`, deleted }
    },
  }),
  route<{ messages: Array<Partial<Message> & { id: string }> }, MemoryQuery>({
    method: 'POST', path: '/memory/messages/update', summary: 'Changes fields of messages, all or none', response: 'json',
    responseSchema: messageList, query,
    body: object({ messages: { type: 'array', items: open({ id }, ['id']), maxItems: 10_000 } }, ['messages']),
    async handle(call) {
      checkRoles(call, call.body.messages)
      return { messages: await (await callerMemory(call)).updateMessages({ messages: call.body.messages }) }
    },
  }),
  route<never, SearchQuery>({
    method: 'GET', path: '/memory/search', summary: 'The messages that match a search best, of a thread or of all threads of the resource',
    response: 'json', responseSchema: searchResults, read: true, handle: searchMessages,
    query: object(searchFields, ['searchQuery']),
  }),
  route<never, ExplanationQuery>({
    method: 'GET', path: '/memory/search/explanation', summary: 'Why a search finds its messages, or why it does not find one',
    response: 'json', responseSchema: explainedRecall, read: true, handle: explainSearch,
    query: object(
      {
        ...searchFields,
        messageId: { ...id, description: 'The message, found or not. Without it: each message that is found.' },
        messageThreadId: { ...id, description: 'The thread of the message. Defaults to threadId.' },
      },
      ['searchQuery'],
    ),
  }),
]

async function listMessages(call: Call<unknown, MessagesQuery>): Promise<object> {
  const { page, perPage, orderBy, include, filter, cursor } = call.query
  const threadId = threadIdOf(call)
  const memory = await callerMemory(call)
  // The thread of a page that was just opened: its first message creates it.
  if (!(await hasThread(memory, { threadId }))) {
    return { messages: [], uiMessages: [], total: 0, page: page ?? 0, perPage: perPage ?? defaultPerPage, hasMore: false }
  }
  const { around, before, after, at } = call.query
  if (around !== undefined || before !== undefined || after !== undefined || at !== undefined) return seek(call, memory)
  const isPage = include === undefined || [page, perPage, cursor, filter].some((value) => value !== undefined)
  const included = include && (await hideForeignThreads(memory, include))
  const recalled = await memory.recall({
    threadId,
    ...(isPage ? { perPage: perPage ?? defaultPerPage, ...(cursor === undefined ? { page: page ?? 0 } : {}) } : {}),
    ...omitUndefined({ orderBy, cursor, include: included, filter: parseFilter(filter) }),
    ...(cursor === undefined ? { total: true } : {}),
  })
  return { ...recalled, uiMessages: toUIMessages(recalled.messages) }
}

/** A page by a place in the thread. It has an order of its own, and no filter. */
async function seek(call: Call<unknown, MessagesQuery>, memory: Memory | ResourceMemory): Promise<object> {
  const { page, orderBy, include, filter, cursor, perPage = defaultPerPage, around, before, after, at } = call.query
  const others = Object.entries({ page, orderBy, include, filter, cursor }).filter(([, value]) => value !== undefined)
  const [other] = others
  if (other) throw refused(other[0], 'left out where the page is named by a place: around, before, after or at')
  const sought = await memory.seekMessages({ threadId: threadIdOf(call), perPage, ...omitUndefined({ around, before, after, at }) })
  return { ...sought, uiMessages: toUIMessages(sought.messages), page: 0, perPage, hasMore: sought.hasBefore }
}

/** Older clients send a message's content as a string. */
function withParts(message: Message): Message {
  const content: unknown = message.content
  return typeof content === 'string' ? { ...message, content: { format: 2, parts: [{ type: 'text', text: content }] } } : message
}

/** Replaces threads of other resources by an id that names no thread: including them gives nothing, as for a missing thread. */
async function hideForeignThreads(memory: Memory | ResourceMemory, include: readonly IncludedMessage[]): Promise<IncludedMessage[]> {
  return Promise.all(include.map(async (item) => {
    const { threadId } = item
    return threadId === undefined || (await memory.getThreadById({ threadId }).catch(nullIfForbidden))
      ? item
      : { ...item, threadId: newId() }
  }))
}

function nullIfForbidden(error: unknown): null {
  if (isForbidden(error)) return null
  throw error
}

function parseFilter(filter: MessagesQuery['filter']): RecallArgs['filter'] | undefined {
  const range = filter?.dateRange
  if (!range) return undefined
  const { start, end, ...exclusive } = range
  return {
    dateRange: {
      ...exclusive,
      ...(start === undefined ? {} : { start: parseDate('start', start) }),
      ...(end === undefined ? {} : { end: parseDate('end', end) }),
    },
  }
}

async function searchMessages(call: Call<unknown, SearchQuery>): Promise<object> {
  const { searchQuery } = call.query
  const { memory, search } = await openSearch(call)
  const { threadConfig: config } = search
  const { messages, hits = [], scope, incomplete, incompleteReason } = await memory.recall(search)
  const byRef = new Map(messages.map((message) => [refKey({ threadId: message.threadId ?? '', messageId: message.id }), message]))
  const titles = new Map<string, string | undefined>()
  const results: Array<Record<string, unknown>> = []
  for (const { messageId, threadId, score, reasons } of hits) {
    const message = byRef.get(refKey({ threadId, messageId }))
    if (!message) continue
    if (!titles.has(threadId)) titles.set(threadId, (await memory.getThreadById({ threadId }))?.title)
    const context = await messagesAround(memory, threadId, messageId, rangeOf(config))
    results.push({ ...excerpt(message), threadId, threadTitle: titles.get(threadId) || threadId, context, score, reasons })
  }
  const found = { results, count: results.length, query: searchQuery, searchScope: scope, searchType: 'hybrid' }
  return { ...found, ...omitUndefined({ incomplete, incompleteReason }) }
}

async function explainSearch(call: Call<unknown, ExplanationQuery>): Promise<object> {
  const { messageId, messageThreadId, threadId = messageThreadId } = call.query
  if (messageId === undefined && messageThreadId !== undefined) throw refused('messageThreadId', 'given with messageId')
  if (messageId !== undefined && threadId === undefined) throw refused('messageThreadId', 'the thread of the message')
  const { memory, search } = await openSearch(call)
  const message = messageId === undefined ? undefined : { id: messageId, ...omitUndefined({ threadId: messageThreadId }) }
  return memory.explainRecall({ ...search, ...omitUndefined({ message }) })
}

/** The search that a request asks for, and the memory that it asks. */
async function openSearch(call: Call<unknown, SearchQuery>): Promise<{
  memory: Awaited<ReturnType<typeof callerMemory>>
  search: { threadId: string; vectorSearchString: string; threadConfig: MemoryOptions; perPage?: number }
}> {
  const { searchQuery, threadId, limit: perPage, memoryConfig } = call.query
  const threadConfig = searchConfig(memoryConfig, threadId)
  const resourceId = requireResource(call.principal, call.query.resourceId)
  const memory = await callerMemory(call, resourceId)
  if (threadId !== undefined) await requireThread(memory, { threadId })
  // Recall starts from a thread; without one, a new id stands for all threads of the resource.
  return { memory, search: { threadId: threadId ?? newId(), vectorSearchString: searchQuery, threadConfig, ...omitUndefined({ perPage }) } }
}

/** The options of this search, which override those of the memory. */
function searchConfig(config: MemoryOptions = {}, threadId: string | undefined): MemoryOptions {
  const { semanticRecall } = config
  const recall = typeof semanticRecall === 'object' && semanticRecall !== null ? semanticRecall : {}
  if (JSON.stringify(recall.filter ?? {}).includes('"$regex"')) {
    const details = { option: 'memoryConfig.semanticRecall.filter' }
    const message = 'Regular expressions are not accepted over HTTP, since one could block the search. Use $contains or $in.'
    throw new HeedError('unsupported_option', message, { details })
  }
  if (threadId !== undefined || semanticRecall === false) return config
  if (recall.scope === 'thread') {
    throw new HeedError('invalid_argument', "threadId is required if the scope is 'thread'.", { details: { field: 'threadId' } })
  }
  return { ...config, semanticRecall: { ...recall, scope: 'resource' } }
}

function rangeOf({ semanticRecall }: MemoryOptions): { before: number; after: number } {
  const { messageRange = defaultRange } = typeof semanticRecall === 'object' ? semanticRecall : {}
  return typeof messageRange === 'number' ? { before: messageRange, after: messageRange } : messageRange
}

async function messagesAround(
  memory: Awaited<ReturnType<typeof callerMemory>>, threadId: string, messageId: string, range: { before: number; after: number },
): Promise<{ before: unknown[]; after: unknown[] }> {
  const include = [{ id: messageId, withPreviousMessages: range.before, withNextMessages: range.after }]
  const { messages } = await memory.recall({ threadId, include })
  const index = messages.findIndex((message) => message.id === messageId)
  return { before: messages.slice(0, index).map(excerpt), after: messages.slice(index + 1).map(excerpt) }
}

function excerpt({ id, role, content, createdAt }: Message): Record<string, unknown> {
  const texts = content.parts.flatMap((part) => (part.type === 'text' ? part.text : []))
  return { id, role, content: texts.join('\n'), createdAt }
}
