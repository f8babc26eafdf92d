import { checkName, checkNames, checkText, refused } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import type { Message } from '../../message/message.ts'
import type { TextEmbedder } from '../../recall/embedder.ts'
import { isVectorStore, missingMethods, nameOfStore, type VectorStore } from '../../recall/vector-store.ts'
import type { MetadataFilter } from '../../recall/filter/filter.ts'
import type { EmbedderInput } from '../../run/model/model-router.ts'
import type { MemoryOptions, SemanticRecallOptions, VectorIndexConfig } from '../../run/options.ts'
import type { ThreadStore } from '../../store/contract/threads.ts'
import type { RecallHits, RecallIndex, RecallQuery } from '../../store/contract/recall.ts'
import { recallIndexOf } from '../../store/contract/storage.ts'
import { checkOrder } from '../arguments.ts'
import { checkFilter, timesOf, type RecallArgs, type RecalledMessages } from '../recall.ts'
import { checkSearchConfig } from '../thread-config.ts'
import { passagesAround } from './passages.ts'
import { indexSettings, maxHits, parseRecallOptions, textEmbedderWithFormer, type RecallSetting } from './setting.ts'

/** A vector store that stands for the built-in one beside the messages. */
export interface BuiltInVectors {
  readonly builtIn: true
  readonly url?: string
  /** Whether it names the same database as this url. */
  isAt?(url: string): boolean
}

const names = [
  'threadId',
  'resourceId',
  'vectorSearchString',
  'threadConfig',
  'perPage',
  'page',
  'orderBy',
  'filter',
  'include',
  'total',
  'cursor',
]
/** Arguments that only apply to pages. */
const pageArguments = ['page', 'cursor', 'include', 'total'] as const

/** Where recall has its vectors: `false`: nowhere. */
export type VectorOption = BuiltInVectors | VectorStore | false

function isBuiltIn(vector: unknown): vector is BuiltInVectors {
  return typeof vector === 'object' && vector !== null && 'builtIn' in vector && vector.builtIn === true
}

/** Whether vectors are in a vector store, and not beside the messages. */
export function isPlaced(vector: VectorOption | undefined): vector is VectorStore {
  return vector !== undefined && vector !== false && !isBuiltIn(vector)
}

export function checkVectorOption(vector: unknown): asserts vector is VectorOption | undefined {
  if (vector === undefined || vector === false || isVectorStore(vector) || isBuiltIn(vector)) return
  const isObject = typeof vector === 'object' && vector !== null
  const lacks = isObject ? ` It has no ${missingMethods(vector).join('(), no ')}().` : ''
  throw new HeedError('unsupported_option', `vector must be a vector store, or false.${lacks} docs/vectors.md has what recall calls.`, {
    details: { option: 'vector' },
  })
}

/** The embedder, with its vectors in the store that `vector` names; undefined where nothing makes vectors. */
export function embedderWith(
  vector: VectorOption | undefined,
  { embedder, formerEmbedder }: { embedder?: EmbedderInput; formerEmbedder?: EmbedderInput },
  recall?: MemoryOptions['semanticRecall'],
): TextEmbedder | undefined {
  if (vector === false && embedder !== undefined) {
    throw new HeedError('invalid_argument', 'embedder makes vectors, and vector: false keeps none. Leave one of them out.', {
      details: { option: 'embedder' },
    })
  }
  if (embedder === undefined) {
    if (!isPlaced(vector)) return undefined
    throw new HeedError('invalid_argument', 'A vector store needs an embedder, which makes the vectors. Set embedder too.', {
      details: { option: 'vector' },
    })
  }
  const made = textEmbedderWithFormer(embedder, formerEmbedder)
  return isPlaced(vector) ? placedEmbedder(made, vector, typeof recall === 'object' ? recall.indexConfig : undefined) : made
}

/** The embedder with its vectors in a vector store. Until they are complete, those of its former one or those beside the messages serve. */
function placedEmbedder({ former, ...embedder }: TextEmbedder, store: VectorStore, config: VectorIndexConfig | undefined): TextEmbedder {
  const { metric = 'cosine' } = config ?? {}
  const name = nameOfStore(store)
  const indexConfig = indexSettings(config)
  const placed = (one: TextEmbedder): TextEmbedder => ({
    ...one, id: `${one.id}@${name}`, place: { store, name, model: one.id, metric, ...(indexConfig && { indexConfig }) },
  })
  return { ...placed(embedder), former: former ? placed(former) : embedder }
}

/** Rejects a vector store of another database than the storage: recall keeps its vectors beside the messages. */
export function checkVectorPlace(vector: VectorOption | undefined, storage: object): void {
  if (!isBuiltIn(vector) || !vector.isAt || !('url' in storage) || typeof storage.url !== 'string' || vector.isAt(storage.url)) return
  const why = `vector has the url '${String(vector.url)}', but recall keeps its vectors beside the messages, in '${storage.url}'.`
    + ' Leave vector out, or pass it the url of the storage.'
  throw new HeedError('unsupported_option', why, { details: { option: 'vector' } })
}

/** The recall index of a store. The embedder makes vectors from now on. */
export async function openIndex(store: ThreadStore, embedder: TextEmbedder | undefined): Promise<RecallIndex> {
  const index = await recallIndexOf(store)
  if (!index) {
    throw noIndex()
  }
  if (embedder) index.embedWith(embedder)
  return index
}

/** The error of a memory that asks for recall on a storage without an index. */
export function noIndex(): HeedError {
  const why = 'This storage has no recall index. Use a LibSQLStore or a PostgresStore, or set semanticRecall: false and no embedder.'
  return new HeedError('unsupported_option', why, { details: { option: 'semanticRecall' } })
}

export function isSearch(args: RecallArgs): args is RecallArgs & { vectorSearchString: string } {
  return typeof args === 'object' && args !== null && args.vectorSearchString !== undefined
}

/** A search of a memory, with what it asks of the index. */
export interface MemorySearch {
  setting: RecallSetting
  /** Only an explicit threshold leaves hits out. */
  threshold: number | undefined
  limit: number
  times: ReturnType<typeof timesOf>
  /** What the index finds; undefined where nothing is known of the resource. */
  search: ((more?: Pick<RecallQuery, 'explain'>) => Promise<RecallHits>) | undefined
}

/** Checks the arguments of a search, and opens the index. */
export async function openSearch(
  store: ThreadStore, args: RecallArgs & { vectorSearchString: string }, options: MemoryOptions, embedder: TextEmbedder | undefined,
): Promise<MemorySearch> {
  checkText('vectorSearchString', args.vectorSearchString)
  const { perPage, threadConfig } = args
  if (perPage !== undefined && !(Number.isSafeInteger(perPage) && Number(perPage) >= 1 && Number(perPage) <= maxHits)) {
    throw refused('perPage', `a whole number from 1 to ${maxHits} with vectorSearchString`)
  }
  checkFilter(args.filter)
  checkSearchConfig(threadConfig, perPage)
  const { setting, threshold } = searchSetting(options, threadConfig, embedder?.place !== undefined)
  const [threadId, ...more] = [args.threadId].flat()
  checkName('threadId', threadId)
  if (more.length > 0) throw refused('threadId', 'one thread: a search covers all threads of its resource, unless scope is thread')
  const { resourceId } =
    (await store.getThread({ threadId, ...(args.resourceId !== undefined && { resourceId: args.resourceId }) })) ?? args
  const times = timesOf(args)
  const filter = filterWithin(setting.filter, times)
  const limit = typeof perPage === 'number' ? perPage : setting.topK
  const opened = { setting, threshold, limit, times }
  if (resourceId === undefined) return { ...opened, search: undefined }
  const index = await openIndex(store, embedder)
  const query: RecallQuery = {
    resourceId, text: args.vectorSearchString, limit, embedder: embedder ?? false,
    ...(setting.scope === 'thread' && { threadId }), ...(filter && { filter }),
  }
  return { ...opened, search: (also) => index.search({ ...query, ...also }) }
}

/** The messages that fit best, with those around them, in chronological order. */
export async function searchMessages(
  store: ThreadStore, args: RecallArgs & { vectorSearchString: string }, options: MemoryOptions, embedder: TextEmbedder | undefined,
): Promise<RecalledMessages> {
  checkNames('recall()', args, names)
  for (const name of pageArguments)
    if (args[name] !== undefined) throw refused(name, 'left out with vectorSearchString: a search has no pages')
  const { orderBy } = args
  checkOrder(orderBy, ['createdAt'])
  const { setting, threshold, limit, times, search } = await openSearch(store, args, options, embedder)
  const { scope } = setting
  if (!search) return { messages: [], page: 0, perPage: limit, hasMore: false, hits: [], scope }
  const found = await search()
  const hits = threshold === undefined ? found : found.filter(({ score }) => score >= threshold)
  const passages = await passagesAround(store, hits, setting)
  const isWithin = ({ createdAt }: Message) => !(times.start && createdAt < times.start) && !(times.end && createdAt > times.end)
  const messages = passages.flatMap((passage) =>
    passage.messages.filter(({ message }) => isWithin(message)).map(({ message, seq }) => ({ message, seq, threadId: passage.threadId })),
  )
  const ordered = messages.toSorted((a, b) =>
    a.threadId === b.threadId ? a.seq - b.seq : a.message.createdAt.getTime() - b.message.createdAt.getTime(),
  )
  const inOrder = orderBy?.direction === 'DESC' ? ordered.toReversed() : ordered
  const result: RecalledMessages = { messages: inOrder.map(({ message }) => message), page: 0, perPage: limit, hasMore: false, hits, scope }
  const { incomplete, incompleteReason } = found
  return { ...result, ...(incomplete && { incomplete }), ...(incompleteReason && { incompleteReason }) }
}

/** The filter, and the date range as a part of it. */
function filterWithin(filter: MetadataFilter | undefined, { start, end }: ReturnType<typeof timesOf>): MetadataFilter | undefined {
  if (!start && !end) return filter
  const range = { created_at: { ...(start && { $gte: start }), ...(end && { $lte: end }) } }
  return filter && Object.keys(filter).length > 0 ? { $and: [filter, range] } : range
}

/** The setting of a search: that of recall, also when recall is off for agents. Only an explicit threshold leaves hits out. */
function searchSetting(
  options: MemoryOptions, config: MemoryOptions | undefined, placed: boolean,
): { setting: RecallSetting; threshold?: number } {
  const own = config?.semanticRecall
  if (own === false || (typeof own === 'object' && own.enabled === false)) {
    throw refused('threadConfig.semanticRecall', 'on with vectorSearchString, or left out')
  }
  const merged = mergeRecallOptions(options.semanticRecall === false ? true : options.semanticRecall, own)
  const enabled: SemanticRecallOptions = typeof merged === 'object' ? { ...merged, enabled: true } : {}
  const setting = parseRecallOptions({ semanticRecall: enabled }, { placed })
  if (!setting) throw refused('threadConfig.semanticRecall', 'on with vectorSearchString')
  return { setting, ...(enabled.threshold !== undefined && { threshold: enabled.threshold }) }
}

/** Merges options: the fields of `over` replace those of `base`. An undefined field does not: a filter of `base` stays. */
export function mergeRecallOptions(
  base: MemoryOptions['semanticRecall'], over: MemoryOptions['semanticRecall'],
): NonNullable<MemoryOptions['semanticRecall']> {
  if (over === undefined) return base ?? true
  if (typeof over !== 'object') return over && typeof base === 'object' ? { ...base, enabled: true } : over
  const given = Object.fromEntries(Object.entries(over).filter(([, value]) => value !== undefined))
  return { ...(typeof base === 'object' ? base : {}), enabled: true, ...given }
}
