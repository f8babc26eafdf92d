import type { Clock, Timer } from '../../base/clock.ts'
import { describe, HeedError, isHeedError } from '../../base/errors.ts'
import type { TextEmbedder } from '../embedder.ts'
import { embedTexts, QuestionTimeout } from './embed-texts.ts'
import { failureOf, type EmbedderFailure } from '../../store/contract/recall.ts'
import { EmbedderBackoff } from './embedder-backoff.ts'
import type { Unembedded } from './embeddings.ts'
import type { EnginePort } from './engine.ts'

/** The delay before a retry when the index failed, not the embedder. */
const retryMs = 10_000
/** The time that the embedder has for passages. */
const passagesTimeoutMs = 60_000

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
  readonly #waiters = new Set<Waiter>()

  constructor(engine: EnginePort, embedder: TextEmbedder, clock: Clock) {
    this.#engine = engine
    this.#embedder = embedder
    this.#clock = clock
    this.#questionTimeout = new QuestionTimeout(clock)
    this.#backoff = new EmbedderBackoff(clock)
    this.#limit = this.#maxBatch
    this.wake()
  }

  get id(): string {
    return this.#embedder.id
  }

  /** The last failure of the embedder, until it succeeds. */
  get failure(): EmbedderFailure | undefined {
    return this.#failure ?? this.#questionFailure
  }

  /** Replaces the embedder by another object with the same id, which returns the same vectors; its API key may be a new one. */
  replaceEmbedder(embedder: TextEmbedder): void {
    const isAnother = embedder.embed !== this.#embedder.embed
    this.#embedder = embedder
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
    if (this.#working || this.#holds > 0 || this.#ending.signal.aborted) return
    if (!this.#backoff.isOver) return this.#wakeAt(this.#backoff.until)
    this.#timer?.cancel()
    this.#timer = undefined
    this.#working = this.#work().finally(() => {
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

  async close(): Promise<void> {
    this.#ending.abort(new HeedError('closed', 'The store was closed.'))
    for (const { reject } of this.#waiters) reject(this.#ending.signal.reason)
    this.#timer?.cancel()
    await this.#working
  }

  /** Each passage needs two vectors. */
  get #maxBatch(): number {
    return Math.max(1, Math.min(64, Math.floor(this.#embedder.maxBatch / 2)))
  }

  async #work(): Promise<void> {
    try {
      while (this.#holds === 0 && !this.#ending.signal.aborted) {
        this.#isAwake = false
        await (this.#registering ??= this.#engine.call('register', this.id, this.#clock.now()))
        const { passages, outdated, unknown, nextAt, dimension } = await this.#engine.call(
          'readDue',
          this.id,
          this.#limit,
          this.#clock.now(),
        )
        if (unknown) this.#registering = undefined
        if (unknown || (passages.length === 0 && outdated.length > 0)) continue
        if (passages.length === 0) {
          if (nextAt !== undefined) this.#wakeAt(nextAt)
          else if (!this.#isAwake) for (const { resolve } of this.#waiters) resolve()
          return
        }
        await this.#embedPassages(passages, dimension)
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

  async #embedPassages(passages: readonly Unembedded[], dimension: number | undefined): Promise<void> {
    const texts = [...new Set(passages.flatMap(({ own, pair }) => [own, pair]))]
    let vectors: Float32Array[]
    try {
      vectors = await embedTexts(this.#embedder, texts, {
        signal: this.#ending.signal,
        timeoutMs: passagesTimeoutMs,
        clock: this.#clock,
        background: this.#waiters.size === 0,
        ...(dimension !== undefined && { dimension }),
      })
    } catch (error) {
      if (this.#ending.signal.aborted) return
      await this.#passagesFailed(error, passages)
      return
    }
    this.#backoff.reset()
    const none = new Float32Array(0)
    const vectorOf = (text: string) => vectors[texts.indexOf(text)] ?? none
    await this.#engine.call(
      'storeVectors',
      this.id,
      passages.map(({ passage, revision, own, pair }) => ({ passage, revision, own: vectorOf(own), pair: vectorOf(pair) })),
    )
    this.#cause = undefined
    this.#failure = undefined
    this.#questionFailure = undefined
    this.#limit = Math.min(this.#maxBatch, this.#limit * 2)
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
