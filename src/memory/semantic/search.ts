import { HeedError } from '../../base/errors.ts'
import type { TextEmbedder } from '../../recall/embedder.ts'
import type { MemoryOptions, SemanticRecallOptions } from '../../run/options.ts'
import type { ThreadStore } from '../../store/contract/threads.ts'
import type { RecallIndex } from '../../store/contract/recall.ts'
import { recallIndexOf } from '../../store/contract/storage.ts'
import { checkName, checkNames, checkOrder, checkText, refused } from '../arguments.ts'
import { checkMemoryOptions } from '../options.ts'
import type { RecallArgs, RecalledMessages } from '../recall.ts'
import { passagesAround } from './passages.ts'
import { mostHits, recallSettingIn, type RecallSetting } from './setting.ts'

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
  const { perPage, orderBy, threadConfig } = args
  if (perPage !== undefined && !(Number.isSafeInteger(perPage) && Number(perPage) >= 1 && Number(perPage) <= mostHits)) throw refused('perPage', `a whole number from 1 to ${mostHits}: so many are found at most`)
  checkOrder(orderBy, ['createdAt'])
  const { setting, threshold } = asked(options, threadConfig)
  const [threadId, ...more] = [args.threadId].flat()
  checkName('threadId', threadId)
  if (more.length > 0) throw refused('threadId', 'one thread: a search looks in all of its resource unless scope is thread')
  const { resourceId } = (await store.getThread({ threadId, ...(args.resourceId !== undefined && { resourceId: args.resourceId }) })) ?? args
  const { scope, filter } = setting
  const limit = typeof perPage === 'number' ? perPage : setting.topK
  if (resourceId === undefined) return { messages: [], page: 0, perPage: limit, hasMore: false, hits: [], scope }
  const index = await indexOf(store, embedder)
  const found = await index.search({ resourceId, text: args.vectorSearchString, limit, ...(scope === 'thread' && { threadId }), embedder: embedder ?? false, ...(filter && { filter }) })
  const hits = threshold === undefined ? found : found.filter(({ score }) => score >= threshold)
  const passages = await passagesAround(store, hits, setting)
  const messages = passages.flatMap((passage) => passage.messages.map(({ message, seq }) => ({ message, seq, threadId: passage.threadId })))
  const ordered = messages.toSorted((a, b) => (a.threadId === b.threadId ? a.seq - b.seq : a.message.createdAt.getTime() - b.message.createdAt.getTime()))
  const inOrder = orderBy?.direction === 'DESC' ? ordered.toReversed() : ordered
  return { messages: inOrder.map(({ message }) => message), page: 0, perPage: limit, hasMore: false, hits, scope }
}

/** How a search is meant: as recall is, also where agents recall nothing by themselves. Only a threshold that was given leaves anything out. */
function asked(options: MemoryOptions, config: MemoryOptions | undefined): { setting: RecallSetting; threshold?: number } {
  if (config !== undefined) checkMemoryOptions(config)
  const own = config?.semanticRecall
  if (own === false || (typeof own === 'object' && own.enabled === false)) throw refused('threadConfig.semanticRecall', 'on beside vectorSearchString, or left out')
  const of = layered(options.semanticRecall === false ? true : options.semanticRecall, own)
  const meant: SemanticRecallOptions = typeof of === 'object' ? { ...of, enabled: true } : {}
  const setting = recallSettingIn({ semanticRecall: meant })
  if (!setting) throw refused('threadConfig.semanticRecall', 'on beside vectorSearchString')
  return { setting, ...(meant.threshold !== undefined && { threshold: meant.threshold }) }
}

/** Options over options: an object takes the place of the fields that it has. One that is undefined is not there: a filter stays. */
export function layered(base: MemoryOptions['semanticRecall'], over: MemoryOptions['semanticRecall']): NonNullable<MemoryOptions['semanticRecall']> {
  if (over === undefined) return base ?? true
  if (typeof over !== 'object') return over && typeof base === 'object' ? { ...base, enabled: true } : over
  const given = Object.fromEntries(Object.entries(over).filter(([, value]) => value !== undefined))
  return { ...(typeof base === 'object' ? base : {}), enabled: true, ...given }
}
