import type { Clock, Timer } from '../../base/clock.ts'
import { describe, HeedError, isHeedError } from '../../base/errors.ts'
import type { TextEmbedder } from '../embedder.ts'
import { madeVectors, Patience } from './made-vectors.ts'
import { failureOf, type EmbedderFailure } from '../../store/contract/recall.ts'
import { EmbedderPause } from './embedder-pause.ts'
import type { Unembedded } from './embeddings.ts'
import type { EnginePort } from './engine-port.ts'

/** After what failed for another reason than the embedder, it is tried again. */
const pauseMs = 10_000
/** And what is embedded behind the runs for so long; then it is asked for again. */
const patienceBehind = 60_000

/** Who waits until there is nothing left to do. */
interface Waiting {
  progress(): Promise<void>
  resolve(): void
  reject(error: unknown): void
}

/** Has an embedder make the vectors that are missing, and those of questions. What fails is tried again for as long as it takes. */
export class Vectoriser {
  readonly #engine: EnginePort
  readonly #clock: Clock
  readonly #ending = new AbortController()
  #registering: Promise<void> | undefined
  #working: Promise<void> | undefined
  #again = false
  #timer: Timer | undefined
  #limit: number
  /** With passages and with questions. */
  #failure: EmbedderFailure | undefined
  #questionFailure: EmbedderFailure | undefined
  /** Why it is left alone, while it is. */
  #cause: unknown
  #embedder: TextEmbedder
  readonly #patience: Patience
  readonly #pause: EmbedderPause
  readonly #waiting = new Set<Waiting>()

  constructor(engine: EnginePort, embedder: TextEmbedder, clock: Clock) {
    this.#engine = engine
    this.#embedder = embedder
    this.#clock = clock
    this.#patience = new Patience(clock)
    this.#pause = new EmbedderPause(clock)
    this.#limit = this.#most
    this.wake()
  }

  get id(): string {
    return this.#embedder.id
  }

  /** What the embedder did wrong last, until it does it right. */
  get failure(): EmbedderFailure | undefined {
    return this.#failure ?? this.#questionFailure
  }

  /** Another one of the same id makes the same vectors, and is the one to ask from now on: its key may be a new one. */
  use(embedder: TextEmbedder): void {
    const isAnother = embedder.embed !== this.#embedder.embed
    this.#embedder = embedder
    if (!isAnother) return
    this.#limit = this.#most
    this.#pause.end()
  }

  /** Who is not named for long is forgotten. */
  renew(): void {
    this.#registering = undefined
    this.wake()
  }

  /** There may be something to do. */
  wake(): void {
    this.#again = true
    if (this.#working || this.#ending.signal.aborted) return
    if (!this.#pause.isOver) return this.#wakeAt(this.#pause.until)
    this.#timer?.cancel()
    this.#timer = undefined
    this.#working = this.#work().finally(() => {
      this.#working = undefined
      if (this.#again) this.wake()
    })
  }

  /** Until every passage has its vectors. Rejects when the embedder fails time and again; it is still asked after that. */
  async through(progress: () => Promise<void>): Promise<void> {
    if (this.#ending.signal.aborted) throw this.#ending.signal.reason
    this.#limit = this.#most
    this.#pause.shorten()
    if (this.#pause.isHopeless) throw this.#unfinished(this.#cause)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiting = { progress, resolve, reject }
    this.#waiting.add(waiting)
    try {
      this.wake()
      await promise
    } finally {
      this.#waiting.delete(waiting)
    }
  }

  /** The vector of a question, to be compared with those of so many numbers; nothing when the embedder can't make one now. */
  async question(text: string, dimension: number | undefined): Promise<Float32Array | undefined> {
    try {
      const [vector] = await madeVectors(this.#embedder, [text], {
        signal: this.#ending.signal, patienceMs: this.#patience.ms, clock: this.#clock, ...(dimension !== undefined && { dimension }),
      })
      this.#questionFailure = undefined
      return vector
    } catch (error) {
      this.#questionFailure = failureOf(error)
      this.#patience.failed(error)
      return undefined
    }
  }

  async close(): Promise<void> {
    this.#ending.abort(new HeedError('closed', 'The store was closed.'))
    for (const { reject } of this.#waiting) reject(this.#ending.signal.reason)
    this.#timer?.cancel()
    await this.#working
  }

  /** Two vectors are made of each passage. */
  get #most(): number {
    return Math.max(1, Math.min(64, Math.floor(this.#embedder.maxBatch / 2)))
  }

  async #work(): Promise<void> {
    try {
      while (!this.#ending.signal.aborted) {
        this.#again = false
        await (this.#registering ??= this.#engine.ask('register', this.id, this.#clock.now()))
        const { passages, outdated, unknown, nextAt, dimension } = await this.#engine.ask('take', this.id, this.#limit, this.#clock.now())
        if (unknown) this.#registering = undefined
        if (unknown || (passages.length === 0 && outdated.length > 0)) continue
        if (passages.length === 0) {
          if (nextAt !== undefined) this.#wakeAt(nextAt)
          else if (!this.#again) for (const { resolve } of this.#waiting) resolve()
          return
        }
        await this.#embedPassages(passages, dimension)
        for (const { progress } of this.#waiting) await progress()
        if (!this.#pause.isOver) return this.#wakeAt(this.#pause.until)
      }
    } catch (error) {
      if (this.#ending.signal.aborted) return
      this.#registering = undefined
      this.#again = false
      this.#failure = failureOf(error)
      for (const { reject } of this.#waiting) reject(error)
      this.#wakeAt(this.#clock.now() + pauseMs)
    }
  }

  async #embedPassages(passages: readonly Unembedded[], dimension: number | undefined): Promise<void> {
    const texts = [...new Set(passages.flatMap(({ own, pair }) => [own, pair]))]
    let vectors: Float32Array[]
    try {
      vectors = await madeVectors(this.#embedder, texts, {
        signal: this.#ending.signal, patienceMs: patienceBehind, clock: this.#clock, background: this.#waiting.size === 0, ...(dimension !== undefined && { dimension }),
      })
    } catch (error) {
      if (this.#ending.signal.aborted) return
      await this.#failed(error, passages)
      return
    }
    this.#pause.end()
    const none = new Float32Array(0)
    const vectorOf = (text: string) => vectors[texts.indexOf(text)] ?? none
    await this.#engine.ask('put', this.id, passages.map(({ passage, revision, own, pair }) => ({ passage, revision, own: vectorOf(own), pair: vectorOf(pair) })))
    this.#cause = undefined
    this.#failure = undefined
    this.#questionFailure = undefined
    this.#limit = Math.min(this.#most, this.#limit * 2)
  }

  async #failed(error: unknown, passages: readonly Unembedded[]): Promise<void> {
    this.#cause = error
    this.#failure = failureOf(error)
    if (this.#pause.failed(error, passages.length)) {
      // One text that it can't take must not hold up the others.
      this.#limit = Math.max(1, Math.floor(Math.min(this.#limit, passages.length) / 2))
      await this.#engine.ask('postpone', this.id, passages.map(({ passage, revision }) => ({ passage, revision })), this.#clock.now())
    }
    if (this.#pause.isHopeless) for (const { reject } of this.#waiting) reject(this.#unfinished(error))
  }

  #unfinished(error: unknown): HeedError {
    const { code = 'provider_error' } = isHeedError(error) ? error : {}
    return new HeedError(code, `Embedder '${this.id}' has not made all vectors (${describe(error)}). It is asked again later: recallStatus() says how far it is.`, { retryable: true, cause: error })
  }

  #wakeAt(time: number): void {
    this.#timer?.cancel()
    this.#timer = this.#clock.after(Math.max(1, time - this.#clock.now()), () => this.wake(), { background: this.#waiting.size === 0 })
  }
}
