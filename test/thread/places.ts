import { onTestFinished } from 'vitest'
import type { Clock } from '../../src/base/clock.ts'
import { HeedError } from '../../src/base/errors.ts'
import { Heed, InMemoryStore, silentLogger, type HeedConfig } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import type { ThreadStore } from '../../src/store/contract/threads.ts'
import type { SqlStore } from '../../src/store/sql/store.ts'
import { LibSQLBus } from '../../src/bus/libsql/bus.ts'
import { RedisBus } from '../../src/bus/redis/index.ts'
import { lazily, useSharedServer } from '../postgres/stores.ts'
import { RedisServer } from '../redis/redis-server.ts'
import { newFile } from '../new-file.ts'
import { copyEmptyFile, copyEmptyOfClient } from '../store/empty-database.ts'
import { fileClient } from '../store/file-client.ts'

/** A database that outlives the processes on it: each `store()` is one that a process opens, uses and closes. */
export interface Place {
  store(): ThreadStore
}

export interface PlaceKind {
  name: string
  /** False where a text column can't have the character U+0000. */
  storesNul?: boolean
  make(options?: { clock?: Clock }): Place
}

/**
 * With HEED_STORES=all each suite runs in memory and on a file: `npm run test:stores`. With the name of one engine, on that one: `npm run
 * test:matrix` does that for all of them.
 */
const engines: Readonly<Record<string, () => PlaceKind>> = {
  memory: () => memoryKind, file: fileKind, client: () => clientKind, postgres: () => postgresKind, 'postgres+redis': () => redisKind,
}
const { HEED_STORES: chosen = '' } = process.env
if (chosen !== '' && chosen !== 'all' && !(chosen in engines)) throw new Error(`HEED_STORES is all, or one of ${Object.keys(engines).join(', ')}; not ${chosen}.`)
if (chosen.startsWith('postgres')) await useSharedServer()
const redis = chosen === 'postgres+redis' ? await RedisServer.start() : undefined

/** What suites of behavior run on: the SQL store on `:memory:`. */
export function placeKinds(): [PlaceKind, ...PlaceKind[]] {
  const engine = engines[chosen]
  if (engine) return [engine()]
  return chosen === 'all' ? [memoryKind, fileKind()] : [memoryKind]
}

/** The same for suites that open each database once. */
export function storeKinds(): Array<{ name: string; store(): SqlStore }> {
  return placeKinds().map((kind) => ({ name: kind.name, store: () => (kind === memoryKind ? new InMemoryStore() : (kind.make().store() as SqlStore)) }))
}

/** What suites run on in which a process ends and another one opens its database, or two use one database: a file. A store in memory has one process. */
export function sharedPlaceKinds(): [PlaceKind, ...PlaceKind[]] {
  const engine = chosen === 'memory' ? undefined : engines[chosen]
  return [engine ? engine() : fileKind()]
}

const postgresKind: PlaceKind = { name: 'PostgreSQL', storesNul: false, make: lazily }
const redisKind: PlaceKind = {
  name: 'PostgreSQL and Redis',
  storesNul: false,
  make(options) {
    const place = lazily(options)
    return { store: () => Object.assign(place.store(), { bus: () => new RedisBus({ url: redis?.url ?? '' }) }) }
  },
}
const memoryKind: PlaceKind = { name: 'in memory', make: (options = {}) => memoryPlace(new InMemoryStore(options)) }

/** A file that is reached through the client for servers. A server brings no bus, so processes get one: that of the file. */
const clientKind: PlaceKind = {
  name: '@libsql/client',
  // What its driver of files returns ends there.
  storesNul: false,
  make(options = {}) {
    const path = copyEmptyOfClient(newFile())
    const url = `file:${path}`
    const bus = () => new LibSQLBus(() => Promise.resolve(path))
    return { store: () => Object.assign(new LibSQLStore({ url, client: fileClient(url), ...options }), { bus }) }
  },
}

const libsqlKind: PlaceKind = {
  name: 'libSQL',
  make(options = {}) {
    const url = `file:${copyEmptyFile(newFile())}`
    return { store: () => new LibSQLStore({ url, ...options }) }
  },
}

export function fileKind(): PlaceKind {
  return libsqlKind
}

/** The store in memory goes with its process; here it stays, and only the way to it is closed. */
export function memoryPlace(shared: InMemoryStore = new InMemoryStore()): Place {
  return {
    store() {
      let closed = false
      return new Proxy<ThreadStore>(shared, {
        get(target, key) {
          if (key === 'close') return () => Promise.resolve(void (closed = true))
          const value: unknown = Reflect.get(target, key)
          if (typeof value !== 'function') return value
          return (...given: unknown[]): unknown => {
            if (closed && key !== 'now') return Promise.reject(new HeedError('closed', 'This store was closed. Open a new one.'))
            return Reflect.apply(value, target, given)
          }
        },
      })
    },
  }
}

/** A way to a store that can be cut: what its process says afterwards does not arrive, and that it hands its threads over is lost unnoticed. */
export function mortal(store: ThreadStore): { store: ThreadStore; die(): void } {
  let dead = false
  const way = new Proxy<ThreadStore>(store, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key)
      if (typeof value !== 'function') return value
      return (...given: unknown[]): unknown => {
        if (dead && key === 'resign') return Promise.resolve()
        if (dead && key !== 'close' && key !== 'now') return Promise.reject(new HeedError('closed', 'Nothing of this process arrives any more.'))
        return Reflect.apply(value, target, given)
      }
    },
  })
  return { store: way, die: () => void (dead = true) }
}

const opened: Heed[] = []

/** A Heed that is closed after the test. It logs nothing by default. */
export function openHeed<Agents extends NonNullable<HeedConfig['agents']>>(agents: Agents, storage: ThreadStore, more: Pick<HeedConfig, 'clock' | 'logger' | 'notifications'> = {}): Heed<Agents> {
  const heed = new Heed<Agents>({ agents, storage, logger: silentLogger, ...more })
  // The first hook that runs, which is the last that was added, closes all: before the places of any of them.
  onTestFinished(async () => void (await Promise.all(opened.splice(0).map((one) => one.close()))))
  opened.push(heed as unknown as Heed)
  return heed
}
