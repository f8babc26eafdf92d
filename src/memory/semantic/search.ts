import { HeedError } from '../../errors.ts'
import type { TextEmbedder } from '../../recall/embedder.ts'
import type { MemoryOptions } from '../../run/options.ts'
import type { ThreadStore } from '../../store/contract.ts'
import type { RecallIndex } from '../../store/recall.ts'
import { recallIndexOf } from '../../store/storage.ts'
import { checkNames, checkName, checkText, refused } from '../arguments.ts'
import type { RecallArgs, RecalledMessages } from '../recall.ts'
import { passagesAround } from './passages.ts'
import { recallSettingIn } from './setting.ts'

/** A vector store that stands for the vectors beside the messages. */
export interface BuiltInVectors {
  readonly builtIn: true
}

const names = ['threadId', 'resourceId', 'vectorSearchString', 'threadConfig', 'perPage', 'page', 'orderBy', 'filter', 'include', 'total', 'cursor']
/** What is only asked of pages. */
const ofPages = ['page', 'cursor', 'include', 'total', 'filter'] as const

export function checkVectors(vector: unknown): asserts vector is BuiltInVectors | false | undefined {
  if (vector === undefined || vector === false) return
  if (typeof vector === 'object' && vector !== null && 'builtIn' in vector && vector.builtIn === true) return
  throw new HeedError('unsupported_option', 'Recall keeps its vectors beside the messages and uses no other vector store yet. Leave out vector, or give a LibSQLVector.', { details: { option: 'vector' } })
}

/** What finds messages of a store. An embedder that it is given here makes vectors from now on. */
export async function indexOf(store: ThreadStore, embedder: TextEmbedder | undefined): Promise<RecallIndex> {
  const index = await recallIndexOf(store)
  if (!index) throw new HeedError('unsupported_option', 'This storage has no index to recall messages by. Use a LibSQLStore on a file.', { details: { option: 'semanticRecall' } })
  if (embedder) index.embedWith(embedder)
  return index
}

export function isSearch(args: RecallArgs): args is RecallArgs & { vectorSearchString: string } {
  return typeof args === 'object' && args !== null && args.vectorSearchString !== undefined
}

/** The messages that fit best, with those around them, in the order of time. */
export async function searchMessages(
  store: ThreadStore, args: RecallArgs & { vectorSearchString: string }, options: MemoryOptions, embedder: TextEmbedder | undefined,
): Promise<RecalledMessages> {
  checkNames('recall()', args, names)
  checkText('vectorSearchString', args.vectorSearchString)
  for (const name of ofPages) if (args[name] !== undefined) throw refused(name, 'left out beside vectorSearchString: a search has no pages')
  const own = args.threadConfig?.semanticRecall
  const setting = recallSettingIn({ semanticRecall: layered(options.semanticRecall, own === false ? true : own) }) ?? recallSettingIn({})
  if (!setting) return { messages: [], page: 0, perPage: 0, hasMore: false, hits: [] }
  const [threadId, ...more] = [args.threadId].flat()
  checkName('threadId', threadId)
  if (more.length > 0) throw refused('threadId', 'one thread: a search looks in all of its resource unless scope is thread')
  const { resourceId } = (await store.getThread({ threadId, ...(args.resourceId !== undefined && { resourceId: args.resourceId }) })) ?? args
  if (resourceId === undefined) return { messages: [], page: 0, perPage: setting.topK, hasMore: false, hits: [] }
  const index = await indexOf(store, embedder)
  const limit = typeof args.perPage === 'number' ? args.perPage : setting.topK
  const { scope, filter } = setting
  const found = await index.search({ resourceId, text: args.vectorSearchString, limit, ...(scope === 'thread' && { threadId }), ...(embedder && { embedder }), ...(filter && { filter }) })
  const hits = own !== undefined && typeof own === 'object' && own.threshold !== undefined ? found.filter(({ score }) => score >= setting.threshold) : found
  const passages = await passagesAround(store, hits, setting)
  const messages = passages.flatMap((passage) => passage.messages.map(({ message, seq }) => ({ message, seq, threadId: passage.threadId })))
  const ordered = messages.toSorted((a, b) => (a.threadId === b.threadId ? a.seq - b.seq : a.message.createdAt.getTime() - b.message.createdAt.getTime()))
  const inOrder = args.orderBy?.direction === 'DESC' ? ordered.toReversed() : ordered
  return { messages: inOrder.map(({ message }) => message), page: 0, perPage: limit, hasMore: false, hits }
}

/** Options over options: an object takes the place of the fields that it has. */
export function layered(base: MemoryOptions['semanticRecall'], over: MemoryOptions['semanticRecall']): NonNullable<MemoryOptions['semanticRecall']> {
  if (over === undefined) return base ?? true
  if (typeof over !== 'object') return over && typeof base === 'object' ? { ...base, enabled: true } : over
  return { ...(typeof base === 'object' ? base : {}), enabled: true, ...over }
}
