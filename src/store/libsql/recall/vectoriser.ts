import type { Clock, Timer } from '../../../clock.ts'
import { describe, HeedError } from '../../../errors.ts'
import type { TextEmbedder } from '../../../recall/embedder.ts'
import type { Unembedded } from './embeddings.ts'
import type { EnginePort } from './engine-port.ts'

/** A question waits so long for its vector; then words have to do. */
const patience = 10_000

/** Has an embedder make the vectors that are missing, and those of questions. What fails is tried again for as long as it takes. */
export class Vectoriser {
  readonly embedder: TextEmbedder
  /** What the embedder did wrong last, until it does it right. */
  error: string | undefined
  readonly #engine: EnginePort
  readonly #clock: Clock
  readonly #ending = new AbortController()
  #registering: Promise<void> | undefined
  #working: Promise<void> | undefined
  #again = false
  #timer: Timer | undefined
  #limit: number
  #progress: (() => Promise<void>) | undefined

  constructor(engine: EnginePort, embedder: TextEmbedder, clock: Clock) {
    this.#engine = engine
    this.embedder = embedder
    this.#clock = clock
    this.#limit = this.#most
    this.wake()
  }

  /** There may be something to do. */
  wake(): void {
    this.#again = true
    if (this.#working || this.#ending.signal.aborted) return
    this.#timer?.cancel()
    this.#timer = undefined
    this.#working = this.#work().finally(() => {
      this.#working = undefined
      if (this.#again) this.wake()
    })
  }

  /** Until every passage has been tried. */
  async through(progress: () => Promise<void>): Promise<void> {
    this.#progress = progress
    this.wake()
    while (this.#working) await this.#working
    this.#progress = undefined
  }

  /** The vector of a question; nothing when the embedder can't make one now. */
  async question(text: string): Promise<Float32Array | undefined> {
    const late = new AbortController()
    const timer = this.#clock.after(patience, () => late.abort(new HeedError('unreachable', `Embedder '${this.embedder.id}' took longer than ${patience / 1_000} s.`)), { background: true })
    try {
      const [vector] = await this.#embed([text], AbortSignal.any([late.signal, this.#ending.signal]))
      return vector
    } catch (error) {
      this.error = describe(error)
      return undefined
    } finally {
      timer.cancel()
    }
  }

  async close(): Promise<void> {
    this.#ending.abort(new HeedError('closed', 'The store was closed.'))
    this.#timer?.cancel()
    await this.#working
  }

  /** Two vectors are made of each passage. */
  get #most(): number {
    return Math.max(1, Math.min(64, Math.floor(this.embedder.maxBatch / 2)))
  }

  async #work(): Promise<void> {
    try {
      await (this.#registering ??= this.#engine.ask('register', this.embedder.id, this.#clock.now()))
      for (;;) {
        this.#again = false
        const { passages, nextAt, dimension } = await this.#engine.ask('take', this.embedder.id, this.#limit, this.#clock.now())
        if (passages.length === 0) {
          if (nextAt !== undefined) this.#wakeAt(nextAt)
          return
        }
        await this.#embedPassages(passages, dimension)
        await this.#progress?.()
        if (this.#ending.signal.aborted) return
      }
    } catch (error) {
      if (this.#ending.signal.aborted) return
      this.#registering = undefined
      this.#again = false
      this.error = describe(error)
      this.#wakeAt(this.#clock.now() + patience)
    }
  }

  async #embedPassages(passages: readonly Unembedded[], dimension: number | undefined): Promise<void> {
    const texts = [...new Set(passages.flatMap(({ own, pair }) => [own, pair]))]
    let vectors: Float32Array[]
    try {
      vectors = await this.#embed(texts, this.#ending.signal, dimension)
    } catch (error) {
      if (this.#ending.signal.aborted) return
      this.error = describe(error)
      // One text that it can't take must not hold up the others.
      this.#limit = Math.max(1, Math.floor(this.#limit / 2))
      await this.#engine.ask('postpone', this.embedder.id, passages.map(({ passage }) => passage), this.#clock.now())
      return
    }
    const none = new Float32Array(0)
    const vectorOf = (text: string) => vectors[texts.indexOf(text)] ?? none
    await this.#engine.ask('put', this.embedder.id, passages.map(({ passage, revision, own, pair }) => ({ passage, revision, own: vectorOf(own), pair: vectorOf(pair) })))
    this.error = undefined
    this.#limit = Math.min(this.#most, this.#limit * 2)
  }

  /** Vectors that can be used; anything else is refused as a failure of the embedder. */
  async #embed(texts: readonly string[], signal: AbortSignal, dimension?: number): Promise<Float32Array[]> {
    signal.throwIfAborted()
    const answered = await unlessAborted(this.embedder.embed(texts, signal), signal)
    const wrong = (what: string) => new HeedError('provider_error', `Embedder '${this.embedder.id}' ${what}.`, { retryable: true })
    if (!Array.isArray(answered) || answered.length !== texts.length) throw wrong(`did not answer with ${texts.length} vectors`)
    const vectors = answered.map((vector) => Float32Array.from(vector))
    const length = dimension ?? vectors[0]?.length ?? 0
    for (const vector of vectors) {
      if (vector.length !== length || length === 0) throw wrong(`made a vector of ${vector.length} numbers where ${length || 'some'} were expected`)
      if (!vector.every(Number.isFinite) || vector.every((number) => number === 0)) throw wrong('made a vector that points nowhere')
    }
    return vectors
  }

  #wakeAt(time: number): void {
    this.#timer?.cancel()
    this.#timer = this.#clock.after(Math.max(1, time - this.#clock.now()), () => this.wake(), { background: true })
  }
}

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}
