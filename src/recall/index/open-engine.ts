import { HeedError } from '../../base/errors.ts'
import type { SqlConnection } from '../../store/sql/driver.ts'
import { Connection } from '../../store/sqlite/connection.ts'
import { CollectionCache } from './collection-cache.ts'
import { RecallEngine, type EngineMethod, type EnginePort, type IndexKind, type SearchResult } from './engine.ts'
import type { Question } from './searcher.ts'
import { WorkerCalls } from './worker-calls.ts'

/**
 * Opens an engine: in a worker thread for a database file; no worker thread can read a database in memory. The index of a server is in
 * its database.
 */
export async function openEngine(connection: SqlConnection, kind: IndexKind, memoryBytes?: number): Promise<EnginePort> {
  if (kind !== 'file') {
    const { ServerEngine } = await import('./server/engine.ts')
    return ServerEngine.open(connection, kind, memoryBytes)
  }
  if (!(connection instanceof Connection)) throw new TypeError('the index of a file needs the connection to a file')
  if (connection.path !== undefined) {
    const worker = new WorkerCalls(import.meta.url, 'engine-worker', { path: connection.path, memoryBytes })
    return { call: (method, ...args) => worker.call(method, args) as Promise<never>, close: () => worker.close() }
  }
  const { besideMessages } = await import('./databases.ts')
  const databases = besideMessages(connection.database)
  return new OwnThread(new RecallEngine(databases, new CollectionCache(databases, memoryBytes)))
}

/** An engine without a worker thread. The event loop runs between two steps of indexing, each of which indexes at most 100 messages. */
class OwnThread implements EnginePort {
  readonly #engine: RecallEngine
  #closed = false

  constructor(engine: RecallEngine) {
    this.#engine = engine
  }

  async call<Method extends EngineMethod>(
    method: Method, ...args: Parameters<RecallEngine[Method]>
  ): Promise<ReturnType<RecallEngine[Method]>> {
    if (method === 'index') await this.#yield()
    if (method === 'search') return (await this.#search(args[0] as Question)) as ReturnType<RecallEngine[Method]>
    const act = this.#engine[method] as (...args: unknown[]) => ReturnType<RecallEngine[Method]>
    return act.apply(this.#engine, args)
  }

  async #search(question: Question): Promise<SearchResult> {
    for (let step = 1; ; step += 1) {
      const { again, incomplete } = this.#engine.catchUp(step)
      if (!again) return this.#engine.find(question, incomplete)
      await this.#yield()
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#engine.close()
  }

  async #yield(): Promise<void> {
    await new Promise<void>((resolve) => setImmediate(resolve))
    if (this.#closed) throw new HeedError('closed', 'This store was closed. Open a new one.')
  }
}
