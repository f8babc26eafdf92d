import type { Clock, Timer } from '../../base/clock.ts'
import { describe, HeedError, isHeedError } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import type { TextEmbedder } from '../embedder.ts'
import { failureOf, type EmbedderFailure } from '../../store/contract/recall.ts'
import { EmbedderBackoff } from './embedder-backoff.ts'
import type { Unembedded } from './embeddings.ts'
import type { EnginePort } from './engine.ts'
import { untilAborted } from '../../base/promises.ts'
import { WorkProgress } from './work-progress.ts'

/** The delay before a retry when the index failed, not the embedder. */
const retryMs = 10_000
/** The time that the embedder has for passages. */
const passagesTimeoutMs = 60_000
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

  async close(): Promise<void> {
    this.#ending.abort(new HeedError('closed', 'The store was closed.'))
    for (const { reject } of this.#waiters) reject(this.#ending.signal.reason)
    this.#timer?.cancel()
    await this.#working
  }

  get #maxBatch(): number {
    return Math.max(1, Math.min(64, this.#embedder.maxBatch))
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

  async #embedPassages(passages: readonly Unembedded[], dimension: number | undefined): Promise<void> {
    const texts = [...new Set(passages.filter(({ known }) => known === undefined).map(({ text }) => text))]
    let vectors: Float32Array[] = []
    try {
      if (texts.length > 0) {
        vectors = await embedTexts(this.#embedder, texts, {
          signal: this.#ending.signal,
          timeoutMs: passagesTimeoutMs,
          clock: this.#clock,
          background: this.#waiters.size === 0,
          ...(dimension !== undefined && { dimension }),
        })
      }
    } catch (error) {
      if (this.#ending.signal.aborted) return
      await this.#passagesFailed(error, passages)
      return
    }
    // Without texts the embedder was not called, and its failures stand.
    if (texts.length > 0) this.#backoff.reset()
    const none = new Float32Array(0)
    const embedded = passages.map(({ passage, revision, text, hash, known }) => {
      return { passage, revision, hash, vector: known ?? vectors[texts.indexOf(text)] ?? none }
    })
    await this.#engine.call('storeVectors', this.id, embedded)
    if (texts.length === 0) return
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

export interface EmbedOptions {
  signal: AbortSignal
  /** The call is rejected after this time, whether or not the embedder reacts to its signal. */
  timeoutMs: number
  clock: Clock
  /** The timer must not keep the process alive. */
  background?: boolean
  /** The dimension of the stored vectors. */
  dimension?: number
}

/** How long a search waits for the question's vector before it uses terms alone. */
const questionTimeoutMs = 10_000
/** For `cautiousMs` after a timeout it waits only `shortTimeoutMs`: a slow embedder would delay every run otherwise. */
const cautiousMs = 60_000
const shortTimeoutMs = 1_000

/** Chooses how long a search waits for an embedder. */
export class QuestionTimeout {
  readonly #clock: Clock
  #timedOutAt = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get ms(): number {
    return this.#clock.now() - this.#timedOutAt < cautiousMs ? shortTimeoutMs : questionTimeoutMs
  }

  recordFailure(error: unknown): void {
    if (isHeedError(error) && error.code === 'unreachable' && this.ms === questionTimeoutMs) this.#timedOutAt = this.#clock.now()
  }
}

/** One valid vector per text; anything else that the embedder returns is rejected with `provider_error`. */
export async function embedTexts(
  embedder: TextEmbedder, texts: readonly string[], { signal, timeoutMs, clock, background = false, dimension }: EmbedOptions,
): Promise<Float32Array[]> {
  signal.throwIfAborted()
  const timeout = new AbortController()
  const onTimeout = () => {
    timeout.abort(new HeedError('unreachable', `Embedder '${embedder.id}' took longer than ${timeoutMs / 1_000} s.`, { retryable: true }))
  }
  const timer = clock.after(timeoutMs, onTimeout, { background })
  try {
    const either = AbortSignal.any([timeout.signal, signal])
    return parseVectors(embedder, await untilAborted(embedder.embed(texts, either), either), texts.length, dimension)
  } finally {
    timer.cancel()
  }
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
