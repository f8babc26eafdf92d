import { HeedError } from '../../../errors.ts'
import type { MessageContent } from '../../../message/message.ts'
import type { Posting } from '../../../recall/collection.ts'
import { compileFilter, type MetadataFilter, type MetadataTest } from '../../../recall/filter.ts'
import { mostPassages, passagesOf } from '../../../recall/passages.ts'
import { rank, type Meanings, type Ranked } from '../../../recall/rank.ts'
import { searchableText } from '../../../recall/searchable.ts'
import { confidence } from '../../../recall/confidence.ts'
import { wordsOf } from '../../../recall/words.ts'
import type { RecallHit, RecallQuery } from '../../recall.ts'
import type { ResourceCollection } from './collection.ts'
import type { Collections } from './collections.ts'
import type { Databases } from './databases.ts'
import type { Embeddings } from './embeddings.ts'
import { tokenOf, type Indexing } from './indexing.ts'

/** What is asked, as it travels between threads. */
export interface Question extends Omit<RecallQuery, 'embedder'> {
  vector?: { embedder: string; numbers: Float32Array }
}

/** So many words of a question are looked for, the rarest, and so many places of them are read. */
const mostWords = 64
const mostPlaces = 30_000

const rowSql = `
  SELECT m.message_id AS messageId, m.seq, m.role, m.created_at AS createdAt, m.content, t.id AS threadId, t.resource_id AS resourceId, t.metadata,
    coalesce(t.status <> 'idle' AND m.run_id = t.run_id AND m.seq >= (SELECT r.seal_seq FROM heed_runs r WHERE r.run_id = t.run_id AND r.thread = t.key), 0) AS running
  FROM heed_messages m JOIN heed_threads t ON t.key = m.thread WHERE m.key = ?`

interface FoundRow {
  messageId: string
  seq: number
  role: string
  createdAt: number
  content: string
  threadId: string
  resourceId: string
  metadata: string
  /** The run that wrote it is not over, and may undo it. */
  running: number
}

export class Searching {
  readonly #databases: Databases
  readonly #collections: Collections
  readonly #embeddings: Embeddings
  readonly #indexing: Indexing

  constructor(databases: Databases, collections: Collections, embeddings: Embeddings, indexing: Indexing) {
    this.#databases = databases
    this.#collections = collections
    this.#embeddings = embeddings
    this.#indexing = indexing
  }

  search(question: Question): RecallHit[] {
    const test = question.filter && compileFilter(question.filter)
    const place = this.#place(question)
    if (!place || question.limit <= 0) return []
    const collection = this.#collections.of(place.resource)
    if (collection.count === 0) return []
    const words = [...new Set(wordsOf(question.text))]
    const postings = this.#postings(collection, words)
    const meanings = question.vector && this.#meanings(collection, question.vector)
    const thread = place.thread === undefined ? undefined : collection.threadNumber(place.thread)
    if (place.thread !== undefined && thread === undefined) return []
    const inThread = thread === undefined ? undefined : (at: number) => collection.thread[at] === thread
    const filtered = test && this.#filter(collection, test, place.resourceId)
    const allowed = inThread && filtered ? (at: number) => inThread(at) && filtered(at) : (inThread ?? filtered)
    // What is shown already is mostly what fits best.
    const shown = (question.except?.length ?? 0) + (question.shown ? 200 : 0)
    const ranked = rank(collection, postings, meanings, { limit: question.limit * 4 + shown, ...(allowed && { allowed }) })
    const sure = confidence(collection.count, words.length, postings, ranked, meanings)
    return this.#hits(collection, ranked, sure, question)
  }

  #place({ resourceId, threadId }: Question): { resource: number; resourceId: string; thread?: number } | undefined {
    const { messages, index } = this.#databases
    const thread = threadId === undefined ? undefined : messages.one<{ key: number; resourceId: string }>('SELECT key, resource_id AS resourceId FROM heed_threads WHERE id = ?', threadId)
    if (threadId !== undefined && !thread) return undefined
    if (thread && resourceId !== undefined && thread.resourceId !== resourceId) {
      throw new HeedError('thread_forbidden', `Thread '${threadId}' belongs to another resource.`, { details: { threadId } })
    }
    const of = resourceId ?? thread?.resourceId
    const resource = of === undefined ? undefined : index.one<{ key: number }>('SELECT key FROM resources WHERE id = ?', of)
    return resource && of !== undefined ? { resource: resource.key, resourceId: of, ...(thread && { thread: thread.key }) } : undefined
  }

  /** Where the words are, the rarest first, as far as reading all that takes no time. */
  #postings(collection: ResourceCollection, words: readonly string[]): Posting[] {
    const { index } = this.#databases
    const counted = words.map((word) => {
      const token = tokenOf(collection.resource, word)
      return { word, token, count: index.one<{ doc: number }>('SELECT doc FROM counts WHERE term = ?', token)?.doc ?? 0 }
    })
    const known = counted.filter(({ count }) => count > 0).toSorted((a, b) => a.count - b.count).slice(0, mostWords)
    const postings: Posting[] = []
    let places = 0
    for (const { word, token, count } of known) {
      places += count
      if (places > mostPlaces && postings.length > 0) break
      // As one text: so many rows by themselves would cost more than all the rest.
      const found = index.one<{ keys: string }>('SELECT json_group_array(rowid) AS keys FROM (SELECT rowid FROM words WHERE words MATCH ? LIMIT ?)', `"${token}"`, mostPlaces)
      const passages = collection.findAll(JSON.parse(found?.keys ?? '[]') as number[])
      if (passages.length > 0) postings.push({ word, passages })
    }
    return postings
  }

  #meanings(collection: ResourceCollection, { embedder: id, numbers }: NonNullable<Question['vector']>): Meanings | undefined {
    const embedder = this.#embeddings.find(id)
    if (!embedder || embedder.dimension === null) return undefined
    if (embedder.dimension !== numbers.length) throw new HeedError('invalid_argument', `Embedder '${id}' made a vector of ${numbers.length} numbers, and those that are stored have ${embedder.dimension}.`, { details: { field: 'embedder' } })
    return this.#collections.vectorsOf(collection.resource, embedder.key, embedder.dimension).compare(numbers)
  }

  #filter(collection: ResourceCollection, test: MetadataTest, resourceId: string): (at: number) => boolean {
    const row = (at: number) => this.#databases.messages.one<FoundRow>(rowSql, Math.floor((collection.keys[at] ?? 0) / mostPassages))
    return (at) => {
      const found = row(at)
      return found !== undefined && test({ ...(JSON.parse(found.metadata) as MetadataFilter), ...describedRow(found, resourceId) })
    }
  }

  #hits(collection: ResourceCollection, ranked: readonly Ranked[], sure: number, question: Question): RecallHit[] {
    const hits: RecallHit[] = []
    const taken = new Set<string>()
    const except = new Set(question.except)
    for (const { at, score, reasons } of ranked) {
      const passage = collection.keys[at] ?? 0
      const key = Math.floor(passage / mostPassages)
      const row = this.#databases.messages.one<FoundRow>(rowSql, key)
      if (!row || row.running === 1 || except.has(row.messageId) || this.#indexing.isStale(key)) continue
      if (row.threadId === question.shown?.threadId && row.seq >= question.shown.from) continue
      const name = `${row.threadId}\n${row.messageId}`
      if (taken.has(name)) continue
      taken.add(name)
      const text = passagesOf(searchableText(JSON.parse(row.content) as MessageContent))[passage % mostPassages] ?? ''
      const { threadId, resourceId, messageId, seq, role } = row
      hits.push({ threadId, resourceId, messageId, seq, role, createdAt: new Date(row.createdAt), text, score: score * sure, reasons })
      if (hits.length >= question.limit) break
    }
    return hits
  }
}

function describedRow({ messageId, threadId, role, createdAt }: FoundRow, resourceId: string): Record<string, unknown> {
  return { message_id: messageId, thread_id: threadId, resource_id: resourceId, role, created_at: new Date(createdAt).toISOString() }
}
