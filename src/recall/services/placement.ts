import type { Clock } from '../../base/clock.ts'
import { describe, HeedError, isHeedError } from '../../base/errors.ts'
import type { VectorMatch, VectorPlace } from '../vector-store.ts'
import { withinDeadline, type Deadline } from './deadline.ts'
import { QuestionTimeout } from './question-timeout.ts'
import type { PassageMetadata } from '../index/embeddings.ts'
import type { NearVectors, Removal } from '../index/placed-vectors.ts'

/** A vector for a vector store. */
interface PlacedVector {
  id: string
  vector: ArrayLike<number>
  metadata: PassageMetadata
}

/** Whose vectors a question may find. */
export interface NearQuestion {
  scope: string
  vector: Float32Array
  resourceId: string
  threadId?: string
  /** The number of messages that the search returns. */
  limit: number
}

/** The time that a vector store has for a batch, and to answer a question: less, for a minute after it did not answer in time. */
const batchTimeoutMs = 60_000
const questionMs = { timeout: 3_000, cautious: 500 }
/** As many nearest vectors are asked for: some stores return no more. A search for many messages asks for more. */
const leastNear = 100
/** The vectors that one call deletes, where the store does not delete by a filter. */
const removedAtOnce = 100
/** The rounds of deletions by id, for a store that returns what was deleted for a while. */
const maxRounds = 10_000

type Ending = Pick<Deadline, 'signal' | 'background'>

/** Stores the vectors of one embedder in a vector store, deletes them there, and asks it for the nearest. */
export class Placement {
  #place: VectorPlace
  readonly #clock: Clock
  readonly #timeout: QuestionTimeout
  /** Indexes that exist, by dimension. */
  readonly #created = new Map<number, Promise<unknown>>()

  constructor(place: VectorPlace, clock: Clock) {
    this.#place = place
    this.#clock = clock
    this.#timeout = new QuestionTimeout(clock, questionMs)
  }

  get name(): string {
    return this.#place.name
  }

  /** Another object for the same store; its API key may be a new one. */
  use(place: VectorPlace): void {
    this.#place = place
  }

  /** Stores vectors of one dimension, or replaces those with the same ids. */
  async put(vectors: readonly PlacedVector[], ending: Ending): Promise<void> {
    const dimension = vectors[0]?.vector.length
    if (dimension === undefined) return
    try {
      await this.#create(dimension, ending)
      await this.#call(({ store }) => store.upsert({
        indexName: this.#indexName(dimension),
        vectors: vectors.map(({ vector }) => unitVector(vector)),
        metadata: vectors.map(({ metadata }) => ({ ...metadata })),
        ids: vectors.map(({ id }) => id),
      }), ending)
    } catch (error) {
      // The index may have been deleted since.
      this.#created.delete(dimension)
      throw error
    }
  }

  async remove(removals: readonly Removal[], ending: Ending): Promise<void> {
    const existing = new Set(await this.#indexes(ending))
    for (const indexName of existing) {
      const ids = removals
        .filter(({ dimension }) => dimension === undefined || indexName === this.#indexName(dimension))
        .map(({ id }) => id)
      await this.#delete(indexName, ids, ending)
    }
  }

  /** Deletes all vectors of a scope, in indexes of every dimension. */
  async clear(scope: string, ending: Ending): Promise<void> {
    for (const indexName of await this.#indexes(ending)) await this.#clearIndex(indexName, scope, ending)
  }

  async #clearIndex(indexName: string, scope: string, ending: Ending): Promise<void> {
    const filter = { heed_index: scope }
    try {
      if (this.#place.store.deleteVectors) {
        return void (await this.#call(({ store }) => store.deleteVectors?.({ indexName, filter }) ?? Promise.resolve(), ending))
      }
    } catch {
      // Not every store deletes by a filter.
    }
    const dimension = Number(/\d+$/.exec(indexName)?.[0])
    const queryVector = Array.from({ length: dimension }, () => dimension ** -0.5)
    for (let round = 0; round < maxRounds; round += 1) {
      const found = await this.#call(({ store }) => store.query({ indexName, queryVector, topK: removedAtOnce, filter }), ending)
      const ids = found.filter(({ metadata }) => metadata?.heed_index === scope).map(({ id }) => id)
      if (ids.length === 0) return
      await this.#delete(indexName, ids, ending)
    }
    throw this.#failure(`still returned vectors after ${maxRounds} rounds of deletions`)
  }

  /**
   * The nearest vectors of a resource, or of one of its threads. The store is asked for those alone; what it says is of another resource is
   * left out. `all`: the store has no more of them.
   */
  async near({ scope, vector, resourceId, threadId, limit }: NearQuestion, signal: AbortSignal): Promise<NearVectors> {
    const { metric } = this.#place
    const queryVector = unitVector(vector)
    const topK = Math.max(leastNear, 2 * limit)
    try {
      const found = await this.#call(({ store }) => store.query({
        indexName: this.#indexName(vector.length),
        queryVector,
        topK,
        filter: { heed_index: scope, resource_id: resourceId, ...(threadId !== undefined && { thread_id: threadId }) },
        ...(metric === 'euclidean' && { includeVector: true }),
      }), { signal, timeoutMs: this.#timeout.ms })
      if (!Array.isArray(found)) throw this.#failure('did not return a list')
      const own = found.filter(({ metadata }) => metadata?.resource_id === undefined || metadata.resource_id === resourceId)
      return { vectors: cosinesOf(own, queryVector), all: found.length < topK }
    } catch (error) {
      this.#timeout.recordFailure(error)
      throw error
    }
  }

  #create(dimension: number, ending: Ending): Promise<unknown> {
    const { metric, indexConfig } = this.#place
    const indexName = this.#indexName(dimension)
    let creating = this.#created.get(dimension)
    if (!creating) {
      creating = this.#call(({ store }) => store.createIndex({ indexName, dimension, metric, ...(indexConfig && { indexConfig }) }), ending)
      this.#created.set(dimension, creating)
    }
    return creating
  }

  async #delete(indexName: string, ids: string[], ending: Ending): Promise<void> {
    if (ids.length === 0) return
    const { store } = this.#place
    if (store.deleteVectors) return void (await this.#call(() => store.deleteVectors?.({ indexName, ids }) ?? Promise.resolve(), ending))
    for (const id of ids) await this.#call(() => store.deleteVector({ indexName, id }), ending)
  }

  /** The indexes of recall in the store. */
  async #indexes(ending: Ending): Promise<string[]> {
    const [prefix = ''] = this.#indexName(0).split('0')
    const names = await this.#call(({ store }) => store.listIndexes(), ending)
    return names.filter((name) => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)))
  }

  #indexName(dimension: number): string {
    return ['heed', 'recall', String(dimension)].join(this.#place.store.indexSeparator ?? '_')
  }

  async #call<Result>(work: (place: VectorPlace) => Promise<Result>, ending: Ending & { timeoutMs?: number }): Promise<Result> {
    const who = `Vector store '${this.name}'`
    try {
      return await withinDeadline(who, async () => work(this.#place), { timeoutMs: batchTimeoutMs, ...ending, clock: this.#clock })
    } catch (error) {
      if (ending.signal.aborted || isHeedError(error)) throw error
      throw this.#failure(`failed: ${describe(error)}`, error)
    }
  }

  #failure(what: string, cause?: unknown): HeedError {
    const message = `Vector store '${this.name}' ${what}.`
    return new HeedError('provider_error', message, { retryable: true, ...(cause !== undefined && { cause }) })
  }
}

/** Scaled to length 1: the dot product of two is their cosine. */
function unitVector(vector: ArrayLike<number>): number[] {
  const numbers = Array.from(vector)
  const length = Math.hypot(...numbers) || 1
  return numbers.map((number) => number / length)
}

/**
 * The cosines of matches. Matches are nearest first, so that scores which grow are distances. Where the store returned the vectors, they
 * are computed here: euclidean scores differ from store to store.
 */
function cosinesOf(matches: readonly VectorMatch[], question: readonly number[]): NearVectors['vectors'] {
  const areDistances = (matches[0]?.score ?? 0) < (matches.at(-1)?.score ?? 0)
  return matches.flatMap(({ id, score, vector }) => {
    const cosine = vector && vector.length === question.length
      ? unitVector(vector).reduce((sum, number, at) => sum + number * (question[at] ?? 0), 0)
      : areDistances ? 1 - score : score
    return typeof id === 'string' && Number.isFinite(cosine) ? [{ id, cosine: Math.max(-1, Math.min(1, cosine)) }] : []
  })
}
