import type { Clock } from '../../base/clock.ts'
import { HeedError } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import type { TextEmbedder } from '../embedder.ts'
import { compileFilter } from '../filter/filter.ts'
import type { RecallHits, RecallIndex, RecallProgress, RecallQuery, RecallStatus } from '../../store/contract/recall.ts'
import { storeFailure } from '../../store/sqlite/failure.ts'
import type { SqlConnection } from '../../store/sql/driver.ts'
import type { EmbedderQueue } from '../services/embedder-queue.ts'
import type { IndexKind } from './engine.ts'
import type { NearVectors } from './placed-vectors.ts'
import type { IndexScheduler } from './scheduler.ts'
import type { Question } from './searcher.ts'

/** One per connection, which several stores may share. */
const schedulers = new WeakMap<SqlConnection, Promise<IndexScheduler>>()

/** The recall index of an SQL database. */
export class SqlRecall implements RecallIndex {
  readonly #store: { connection(): Promise<SqlConnection> }
  readonly #clock: Clock
  readonly #kind: IndexKind
  readonly #memoryBytes: number | undefined
  #embedder: TextEmbedder | undefined
  #logger: Logger | undefined

  /** `memoryBytes`: of the resources in memory. Stores that share a connection have that of the first one that uses recall. */
  constructor(store: { connection(): Promise<SqlConnection> }, clock: Clock, kind: IndexKind, memoryBytes?: number) {
    this.#store = store
    this.#clock = clock
    this.#kind = kind
    this.#memoryBytes = memoryBytes
  }

  async search({ embedder = this.#embedder, ...query }: RecallQuery): Promise<RecallHits> {
    if (query.resourceId === undefined && query.threadId === undefined) {
      throw new HeedError('invalid_argument', 'A search needs a resourceId or a threadId.', { details: { field: 'resourceId' } })
    }
    if (query.filter !== undefined) compileFilter(query.filter)
    return this.#use(async (scheduler) => {
      const { vector, unreached } = embedder ? await embedQuestion(scheduler, embedder, query) : {}
      const question = { ...query, now: this.#clock.now(), ...(vector && { vector }) }
      const { hits, explained, incomplete } = await scheduler.engine.call('search', question)
      // Another process may have stored messages that have no vectors yet.
      if (embedder) scheduler.queueFor(embedder).wake()
      const incompleteReason = incomplete ? 'indexing' : unreached ? 'vectors' : undefined
      return Object.assign(hits, {
        ...(incompleteReason && { incomplete: true as const, incompleteReason } as const), ...(explained && { explained }),
      })
    })
  }

  embedWith(embedder: TextEmbedder, logger?: Logger): void {
    this.#embedder = embedder
    if (logger) this.reportTo(logger)
    // The next search reports a failure of the database.
    this.#use(async (scheduler) => void scheduler.queueFor(embedder)).catch(() => {})
  }

  reportTo(logger: Logger): void {
    this.#logger = logger
  }

  status(): Promise<RecallStatus> {
    return this.#use((scheduler) => scheduler.status())
  }

  async reindex({ onProgress }: { onProgress?: (progress: RecallProgress) => void } = {}): Promise<void> {
    const reporter = new ProgressReporter(onProgress)
    await this.#use((scheduler) => scheduler.reindex((progress) => reporter.report(progress)))
    reporter.rethrow()
  }

  async #use<Result>(act: (scheduler: IndexScheduler) => Promise<Result>): Promise<Result> {
    const connection = await this.#store.connection()
    let opening = schedulers.get(connection)
    if (!opening) {
      opening = import('./scheduler.ts')
        .then(({ IndexScheduler: Scheduler }) => Scheduler.open(connection, this.#kind, this.#clock, this.#memoryBytes))
      schedulers.set(connection, opening)
      opening.catch(() => schedulers.delete(connection))
    }
    try {
      const scheduler = await opening
      if (this.#logger) scheduler.logger = this.#logger
      return await act(scheduler)
    } catch (error) {
      throw storeFailure(error, this.#kind === 'file' ? `${connection.name}-recall` : String(connection.name))
    }
  }
}

interface EmbeddedQuestion {
  vector?: NonNullable<Question['vector']>
  /** The vector store of the embedder failed: only terms are compared. */
  unreached?: true
}

/** The question's vector by this embedder, or by its former one while this one's vectors are incomplete. */
async function embedQuestion(
  scheduler: IndexScheduler, embedder: TextEmbedder, query: Omit<RecallQuery, 'embedder'>,
): Promise<EmbeddedQuestion> {
  const wanted = scheduler.queueFor(embedder)
  const state = await scheduler.engine.call('embedderState', embedder.id)
  const substitute = state.complete ? undefined : await scheduler.substituteFor(embedder)
  const former = substitute && { queue: substitute, ...(await scheduler.engine.call('embedderState', substitute.id)) }
  // In parallel, so that two embedders that don't respond cost one timeout.
  const questions = [...(former ? [former] : []), { queue: wanted, ...state }].map(({ queue, dimension, scope }) => ({
    queue, scope, isStored: dimension !== undefined, vector: queue.embedQuestion(query.text, dimension),
  }))
  for (const { queue, scope, isStored, vector } of questions) {
    const numbers = await vector
    if (!numbers) continue
    const found = { embedder: queue.id, numbers }
    if (scope === undefined) return { vector: found }
    // The vector store has none of them yet.
    if (!isStored) return {}
    try {
      const near = await nearVectors(scheduler, queue, scope, numbers, query)
      return near ? { vector: { ...found, near } } : {}
    } catch {
      // The status of the embedder has the error.
      return { unreached: true }
    }
  }
  return {}
}

async function nearVectors(
  scheduler: IndexScheduler, queue: EmbedderQueue, scope: string, vector: Float32Array, { resourceId, threadId, limit }: RecallQuery,
): Promise<NearVectors | undefined> {
  const owner = resourceId ?? (threadId === undefined ? undefined : await scheduler.engine.call('resourceOf', threadId))
  if (owner === undefined) return undefined
  return queue.near({ scope, vector, resourceId: owner, limit, ...(threadId !== undefined && { threadId }) })
}

/** Passes progress on. An error of the caller's function does not stop the work; it is thrown at the end. */
class ProgressReporter {
  readonly #onProgress: ((progress: RecallProgress) => void) | undefined
  #thrown: { error: unknown } | undefined

  constructor(onProgress: ((progress: RecallProgress) => void) | undefined) {
    this.#onProgress = onProgress
  }

  report(progress: RecallProgress): void {
    if (this.#thrown) return
    try {
      this.#onProgress?.(progress)
    } catch (error) {
      this.#thrown = { error }
    }
  }

  rethrow(): void {
    if (this.#thrown) throw this.#thrown.error
  }
}
