import { checkNames, checkText, checkWhole } from '../../base/arguments.ts'
import { systemClock, type Clock } from '../../base/clock.ts'
import { describe, HeedError } from '../../base/errors.ts'
import { silentLogger, type Logger } from '../../base/logger.ts'
import type { Bus } from '../../bus/contract.ts'
import { LocalBus } from '../../bus/local.ts'
import { PostgresBus } from '../../bus/postgres/bus.ts'
import type { NotifyClient } from '../../bus/postgres/client.ts'
import { SqlRecall } from '../../recall/index/index.ts'
import type { Rewound } from '../contract/threads.ts'
import type { RecallIndex } from '../contract/recall.ts'
import { checkRetention, type Retention } from '../retention.ts'
import type { OpenedConnection } from '../sql/driver.ts'
import { SqlStore } from '../sql/store.ts'
import { PostgresConnection } from './connection.ts'
import { Dialect, quoteName } from './dialect.ts'
import { postgresFailure } from './errors.ts'
import { factsOf, type PostgresFacts } from './facts.ts'
import { connectClient, GivenSessions, OwnSessions, type ClientConfig, type PgClient, type PgPool } from './sessions.ts'
import type { TransactionMode } from './transaction.ts'

/** The options of `PostgresStore`: a connection, or a pool of your own. */
export interface PostgresStoreOptions {
  id?: string
  /** `postgresql://user:password@host:5432/database`. Or the parts of it below. */
  connectionString?: string
  host?: string
  /** Defaults to 5432. */
  port?: number
  user?: string
  password?: string
  database?: string
  /** Encrypts the connection; an object is passed to `tls.connect`. */
  ssl?: boolean | object
  /** The schema of Heed's tables, which is created if it is missing. Defaults to `public`. */
  schemaName?: string
  /** The most connections of this process, besides one for heartbeats. Defaults to 8. */
  max?: number
  /** A `Pool` of the package `pg`, for settings of its own. The store does not end it. */
  pool?: PgPool
  /** A connected `Client` of `pg`, which all transactions share one after the other. The store does not end it. */
  client?: PgClient
  /** The clock of the times that the store sets itself. Defaults to the system's; heartbeats then have the time of the server. */
  clock?: Clock
  /** How long records are kept. Older ones are removed while a Heed runs on the store, and by `prune`. Defaults to no limit. */
  retention?: Retention
  /**
   * The most memory for recall in this process, in bytes: it keeps what is searched there. A resource that does not fit is searched with
   * coarser vectors, and one that still does not, with those of its latest messages. Defaults to 384 MB.
   */
  recallMemoryBytes?: number
  /** Names the database on the bus of `new Heed({ bus })`. Defaults to its address, database and schema. */
  namespace?: string
}

const names = [
  'id', 'connectionString', 'host', 'port', 'user', 'password', 'database', 'ssl', 'schemaName', 'max', 'pool', 'client', 'clock',
  'retention', 'recallMemoryBytes', 'namespace',
] as const

/** Refuses by name what is no option of a store, and values that can't be meant. */
function checkOptions(options: PostgresStoreOptions): void {
  checkNames('PostgresStore', options, [...names])
  const texts = ['id', 'connectionString', 'host', 'user', 'password', 'database', 'schemaName', 'namespace'] as const
  for (const name of texts) if (options[name] !== undefined) checkText(name, options[name])
  for (const name of ['port', 'max', 'recallMemoryBytes'] as const) if (options[name] !== undefined) checkWhole(name, options[name])
  if (options.max === 0) throw refused('max', 'At least one connection is needed.')
  if (options.retention !== undefined) checkRetention(options.retention)
  const { connectionString, host, database, pool, client, schemaName } = options
  const given = [connectionString, pool, client].filter((value) => value !== undefined)
  if (given.length > 1) throw refused('connectionString', 'Give one of connectionString, pool and client.')
  if (given.length === 1 && (host ?? database ?? options.user ?? options.password ?? options.port) !== undefined)
    throw refused('host', 'host, port, user, password and database are in the connectionString, pool or client.')
  if (given.length === 0 && host === undefined && database === undefined)
    throw refused('connectionString', 'Name the database: connectionString, or host and database, or a pool or client of pg.')
  if (connectionString !== undefined && !/^postgres(?:ql)?:\/\//.test(connectionString))
    throw refused('connectionString', 'A connectionString begins with postgresql://.')
  if (schemaName !== undefined && (schemaName.length > 63 || schemaName.startsWith('pg_')))
    throw refused('schemaName', 'The name of a schema has at most 63 characters and does not begin with pg_.')
}

function refused(field: string, message: string): HeedError {
  return new HeedError('invalid_argument', message, { details: { field } })
}

/** Where a database is, without the user and the password. */
interface Address {
  host: string
  port: number
  database: string
}

function addressOf({ connectionString, host, port, database, user, pool, client }: PostgresStoreOptions): Address {
  if (connectionString !== undefined) {
    try {
      const url = new URL(connectionString)
      const [named, by, from] = [url.pathname.slice(1), url.username, url.hostname].map((part) => decodeURIComponent(part))
      return { host: url.searchParams.get('host') ?? (from || 'localhost'), port: Number(url.port || 5432), database: named || by || '' }
    } catch {
      // Without a cause: it would quote the password.
      throw refused('connectionString', 'The connectionString is no address. Percent-encode special characters of the password.')
    }
  }
  const of = { ...(pool as { options?: Partial<Address> } | undefined)?.options, ...(client && partsOf(client)) }
  return { host: host ?? of.host ?? 'localhost', port: port ?? of.port ?? 5432, database: database ?? of.database ?? user ?? 'postgres' }
}

function partsOf(client: PgClient): Partial<Address> {
  const { host, port, database } = client as Partial<Address>
  return { ...(host && { host }), ...(port && { port }), ...(database && { database }) }
}

/** Threads, notifications, schedules, subscriptions and watches in a PostgreSQL database, for any number of processes. */
export class PostgresStore extends SqlStore {
  readonly #options: PostgresStoreOptions
  readonly #address: Address
  readonly #schemaName: string
  #bus: Bus | undefined
  /** @internal For how long a server that can't be reached is asked again. */
  patienceMs = 15_000
  #logger: Logger = silentLogger
  /** @internal Called after each transaction with the number of its round trips. */
  onTransaction: ((mode: TransactionMode, trips: number) => void) | undefined

  constructor(options: PostgresStoreOptions) {
    checkOptions(options)
    super({ id: options.id ?? 'postgres', clock: options.clock, retention: options.retention })
    this.#options = { ...options }
    this.#schemaName = options.schemaName ?? 'public'
    this.#address = addressOf(options)
  }

  /** Identifies the database, without credentials; undefined where a store has its own connections. */
  get place(): string | undefined {
    const { pool, client } = this.#options
    return pool || client || this.clock !== systemClock ? undefined : `${this.#name}/${this.#schemaName}`
  }

  get namespace(): string {
    return this.#options.namespace ?? `${this.#name}/${this.#schemaName}`
  }

  get #name(): string {
    const { host, port, database } = this.#address
    return `postgresql://${host}:${port}/${database}`
  }

  /** Connects all processes on the database by its notifications; with a client of the user's, this process only. */
  bus(): Bus {
    const config = this.#config
    const connect = async () => (await connectClient(config ?? {})) as unknown as NotifyClient
    this.#bus ??= config ? new PostgresBus(this.#name, connect) : new LocalBus()
    return this.#bus
  }

  /** @internal What the server tells of itself. Opens no store, and creates nothing. */
  facts(): Promise<PostgresFacts> {
    const config = this.#config
    if (!config) throw new HeedError('unsupported_option', 'A store with a client of its own opens no further connection.')
    const connect = async () => (await connectClient(config)) as unknown as NotifyClient
    return factsOf(connect, this.#schemaName, quoteName(this.#schemaName))
      .catch((error: unknown) => { throw postgresFailure(error, this.#name) })
  }

  /** @internal The connections that this process may have: for transactions, one for heartbeats, two for notifications. */
  get most(): number {
    return (this.#options.max ?? 8) + 3
  }

  async onRewound(listener: (rewound: Rewound) => void): Promise<() => void> {
    const { rewound } = await this.connection()
    rewound?.add(listener)
    return () => rewound?.delete(listener)
  }

  reportTo(logger: Logger): void {
    this.#logger = logger
  }

  /** @internal */
  protected override async connect(): Promise<OpenedConnection> {
    const { pool, client, max = 8 } = this.#options
    const sessions = pool || client ? new GivenSessions({ pool, client }) : new OwnSessions(this.#config ?? {}, max)
    const connection = await PostgresConnection.open({
      sessions, dialect: new Dialect(this.#schemaName), clock: this.clock, name: this.#name, patienceMs: this.patienceMs,
      onTransaction: (mode, trips) => this.onTransaction?.(mode, trips),
      onFailure: (what, error) => this.#logger.warn(what, { database: this.#name, error: describe(error) }),
    })
    connection.rewound.add(() => this.forgetHeads())
    return { connection, release: () => connection.close() }
  }

  /** What new connections are made with. Undefined for a client of the user's. */
  get #config(): ClientConfig | undefined {
    if (this.#options.client) return undefined
    const { pool } = this.#options as { pool?: { options?: ClientConfig } }
    const { connectionString, host, port, user, password, database, ssl } = pool?.options ?? this.#options
    return {
      ...(connectionString !== undefined && { connectionString }), ...(host !== undefined && { host }), ...(port !== undefined && { port }),
      ...(user !== undefined && { user }), ...(password !== undefined && { password }), ...(database !== undefined && { database }),
      ...(ssl !== undefined && { ssl }), application_name: 'heed',
    }
  }

  /** @internal */
  protected override recallIndex(): RecallIndex {
    return new SqlRecall(this, this.clock, 'postgres', this.#options.recallMemoryBytes)
  }
}
