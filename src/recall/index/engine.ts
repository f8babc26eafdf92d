import type { EmbedderStatus, RecallProgress } from '../../store/contract/recall.ts'
import { CollectionCache, type Collections } from './collection-cache.ts'
import type { Databases } from './databases.ts'
import { Embeddings, type DuePassages, type Embedded, type EmbedderRow, type Unembedded } from './embeddings.ts'
import { Indexer, type IndexingResult } from './indexer.ts'
import { PlacedVectors, type Removal } from './placed-vectors.ts'
import { Searcher, type Found, type Question, type SearchScope } from './searcher.ts'

/** The indexing steps that a search does first: while messages are missing in the index, and while all are indexed again. */
const stepsBeforeSearch = 100
const stepsDuringRebuild = 3

export interface SearchResult extends Found {
  /** Messages that were committed before the search are not in the index yet. */
  incomplete: boolean
}

/** The operations on an index, one after the other. Runs in a worker thread for a database file. */
export class RecallEngine {
  readonly #databases: Databases
  readonly #indexer: Indexer
  readonly #embeddings: Embeddings
  readonly #placed: PlacedVectors
  readonly #searcher: Searcher

  constructor(databases: Databases, collections: Collections = new CollectionCache(databases)) {
    this.#databases = databases
    this.#indexer = new Indexer(databases, collections)
    this.#placed = new PlacedVectors(databases)
    this.#embeddings = new Embeddings(databases, collections, this.#placed)
    this.#searcher = new Searcher(databases, { collections, embeddings: this.#embeddings, indexer: this.#indexer, placed: this.#placed })
  }

  index(): IndexingResult {
    return this.#indexer.step()
  }

  /** Indexes what is missing first, up to 10,000 messages, and searches what is indexed by then. */
  search(question: Question): SearchResult {
    for (let step = 1; ; step += 1) {
      const { again, incomplete } = this.catchUp(step)
      if (!again) return this.find(question, incomplete)
    }
  }

  /** Runs the `step`th indexing step of a search. `again`: the search runs another; `incomplete`: messages will be missing. */
  catchUp(step: number): { again: boolean; incomplete: boolean } {
    const { more, missing } = this.#indexer.step()
    const again = more && step < (missing ? stepsBeforeSearch : stepsDuringRebuild)
    return { again, incomplete: missing && !again }
  }

  /** What a search on a server needs to know first. */
  readForSearch(question: Question): { isCurrent: boolean; scope: SearchScope | undefined; embedder: EmbedderRow | undefined } {
    const embedder = question.vector && this.#embeddings.find(question.vector.embedder)
    const isCurrent = this.#indexer.isCurrent()
    return { embedder, isCurrent, scope: this.#searcher.scopeOf(question) }
  }

  /** Searches what is indexed of a resource. */
  searchIn(scope: SearchScope, question: Question): Found {
    return this.#searcher.searchIn(scope, question)
  }

  /** Searches what is indexed. */
  find(question: Question, incomplete: boolean): SearchResult {
    return { ...this.#searcher.search(question), incomplete }
  }

  register(embedder: string, now: number, placed?: { place: string; model: string }): void {
    this.#embeddings.register(embedder, now, placed)
  }

  /** Whether all passages have vectors of the embedder, their dimension, and their scope in a vector store. */
  embedderState(embedder: string): { complete: boolean; dimension?: number; scope?: string } {
    const row = this.#embeddings.find(embedder)
    return {
      complete: row?.complete === 1,
      ...(row?.dimension ? { dimension: row.dimension } : {}),
      ...(row?.scope ? { scope: row.scope } : {}),
    }
  }

  cleared(embedder: string): void {
    this.#embeddings.cleared(embedder)
  }

  /** Vectors to delete in the vector store of this name. */
  removals(place: string, limit: number): Removal[] {
    return this.#placed.removals(place, limit)
  }

  /** These removals are done. */
  removed(numbers: readonly number[]): void {
    this.#placed.removed(numbers)
  }

  /** The resource of a thread. */
  resourceOf(threadId: string): string | undefined {
    return this.#searcher.resourceOf(threadId)
  }

  embedderProgress(embedder: string): RecallProgress {
    return this.#embeddings.progressOf(embedder)
  }

  /** Passages to embed. Indexes outdated messages at once, so that they don't block the queue. */
  readDue(embedder: string, limit: number, now: number): DuePassages {
    const due = this.#embeddings.readDue(embedder, limit, now)
    if (due.outdated.length > 0) this.#indexer.refresh(due.outdated)
    return due
  }

  storeVectors(embedder: string, embedded: readonly Embedded[]): void {
    this.#embeddings.storeVectors(embedder, embedded)
  }

  postpone(embedder: string, passages: ReadonlyArray<Pick<Unembedded, 'passage' | 'revision'>>, now: number): void {
    this.#embeddings.postpone(embedder, passages, now)
  }

  status(): { pending: number; rebuilding?: RecallProgress; embedders: EmbedderStatus[] } {
    return { ...this.#indexer.status(), embedders: this.#embeddings.status() }
  }

  /** Indexes all messages again, and makes all vectors again except those of the embedders in `except`. Returns their number. */
  rebuild(except: readonly string[] = []): number {
    this.#indexer.rebuild()
    this.#embeddings.enqueueAll(except)
    return this.#indexer.status().rebuilding?.total ?? 0
  }

  close(): void {
    this.#databases.close()
  }
}

export type EngineMethod = Exclude<
  { [Name in keyof RecallEngine]: RecallEngine[Name] extends (...args: never[]) => unknown ? Name : never }[keyof RecallEngine],
  'close' | 'catchUp' | 'find' | 'readForSearch' | 'searchIn'
>

/** Where the index is: in a file beside the messages, or in the database of a server. */
export type IndexKind = 'file' | 'libsql' | 'postgres'

/** Calls the methods of an engine, here or in a worker thread. */
export interface EnginePort {
  call<Method extends EngineMethod>(method: Method, ...args: Parameters<RecallEngine[Method]>): Promise<ReturnType<RecallEngine[Method]>>
  close(): Promise<void>
}
