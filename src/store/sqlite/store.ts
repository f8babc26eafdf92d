import { checkNames, checkText, checkWhole, refused } from '../../base/arguments.ts'
import { systemClock, type Clock } from '../../base/clock.ts'
import { HeedError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import type { Bus } from '../../bus/contract.ts'
import { LibSQLBus } from '../../bus/libsql/bus.ts'
import { LocalBus } from '../../bus/local.ts'
import { SqlRecall } from '../../recall/index/index.ts'
import type { ThreadClone } from '../contract/messages.ts'
import type { RecallIndex } from '../contract/recall.ts'
import type { Scope, ThreadRow } from '../contract/threads.ts'
import { findThread } from '../core/lease.ts'
import { checkRetention, type Retention } from '../retention.ts'
import type { OpenedConnection } from '../sql/driver.ts'
import { reportEnded, SqlStore } from '../sql/store.ts'
import { checkBackup, writeBackup } from './backup.ts'
import type { BulkJob } from './bulk.ts'
import { Connection } from './connection.ts'
import { storeFailure } from './failure.ts'
import { namespaceAt, parseLocation, placeAt, resolveFile, type Location } from './location.ts'
import { remoteClient, RemoteConnection, type LibSQLClient } from './remote.ts'

/** The options of `LibSQLStore`. */
export interface LibSQLStoreOptions {
  id?: string
  /** `file:./path.db`, `:memory:`, or a server: `libsql://…`, `https://…` (needs the package `@libsql/client`). */
  url: string
  /** For a server. */
  authToken?: string
  /** A client of `@libsql/client` that is used for everything, for settings of its own such as a replica. The store closes it. */
  client?: LibSQLClient
  /** The clock of the times that the store sets itself, and of heartbeats. Defaults to the system's. */
  clock?: Clock
  /** For how long a write waits, in milliseconds, while another process holds the file. Defaults to 10 seconds. */
  busyTimeout?: number
  /** How long records are kept. Older ones are removed while a Heed runs on the store, and by `prune`. Defaults to no limit. */
  retention?: Retention
  /**
   * The most memory for recall in this process, in bytes: it keeps what is searched there. A resource that does not fit is searched with
   * coarser vectors, and one that still does not, with those of its latest messages. Defaults to 384 MB.
   */
  recallMemoryBytes?: number
  /**
   * Names the database on the bus of `new Heed({ bus })`. Give it where processes know one database by different urls, or different
   * databases by one url, such as files at the same path of two machines. Defaults to the url without credentials.
   */
  namespace?: string
}

/** Refuses by name what is no option of a store, and values that can't be meant. */
export function checkStoreOptions(options: LibSQLStoreOptions): void {
  const names = ['id', 'url', 'authToken', 'client', 'clock', 'busyTimeout', 'retention', 'recallMemoryBytes', 'namespace']
  checkNames('LibSQLStore', options, names)
  const { id, authToken, busyTimeout, retention, recallMemoryBytes, namespace } = options
  if (id !== undefined) checkText('id', id)
  if (namespace !== undefined) checkText('namespace', namespace)
  if (authToken !== undefined) checkText('authToken', authToken)
  const given: Partial<LibSQLClient> | null | undefined = options.client
  if (given !== undefined && typeof given?.transaction !== 'function') throw refused('client', 'a client of @libsql/client')
  if (authToken !== undefined && (given !== undefined || parseLocation(options.url).kind !== 'remote'))
    throw refused('authToken', `left out: it is for a server, such as libsql://…${given === undefined ? '' : ', and client has its own'}`)
  if (busyTimeout !== undefined) checkWhole('busyTimeout', busyTimeout)
  if (recallMemoryBytes !== undefined) checkWhole('recallMemoryBytes', recallMemoryBytes)
  if (retention !== undefined) checkRetention(retention)
}

/** Above this number of rows, a thread is copied or cleared in a worker: it takes more than a few milliseconds. */
const largeThread = 2_000

/** Threads in a database file, in memory, or on a libSQL server. Stores that name the same file share its connection. */
export class LibSQLStore extends SqlStore {
  /** As it was given. */
  readonly url: string
  readonly #options: LibSQLStoreOptions
  readonly #location: Location
  #place: string | undefined
  #namespace: string | undefined
  #bus: Bus | undefined

  constructor(options: LibSQLStoreOptions) {
    checkStoreOptions(options)
    super({ id: options.id ?? 'libsql', clock: options.clock, retention: options.retention })
    this.url = options.url
    this.#options = { ...options }
    this.#location = parseLocation(options.url)
  }

  /** Identifies the database, whatever the spelling of its url; undefined where each store has a database of its own. */
  get place(): string | undefined {
    this.#place ??= this.#options.client || this.clock !== systemClock ? undefined : placeAt(this.#location)
    return this.#place
  }

  /** Names the database on a bus. A store in memory, which no other store shares, has a name of its own. */
  get namespace(): string {
    this.#namespace ??= this.#options.namespace ?? namespaceAt(this.#location) ?? `memory:${newId()}`
    return this.#namespace
  }

  /** For a file, the bus connects all processes that have it open. */
  bus(): Bus {
    const location = this.#location
    this.#bus ??= location.kind === 'file' && !this.#options.client ? new LibSQLBus(() => resolveFile(location.path)) : new LocalBus()
    return this.#bus
  }

  override async deleteMessages(scope: Scope, messageIds?: readonly string[]): Promise<number> {
    if (messageIds === undefined && (await this.#isLarge(scope))) return (await this.#bulk({ kind: 'deleteMessages', scope })) as number
    return super.deleteMessages(scope, messageIds)
  }

  override async cloneThread(scope: Scope, clone: ThreadClone): Promise<ThreadRow> {
    if (await this.#isLarge(scope)) return (await this.#bulk({ kind: 'cloneThread', scope, clone })) as ThreadRow
    return super.cloneThread(scope, clone)
  }

  /** Writes a consistent copy of the database to a new file, without blocking reads and writes. The copy can be opened as a database. */
  async backup(path: string): Promise<void> {
    const connection = await this.#local()
    await writeBackup(path, (to) =>
      connection.path === undefined ? connection.copyTo(to) : connection.bulk({ kind: 'backup', to }),
    ).catch((error: unknown) => {
      throw storeFailure(error, path)
    })
  }

  /**
   * Restores the state of a backup, in one transaction. Running runs end; runs that were active in the backup are taken over by the next
   * process that runs their agent.
   */
  async restore(path: string): Promise<void> {
    const connection = await this.#local()
    await checkBackup(path, connection.path).catch((error: unknown) => {
      throw storeFailure(error, path)
    })
    if (connection.path === undefined)
      throw new HeedError(
        'unsupported_option',
        'A database in memory is not restored. Open the backup: new LibSQLStore({ url: `file:${path}` }).',
      )
    await connection.bulk({ kind: 'restore', from: path })
    this.forgetHeads()
    reportEnded(connection)
  }

  /** Whether a thread has so much that it is better done in a thread of its own. */
  async #isLarge(scope: Scope): Promise<boolean> {
    const connection = await this.connection()
    // A server does this without blocking this process.
    if (!(connection instanceof Connection) || connection.path === undefined) return false
    return connection.read((tables) => (findThread(tables, scope)?.nextSeq ?? 0) > largeThread)
  }

  async #bulk(job: BulkJob): Promise<unknown> {
    return (await this.#local()).bulk(job)
  }

  /** The connection to a database that this process has in its hands. */
  async #local(): Promise<Connection> {
    const connection = await this.connection()
    if (connection instanceof Connection) return connection
    throw new HeedError('unsupported_option', 'A database on a server is backed up and restored there, not from here.')
  }

  /** @internal */
  protected override async connect(): Promise<OpenedConnection> {
    const { url, client, authToken, busyTimeout = 10_000 } = this.#options
    const { clock } = this
    const location = this.#location
    if (client || location.kind === 'remote') {
      const connection = await RemoteConnection.open(client ?? (await remoteClient(url, authToken)), { clock, busyTimeout, name: url })
      return { connection, release: () => connection.close() }
    }
    if (location.kind === 'memory') {
      const connection = await Connection.open({ clock, busyTimeout, location })
      return { connection, release: () => connection.close() }
    }
    const path = await resolveFile(location.path).catch((error: unknown) => {
      throw storeFailure(error, location.path)
    })
    return Connection.share({ clock, busyTimeout, location: { kind: 'file', path } })
  }

  /**
   * The index is a file beside the messages, or in memory with them; on a server it is in their database.
   * @internal
   */
  protected override recallIndex(): RecallIndex {
    const kind = this.#options.client || this.#location.kind === 'remote' ? 'libsql' : 'file'
    return new SqlRecall(this, this.clock, kind, this.#options.recallMemoryBytes)
  }
}
