import type { Clock } from '../clock.ts'
import type { Logger } from '../logger.ts'
import type { ThreadStore } from '../store/contract.ts'
import { threadStoreOf, type Storage } from '../store/storage.ts'
import { ThreadRuntime } from '../thread/runtime.ts'

/** One runtime for each storage that is used, however many agents use it. */
export class Runtimes {
  readonly #made = new Map<Storage | undefined, ThreadRuntime>()
  #closed = false
  readonly #options: { clock?: Clock; logger?: Logger; storage?: Storage }

  constructor(options: { clock?: Clock; logger?: Logger; storage?: Storage }) {
    this.#options = options
  }

  /** The runtime of a storage, or of the default one. */
  of(given?: Storage): ThreadRuntime {
    const { clock, logger } = this.#options
    const storage = given ?? this.#options.storage
    let runtime = this.#made.get(storage)
    if (!runtime) {
      runtime = new ThreadRuntime({ store: () => (storage ? threadStoreOf(storage) : defaultStore()), ...(clock ? { clock } : {}), ...(logger ? { logger } : {}) })
      this.#made.set(storage, runtime)
      // It has nothing to end, and refuses whatever is asked of it.
      if (this.#closed) void runtime.close()
    }
    return runtime
  }

  /** Closes all of them, and those that are asked for later. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all(this.all().map((runtime) => runtime.close()))
  }

  all(): ThreadRuntime[] {
    return [...this.#made.values()]
  }
}

/** A local file, so that an agent remembers without any configuration. Loaded when the first thread is used. */
async function defaultStore(): Promise<ThreadStore> {
  const { LibSQLStore } = await import('../store/libsql/store.ts')
  return new LibSQLStore({ url: 'file:./heed.db' })
}

/** For agents that belong to no Heed. */
export const implicitRuntimes = new Runtimes({})
