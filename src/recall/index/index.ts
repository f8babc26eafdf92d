import type { Clock } from '../../base/clock.ts'
import { HeedError } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import type { TextEmbedder } from '../embedder.ts'
import { compileFilter } from '../filter/filter.ts'
import type { RecallHit, RecallIndex, RecallProgress, RecallQuery, RecallStatus } from '../../store/contract/recall.ts'
import { Connection } from '../../store/sqlite/connection.ts'
import { storeFailure } from '../../store/sql/failure.ts'
import type { DatabaseConnection } from '../../store/sqlite/remote.ts'
import type { RecallDriver } from './scheduler.ts'
import { Told } from './progress.ts'

/** One for each connection, however many stores use it. */
const drivers = new WeakMap<Connection, Promise<RecallDriver>>()

/** Finds messages of a database file by what they say. */
export class LibSQLRecall implements RecallIndex {
  readonly #store: { connection(): Promise<DatabaseConnection> }
  readonly #clock: Clock
  #embedder: TextEmbedder | undefined

  constructor(store: { connection(): Promise<DatabaseConnection> }, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  async search({ embedder = this.#embedder, ...query }: RecallQuery): Promise<RecallHit[]> {
    if (query.resourceId === undefined && query.threadId === undefined) throw new HeedError('invalid_argument', 'A search needs a resourceId or a threadId.', { details: { field: 'resourceId' } })
    if (query.filter !== undefined) compileFilter(query.filter)
    return this.#use(async (driver) => {
      const vector = embedder ? await vectorOf(driver, embedder, query.text) : undefined
      const hits = await driver.engine.ask('search', { ...query, ...(vector && { vector }) })
      // Another process may have written what has no vectors yet.
      if (embedder) driver.vectoriser(embedder).wake()
      return hits
    })
  }

  embedWith(embedder: TextEmbedder, logger?: Logger): void {
    this.#embedder = embedder
    // Whoever searches next is told what is wrong with the database.
    this.#use(async (driver) => {
      if (logger) driver.logger = logger
      driver.vectoriser(embedder)
    }).catch(() => {})
  }

  status(): Promise<RecallStatus> {
    return this.#use((driver) => driver.status())
  }

  async reindex({ onProgress }: { onProgress?: (progress: RecallProgress) => void } = {}): Promise<void> {
    const told = new Told(onProgress)
    await this.#use((driver) => driver.reindex((progress) => told.tell(progress)))
    told.end()
  }

  async #use<Result>(act: (driver: RecallDriver) => Promise<Result>): Promise<Result> {
    const connection = await this.#store.connection()
    if (!(connection instanceof Connection)) throw new HeedError('unsupported_option', 'Messages on a server have no index to recall them by.', { details: { option: 'semanticRecall' } })
    let opening = drivers.get(connection)
    if (!opening) {
      opening = import('./scheduler.ts').then(({ RecallDriver: Driver }) => Driver.open(connection, this.#clock))
      drivers.set(connection, opening)
      opening.catch(() => drivers.delete(connection))
    }
    try {
      return await act(await opening)
    } catch (error) {
      throw storeFailure(error, `${connection.name}-recall`)
    }
  }
}

/** The question's vector, of the embedder that is asked for; while its vectors are not all there, of the one before it if it has one. */
async function vectorOf(driver: RecallDriver, embedder: TextEmbedder, text: string): Promise<{ embedder: string; numbers: Float32Array } | undefined> {
  const wanted = driver.vectoriser(embedder)
  const state = await driver.engine.ask('stateOf', embedder.id)
  const instead = state.complete ? undefined : await driver.instead(embedder)
  const former = instead && { serving: instead, ...(await driver.engine.ask('stateOf', instead.id)) }
  // Both at once: for two that don't answer nobody waits longer than for one.
  const asked = [...(former ? [former] : []), { serving: wanted, ...state }].map(({ serving, dimension }) => ({ id: serving.id, vector: serving.question(text, dimension) }))
  for (const { id, vector } of asked) {
    const numbers = await vector
    if (numbers) return { embedder: id, numbers }
  }
  return undefined
}
