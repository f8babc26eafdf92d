import type { Clock, Timer } from '../../base/clock.ts'
import { describe } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import type { TextEmbedder } from '../embedder.ts'
import type { RecallProgress, RecallStatus } from '../../store/contract/recall.ts'
import type { Connection } from '../../store/sqlite/connection.ts'
import { openEngine, type EnginePort } from './engine-port.ts'
import { Renewal } from './renewal.ts'
import { Vectoriser } from './embedder-queue.ts'

/** Changes that may wait to be forgotten after they were indexed. */
const keptChanges = 500
const firstPause = 250
const longestPause = 30_000

/** Keeps the index of one database up to date, for all that share its connection. Ends with it. */
export class RecallDriver {
  readonly engine: EnginePort
  /** Whoever uses the index last is told what fails unseen. */
  logger: Logger | undefined
  readonly #connection: Connection
  readonly #clock: Clock
  readonly #vectorisers = new Map<string, Vectoriser>()
  /** Of embedders that only serve until another is through: which that is. */
  readonly #successors = new Map<string, string>()
  #indexing: Promise<void> | undefined
  #dirty = false
  #timer: Timer | undefined
  readonly #renewal: Renewal
  #pause = firstPause
  #error: string | undefined
  #forgotten = 0
  #closed = false

  static async open(connection: Connection, clock: Clock): Promise<RecallDriver> {
    // From here on changes are noted.
    await connection.write(() => connection.statements.run('INSERT INTO heed_recall (one, generation) VALUES (1, hex(randomblob(8))) ON CONFLICT DO NOTHING'))
    return new RecallDriver(connection, await openEngine(connection), clock)
  }

  private constructor(connection: Connection, engine: EnginePort, clock: Clock) {
    this.#connection = connection
    this.engine = engine
    this.#clock = clock
    connection.onMessages.add(this.#noticed)
    connection.onClose.add(() => this.#close())
    this.#renewal = new Renewal(clock, () => this.#renew(), (error) => this.logger?.warn('embedders could not be renewed; it is tried again', { error }))
    this.#noticed()
  }

  /** The vectors of an embedder, which are made from now on. */
  vectoriser(embedder: TextEmbedder): Vectoriser {
    const { id, former } = embedder
    this.#successors.delete(id)
    if (former && !this.#vectorisers.has(former.id)) this.#successors.set(former.id, id)
    const vectoriser = this.#vectoriser(embedder)
    vectoriser.use(embedder)
    return vectoriser
  }

  #vectoriser(embedder: TextEmbedder): Vectoriser {
    const known = this.#vectorisers.get(embedder.id)
    if (known) return known
    const vectoriser = new Vectoriser(this.engine, embedder, this.#clock)
    this.#vectorisers.set(embedder.id, vectoriser)
    return vectoriser
  }

  /** Whose vectors answer while an embedder's are not all there: its former's. No other is asked: its questions are not theirs. */
  async instead({ former }: TextEmbedder): Promise<Vectoriser | undefined> {
    return former && (await this.#isComplete(former.id)) ? this.#vectoriser(former) : undefined
  }

  async status(): Promise<RecallStatus> {
    const { embedders, ...status } = await this.engine.ask('status')
    const error = this.#error ?? this.#renewal.error
    return {
      ...status,
      embedders: embedders.map((embedder) => {
        return { ...embedder, ...this.#vectorisers.get(embedder.id)?.failure }
      }),
      ...(error !== undefined && { error }),
    }
  }

  async reindex(tell: (progress: RecallProgress) => void): Promise<void> {
    await this.#indexing
    await this.engine.ask('rebuild', [...this.#successors.keys()])
    for (let more = true; more && !this.#closed;) {
      ;({ more } = await this.engine.ask('index'))
      const { rebuilding } = await this.engine.ask('status')
      if (rebuilding) tell(rebuilding)
    }
    const through = [...this.#vectorisers.values()].filter(({ id }) => !this.#successors.has(id)).map((vectoriser) => {
      const { id } = vectoriser
      return vectoriser.through(async () => tell({ ...(await this.engine.ask('progressOf', id)), embedder: id }))
    })
    for (const ended of await Promise.allSettled(through)) if (ended.status === 'rejected') throw ended.reason
  }

  readonly #noticed = (): void => {
    this.#dirty = true
    if (this.#indexing || this.#timer || this.#closed) return
    this.#indexing = this.#index().finally(() => {
      this.#indexing = undefined
      if (this.#dirty) this.#noticed()
    })
  }

  async #index(): Promise<void> {
    try {
      for (let more = true; more && !this.#closed;) {
        this.#dirty = false
        const result = await this.engine.ask('index')
        more = result.more
        if (result.number - this.#forgotten > keptChanges) await this.#forget(result.number)
      }
      this.#error = undefined
      this.#pause = firstPause
      for (const vectoriser of this.#vectorisers.values()) if (await this.#isNeeded(vectoriser)) vectoriser.wake()
    } catch (error) {
      if (this.#closed) return
      this.#error = describe(error)
      this.#dirty = false
      this.#timer = this.#clock.after(this.#pause, () => {
        this.#timer = undefined
        this.#noticed()
      }, { background: true })
      this.#pause = Math.min(longestPause, this.#pause * 2)
    }
  }

  async #renew(): Promise<void> {
    for (const vectoriser of this.#vectorisers.values()) if (await this.#isNeeded(vectoriser)) vectoriser.renew()
  }

  async #isNeeded({ id }: Vectoriser): Promise<boolean> {
    const successor = this.#successors.get(id)
    return successor === undefined || !(await this.#isComplete(successor))
  }

  async #isComplete(embedder: string): Promise<boolean> {
    return (await this.engine.ask('stateOf', embedder)).complete
  }

  /** Some at a time: nobody waits for it. */
  async #forget(number: number): Promise<void> {
    const { statements } = this.#connection
    while (await this.#connection.write(() => statements.run(`
      DELETE FROM heed_recall_changes WHERE number IN (SELECT number FROM heed_recall_changes WHERE number < ? ORDER BY number LIMIT 1000)`, number) === 1_000)) { /* more */ }
    this.#forgotten = number
  }

  async #close(): Promise<void> {
    this.#closed = true
    this.#connection.onMessages.delete(this.#noticed)
    this.#timer?.cancel()
    this.#renewal.close()
    await Promise.allSettled([...this.#vectorisers.values()].map((vectoriser) => vectoriser.close()))
    await this.#indexing
    await this.engine.close()
  }
}
