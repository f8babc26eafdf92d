import { HeedError } from '../../base/errors.ts'
import { isoTime } from '../../signals/conversions.ts'
import type { MessageContent } from '../../message/message.ts'
import { compileFilter, type MetadataFilter } from '../filter/filter.ts'
import { maxPassages, searchableText, splitPassages } from '../text/passages.ts'
import { confidence, judgedForConfidence, rankedBy, repetitionsOf, scoresOf, type Ranked } from '../rank/rank.ts'
import { worthOf } from '../rank/worth.ts'
import { Copies, DistinctTexts, wordsOf, type MessageStamp } from '../rank/copies.ts'
import { searchTerms, type SearchTerm } from '../text/terms.ts'
import { readTimes } from '../text/times.ts'
import { refKey, type RankedMessage, type RecallHit, type RecallQuery } from '../../store/contract/recall.ts'
import type { Collections } from './collection-cache.ts'
import type { Databases } from './databases.ts'
import type { Embeddings } from './embeddings.ts'
import { explainHit, explainMessage, type Search } from './explanation.ts'
import { indexToken, type Indexer } from './indexer.ts'
import type { NearVectors, PlacedVectors } from './placed-vectors.ts'
import type { ResourceCollection } from './resource-collection.ts'
import { firstPassageKey, messageKey, roles } from './schema.ts'
import type { Posting } from '../rank/bm25.ts'
import type { Match, Words } from './words.ts'

/** A query with the question's vector, as it is passed to the worker thread. */
export interface Question extends Omit<RecallQuery, 'embedder'> {
  /** `near`: the nearest vectors, of an embedder that has them in a vector store. */
  vector?: { embedder: string; numbers: Float32Array; near?: NearVectors }
  /** When it is asked: what "yesterday" in it is relative to. */
  now: number
}

const hitsSql = `
  SELECT m.key, m.message_id AS messageId, m.seq, m.role, m.created_at AS createdAt, m.content, t.id AS threadId,
    t.resource_id AS resourceId,
    CASE WHEN t.status <> 'idle' AND m.run_id = t.run_id
      AND m.seq >= (SELECT r.seal_seq FROM heed_runs r WHERE r.run_id = t.run_id AND r.thread = t.key) THEN 1 ELSE 0 END AS running,
    CASE WHEN EXISTS (SELECT 1 FROM heed_recall_changes c WHERE c.message = m.key AND c.number > ?) THEN 1 ELSE 0 END AS stale
  FROM heed_messages m JOIN heed_threads t ON t.key = m.thread WHERE m.key IN (SELECT CAST(value AS BIGINT) FROM json_each(?))`

const shownColumns = 'm.key, m.role, m.created_at AS createdAt'
// Two queries, one for each index by which a message is found.
const exceptSql = ['m.id = ?2 AND m.message_id = m.id', 'm.message_id = ?2 AND m.message_id <> m.id']
  .map((where) => `SELECT ${shownColumns} FROM heed_threads t JOIN heed_messages m ON m.thread = t.key WHERE t.id = ?1 AND ${where}`)
  .join(' UNION ALL ')

interface ShownRow extends MessageStamp {
  key: number
}

interface HitRow {
  key: number
  messageId: string
  seq: number
  role: string
  createdAt: number
  content: string
  threadId: string
  resourceId: string
  /** 1 when the run that wrote the row is active and may still undo it. */
  running: number
  /** 1 when the message has changes that are not indexed yet. */
  stale: number
}

/** What a search finds. `explained`: with `explain` in the question. */
export interface Found {
  hits: RecallHit[]
  explained?: RankedMessage[]
}

/** Where a question is searched. */
export interface SearchScope {
  resource: number
  /** Of the resource in the index. */
  version: number
  resourceId: string
  thread?: number
}

interface Hit extends Ranked {
  row: HitRow
}

/** Finds the passages that fit a question best. */
export class Searcher {
  readonly #databases: Databases
  readonly #collections: Collections
  readonly #embeddings: Embeddings
  readonly #indexer: Indexer
  readonly #placed: PlacedVectors

  constructor(
    databases: Databases, parts: { collections: Collections; embeddings: Embeddings; indexer: Indexer; placed: PlacedVectors },
  ) {
    this.#databases = databases
    this.#collections = parts.collections
    this.#embeddings = parts.embeddings
    this.#indexer = parts.indexer
    this.#placed = parts.placed
  }

  resourceOf(threadId: string): string | undefined {
    return this.#databases.messages.one<{ id: string }>('SELECT resource_id AS id FROM heed_threads WHERE id = ?', threadId)?.id
  }

  search(question: Question): Found {
    if (question.filter) compileFilter(question.filter)
    const scope = this.scopeOf(question)
    if (!scope) return { hits: [] }
    const found = this.searchIn(scope, question)
    this.#collections.collectionOf(scope.resource).keepCounts()
    return found
  }

  searchIn(scope: SearchScope, question: Question): Found {
    const test = question.filter && compileFilter(question.filter)
    const collection = this.#collections.collectionOf(scope.resource)
    if (question.limit <= 0 || (collection.count === 0 && !question.explain)) return { hits: [] }
    const terms = searchTerms(question.text)
    const postings = readPostings(this.#databases.words, collection, terms)
    const cosines = question.vector && this.#cosines(collection, question.vector)
    const thread = scope.thread === undefined ? undefined : collection.threadNumber(scope.thread)
    if (scope.thread !== undefined && thread === undefined && !question.explain) return { hits: [] }
    const inThread = scope.thread === undefined ? undefined : (at: number) => collection.thread[at] === thread
    const metadataOf = test && this.#metadataReader(collection, scope.resourceId)
    const fits = test && metadataOf ? (at: number) => test(metadataOf(at)) : undefined
    const allowed = inThread && fits ? (at: number) => inThread(at) && fits(at) : (inThread ?? fits)
    const ignored = this.#ignoredPassages(collection, question, terms.length, postings)
    const worth = worthOf(collection, ignored)
    const scores = scoresOf(collection, postings, cosines, {
      terms: terms.length, times: readTimes(question.text, question.now, () => collection.years()),
      worth, ...(allowed && { allowed }), ...(ignored && { ignored }),
    })
    const taken = this.#takeHits(collection, rankedBy(collection, scores), question)
    const certainty = confidence(collection, terms.length, postings, taken, cosines, worth)
    const best = taken.slice(0, question.limit)
    const hits = best.map(({ at, score, reasons, row }) => {
      const { content, createdAt, key: _key, running: _running, stale: _stale, ...ids } = row
      const text = splitPassages(searchableText(JSON.parse(content) as MessageContent))[(collection.keys[at] ?? 0) % maxPassages] ?? ''
      return { ...ids, createdAt: new Date(createdAt), text, score: score * certainty, reasons }
    })
    const { explain } = question
    if (!explain) return { hits }
    const search: Search = { collection, scores, postings, cosines, terms: terms.length, worth, confidence: certainty, text: question.text }
    if (explain === true) return { hits, explained: hits.map((hit, n) => explainHit(search, hit, best[n]?.at ?? 0, n + 1)) }
    const found = { resourceId: scope.resourceId, hits, limit: question.limit }
    const explained = explainMessage(this.#databases.messages, { ...search, allowed }, found, explain)
    return { hits, explained: explained ? [explained] : [] }
  }

  scopeOf({ resourceId, threadId }: Question): SearchScope | undefined {
    const { messages, index } = this.#databases
    const resourceSql = 'SELECT key, version FROM resources WHERE id = ?'
    const find = (id: string) => index.one<{ key: number; version: number }>(resourceSql, id)
    const given = resourceId === undefined ? undefined : find(resourceId)
    const threadSql = 'SELECT key, resource_id AS resourceId FROM heed_threads WHERE id = ?'
    const thread = threadId === undefined ? undefined : messages.one<{ key: number; resourceId: string }>(threadSql, threadId)
    if (threadId !== undefined && !thread) return undefined
    if (thread && resourceId !== undefined && thread.resourceId !== resourceId) {
      throw new HeedError('thread_forbidden', `Thread '${threadId}' belongs to another resource.`, { details: { threadId } })
    }
    const owner = resourceId ?? thread?.resourceId
    const resource = resourceId === undefined && owner !== undefined ? find(owner) : given
    return resource && owner !== undefined
      ? { resource: resource.key, version: resource.version, resourceId: owner, ...(thread && { thread: thread.key }) }
      : undefined
  }

  /** The passages that are the question of a run: itself, and where it was asked before. */
  #ignoredPassages(
    collection: ResourceCollection, question: Question, terms: number, postings: readonly Posting[],
  ): ReadonlySet<number> | undefined {
    const own = this.#questionPassages(collection, question)
    if (!question.distinct) return own
    const repeated = repetitionsOf(collection, terms, postings, this.#sameText(collection, question.text))
    for (const at of own ?? []) repeated.add(at)
    return repeated
  }

  /** A test for messages with the words of a text. It reads them: most callers ask about few. */
  #sameText(collection: ResourceCollection, text: string): (at: number) => boolean {
    const words = wordsOf(text)
    const known = new Map<number, boolean>()
    return (at) => {
      const key = messageKey(collection.keys[at] ?? 0)
      let same = known.get(key)
      if (same === undefined) {
        if (known.size >= maxCompared) return false
        const row = this.#databases.messages.one<{ content: string }>('SELECT content FROM heed_messages WHERE key = ?', key)
        same = row !== undefined && wordsOf(searchableText(JSON.parse(row.content) as MessageContent)) === words
        known.set(key, same)
      }
      return same
    }
  }

  /** The passages of the question itself, and of what was sent with it. */
  #questionPassages(collection: ResourceCollection, { shown }: Question): ReadonlySet<number> | undefined {
    if (shown?.asked === undefined) return undefined
    const rows = this.#databases.messages.all<{ key: number }>(
      'SELECT m.key FROM heed_threads t JOIN heed_messages m ON m.thread = t.key WHERE t.id = ? AND m.seq >= ?',
      shown.threadId,
      shown.asked,
    )
    const passages = new Set<number>()
    for (const { key } of rows) {
      const [from, to] = collection.rangeOf(firstPassageKey(key))
      for (let at = from; at < to; at += 1) passages.add(at)
    }
    return passages
  }

  #cosines(collection: ResourceCollection, { embedder: id, numbers, near }: NonNullable<Question['vector']>): Float32Array | undefined {
    const embedder = this.#embeddings.find(id)
    // The dimension may have changed since the question was embedded: search by terms alone.
    if (!embedder || embedder.dimension !== numbers.length) return undefined
    const { key, scope } = embedder
    if (scope !== null) return near && this.#placed.cosines(collection, { key, scope }, near)
    return this.#collections.cosinesOf(collection.resource, { key, dimension: numbers.length }, numbers)
  }

  /**
   * Returns a function that reads the metadata of a passage for a filter. It makes one object per thread, whose getters read the passage of
   * the last call: a filter may test a hundred thousand passages.
   */
  #metadataReader(collection: ResourceCollection, resourceId: string): (at: number) => MetadataFilter {
    const { messages } = this.#databases
    let current = 0
    const byThread: MetadataFilter[] = []
    const createMetadata = (thread: number): MetadataFilter => {
      const row = messages.one<{ id: string; metadata: string }>(
        'SELECT id, metadata FROM heed_threads WHERE key = ?',
        collection.threadKeys[thread] ?? 0,
      )
      return {
        ...(JSON.parse(row?.metadata ?? '{}') as MetadataFilter),
        thread_id: row?.id,
        resource_id: resourceId,
        get message_id() {
          return messages.one<{ id: string }>(
            'SELECT message_id AS id FROM heed_messages WHERE key = ?',
            messageKey(collection.keys[current] ?? 0),
          )?.id
        },
        get role() {
          return roles[collection.role[current] ?? -1]
        },
        get created_at() {
          return isoTime(collection.createdAt[current] ?? 0)
        },
      }
    }
    return (at) => {
      current = at
      return (byThread[collection.thread[at] ?? 0] ??= createMetadata(collection.thread[at] ?? 0))
    }
  }

  /** The messages that the prompt contains already, to recognize copies of them. */
  #shownMessages({ shown, except = [] }: Question): Copies | undefined {
    if (!shown) return undefined
    const { messages } = this.#databases
    const copies = new Copies()
    const rows = [
      ...messages.all<ShownRow>(
        `SELECT ${shownColumns} FROM heed_threads t JOIN heed_messages m ON m.thread = t.key WHERE t.id = ? AND m.seq >= ?`,
        shown.threadId,
        shown.from,
      ),
      ...except.flatMap(({ threadId, messageId }) => messages.all<ShownRow>(exceptSql, threadId, messageId)),
    ]
    for (const { key, ...stamp } of rows) {
      if (stamp.role === 'context') continue
      copies.add(stamp, () => {
        const row = messages.one<{ content: string }>('SELECT content FROM heed_messages WHERE key = ?', key)
        return row ? searchableText(JSON.parse(row.content) as MessageContent) : ''
      })
    }
    return copies
  }

  /** The best messages that may be shown, each with its best passage; beyond the limit, as many as `confidence` reads. */
  #takeHits(collection: ResourceCollection, ranked: Iterable<Ranked>, question: Question): Hit[] {
    const hits: Hit[] = []
    const taken = new Set<string>(question.except?.map(refKey))
    const wanted = Math.max(question.limit, judgedForConfidence)
    const copies = this.#shownMessages(question)
    const distinct = question.distinct ? new DistinctTexts() : undefined
    // An earlier message with the words of the question adds nothing to it.
    distinct?.add(question.text)
    for (const { one, row } of this.#rowsOf(collection, ranked, 2 * wanted)) {
      if (!row || row.running === 1 || row.stale === 1 || taken.has(refKey(row))) continue
      if (row.threadId === question.shown?.threadId && row.seq >= question.shown.from) continue
      const text = () => searchableText(JSON.parse(row.content) as MessageContent)
      if (copies?.has(row, text)) continue
      if (distinct && !distinct.add(text())) continue
      copies?.add(row, text)
      taken.add(refKey(row))
      hits.push({ ...one, row })
      if (hits.length >= wanted) break
    }
    return hits
  }

  /** Each message of the ranking once, with its best passage, and its row if it is stored. Reads several at once. */
  *#rowsOf(collection: ResourceCollection, ranked: Iterable<Ranked>, atOnce: number): Iterable<{ one: Ranked; row: HitRow | undefined }> {
    const indexedUpTo = this.#indexer.indexedUpTo()
    const seen = new Set<number>()
    let group = new Map<number, Ranked>()
    const read = function* (this: Searcher): Iterable<{ one: Ranked; row: HitRow | undefined }> {
      const rows = this.#databases.messages.all<HitRow>(hitsSql, indexedUpTo, JSON.stringify([...group.keys()]))
      const byKey = new Map(rows.map((row) => [row.key, row]))
      for (const [key, one] of group) yield { one, row: byKey.get(key) }
      group = new Map()
    }
    for (const one of ranked) {
      const key = messageKey(collection.keys[one.at] ?? 0)
      if (seen.has(key)) continue
      seen.add(key)
      group.set(key, one)
      if (group.size >= atOnce) yield* read.call(this)
    }
    if (group.size > 0) yield* read.call(this)
  }
}

/** The limits that bound how much of the index one search reads. */
export const limits = {
  /** Terms of the question that are looked up, the rarest first. */
  terms: 64,
  /** Postings of the rare terms, in total. */
  rarePostings: 20_000,
  /** Postings of common terms, read only where a rare term occurs too. */
  commonPostings: 10_000,
  /** Postings that the database may scan to find the latter. */
  scanned: 100_000,
  /** Passages with all terms that are read in any case. */
  withAllTerms: 1_000,
  /** With fewer passages than this, passages with some of the terms are read too. */
  enough: 100,
}

/** The number of messages that are compared with the text of a question. */
const maxCompared = 1_000

interface KnownTerm {
  term: string
  /** Each of its forms, as the index has it. */
  tokens: readonly string[]
  /** The passages with its forms: one with several of them counts several times. */
  count: number
}

/**
 * The postings of a question's terms, within the limits: all postings of the rarest terms; those of common terms only where a rare one
 * occurs too, and where all terms occur.
 */
export function readPostings(
  words: Words, collection: ResourceCollection, terms: readonly SearchTerm[], most: typeof limits = limits,
): Posting[] {
  const read = (matches: readonly Match[], limit: number) => words.find(matches, limit).map((keys) => collection.findAll(keys))
  const known = knownTerms(words, collection, terms).slice(0, most.terms)
  const [rarest] = known
  if (!rarest) return []
  const isCommon = rarest.count > most.rarePostings
  let postingCount = 0
  const rare = known.filter(({ count }, at) => (at === 0 || postingCount + count <= most.rarePostings) && (postingCount += count) > 0)
  const looked = isCommon ? [rarest] : rare
  const found = read(looked.map(({ tokens }) => anyOf(tokens)), isCommon ? most.commonPostings : most.rarePostings)
  const postings = looked.map(({ term, count }, at): Posting => ({ term, passages: found[at] ?? [], ...(isCommon && { count }) }))
    .filter(({ passages }) => isCommon || passages.length > 0)
  const anyRare = { any: rare.flatMap(({ tokens }) => tokens) }
  let scanned = 0
  let left = most.commonPostings
  for (const { term, tokens, count } of known.slice(rare.length)) {
    scanned += count + postingCount
    if (scanned > most.scanned) left = 0
    const [passages = new Int32Array(0)] = left > 0 ? read([{ all: [anyOf(tokens), anyRare] }], left) : []
    left -= passages.length
    postings.push({ term, passages, count })
  }
  if (!isCommon && left > 0) return postings
  // Passages with all terms; while those are too few and no term is rare, also passages with the rarer half of the terms.
  let together = 0
  for (let width = known.length; width > 1 && together < most.enough; width = isCommon ? Math.ceil(width / 2) : 1) {
    const some = known.slice(0, width)
    const [whole = new Int32Array(0)] = read([{ all: some.map(({ tokens }) => anyOf(tokens)) }], most.withAllTerms)
    together = whole.length
    addPassages(postings, new Set(some.map(({ term }) => term)), whole)
  }
  return postings
}

/** The terms that occur in the collection, the rarest first. */
function knownTerms(words: Words, collection: ResourceCollection, terms: readonly SearchTerm[]): KnownTerm[] {
  const tokens = terms.map(({ forms }) => forms.map((form) => indexToken(collection.resource, form)))
  const every = tokens.flat()
  const counts = collection.termCounts(every, (unknown) => words.counts(unknown))
  const countOf = new Map(every.map((token, at) => [token, counts[at] ?? 0]))
  return terms
    .map(({ term }, at): KnownTerm => {
      const known = (tokens[at] ?? []).filter((token) => countOf.get(token))
      return { term, tokens: known, count: known.reduce((sum, token) => sum + (countOf.get(token) ?? 0), 0) }
    })
    .filter(({ count }) => count > 0)
    .toSorted((a, b) => a.count - b.count)
}

function anyOf(tokens: readonly string[]): Match {
  return tokens.length === 1 ? (tokens[0] ?? '') : { any: tokens }
}

/** Adds passages that contain all of these terms to the incomplete postings of each. */
function addPassages(postings: readonly Posting[], terms: ReadonlySet<string>, whole: Int32Array): void {
  const isWhole = new Set(whole)
  for (const posting of postings) {
    if (posting.count === undefined || !terms.has(posting.term)) continue
    const others = Int32Array.from(posting.passages).filter((at) => !isWhole.has(at))
    const passages = new Int32Array(others.length + whole.length)
    passages.set(others)
    passages.set(whole, others.length)
    posting.passages = passages
  }
}
