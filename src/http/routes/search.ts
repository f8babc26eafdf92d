import { HeedError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import type { Message } from '../../message/message.ts'
import type { MemoryOptions } from '../../run/options.ts'
import { refKey } from '../../store/contract/recall.ts'
import { requireResource } from '../auth/principal.ts'
import { callerMemory, memoryQuery, requireThread, type MemoryQuery } from '../request/access.ts'
import { omitUndefined } from '../request/fields.ts'
import { route, type Call, type Route } from '../route.ts'
import { searchResults } from '../schema/response-schemas.ts'
import { id, limit, object, record, text } from '../schema/schemas.ts'

interface SearchQuery extends MemoryQuery {
  searchQuery: string
  threadId?: string
  limit?: number
  memoryConfig?: MemoryOptions
}

/** The number of messages before and after each result. */
const defaultRange = 2

const searchQuery = { ...text, minLength: 1, maxLength: 10_000 }
const query = object({ ...memoryQuery, searchQuery, threadId: id, limit: { ...limit, maximum: 100 }, memoryConfig: record }, [
  'searchQuery',
])

/** Recall, as existing clients call it. */
export const search: readonly Route[] = [
  route<never, SearchQuery>({
    method: 'GET', path: '/memory/search', summary: 'The messages that match a search best, of a thread or of all threads of the resource',
    response: 'json', responseSchema: searchResults, read: true, query,
    handle: searchMessages,
  }),
]

async function searchMessages(call: Call<unknown, SearchQuery>): Promise<object> {
  const { searchQuery, threadId, limit: perPage, memoryConfig } = call.query
  const config = searchConfig(memoryConfig, threadId)
  const resourceId = requireResource(call.principal, call.query.resourceId)
  const memory = await callerMemory(call, resourceId)
  if (threadId !== undefined) await requireThread(memory, { threadId })
  // Recall starts from a thread; without one, a new id stands for all threads of the resource.
  const { messages, hits = [], scope } = await memory.recall({
    threadId: threadId ?? newId(), vectorSearchString: searchQuery, threadConfig: config, ...omitUndefined({ perPage }),
  })
  const byRef = new Map(messages.map((message) => [refKey({ threadId: message.threadId ?? '', messageId: message.id }), message]))
  const titles = new Map<string, string | undefined>()
  const results: Array<Record<string, unknown>> = []
  for (const { messageId, threadId, score } of hits) {
    const message = byRef.get(refKey({ threadId, messageId }))
    if (!message) continue
    if (!titles.has(threadId)) titles.set(threadId, (await memory.getThreadById({ threadId }))?.title)
    const context = await messagesAround(memory, threadId, messageId, rangeOf(config))
    results.push({ ...excerpt(message), threadId, threadTitle: titles.get(threadId) || threadId, context, score })
  }
  return { results, count: results.length, query: searchQuery, searchScope: scope, searchType: 'hybrid' }
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
