import { HeedError } from '../../base/errors.ts'
import type { EmbedderStatus, RecallHit, RecallProgress } from '../../store/contract/recall.ts'
import type { Connection } from '../../store/sqlite/connection.ts'
import { CollectionCache } from './collection-cache.ts'
import type { Databases } from './databases.ts'
import { Embeddings, type DuePassages, type Embedded, type Unembedded } from './embeddings.ts'
import { Indexer, type IndexingResult } from './indexer.ts'
import { PlacedVectors, type Removal } from './placed-vectors.ts'
import { Searcher, type Question } from './searcher.ts'
import { WorkerCalls } from './worker-calls.ts'

/** The indexing steps that a search does first: while messages are missing in the index, and while all are indexed again. */
const stepsBeforeSearch = 100
const stepsDuringRebuild = 3

export interface SearchResult {
  hits: RecallHit[]
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

  constructor(databases: Databases) {
    this.#databases = databases
    const collections = new CollectionCache(databases)
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

  /** Searches what is indexed. */
  find(question: Question, incomplete: boolean): SearchResult {
    return { hits: this.#searcher.search(question), incomplete }
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

type EngineMethod = Exclude<
  { [Name in keyof RecallEngine]: RecallEngine[Name] extends (...args: never[]) => unknown ? Name : never }[keyof RecallEngine],
  'close' | 'catchUp' | 'find'
>

/** Calls the methods of an engine, here or in a worker thread. */
export interface EnginePort {
  call<Method extends EngineMethod>(method: Method, ...args: Parameters<RecallEngine[Method]>): Promise<ReturnType<RecallEngine[Method]>>
  close(): Promise<void>
}

/** Opens an engine in a worker thread for a database file; no worker thread can read a database in memory. */
export async function openEngine(connection: Connection): Promise<EnginePort> {
  if (connection.path !== undefined) {
    const worker = new WorkerCalls(import.meta.url, 'engine-worker', { path: connection.path })
    return { call: (method, ...args) => worker.call(method, args) as Promise<never>, close: () => worker.close() }
  }
  const { besideMessages } = await import('./databases.ts')
  return new OwnThread(new RecallEngine(besideMessages(connection.database)))
}

/** An engine without a worker thread. The event loop runs between two steps of indexing, each of which indexes at most 100 messages. */
class OwnThread implements EnginePort {
  readonly #engine: RecallEngine
  #closed = false

  constructor(engine: RecallEngine) {
    this.#engine = engine
  }

  async call<Method extends EngineMethod>(
    method: Method, ...args: Parameters<RecallEngine[Method]>
  ): Promise<ReturnType<RecallEngine[Method]>> {
    if (method === 'index') await this.#yield()
    if (method === 'search') return (await this.#search(args[0] as Question)) as ReturnType<RecallEngine[Method]>
    const act = this.#engine[method] as (...args: unknown[]) => ReturnType<RecallEngine[Method]>
    return act.apply(this.#engine, args)
  }

  async #search(question: Question): Promise<SearchResult> {
    for (let step = 1; ; step += 1) {
      const { again, incomplete } = this.#engine.catchUp(step)
      if (!again) return this.#engine.find(question, incomplete)
      await this.#yield()
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#engine.close()
  }

  async #yield(): Promise<void> {
    await new Promise<void>((resolve) => setImmediate(resolve))
    if (this.#closed) throw new HeedError('closed', 'This store was closed. Open a new one.')
  }
}
