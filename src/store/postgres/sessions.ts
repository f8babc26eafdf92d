import { sleep, systemClock } from '../../base/clock.ts'
import { HeedError, packageError } from '../../base/errors.ts'
import { isLost, sqlState } from './errors.ts'
import { isOtherTimeline } from './failover/timeline.ts'
import { Batch, type Prepared, type StatementTypes, type WireAnswer, type WireConnection, type WireStatement } from './wire/batch.ts'

/** As much of a client of `pg` as is used. Written out: published types need no package that may not be there. */
export interface PgClient {
  query(batch: object): unknown
  on(event: 'error' | 'notification' | 'end', listener: (value: never) => void): unknown
  removeListener?(event: string, listener: (value: never) => void): unknown
}

/** The same of a pool. */
export interface PgPool {
  connect(): Promise<PgClient & { release(error?: Error | boolean): void }>
  end(): Promise<void>
}

/** A client that this package makes and connects. */
interface OwnClient extends PgClient {
  connect(): Promise<unknown>
  end(): Promise<void>
}

/** What `new pg.Client` takes. */
export interface ClientConfig {
  connectionString?: string
  host?: string
  port?: number
  user?: string
  password?: string | (() => string | Promise<string>)
  database?: string
  ssl?: boolean | object
  application_name?: string
}

/** How long a round trip may take. Then its connection is closed, and whether it was executed is found out. */
const roundTripMs = 20_000
const connectMs = 10_000
/** The connections of a pool of `pg` that does not say how many it has. */
const usualPool = 10
/** How long the server may take to close a connection. */
const endMs = 2_000

const preparedBy = new WeakMap<object, Prepared>()

/** One connection, in the hands of one transaction. */
export class Session {
  readonly #client: PgClient
  readonly #release: (broken: boolean) => void
  #broken = false

  constructor(client: PgClient, release: (broken: boolean) => void) {
    this.#client = client
    this.#release = release
  }

  /** Executes the statements in one round trip. Those without names are not prepared. `types` then has those of their values. */
  async batch(statements: readonly WireStatement[], types?: StatementTypes): Promise<WireAnswer[]> {
    const prepared: Prepared = preparedBy.get(this.#client) ?? new Map()
    preparedBy.set(this.#client, prepared)
    const batch = new Batch(statements, prepared, types)
    // A process that was paused reads an answer that has arrived before it gives up.
    const timer = setTimeout(() => setImmediate(() => answered || this.#destroy()), roundTripMs)
    let answered = false
    try {
      this.#client.query(batch)
      return await batch.done
    } catch (error) {
      // On another timeline it leads to another server, now or before.
      this.#broken ||= isLost(error) || isOtherTimeline(error)
      if (isLost(error)) this.#destroy()
      throw error
    } finally {
      answered = true
      clearTimeout(timer)
    }
  }

  #destroy(): void {
    destroy(this.#client, new Error('the server did not answer in time'))
  }

  release(): void {
    this.#release(this.#broken)
  }
}

function destroy(client: PgClient, error?: Error): void {
  const { connection } = client as { connection?: WireConnection }
  connection?.stream.destroy(error)
}

/** Closes a connection, also one whose server does not answer. */
async function endClient(client: OwnClient): Promise<void> {
  const timer = setTimeout(() => destroy(client), endMs)
  await client.end().catch(() => {})
  clearTimeout(timer)
}

export interface Sessions {
  /** How many connections transactions have at most, besides urgent ones. */
  readonly most: number
  /** `urgent`: a connection of its own, which other transactions never have. */
  acquire(urgent?: boolean): Promise<Session>
  end(): Promise<void>
}

/** A client of the package `pg`, which is loaded when it is first needed. */
async function newClient(config: ClientConfig): Promise<OwnClient> {
  const name = 'pg'
  let pg: { Client: new (config: object) => OwnClient }
  try {
    pg = (await import(name)) as typeof pg
  } catch (cause) {
    throw packageError(name, `PostgreSQL needs the package ${name}: npm install ${name}.`, cause)
  }
  return new pg.Client({ ...config, keepAlive: true, connectionTimeoutMillis: connectMs })
}

/** Connects. A server that is starting is waited for. */
export async function connectClient(config: ClientConfig): Promise<OwnClient> {
  const since = performance.now()
  for (;;) {
    const client = await newClient(config)
    // Errors of an idle connection; those of a batch are also thrown there.
    client.on('error', () => {})
    try {
      await client.connect()
      return client
    } catch (error) {
      await endClient(client)
      if (sqlState(error) !== '57P03' || performance.now() - since > connectMs) throw error
      await sleep(systemClock, 100)
    }
  }
}

interface Slot {
  client: OwnClient
  dead: boolean
}

/** Connections of this store: at most `max`, and one more for heartbeats, since a busy process must not count as dead. */
export class OwnSessions implements Sessions {
  readonly #config: ClientConfig
  readonly most: number
  readonly #idle: Slot[] = []
  readonly #waiting: Array<(slot: Slot | undefined) => void> = []
  readonly #all = new Set<Slot>()
  readonly #connecting = new Set<Promise<Slot>>()
  #open = 0
  #urgent: Promise<Slot> | undefined
  #urgentTail: Promise<unknown> = Promise.resolve()
  #ended = false

  constructor(config: ClientConfig, max: number) {
    this.#config = config
    this.most = max
  }

  async acquire(urgent = false): Promise<Session> {
    return urgent ? this.#acquireUrgent() : this.#acquirePlain()
  }

  async #acquirePlain(): Promise<Session> {
    this.#refuseEnded()
    for (let slot = this.#idle.pop(); slot; slot = this.#idle.pop()) {
      if (!slot.dead) return this.#session(slot)
      this.#forget(slot)
    }
    if (this.#open < this.most) {
      this.#open += 1
      try {
        return this.#session(await this.#connect())
      } catch (error) {
        this.#open -= 1
        this.#waiting.shift()?.(undefined)
        throw error
      }
    }
    const slot = await new Promise<Slot | undefined>((resolve) => this.#waiting.push(resolve))
    return slot && !slot.dead ? this.#session(slot) : this.#acquirePlain()
  }

  #session(slot: Slot): Session {
    return new Session(slot.client, (broken) => {
      if (broken || slot.dead || this.#ended) {
        this.#forget(slot)
        this.#waiting.shift()?.(undefined)
        return
      }
      const next = this.#waiting.shift()
      if (next) next(slot)
      else this.#idle.push(slot)
    })
  }

  #forget(slot: Slot): void {
    this.#open -= 1
    this.#end(slot)
  }

  /** `end` of all waits for it, where it comes before it is done. */
  #end(slot: Slot): void {
    slot.dead = true
    void endClient(slot.client).then(() => this.#all.delete(slot))
  }

  #refuseEnded(): void {
    if (this.#ended) throw new HeedError('closed', 'This store was closed. Open a new one.')
  }

  /** Heartbeats one after the other. */
  async #acquireUrgent(): Promise<Session> {
    const before = this.#urgentTail
    const free = Promise.withResolvers<void>()
    this.#urgentTail = free.promise
    await before
    try {
      this.#refuseEnded()
      let slot = await this.#urgent
      if (!slot || slot.dead) {
        this.#urgent = this.#connect()
        slot = await this.#urgent
      }
      const { client } = slot
      return new Session(client, (broken) => {
        if (broken || slot.dead) {
          this.#urgent = undefined
          this.#end(slot)
        }
        free.resolve()
      })
    } catch (error) {
      this.#urgent = undefined
      free.resolve()
      throw error
    }
  }

  async #connect(): Promise<Slot> {
    const connecting = connectClient(this.#config).then((client) => {
      const slot = { client, dead: false }
      this.#all.add(slot)
      client.on('error', () => (slot.dead = true))
      client.on('end', () => (slot.dead = true))
      return slot
    }).finally(() => this.#connecting.delete(connecting))
    this.#connecting.add(connecting)
    const slot = await connecting
    this.#refuseEnded()
    return slot
  }

  /** Connections that are being made are waited for, and closed too. */
  async end(): Promise<void> {
    this.#ended = true
    for (const waiting of this.#waiting.splice(0)) waiting(undefined)
    await Promise.allSettled(this.#connecting)
    await Promise.all([...this.#all].map(({ client }) => endClient(client)))
  }
}

/** Connections of the user's pool, or the user's only client. The store does not end them. */
export class GivenSessions implements Sessions {
  readonly #pool: PgPool | undefined
  readonly #client: PgClient | undefined
  readonly most: number
  #tail: Promise<unknown> = Promise.resolve()

  constructor({ pool, client }: { pool?: PgPool | undefined; client?: PgClient | undefined }) {
    this.most = pool ? ((pool as { options?: { max?: number } }).options?.max ?? usualPool) : 1
    this.#pool = pool
    this.#client = client
  }

  async acquire(): Promise<Session> {
    if (this.#pool) {
      const client = await this.#pool.connect()
      return new Session(client, (broken) => client.release(broken))
    }
    const client = this.#client
    if (!client) throw new HeedError('invalid_argument', 'A store needs a pool or a client.')
    const before = this.#tail
    const free = Promise.withResolvers<void>()
    this.#tail = free.promise
    await before
    return new Session(client, () => free.resolve())
  }

  async end(): Promise<void> {}
}
