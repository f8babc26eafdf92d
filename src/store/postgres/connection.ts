import { randomBytes } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { Clock } from '../../base/clock.ts'
import { HeedError, isHeedError } from '../../base/errors.ts'
import { storeWork } from '../../base/promises.ts'
import type { Rewound, ThreadsEnded } from '../contract/threads.ts'
import type { SqlConnection, TransactionSteps } from '../sql/driver.ts'
import { replay, SpeculationFailed, type Replayed, type ReplayDriver, type RoundTrip } from '../sql/replay/replay.ts'
import type { ExpectedThread } from '../sql/recent.ts'
import { SeenHeartbeats } from '../sql/seen-heartbeats.ts'
import type { SqlValue } from '../sql/statements.ts'
import { replayTogether, type PartOutcome } from '../sql/replay/together.ts'
import type { Dialect } from './dialect.ts'
import { isConflict, isLost, isOfPreparedNames, isUnanswered, postgresFailure, sqlState, unknownOutcome } from './errors.ts'
import { ExpectedThreads } from './expected.ts'
import { ConfirmedCommits } from './failover/confirmed-commits.ts'
import {
  enterTimeline, isOtherTimeline, notWritable, onTimeline, replaced, rewoundFailure, rewoundTo, type Timeline,
} from './failover/timeline.ts'
import { Jobs, type Task, type Work } from './jobs/jobs.ts'
import { heldLocks } from './jobs/locks.ts'
import { migrate } from './migrations.ts'
import type { Sessions } from './sessions.ts'
import { byIndex, limitsOf, limitsOn, lockDomain, lockThreads, reserveKeys, Transaction, type TransactionMode } from './transaction.ts'

/** How often a transaction is tried again that another one prevented. */
const maxConflicts = 8
/** For how long the server remembers which transactions were committed, and for how long a client asks for one. */
const outcomesKept = '1 hour'
const outcomesAskedMs = 30 * 60_000
/** Keys of threads that are taken at once. */
const keyBlock = 1_000
/** After so many transactions, changes of usage are added up and old outcomes removed. */
const tidyEvery = 256

interface PostgresConnectionOptions {
  sessions: Sessions
  dialect: Dialect
  clock: Clock
  name: string
  /** For how long a server that can't be reached is asked again. */
  patienceMs: number
  /** Called after each transaction with the number of its round trips. */
  onTransaction?: ((mode: TransactionMode, trips: number) => void) | undefined
  /** Called for failures that no call reports. */
  onFailure(what: string, error: unknown): void
}

/** A PostgreSQL database. */
export class PostgresConnection implements SqlConnection {
  readonly threadsEnded = new Set<ThreadsEnded>()
  readonly onMessages = new Set<() => void>()
  readonly rewound = new Set<(rewound: Rewound) => void>()
  readonly onClose = new Set<() => Promise<void>>()
  readonly name: string
  readonly #sessions: Sessions
  readonly #dialect: Dialect
  readonly #clock: Clock
  readonly #patienceMs: number
  readonly #longReads = new Set<string>()
  readonly #onTransaction: PostgresConnectionOptions['onTransaction']
  readonly #onFailure: PostgresConnectionOptions['onFailure']
  readonly #jobs: Jobs
  /** Heartbeats, which are in no lane. */
  readonly #unordered = new Set<Promise<unknown>>()
  readonly #driver: ReplayDriver
  readonly #seen = new SeenHeartbeats()
  readonly #expected = new ExpectedThreads()
  /** The statement that limits a write transaction. */
  #limits = ''
  #timeline: Timeline = { id: undefined, floor: 0, restMs: 0 }
  /** Until then no lease is granted, by `performance.now()`. */
  #restUntil = 0
  /** How often the database has gone back. */
  #era = 0
  #rewinding: Promise<void> | undefined
  readonly #confirmed = new ConfirmedCommits()
  #keys = { next: 0, end: 0 }
  #taking: Promise<void> | undefined
  /** False behind a pooler that does not know prepared statements. */
  #prepared = true
  #transactions = 0
  #tidying: Promise<void> | undefined
  #purging = false
  #closed = false

  static async open(options: PostgresConnectionOptions): Promise<PostgresConnection> {
    const connection = new PostgresConnection(options)
    try {
      const session = await options.sessions.acquire()
      try {
        await refuseReplica(session)
        await migrate(session, options.dialect, options.name)
        connection.#limits = await limitsOf(session)
        connection.#enter(await enterTimeline(session, options.dialect))
      } finally {
        session.release()
      }
      await connection.#takeKeys()
    } catch (error) {
      await options.sessions.end()
      throw postgresFailure(error, options.name)
    }
    return connection
  }

  private constructor({ sessions, dialect, clock, name, patienceMs, onTransaction, onFailure }: PostgresConnectionOptions) {
    this.#sessions = sessions
    this.#jobs = new Jobs({
      clock, most: sessions.most, era: () => this.#era, outdated: () => rewoundFailure(name),
      transact: (task) => this.#transact(task), committed: (replayed) => this.#committed(replayed),
    })
    this.#dialect = dialect
    this.#clock = clock
    this.name = name
    this.#patienceMs = patienceMs
    this.#onTransaction = onTransaction
    this.#onFailure = onFailure
    this.#driver = {
      lockThreads: (lock) => lockThreads(dialect, lock),
      lockDomain: (domain, names) => lockDomain(dialect, domain, names),
      newKey: () => this.#newKey(),
      reserve: (table) => reserveKeys(dialect, table),
      check: checkValue,
    }
  }

  write<Result>(work: Work<Result>, { first, last }: TransactionSteps<Result> = {}): Promise<Result> {
    if (this.#closed) return Promise.reject(new HeedError('closed', 'This store was closed. Open a new one.'))
    return first ? this.#beat(work) : this.#jobs.write(work, last)
  }

  read<Result>(work: Work<Result>): Promise<Result> {
    if (this.#closed) return Promise.reject(new HeedError('closed', 'This store was closed. Open a new one.'))
    return this.#jobs.read(work)
  }

  #committed({ purging, changedMessages, left }: Replayed<unknown>): void {
    for (const thread of left) this.#expected.keep(thread)
    if (changedMessages) for (const tell of this.onMessages) tell()
    if (purging) this.#purge()
    if (++this.#transactions % tidyEvery === 0) this.#tidy()
  }

  #beat<Result>(work: Work<Result>): Promise<Result> {
    const working = this.#transact({ mode: 'heartbeat', works: [work], locks: [] }).then(([outcome]) => {
      if (outcome && 'replayed' in outcome) return outcome.replayed.result
      throw outcome?.error
    })
    this.#unordered.add(working)
    const forget = () => this.#unordered.delete(working)
    working.then(forget, forget)
    return working
  }

  /** The server answers a commit when it is durable. */
  async flush(): Promise<void> {}

  async close(): Promise<void> {
    await Promise.allSettled([...this.onClose].map((end) => end()))
    this.#closed = true
    await this.#jobs.idle()
    await Promise.allSettled(this.#unordered)
    await this.#tidying
    await this.#sessions.end()
  }

  /**
   * Does the works in one transaction. A conflict with another is tried again, unless they are several: then it throws, and nothing of
   * them is stored. Where the connection is lost while a commit is on its way, the server is asked whether the transaction was committed,
   * before anything is tried again.
   */
  async #transact<Result>(task: Task<Result>): Promise<Array<PartOutcome<Result>>> {
    storeWork.begin()
    const several = task.works.length > 1
    const expected = this.#expectedBy(task)
    const state: Attempts<Result> = { doubt: undefined, level: 0, expected, era: this.#era, suspicion: undefined }
    let lostAt: number | undefined
    try {
      for (let conflicts = 0, pause = 20; ;) {
        // Another transaction may find out while this one is under way.
        const wasPrepared = this.#prepared
        try {
          if (state.suspicion) await this.#checkTimeline(state)
          if (state.doubt && (await this.#wasCommitted(state.doubt))) return state.doubt.computed
          state.doubt = undefined
          return await this.#attempt(task, state)
        } catch (error) {
          if (isOtherTimeline(error)) {
            state.suspicion = error
            continue
          }
          if (isLost(error)) lostAt ??= performance.now()
          const { expected: refuted } = state
          state.expected = undefined
          if (error instanceof SpeculationFailed && refuted) continue
          if (several && !state.doubt && !isLost(error)) throw error
          if (error instanceof SpeculationFailed && state.level < levels.length - 1) state.level += 1
          else if (!state.doubt && (isHeedError(error) || error instanceof SpeculationFailed)) throw error
          else if (isOfPreparedNames(error) && wasPrepared) this.#prepared = false
          else if (isConflict(error) && conflicts < maxConflicts) {
            conflicts += 1
            await wait(Math.random() * 4 * conflicts)
          } else if (lostAt !== undefined && isLost(error) && performance.now() - lostAt < this.#patienceMs) {
            await wait(pause * (0.5 + Math.random() / 2))
            pause = Math.min(500, pause * 2)
          } else throw state.doubt ? unknownOutcome(error, this.name) : postgresFailure(error, this.name)
        }
      }
    } finally {
      storeWork.end()
    }
  }

  /** What the works expect to find, if all of them expect something. */
  #expectedBy({ works, locks }: Task<unknown>): ExpectedThread[] | undefined {
    const threadIds = new Set(locks.map(({ only }) => only))
    const found = [...threadIds].map((threadId) => (threadId === undefined ? undefined : this.#expected.take(threadId)))
    const expected = found.filter((thread) => thread !== undefined)
    return expected.length === works.length && expected.length === found.length ? expected : undefined
  }

  async #attempt<Result>(task: Task<Result>, state: Attempts<Result>): Promise<Array<PartOutcome<Result>>> {
    const { mode } = task
    if (mode === 'write' && this.#keys.end - this.#keys.next < keyBlock / 4) await this.#takeKeys()
    const session = await this.#sessions.acquire(mode === 'heartbeat')
    if (mode !== 'read' && state.era !== this.#era) {
      session.release()
      throw rewoundFailure(this.name)
    }
    const token = mode === 'write' ? randomBytes(12).toString('base64url') : ''
    const whole = mode === 'read' && state.level === 0
    const first = this.#firstOf(mode, task.works.length > 1)
    const options = { mode, token, first, prepared: this.#prepared, whole, longReads: this.#longReads }
    const transaction = new Transaction(session, this.#dialect, options)
    let computed: Array<PartOutcome<Result>> | undefined
    let sentAt = 0
    const committing = (result: Array<PartOutcome<Result>>) => {
      computed = result
      sentAt = Date.now()
    }
    try {
      const replayed = await this.#replay(task, state, transaction, committing)
      if (!transaction.committed) committing(replayed)
      await transaction.commit()
      if (token !== '' && transaction.committed) this.#confirmed.add(token)
      return replayed
    } catch (error) {
      if (mode === 'write' && computed && transaction.committing && isUnanswered(error)) state.doubt = { token, computed, sentAt }
      transaction.abandon()
      throw error
    } finally {
      this.#onTransaction?.(mode, transaction.trips)
      void transaction.release()
    }
  }

  async #replay<Result>(
    { mode, works, locks }: Task<Result>, state: Attempts<Result>, transaction: Transaction,
    committing: (result: Array<PartOutcome<Result>>) => void,
  ): Promise<Array<PartOutcome<Result>>> {
    const { level, asserts } = levels[state.level] ?? levels[0]
    const execute = (trip: RoundTrip) => transaction.execute(trip)
    const options = { seen: this.#seen, level, isResting: performance.now() < this.#restUntil }
    const { expected } = state
    if (works.length > 1) {
      const held = heldLocks(this.#dialect, locks)
      const driver = mode === 'read' ? undefined : { ...this.#driver, ...held.driver }
      return replayTogether(execute, this.#clock, works, { ...options, driver, locks: held.statements, expected, done: committing })
    }
    const [work] = works
    if (!work) return []
    const done = (replayed: Replayed<Result>) => committing([{ replayed }])
    const driver = mode === 'read' ? undefined : this.#driver
    return [{ replayed: await replay(execute, this.#clock, work, {
      ...options, driver, expected: expected?.[0], ...(asserts && mode !== 'read' && { done }),
    }) }]
  }

  /**
   * Whether the transaction with this token was committed. Both insert the token: this waits for a transaction that the server still
   * executes, and one that reaches it later fails. The second row tells the token of a transaction from one that was inserted here, by a
   * call whose answer was lost.
   */
  async #wasCommitted({ token, sentAt }: Doubt<unknown>): Promise<boolean> {
    // A process may have been paused; later the token may have been removed.
    if (Math.abs(Date.now() - sentAt) > outcomesAskedMs) throw new Error('the commit was sent too long ago')
    const table = `${this.#dialect.schema}.heed_outcomes`
    const refuted = `${token} refuted`
    try {
      await this.#alone(`INSERT INTO ${table} (token) VALUES ($1), ($2)`, [token, refuted])
      return false
    } catch (error) {
      if (sqlState(error) !== '23505') throw error
      return (await this.#alone(`SELECT 1 FROM ${table} WHERE token = $1`, [refuted])).length === 0
    }
  }

  /** What a transaction begins with. */
  #firstOf(mode: TransactionMode, several: boolean): string[] {
    if (mode === 'write') return [limitsOn(this.#timeline, several ? `${this.#limits}, ${byIndex}` : this.#limits)]
    return mode === 'heartbeat' ? this.#timelineCheck() : []
  }

  #timelineCheck(): string[] {
    const check = onTimeline(this.#timeline)
    return check === undefined ? [] : [`SELECT ${check}`]
  }

  /** A statement of this transaction found the server on another timeline. Throws that error where it is not. */
  async #checkTimeline<Result>(state: Attempts<Result>): Promise<void> {
    this.#rewinding ??= this.#rewind().finally(() => (this.#rewinding = undefined))
    await this.#rewinding
    state.suspicion = undefined
    // The server is on the known timeline: the connection led to one that was replaced, and is not used again.
    if (state.era === this.#era) throw notWritable(replaced)
  }

  /** Goes on with the timeline on which the server is, and reports what it lacks. */
  async #rewind(): Promise<void> {
    const before = this.#timeline
    const session = await this.#sessions.acquire()
    let lost: number
    try {
      const found = await enterTimeline(session, this.#dialect, before.id)
      if (found.id === before.id) return
      lost = await this.#confirmed.countLost(session, this.#dialect)
      this.#enter(found)
    } finally {
      session.release()
    }
    this.#era += 1
    this.#expected.clear()
    // The numbers of threads that this process took may be taken again.
    this.#keys = { next: 0, end: 0 }
    const rewound = rewoundTo(this.#timeline, before, lost)
    for (const report of this.rewound) report(rewound)
  }

  #enter(timeline: Timeline): void {
    this.#timeline = timeline
    this.#restUntil = performance.now() + timeline.restMs
    this.#dialect.raiseEpochs(timeline.floor)
  }

  #newKey(): number {
    if (this.#keys.next >= this.#keys.end) throw new HeedError('store_failed', 'Too many threads in one transaction.', { retryable: true })
    return this.#keys.next++
  }

  /** Takes the next numbers of threads for this process. */
  #takeKeys(): Promise<void> {
    const era = this.#era
    this.#taking ??= this.#alone(`SELECT nextval('${this.#dialect.schema.replaceAll(`'`, `''`)}.heed_keys') AS first`).then((rows) => {
      const next = Number(rows[0]?.first)
      if (era === this.#era) this.#keys = { next, end: next + keyBlock }
    }).finally(() => (this.#taking = undefined))
    return this.#taking
  }

  /** One statement by itself. It has no name: it is rare, and behind a pooler another client may have given the name to the connection. */
  async #alone(text: string, values: readonly string[] = []): Promise<Array<Record<string, unknown>>> {
    const session = await this.#sessions.acquire()
    try {
      const checks = this.#timelineCheck().map((check) => ({ name: '', text: check, values: [] }))
      const answers = await session.batch([...checks, { name: '', text, values }])
      return answers.at(-1)?.rows ?? []
    } finally {
      session.release()
    }
  }

  /** Adds up changes of usage, and removes outcomes that no client asks for any more. */
  #tidy(): void {
    const { schema } = this.#dialect
    this.#tidying ??= this.#alone(`SELECT ${schema}.heed_fold_usage(2000)`)
      .then(() => this.#alone(`DELETE FROM ${schema}.heed_outcomes WHERE at < now() - interval '${outcomesKept}'`))
      // The next one has more to do.
      .then(() => {}, (error: unknown) => this.#onFailure('usage could not be added up; the next attempt adds up more', error))
      .finally(() => (this.#tidying = undefined))
  }

  /** What deleted threads left goes a little at a time. What a close interrupts goes on with the next that is deleted. */
  #purge(): void {
    if (this.#purging) return
    this.#purging = true
    this.#purgeAll()
      .finally(() => {
        this.#purging = false
      })
      // These rows are invisible.
      .catch((error: unknown) => this.#onFailure('rows of deleted threads could not be removed; the next deletion removes them', error))
  }

  async #purgeAll(): Promise<void> {
    while (!this.#closed && (await this.write((tables) => tables.purgeSome()))) {
      /* more is left */
    }
  }
}

/** How much a transaction guesses, and whether it sends its commit with asserted statements: less after each failure. */
const levels = [
  { level: 'much', asserts: true },
  { level: 'much', asserts: false },
  { level: 'little', asserts: false },
  { level: 'nothing', asserts: false },
] as const

interface Attempts<Result> {
  /** The last attempt, if it may have been committed. */
  doubt: Doubt<Result> | undefined
  level: number
  /** What the first attempt expects to find, by work. */
  expected: ExpectedThread[] | undefined
  era: number
  /** The error of a statement that found the server on another timeline. */
  suspicion: unknown
}

/** A transaction whose commit was sent and not answered. */
interface Doubt<Result> {
  readonly token: string
  /** What the transaction returns. */
  readonly computed: Array<PartOutcome<Result>>
  readonly sentAt: number
}

/** A replica answers reads that are older than the last commit. */
async function refuseReplica(session: { batch: Awaited<ReturnType<Sessions['acquire']>>['batch'] }): Promise<void> {
  const text = `SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean AS readonly`
  const [answer] = await session.batch([{ name: '', text, values: [] }])
  if (answer?.rows[0]?.readonly !== 1) return
  throw Object.assign(new Error('it accepts no writes'), { code: '25006', severity: 'ERROR' })
}

/** PostgreSQL stores no NUL, and half of a surrogate pair would become another character: two ids might become one. */
function checkValue(value: SqlValue): void {
  if (typeof value !== 'string' || (!value.includes('\0') && value.isWellFormed())) return
  const what = value.includes('\0') ? 'the character U+0000' : 'half of a surrogate pair'
  throw new HeedError('invalid_argument', `A text has ${what}, which PostgreSQL can't store: ${JSON.stringify(value.slice(0, 80))}.`)
}

