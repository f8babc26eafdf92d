import { checkNames } from '../../base/arguments.ts'
import type { Clock } from '../../base/clock.ts'
import type { Retention } from '../retention.ts'
import { LibSQLStore } from './store.ts'

/**
 * Keeps threads for the life of the process: a database in memory, one for each store. It opens no file and starts no worker. For tests,
 * and for programs that want no file.
 */
export class InMemoryStore extends LibSQLStore {
  /** Its contents end with the process: a new store is always empty. */
  readonly ephemeral = true

  constructor(options: { id?: string; clock?: Clock; retention?: Retention; recallMemoryBytes?: number } = {}) {
    checkNames('InMemoryStore', options, ['id', 'clock', 'retention', 'recallMemoryBytes'])
    super({ ...options, id: options.id ?? 'memory', url: ':memory:' })
  }
}
