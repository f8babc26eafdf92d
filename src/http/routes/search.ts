import type { Message } from '../../message/message.ts'
import { HeedError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import type { MemoryOptions } from '../../run/options.ts'
import { refKey } from '../../store/contract/recall.ts'
import { found as foundShape } from '../schema/answer-schemas.ts'
import { neededResource } from '../auth/principal.ts'
import { ownMemory, type MemoryQuery } from './memory-of.ts'
import { route, type Route } from '../route.ts'
import { id, limit, object, record, text } from '../schema/schemas.ts'
import { of } from './threads.ts'

interface Search extends MemoryQuery {
  searchQuery: string
  threadId?: string
  limit?: number
  memoryConfig?: MemoryOptions
}

/** Messages by what they are about, as existing clients ask for them. */
export const search: readonly Route[] = [
  route<never, Search>({
    method: 'GET', path: '/memory/search', summary: 'The messages that fit a search best: of a thread and those around it, or of all threads of the resource', answer: 'json', answers: foundShape, read: true,
    query: object({ ...of, searchQuery: { ...text, minLength: 1, maxLength: 10_000 }, threadId: id, limit: { ...limit, maximum: 100 }, memoryConfig: record }, ['searchQuery']),
    async handle(call) {
      const { searchQuery, threadId, limit: most, memoryConfig } = call.query
      const config = configOf(memoryConfig, threadId)
      const resourceId = neededResource(call.principal, call.query.resourceId)
      const memory = await ownMemory(call, resourceId)
      if (threadId !== undefined && !(await memory.getThreadById({ threadId }))) throw new HeedError('thread_not_found', 'There is no such thread.', { details: { threadId } })
      // Recall begins from a thread; where none is named, one that can't be there stands for all of the resource.
      const { messages, hits = [], scope } = await memory.recall({ threadId: threadId ?? newId(), vectorSearchString: searchQuery, threadConfig: config, ...(most === undefined ? {} : { perPage: most }) })
      const found = new Map(messages.map((message) => [refKey({ threadId: message.threadId ?? '', messageId: message.id }), message]))
      const titles = new Map<string, string | undefined>()
      const results: Array<Record<string, unknown>> = []
      for (const { messageId, threadId: of, score } of hits) {
        const message = found.get(refKey({ threadId: of, messageId }))
        if (!message) continue
        if (!titles.has(of)) titles.set(of, (await memory.getThreadById({ threadId: of }))?.title)
        results.push({ ...shown(message), threadId: of, threadTitle: titles.get(of) || of, context: await around(memory, of, messageId, rangeOf(config)), score })
      }
      return { results, count: results.length, query: searchQuery, searchScope: scope, searchType: 'hybrid' }
    },
  }),
]

/** Options for this search, as the memory has them otherwise. */
function configOf(config: MemoryOptions = {}, threadId: string | undefined): MemoryOptions {
  const { semanticRecall } = config
  const given = typeof semanticRecall === 'object' && semanticRecall !== null ? semanticRecall : {}
  if (JSON.stringify(given.filter ?? {}).includes('"$regex"')) {
    throw new HeedError('unsupported_option', 'Regular expressions are for programs: over HTTP one could keep the search busy for good. Use $contains or $in.', { details: { option: 'memoryConfig.semanticRecall.filter' } })
  }
  if (threadId !== undefined || semanticRecall === false) return config
  if (given.scope === 'thread') throw new HeedError('invalid_argument', "threadId must be given where the scope is 'thread'.", { details: { field: 'threadId' } })
  return { ...config, semanticRecall: { ...given, scope: 'resource' } }
}

/** So many messages before and after each. */
const neighbours = 2

function rangeOf({ semanticRecall }: MemoryOptions): { before: number; after: number } {
  const { messageRange = neighbours } = typeof semanticRecall === 'object' ? semanticRecall : {}
  return typeof messageRange === 'number' ? { before: messageRange, after: messageRange } : messageRange
}

async function around(memory: Awaited<ReturnType<typeof ownMemory>>, threadId: string, messageId: string, range: { before: number; after: number }): Promise<{ before: unknown[]; after: unknown[] }> {
  const { messages } = await memory.recall({ threadId, include: [{ id: messageId, withPreviousMessages: range.before, withNextMessages: range.after }] })
  const at = messages.findIndex((message) => message.id === messageId)
  return { before: messages.slice(0, at).map(shown), after: messages.slice(at + 1).map(shown) }
}

function shown({ id: messageId, role, content, createdAt }: Message): Record<string, unknown> {
  const words = content.parts.flatMap((part) => (part.type === 'text' ? part.text : [])).join('\n')
  return { id: messageId, role, content: words, createdAt }
}
