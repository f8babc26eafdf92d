import type { EmbedderStatus, RecallHit, RecallProgress } from '../../store/contract/recall.ts'
import { Collections } from './collections.ts'
import type { Databases } from './databases.ts'
import { Embeddings, type Embedded, type Taken, type Unembedded } from './embeddings.ts'
import { Indexing, type IndexingResult } from './indexing.ts'
import { Searching, type Question } from './searching.ts'

/** Steps that a search does of what is still to be indexed, before it looks: of changes, and while everything is indexed anew. */
const stepsBeforeSearch = 100
const stepsOfRebuilding = 3

/** Everything that is done on an index, one thing after the other. Runs in a thread of its own where there is a file. */
export class RecallEngine {
  readonly #databases: Databases
  readonly #indexing: Indexing
  readonly #embeddings: Embeddings
  readonly #searching: Searching

  constructor(databases: Databases) {
    this.#databases = databases
    const collections = new Collections(databases)
    this.#indexing = new Indexing(databases, collections)
    this.#embeddings = new Embeddings(databases, collections)
    this.#searching = new Searching(databases, collections, this.#embeddings, this.#indexing)
  }

  index(): IndexingResult {
    return this.#indexing.step()
  }

  /** What was committed before it is found, up to 10,000 messages of it. While everything is indexed anew, what is there by then. */
  search(question: Question): RecallHit[] {
    for (let step = 1; ; step += 1) {
      const { more, behind } = this.#indexing.step()
      if (!more || step >= (behind ? stepsBeforeSearch : stepsOfRebuilding)) break
    }
    return this.#searching.search(question)
  }

  register(embedder: string, now: number): void {
    this.#embeddings.register(embedder, now)
  }

  /** Whether all passages have had vectors of it, and how many numbers those have. */
  stateOf(embedder: string): { complete: boolean; dimension?: number } {
    const found = this.#embeddings.find(embedder)
    return { complete: found?.complete === 1, ...(found?.dimension ? { dimension: found.dimension } : {}) }
  }

  progressOf(embedder: string): RecallProgress {
    return this.#embeddings.progressOf(embedder)
  }

  /** What is outdated is indexed as it is now: nothing that waits behind it waits for longer. */
  take(embedder: string, limit: number, now: number): Taken {
    const taken = this.#embeddings.take(embedder, limit, now)
    if (taken.outdated.length > 0) this.#indexing.refresh(taken.outdated)
    return taken
  }

  put(embedder: string, embedded: readonly Embedded[]): void {
    this.#embeddings.put(embedder, embedded)
  }

  postpone(embedder: string, passages: ReadonlyArray<Pick<Unembedded, 'passage' | 'revision'>>, now: number): void {
    this.#embeddings.postpone(embedder, passages, now)
  }

  status(): { pending: number; rebuilding?: RecallProgress; embedders: EmbedderStatus[] } {
    return { ...this.#indexing.status(), embedders: this.#embeddings.status() }
  }

  /** Except for the vectors of these embedders. */
  rebuild(except: readonly string[] = []): void {
    this.#indexing.rebuild()
    this.#embeddings.again(except)
  }

  close(): void {
    this.#databases.close()
  }
}

/** What can be asked of an engine, by name. */
export type EngineCall = Exclude<{ [Name in keyof RecallEngine]: RecallEngine[Name] extends (...args: never[]) => unknown ? Name : never }[keyof RecallEngine], 'close'>
