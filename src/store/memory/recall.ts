import type { Clock } from '../../base/clock.ts'
import type { MessageRow } from '../../message/row.ts'
import { linkNeighbours, type Collection, type Posting } from '../../recall/rank/collection.ts'
import { Copies } from '../../recall/rank/copies.ts'
import type { TextEmbedder } from '../../recall/embedder.ts'
import { compileFilter } from '../../recall/filter/filter.ts'
import { embedTexts, QuestionTimeout } from '../../recall/index/embed-texts.ts'
import { isQuestion, splitPassages, withContext } from '../../recall/text/passages.ts'
import { confidence, judgedForConfidence, ranking, type Meanings, type Ranked } from '../../recall/rank/rank.ts'
import { searchableText } from '../../recall/text/searchable.ts'
import { extractTerms } from '../../recall/text/terms.ts'
import type { ThreadRow, ThreadStore } from '../contract/threads.ts'
import { failureOf, refKey, type EmbedderFailure, type RecallHit, type RecallIndex, type RecallQuery, type RecallStatus } from '../contract/recall.ts'

/** As far back as is looked, in all threads of a resource together. */
const mostRows = 2_000
const mostVectors = 20_000

interface Passage {
  thread: ThreadRow
  row: MessageRow
  text: string
  words: Set<string>
}

/** Looks through what there is, each time anew: for tests, and for as much as a process keeps in memory. */
export class InMemoryRecall implements RecallIndex {
  readonly #store: ThreadStore
  readonly #clock: Clock
  readonly #patience: QuestionTimeout
  /** By text, of the embedder that was asked last. */
  #vectors: { of: string; by: Map<string, Float32Array> } = { of: '', by: new Map() }
  #embedder: TextEmbedder | undefined
  #failure: EmbedderFailure | undefined

  constructor(store: ThreadStore, clock: Clock) {
    this.#store = store
    this.#clock = clock
    this.#patience = new QuestionTimeout(clock)
  }

  async search(query: RecallQuery): Promise<RecallHit[]> {
    const test = query.filter && compileFilter(query.filter)
    const passages = await this.#passages(query)
    const words = [...new Set(extractTerms(query.text))]
    const postings: Posting[] = words.flatMap((word) => {
      const having = passages.flatMap((passage, at) => (passage.words.has(word) ? [at] : []))
      return having.length === 0 ? [] : { term: word, passages: having }
    })
    const collection = collectionOf(passages)
    const meanings = await this.#meanings(passages, collection, query)
    const except = new Set(query.except?.map(refKey))
    const allowed = (at: number): boolean => {
      const passage = passages[at]
      if (!passage) return false
      const { thread, row } = passage
      if (query.threadId !== undefined && thread.id !== query.threadId) return false
      if (except.has(refKey({ threadId: thread.id, messageId: row.messageId })) || (thread.id === query.shown?.threadId && (row.seq ?? 0) >= query.shown.from)) return false
      return !test || test({ ...thread.metadata, message_id: row.messageId, thread_id: thread.id, resource_id: thread.resourceId, role: row.role, created_at: row.createdAt.toISOString() })
    }
    const ignored = (at: number): boolean => {
      const passage = passages[at]
      return query.shown?.asked !== undefined && passage?.thread.id === query.shown.threadId && (passage.row.seq ?? 0) >= query.shown.asked
    }
    const found = bestOfMessages(passages, ranking(collection, postings, meanings, { allowed, ignored }), Math.max(query.limit, judgedForConfidence), query.shown && held(passages, query))
    const sure = confidence(collection.count, words.length, postings, found, meanings)
    return found.slice(0, Math.max(0, query.limit)).map(({ passage: { thread, row, text }, score, reasons }) => (
      { threadId: thread.id, resourceId: thread.resourceId, messageId: row.messageId, seq: row.seq ?? 0, role: row.role, createdAt: row.createdAt, text, score: score * sure, reasons }
    ))
  }

  embedWith(embedder: TextEmbedder): void {
    this.#embedder = embedder
  }

  async status(): Promise<RecallStatus> {
    const embedder = this.#embedder
    return { pending: 0, embedders: embedder ? [{ id: embedder.id, complete: this.#failure === undefined, embedded: this.#vectors.of === embedder.id ? this.#vectors.by.size : 0, pending: 0, failing: 0, ...this.#failure }] : [] }
  }

  async reindex(): Promise<void> {
    this.#vectors = { of: '', by: new Map() }
  }

  async #passages({ resourceId, threadId }: RecallQuery): Promise<Passage[]> {
    const of = resourceId ?? (threadId === undefined ? undefined : (await this.#store.getThread({ threadId }))?.resourceId)
    if (of === undefined) return []
    if (threadId !== undefined) await this.#store.getThread({ threadId, resourceId: of })
    const passages: Passage[] = []
    const { threads } = await this.#store.listThreads({ resourceId: of, orderBy: { field: 'updatedAt', direction: 'DESC' }, limit: mostRows })
    let left = mostRows
    for (const thread of threads) {
      if (left <= 0) break
      const { rows } = await this.#store.listRows({ threadId: thread.id }, { limit: left })
      left -= rows.length
      const undoable = await this.#undoable(thread.id)
      for (const row of rows) {
        if (row.role === 'system' || undoable(row)) continue
        for (const text of splitPassages(searchableText(row.content))) passages.push({ thread, row, text, words: new Set(extractTerms(text)) })
      }
    }
    return passages
  }

  /** What the run of a thread that isn't over may still take back. */
  async #undoable(threadId: string): Promise<(row: MessageRow) => boolean> {
    const thread = await this.#store.getThread({ threadId })
    const run = thread && thread.status !== 'idle' && thread.runId !== undefined ? await this.#store.getRun({ threadId }, thread.runId) : null
    return ({ runId, seq = 0 }) => run !== null && runId === run.runId && seq >= run.sealSeq
  }

  async #meanings(passages: readonly Passage[], { previous }: Collection, query: RecallQuery): Promise<Meanings | undefined> {
    const { embedder = this.#embedder } = query
    if (!embedder || passages.length === 0) return undefined
    const pairs = passages.map(({ text }, at) => withContext(passages[previous[at] ?? -1]?.text, text))
    try {
      const vectors = await this.#embed(embedder, [query.text, ...passages.map(({ text }) => text), ...pairs])
      const [question] = vectors
      if (!question) return undefined
      const own = Float32Array.from(passages, (_, at) => cosine(question, vectors[at + 1]))
      const pair = Float32Array.from(passages, (_, at) => cosine(question, vectors[at + 1 + passages.length]))
      this.#failure = undefined
      return { own, pair }
    } catch (error) {
      this.#failure = failureOf(error)
      this.#patience.recordFailure(error)
      return undefined
    }
  }

  async #embed(embedder: TextEmbedder, texts: readonly string[]): Promise<Array<Float32Array | undefined>> {
    if (this.#vectors.of !== embedder.id) this.#vectors = { of: embedder.id, by: new Map() }
    const { by } = this.#vectors
    const missing = [...new Set(texts)].filter((text) => !by.has(text))
    if (by.size + missing.length > mostVectors) by.clear()
    // Vectors that are made before it is over are kept for the next search.
    const until = this.#clock.now() + this.#patience.ms
    for (let start = 0; start < missing.length; start += embedder.maxBatch) {
      const some = missing.slice(start, start + embedder.maxBatch)
      const [known] = by.values()
      const vectors = await embedTexts(embedder, some, {
        signal: new AbortController().signal, timeoutMs: Math.max(0, until - this.#clock.now()), clock: this.#clock, ...(known && { dimension: known.length }),
      })
      for (const [at, text] of some.entries()) if (vectors[at]) by.set(text, vectors[at])
    }
    return texts.map((text) => by.get(text))
  }
}

/** The best messages, each by its best passage. */
function bestOfMessages(passages: readonly Passage[], ranked: Iterable<Ranked>, wanted: number, copies: Copies | undefined): Array<Ranked & { passage: Passage }> {
  const found = new Map<string, Ranked & { passage: Passage }>()
  for (const one of ranked) {
    if (found.size >= wanted) break
    const passage = passages[one.at]
    if (!passage) continue
    const key = refKey({ threadId: passage.thread.id, messageId: passage.row.messageId })
    const { role, createdAt, content } = passage.row
    const said = { role, createdAt: createdAt.getTime() }
    const text = () => searchableText(content)
    if (found.has(key) || copies?.has(said, text)) continue
    copies?.add(said, text)
    found.set(key, { ...one, passage })
  }
  return [...found.values()]
}

/** What is shown already, to know copies of it by. */
function held(passages: readonly Passage[], { shown, except = [] }: RecallQuery): Copies {
  const copies = new Copies()
  const refs = new Set(except.map(refKey))
  for (const { thread, row } of passages) {
    const isHeld = (thread.id === shown?.threadId && (row.seq ?? 0) >= shown.from) || refs.has(refKey({ threadId: thread.id, messageId: row.messageId }))
    if (isHeld) copies.add({ role: row.role, createdAt: row.createdAt.getTime() }, () => searchableText(row.content))
  }
  return copies
}

function collectionOf(passages: readonly Passage[]): Collection {
  const numbers = new Map<string, number>()
  const thread = passages.map(({ thread: { id } }) => {
    const number = numbers.get(id) ?? numbers.size
    numbers.set(id, number)
    return number
  })
  return {
    count: passages.length,
    length: passages.map(({ words }) => words.size),
    thread,
    ...linkNeighbours(thread),
    question: passages.map(({ text }) => (isQuestion(text) ? 1 : 0)),
  }
}

function cosine(a: Float32Array, b: Float32Array | undefined): number {
  if (!b || a.length !== b.length) return 0
  let product = 0
  let squares = 0
  let others = 0
  for (let at = 0; at < a.length; at += 1) {
    const [x = 0, y = 0] = [a[at], b[at]]
    product += x * y
    squares += x * x
    others += y * y
  }
  return product / (Math.sqrt(squares * others) || 1)
}
