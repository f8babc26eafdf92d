import type { Clock, Timer } from '../../base/clock.ts'
import { describe, HeedError, isHeedError } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import type { TextEmbedder } from '../embedder.ts'
import { failureOf, type EmbedderFailure } from '../../store/contract/recall.ts'
import { EmbedderBackoff } from './embedder-backoff.ts'
import type { DuePassages, Unembedded } from '../index/embeddings.ts'
import type { EnginePort } from '../index/engine.ts'
import { vectorId, type NearVectors } from '../index/placed-vectors.ts'
import { WorkProgress } from '../index/work-progress.ts'
import { quantizedNumbers } from '../rank/quantized-vectors.ts'
import { withinDeadline, type Deadline } from './deadline.ts'
import { Placement, type NearQuestion } from './placement.ts'
import { QuestionTimeout } from './question-timeout.ts'
import { Removals } from './removals.ts'

/** The delay before a retry when the index failed, not the embedder. */
const retryMs = 10_000
/** The time that the embedder has for passages. */
const passagesTimeoutMs = 60_000
/** How long a search waits for the question's vector before it uses terms alone. */
const questionMs = { timeout: 10_000, cautious: 1_000 }
/** Vectors that were made and not stored yet, because a vector store failed: their texts are not embedded again. */
const maxUnstored = 512
/** The progress of fewer passages than this is not reported. */
const leastReported = 256

/** A caller that waits until the queue is empty. */
interface Waiter {
  onProgress(): Promise<void>
  resolve(): void
  reject(error: unknown): void
}

/** Calls an embedder for the passages that lack its vectors, and for questions. Failed passages are retried without limit. */
export class EmbedderQueue {
  readonly #engine: EnginePort
  readonly #clock: Clock
  readonly #ending = new AbortController()
  #registering: Promise<void> | undefined
  #working: Promise<void> | undefined
  /** `wake` was called while working. */
  #isAwake = false
  #holds = 0
  #timer: Timer | undefined
  #limit: number
  #failure: EmbedderFailure | undefined
  #questionFailure: EmbedderFailure | undefined
  /** The error that started the backoff. */
  #cause: unknown
  #embedder: TextEmbedder
  readonly #questionTimeout: QuestionTimeout
  readonly #backoff: EmbedderBackoff
  readonly #progress: WorkProgress
  readonly #waiters = new Set<Waiter>()
  /** For an embedder whose vectors are in a vector store. */
  readonly #placement: Placement | undefined
  readonly #removals: Removals | undefined
  /** By text. */
  readonly #unstored = new Map<string, Float32Array>()

  constructor(engine: EnginePort, embedder: TextEmbedder, clock: Clock, logger: () => Logger | undefined) {
    this.#engine = engine
    this.#embedder = embedder
    this.#clock = clock
    this.#progress = new WorkProgress({
      name: `recall: vectors of '${this.id}'`,
      line: ({ done, total }) => `recall: ${done} of ${total} passages have vectors of '${this.id}'`,
      read: async () => ({ ...(await engine.call('embedderProgress', this.id)), embedder: this.id }),
      least: leastReported,
    }, clock, logger)
    this.#questionTimeout = new QuestionTimeout(clock, questionMs)
    this.#backoff = new EmbedderBackoff(clock)
    this.#limit = this.#maxBatch
    this.#placement = embedder.place && new Placement(embedder.place, clock)
    this.#removals = this.#placement && new Removals(engine, this.#placement, clock, this.#ending.signal)
    this.wake()
  }

  get id(): string {
    return this.#embedder.id
  }

  /** The last failure of the embedder, until it succeeds. */
  get failure(): EmbedderFailure | undefined {
    return this.#failure ?? this.#questionFailure ?? this.#removals?.failure
  }

  /** Replaces the embedder by another object with the same id, which returns the same vectors; its API key may be a new one. */
  replaceEmbedder(embedder: TextEmbedder): void {
    const isAnother = embedder.embed !== this.#embedder.embed
    this.#embedder = embedder
    if (embedder.place) this.#placement?.use(embedder.place)
    if (!isAnother) return
    this.#limit = this.#maxBatch
    this.#backoff.reset()
  }

  /** Registers the embedder again, so that it does not expire. */
  renew(): void {
    this.#registering = undefined
    this.wake()
  }

  /** Starts work, when there may be passages without vectors. */
  wake(): void {
    this.#isAwake = true
    this.#removals?.wake()
    if (this.#working || this.#holds > 0 || this.#ending.signal.aborted) return
    if (!this.#backoff.isOver) return this.#wakeAt(this.#backoff.until)
    this.#timer?.cancel()
    this.#timer = undefined
    this.#working = this.#work().finally(() => {
      this.#progress.end()
      this.#working = undefined
      if (this.#isAwake) this.wake()
    })
  }

  /** Sends the embedder no more passages until the returned function is called. */
  hold(): () => void {
    this.#holds += 1
    return () => {
      this.#holds -= 1
      this.wake()
    }
  }

  /** Resolves when every passage has its vectors. Rejects when the embedder keeps failing; retries continue after that. */
  async whenComplete(onProgress: () => Promise<void>): Promise<void> {
    if (this.#ending.signal.aborted) throw this.#ending.signal.reason
    this.#limit = this.#maxBatch
    this.#backoff.shorten()
    if (this.#backoff.isHopeless) throw this.#incomplete(this.#cause)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiter = { onProgress, resolve, reject }
    this.#waiters.add(waiter)
    try {
      this.wake()
      await promise
    } finally {
      this.#waiters.delete(waiter)
    }
  }

  /** The vector of a question, of the given dimension; undefined when the embedder fails or is too slow. */
  async embedQuestion(text: string, dimension: number | undefined): Promise<Float32Array | undefined> {
    try {
      const [vector] = await embedTexts(this.#embedder, [text], {
        signal: this.#ending.signal, timeoutMs: this.#questionTimeout.ms, clock: this.#clock, ...(dimension !== undefined && { dimension }),
      })
      this.#questionFailure = undefined
      return vector
    } catch (error) {
      this.#questionFailure = failureOf(error)
      this.#questionTimeout.recordFailure(error)
      return undefined
    }
  }

  /** The nearest vectors in the embedder's vector store. Throws when the store fails or is too slow. */
  async near(question: NearQuestion): Promise<NearVectors | undefined> {
    try {
      const near = await this.#placement?.near(question, this.#ending.signal)
      this.#questionFailure = undefined
      return near
    } catch (error) {
      this.#questionFailure = failureOf(error)
      throw error
    }
  }

  async close(): Promise<void> {
    this.#ending.abort(new HeedError('closed', 'The store was closed.'))
    for (const { reject } of this.#waiters) reject(this.#ending.signal.reason)
    this.#timer?.cancel()
    await Promise.all([this.#working, this.#removals?.close()])
  }

  get #maxBatch(): number {
    return Math.max(1, Math.min(64, this.#embedder.maxBatch))
  }

  async #work(): Promise<void> {
    try {
      while (this.#holds === 0 && !this.#ending.signal.aborted) {
        this.#isAwake = false
        await (this.#registering ??= this.#register())
        const due = await this.#engine.call('readDue', this.id, this.#limit, this.#clock.now())
        const { passages, outdated, unknown, nextAt } = due
        if (unknown) this.#registering = undefined
        if (unknown || (passages.length === 0 && outdated.length > 0)) continue
        if (passages.length === 0) {
          if (nextAt !== undefined) this.#wakeAt(nextAt)
          else if (!this.#isAwake) for (const { resolve } of this.#waiters) resolve()
          return
        }
        await this.#embedPassages(due)
        await this.#progress.add(passages.length)
        for (const { onProgress } of this.#waiters) await onProgress()
        if (!this.#backoff.isOver) return this.#wakeAt(this.#backoff.until)
      }
    } catch (error) {
      if (this.#ending.signal.aborted) return
      this.#registering = undefined
      this.#isAwake = false
      this.#failure = failureOf(error)
      for (const { reject } of this.#waiters) reject(error)
      this.#wakeAt(this.#clock.now() + retryMs)
    }
  }

  #register(): Promise<void> {
    const { place } = this.#embedder
    return this.#engine.call('register', this.id, this.#clock.now(), place && { place: place.name, model: place.model })
  }

  async #embedPassages({ passages, dimension, placed }: DuePassages): Promise<void> {
    const isNew = ({ known, text }: Unembedded) => known === undefined && !this.#unstored.has(text)
    const texts = [...new Set(passages.filter(isNew).map(({ text }) => text))]
    const made = new Map(this.#unstored)
    const none = new Float32Array(0)
    const embedded = () => passages.map(({ passage, revision, text, hash, known }) => {
      return { passage, revision, hash, vector: known ?? made.get(text) ?? none }
    })
    try {
      if (texts.length > 0) {
        const vectors = await embedTexts(this.#embedder, texts, {
          signal: this.#ending.signal,
          timeoutMs: passagesTimeoutMs,
          clock: this.#clock,
          background: this.#waiters.size === 0,
          ...(dimension !== undefined && { dimension }),
        })
        for (const [at, text] of texts.entries()) made.set(text, vectors[at] ?? none)
      }
      if (placed) {
        for (const text of texts) if (this.#unstored.size < maxUnstored) this.#unstored.set(text, made.get(text) ?? none)
        await this.#place(passages, embedded().map(({ vector }) => vector), placed)
      }
    } catch (error) {
      if (this.#ending.signal.aborted) return
      await this.#passagesFailed(error, passages)
      return
    }
    // Where neither the embedder nor a vector store was called, failures stand.
    const called = texts.length > 0 || placed !== undefined
    if (called) this.#backoff.reset()
    await this.#engine.call('storeVectors', this.id, embedded())
    for (const { text } of passages) this.#unstored.delete(text)
    // Some of them may have changed meanwhile.
    if (placed) this.#removals?.wake()
    if (!called) return
    this.#cause = undefined
    this.#failure = undefined
    this.#questionFailure = undefined
    this.#limit = Math.min(this.#maxBatch, this.#limit * 2)
  }

  /** Stores vectors in the vector store. Before the first ones, deletes those of an index that was lost. */
  async #place(
    passages: readonly Unembedded[],
    vectors: ReadonlyArray<Float32Array | Uint8Array>,
    { scope, cleared }: NonNullable<DuePassages['placed']>,
  ): Promise<void> {
    const ending = { signal: this.#ending.signal, background: this.#waiters.size === 0 }
    if (!cleared) {
      await this.#placement?.clear(scope, ending)
      await this.#engine.call('cleared', this.id)
    }
    const items = passages.flatMap(({ passage, revision, metadata }, at) => {
      const vector = vectors[at]
      if (!vector || !metadata) return []
      const numbers = vector instanceof Uint8Array ? quantizedNumbers(vector) : vector
      return [{ id: vectorId(scope, passage, revision), vector: numbers, metadata }]
    })
    await this.#placement?.put(items, ending)
  }

  async #passagesFailed(error: unknown, passages: readonly Unembedded[]): Promise<void> {
    this.#cause = error
    this.#failure = failureOf(error)
    if (this.#backoff.recordFailure(error, passages.length)) {
      // One text that the embedder rejects must not block the others.
      this.#limit = Math.max(1, Math.floor(Math.min(this.#limit, passages.length) / 2))
      await this.#engine.call('postpone', this.id, passages.map(({ passage, revision }) => ({ passage, revision })), this.#clock.now())
    }
    if (this.#backoff.isHopeless) for (const { reject } of this.#waiters) reject(this.#incomplete(error))
  }

  #incomplete(error: unknown): HeedError {
    const { code = 'provider_error' } = isHeedError(error) ? error : {}
    return new HeedError(
      code,
      `Embedder '${this.id}' has not made all vectors (${describe(error)}). It is retried later: recallStatus() returns the progress.`,
      { retryable: true, cause: error },
    )
  }

  #wakeAt(time: number): void {
    this.#timer?.cancel()
    this.#timer = this.#clock.after(Math.max(1, time - this.#clock.now()), () => this.wake(), { background: this.#waiters.size === 0 })
  }
}

interface EmbedOptions extends Deadline {
  /** The dimension of the stored vectors. */
  dimension?: number
}

/** One valid vector per text; anything else that the embedder returns is rejected with `provider_error`. */
async function embedTexts(
  embedder: TextEmbedder, texts: readonly string[], { dimension, ...deadline }: EmbedOptions,
): Promise<Float32Array[]> {
  const returned = await withinDeadline(`Embedder '${embedder.id}'`, (signal) => embedder.embed(texts, signal), deadline)
  return parseVectors(embedder, returned, texts.length, dimension)
}

function parseVectors({ id }: TextEmbedder, returned: ArrayLike<number>[], count: number, dimension: number | undefined): Float32Array[] {
  const invalid = (what: string) => new HeedError('provider_error', `Embedder '${id}' ${what}.`, { retryable: true })
  if (!Array.isArray(returned) || returned.length !== count || !returned.every(isVector)) throw invalid(`did not return ${count} vectors`)
  const vectors = returned.map((vector) => Float32Array.from(vector))
  const length = vectors[0]?.length ?? 0
  for (const vector of vectors) {
    if (vector.length !== length || length === 0) {
      throw invalid(`returned a vector of ${vector.length} numbers where ${length || 'some'} were expected`)
    }
    if (!vector.every(Number.isFinite) || vector.every((number) => number === 0)) {
      throw invalid('returned a vector of zeros, or with a number that is not finite')
    }
  }
  if (dimension !== undefined && length !== dimension) throw dimensionChanged(id, length, dimension)
  return vectors
}

/** The embedder has the id of the stored vectors, and its vectors cannot be compared with them. */
function dimensionChanged(id: string, given: number, dimension: number): HeedError {
  const why = `Embedder '${id}' returns vectors of ${given} numbers, and the stored ones have ${dimension}.`
    + ' If that is intended, make all vectors again: reindex().'
  return new HeedError('dimension_changed', why, { details: { embedder: id, dimension, given } })
}

function isVector(vector: unknown): boolean {
  return typeof vector === 'object' && vector !== null && 'length' in vector
}
