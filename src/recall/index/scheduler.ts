import { randomBytes } from 'node:crypto'
import type { Clock, Timer } from '../../base/clock.ts'
import { describe } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import type { TextEmbedder } from '../embedder.ts'
import type { RecallProgress, RecallStatus } from '../../store/contract/recall.ts'
import type { SqlConnection } from '../../store/sql/driver.ts'
import { EmbedderQueue } from '../services/embedder-queue.ts'
import type { EnginePort, IndexKind } from './engine.ts'
import { openEngine } from './open-engine.ts'
import { WorkProgress } from './work-progress.ts'

/** Indexed change records are deleted when there are more than this. */
const keptChanges = 500
const firstRetryMs = 250
const maxRetryMs = 30_000
/** The progress of fewer messages than this is not reported: they take less than a second. */
const leastReported = 2_000

/** Keeps the index of one database up to date, for all stores that share its connection. Closes with the connection. */
export class IndexScheduler {
  readonly engine: EnginePort
  /** Receives failures and progress of background work; the logger of the last user. */
  logger: Logger | undefined
  readonly #connection: SqlConnection
  readonly #clock: Clock
  readonly #queues = new Map<string, EmbedderQueue>()
  /** For each embedder that only serves until another is complete, the id of the other. */
  readonly #successors = new Map<string, string>()
  #indexing: Promise<void> | undefined
  #dirty = false
  #timer: Timer | undefined
  readonly #renewal: Renewal
  readonly #progress: WorkProgress
  /** The number of messages that were indexed since the index was last up to date. */
  #indexed = 0
  #retryMs = firstRetryMs
  #error: string | undefined
  #deletedUpTo = 0
  #closed = false

  static async open(connection: SqlConnection, kind: IndexKind, clock: Clock, memoryBytes?: number): Promise<IndexScheduler> {
    await recordChanges(connection, kind)
    return new IndexScheduler(connection, await openEngine(connection, kind, memoryBytes), clock)
  }

  private constructor(connection: SqlConnection, engine: EnginePort, clock: Clock) {
    this.#connection = connection
    this.engine = engine
    this.#clock = clock
    connection.onMessages?.add(this.#onChange)
    connection.onClose?.add(() => this.#close())
    this.#renewal = new Renewal(
      clock,
      () => this.#renew(),
      (error) => this.logger?.warn('embedders could not be renewed; retrying', { error }),
    )
    this.#progress = new WorkProgress({
      name: 'recall: messages',
      line: ({ done, total }) => `recall: ${done} of ${total} messages are indexed`,
      read: () => this.#wordProgress(),
      least: leastReported,
    }, clock, () => this.logger)
    this.#onChange()
  }

  /** The queue of an embedder, whose vectors are made from now on. */
  queueFor(embedder: TextEmbedder): EmbedderQueue {
    const { id, former } = embedder
    this.#successors.delete(id)
    if (former && !this.#queues.has(former.id)) this.#successors.set(former.id, id)
    const queue = this.#openQueue(embedder)
    queue.replaceEmbedder(embedder)
    return queue
  }

  #openQueue(embedder: TextEmbedder): EmbedderQueue {
    const known = this.#queues.get(embedder.id)
    if (known) return known
    const queue = new EmbedderQueue(this.engine, embedder, this.#clock, () => this.logger)
    this.#queues.set(embedder.id, queue)
    return queue
  }

  /** The queue of the former embedder, whose vectors serve while the new one is incomplete; undefined when those are incomplete too. */
  async substituteFor({ former }: TextEmbedder): Promise<EmbedderQueue | undefined> {
    return former && (await this.#isComplete(former.id)) ? this.#openQueue(former) : undefined
  }

  async status(): Promise<RecallStatus> {
    const { embedders, ...status } = await this.engine.call('status')
    const error = this.#error ?? this.#renewal.error
    return {
      ...status,
      embedders: embedders.map((embedder) => {
        return { ...embedder, ...this.#queues.get(embedder.id)?.failure }
      }),
      ...(error !== undefined && { error }),
    }
  }

  async reindex(onProgress: (progress: RecallProgress) => void): Promise<void> {
    // Messages first, then passages: an embedder that gets passages meanwhile could be done before its progress is reported.
    const releases = [...this.#queues.values()].map((queue) => queue.hold())
    try {
      await this.#rebuild(onProgress)
    } finally {
      for (const release of releases) release()
    }
    const completions = [...this.#queues.values()].filter(({ id }) => !this.#successors.has(id)).map((queue) => {
      const { id } = queue
      return queue.whenComplete(async () => onProgress({ ...(await this.engine.call('embedderProgress', id)), embedder: id }))
    })
    for (const ended of await Promise.allSettled(completions)) if (ended.status === 'rejected') throw ended.reason
  }

  async #rebuild(onProgress: (progress: RecallProgress) => void): Promise<void> {
    await this.#indexing
    let total = await this.engine.call('rebuild', [...this.#successors.keys()])
    for (let more = true; more && !this.#closed;) {
      const result = await this.engine.call('index')
      more = result.more
      if (more) await this.#progress.add(result.indexed)
      const { rebuilding } = await this.engine.call('status')
      total = rebuilding?.total ?? total
      // After the last batch, or when a search has indexed the rest, there is no rebuild left to report.
      onProgress(rebuilding ?? { done: total, total })
    }
    this.#progress.end()
  }

  readonly #onChange = (): void => {
    this.#dirty = true
    if (this.#indexing || this.#timer || this.#closed) return
    this.#indexing = this.#index().finally(() => {
      this.#indexing = undefined
      if (this.#dirty) this.#onChange()
    })
  }

  async #index(): Promise<void> {
    try {
      for (let more = true; more && !this.#closed;) {
        this.#dirty = false
        const result = await this.engine.call('index')
        more = result.more
        this.#indexed += result.indexed
        if (more) await this.#progress.add(result.indexed)
        if (result.number - this.#deletedUpTo > keptChanges) await this.#deleteChanges(result.number)
      }
      this.#error = undefined
      this.#retryMs = firstRetryMs
      for (const queue of this.#queues.values()) if (await this.#isNeeded(queue)) queue.wake()
    } catch (error) {
      if (this.#closed) return
      this.#error = describe(error)
      this.#dirty = false
      this.#timer = this.#clock.after(this.#retryMs, () => {
        this.#timer = undefined
        this.#onChange()
      }, { background: true })
      this.#retryMs = Math.min(maxRetryMs, this.#retryMs * 2)
    } finally {
      this.#indexed = 0
      this.#progress.end()
    }
  }

  async #wordProgress(): Promise<RecallProgress> {
    const { pending, rebuilding } = await this.engine.call('status')
    return rebuilding ?? { done: this.#indexed, total: this.#indexed + pending }
  }

  async #renew(): Promise<void> {
    for (const queue of this.#queues.values()) if (await this.#isNeeded(queue)) queue.renew()
  }

  async #isNeeded({ id }: EmbedderQueue): Promise<boolean> {
    const successor = this.#successors.get(id)
    return successor === undefined || !(await this.#isComplete(successor))
  }

  async #isComplete(embedder: string): Promise<boolean> {
    return (await this.engine.call('embedderState', embedder)).complete
  }

  /** In batches, so that other writes are not blocked. */
  async #deleteChanges(number: number): Promise<void> {
    while (
      await this.#connection.write(
        (_, statements) =>
          statements.run(
            `
      DELETE FROM heed_recall_changes WHERE number IN (SELECT number FROM heed_recall_changes WHERE number < ? ORDER BY number LIMIT 1000)`,
            number,
          ) === 1_000,
      )
    ) {
      /* more */
    }
    this.#deletedUpTo = number
  }

  async #close(): Promise<void> {
    this.#closed = true
    this.#connection.onMessages?.delete(this.#onChange)
    this.#timer?.cancel()
    this.#renewal.close()
    await Promise.allSettled([...this.#queues.values()].map((queue) => queue.close()))
    await this.#indexing
    await this.engine.close()
  }
}

/** From here on, triggers record the changes of messages. */
async function recordChanges(connection: SqlConnection, kind: IndexKind): Promise<void> {
  if (await connection.read((_, statements) => statements.one('SELECT generation FROM heed_recall') !== undefined)) return
  const generation = randomBytes(8).toString('hex').toUpperCase()
  await connection.write((_, statements) => {
    // Waits for transactions whose triggers recorded nothing yet: the first indexing must see what they store.
    if (kind === 'postgres') statements.execute('LOCK TABLE heed_messages IN SHARE MODE')
    statements.execute('INSERT INTO heed_recall (one, generation) VALUES (1, ?) ON CONFLICT DO NOTHING', generation)
  })
}

/** An embedder expires after seven days. */
const intervalMs = 86_400_000
const firstRenewalRetryMs = 60_000

/** Calls `renew` once a day. After a failure it retries in a minute, then after twice as long each time. */
export class Renewal {
  readonly #clock: Clock
  readonly #renew: () => Promise<void>
  readonly #onFailure: (error: string) => void
  #timer: Timer
  #retryMs = firstRenewalRetryMs
  #error: string | undefined
  #closed = false

  /** `onFailure` must not throw. */
  constructor(clock: Clock, renew: () => Promise<void>, onFailure: (error: string) => void) {
    this.#clock = clock
    this.#renew = renew
    this.#onFailure = onFailure
    this.#timer = this.#after(intervalMs)
  }

  /** The last failure, until a renewal succeeds. */
  get error(): string | undefined {
    return this.#error
  }

  close(): void {
    this.#closed = true
    this.#timer.cancel()
  }

  #after(ms: number): Timer {
    return this.#clock.after(ms, () => void this.#run(), { background: true })
  }

  async #run(): Promise<void> {
    try {
      await this.#renew()
      this.#error = undefined
      this.#retryMs = firstRenewalRetryMs
      if (!this.#closed) this.#timer = this.#after(intervalMs)
    } catch (error) {
      if (this.#closed) return
      this.#error = describe(error)
      this.#onFailure(this.#error)
      this.#timer = this.#after(this.#retryMs)
      this.#retryMs = Math.min(intervalMs, this.#retryMs * 2)
    }
  }
}
