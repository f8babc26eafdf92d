import { HeedError } from '../../base/errors.ts'
import { isoTime } from '../../base/iso.ts'
import type { MessageContent } from '../../message/message.ts'
import { compileFilter, type MetadataFilter } from '../filter/filter.ts'
import { mostPassages, passagesOf } from '../text/passages.ts'
import { ranking, type Meanings, type Ranked } from '../rank/rank.ts'
import { searchableText } from '../text/searchable.ts'
import { Copies, type Said } from '../rank/copies.ts'
import { confidence, looked } from '../rank/confidence.ts'
import { wordsOf } from '../text/words.ts'
import { refKey, type RecallHit, type RecallQuery } from '../../store/contract/recall.ts'
import type { ResourceCollection } from './collection.ts'
import type { Collections } from './collections.ts'
import type { Databases } from './databases.ts'
import type { Embeddings } from './embeddings.ts'
import type { Indexing } from './indexing.ts'
import { postingsOf } from './postings.ts'
import { roles } from './schema.ts'

/** What is asked, as it travels between threads. */
export interface Question extends Omit<RecallQuery, 'embedder'> {
  vector?: { embedder: string; numbers: Float32Array }
}

const rowSql = `
  SELECT m.message_id AS messageId, m.seq, m.role, m.created_at AS createdAt, m.content, t.id AS threadId, t.resource_id AS resourceId,
    coalesce(t.status <> 'idle' AND m.run_id = t.run_id AND m.seq >= (SELECT r.seal_seq FROM heed_runs r WHERE r.run_id = t.run_id AND r.thread = t.key), 0) AS running
  FROM heed_messages m JOIN heed_threads t ON t.key = m.thread WHERE m.key = ?`

const heldColumns = 'm.key, m.role, m.created_at AS createdAt'
// Two, for the two ways to a message that there is an index for.
const exceptSql = [`m.id = e.value ->> '$.messageId' AND m.message_id = m.id`, `m.message_id = e.value ->> '$.messageId' AND m.message_id <> m.id`]
  .map((where) => `SELECT ${heldColumns} FROM json_each(?1) e JOIN heed_threads t ON t.id = e.value ->> '$.threadId' JOIN heed_messages m ON m.thread = t.key WHERE ${where}`)
  .join(' UNION ALL ')

interface HeldRow extends Said {
  key: number
}

interface FoundRow {
  messageId: string
  seq: number
  role: string
  createdAt: number
  content: string
  threadId: string
  resourceId: string
  /** The run that wrote it is not over, and may undo it. */
  running: number
}

interface Found extends Ranked {
  row: FoundRow
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
    const postings = postingsOf(this.#databases.index, collection, words)
    const meanings = question.vector && this.#meanings(collection, question.vector)
    const thread = place.thread === undefined ? undefined : collection.threadNumber(place.thread)
    if (place.thread !== undefined && thread === undefined) return []
    const inThread = thread === undefined ? undefined : (at: number) => collection.thread[at] === thread
    const described = test && this.#described(collection, place.resourceId)
    const fits = test && described ? (at: number) => test(described(at)) : undefined
    const allowed = inThread && fits ? (at: number) => inThread(at) && fits(at) : (inThread ?? fits)
    const muted = this.#asked(collection, question)
    const found = this.#found(collection, ranking(collection, postings, meanings, { ...(allowed && { allowed }), ...(muted && { muted }) }), question)
    const sure = confidence(collection.count, words.length, postings, found, meanings)
    return found.slice(0, question.limit).map(({ at, score, reasons, row }) => {
      const { content, createdAt, running: _, ...named } = row
      const text = passagesOf(searchableText(JSON.parse(content) as MessageContent))[(collection.keys[at] ?? 0) % mostPassages] ?? ''
      return { ...named, createdAt: new Date(createdAt), text, score: score * sure, reasons }
    })
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

  /** The passages of the question itself. */
  #asked(collection: ResourceCollection, { shown }: Question): ((at: number) => boolean) | undefined {
    if (shown?.asked === undefined) return undefined
    const rows = this.#databases.messages.all<{ key: number; thread: number }>(
      'SELECT m.key, m.thread FROM heed_threads t JOIN heed_messages m ON m.thread = t.key WHERE t.id = ? AND m.seq >= ?', shown.threadId, shown.asked)
    const [first] = rows
    const thread = first && collection.threadNumber(first.thread)
    if (thread === undefined) return undefined
    const keys = new Set(rows.map(({ key }) => key))
    return (at) => collection.thread[at] === thread && keys.has(Math.floor((collection.keys[at] ?? 0) / mostPassages))
  }

  #meanings(collection: ResourceCollection, { embedder: id, numbers }: NonNullable<Question['vector']>): Meanings | undefined {
    const embedder = this.#embeddings.find(id)
    // Those that are stored may have become others since the question's was made: words have to do.
    if (!embedder || embedder.dimension !== numbers.length) return undefined
    return this.#collections.vectorsOf(collection.resource, embedder.key, embedder.dimension).compare(numbers)
  }

  /** What a filter sees of a passage's message. One of each thread is made, and looks at whichever passage was asked for last: a hundred thousand are asked for in no time. */
  #described(collection: ResourceCollection, resourceId: string): (at: number) => MetadataFilter {
    const { messages } = this.#databases
    let asked = 0
    const ofThread: MetadataFilter[] = []
    const describe = (thread: number): MetadataFilter => {
      const row = messages.one<{ id: string; metadata: string }>('SELECT id, metadata FROM heed_threads WHERE key = ?', collection.threadKeys[thread] ?? 0)
      return {
        ...(JSON.parse(row?.metadata ?? '{}') as MetadataFilter),
        thread_id: row?.id,
        resource_id: resourceId,
        get message_id() {
          return messages.one<{ id: string }>('SELECT message_id AS id FROM heed_messages WHERE key = ?', Math.floor((collection.keys[asked] ?? 0) / mostPassages))?.id
        },
        get role() {
          return roles[collection.role[asked] ?? -1]
        },
        get created_at() {
          return isoTime(collection.createdAt[asked] ?? 0)
        },
      }
    }
    return (at) => {
      asked = at
      return (ofThread[collection.thread[at] ?? 0] ??= describe(collection.thread[at] ?? 0))
    }
  }

  /** What is shown already, to know copies of it by. */
  #held({ shown, except = [] }: Question): Copies | undefined {
    if (!shown) return undefined
    const { messages } = this.#databases
    const copies = new Copies()
    const rows = [
      ...messages.all<HeldRow>(`SELECT ${heldColumns} FROM heed_threads t JOIN heed_messages m ON m.thread = t.key WHERE t.id = ? AND m.seq >= ?`, shown.threadId, shown.from),
      ...(except.length === 0 ? [] : messages.all<HeldRow>(exceptSql, JSON.stringify(except))),
    ]
    for (const { key, ...said } of rows) {
      if (said.role === 'context') continue
      copies.add(said, () => searchableText(JSON.parse(messages.one<{ content: string }>('SELECT content FROM heed_messages WHERE key = ?', key)?.content ?? '{"parts":[]}') as MessageContent))
    }
    return copies
  }

  /** The best messages that may be shown, each by its best passage; also those beyond the limit that tell how sure it is. */
  #found(collection: ResourceCollection, ranked: Iterable<Ranked>, question: Question): Found[] {
    const found: Found[] = []
    const taken = new Set<string>(question.except?.map(refKey))
    const judged = new Set<number>()
    const wanted = Math.max(question.limit, looked)
    const copies = this.#held(question)
    for (const one of ranked) {
      const key = Math.floor((collection.keys[one.at] ?? 0) / mostPassages)
      if (judged.has(key)) continue
      judged.add(key)
      const row = this.#databases.messages.one<FoundRow>(rowSql, key)
      if (!row || row.running === 1 || taken.has(refKey(row)) || this.#indexing.isStale(key)) continue
      if (row.threadId === question.shown?.threadId && row.seq >= question.shown.from) continue
      const text = () => searchableText(JSON.parse(row.content) as MessageContent)
      if (copies?.has(row, text)) continue
      copies?.add(row, text)
      taken.add(refKey(row))
      found.push({ ...one, row })
      if (found.length >= wanted) break
    }
    return found
  }
}
