import type { Clock } from '../../../base/clock.ts'
import { HeedError, isHeedError } from '../../../base/errors.ts'
import { newId } from '../../../base/ids.ts'
import type { Replayed } from '../../sql/replay/replay.ts'
import type { PartOutcome } from '../../sql/replay/together.ts'
import type { Statements } from '../../sql/statements.ts'
import { SqlTables } from '../../sql/tables.ts'
import type { TransactionMode } from '../transaction.ts'
import { Lanes } from './lanes.ts'
import { inOrder, Locks } from './locks.ts'

export type Work<Result> = (tables: SqlTables, statements: Statements) => Result

/** What one transaction does. Several works lock different records. */
export interface Task<Result> {
  mode: TransactionMode
  works: ReadonlyArray<Work<Result>>
  locks: readonly Locks[]
}

interface Job {
  work: Work<unknown>
  /** What it locks, as far as that is known before it is done. */
  locks: Locks
  /** How often the database had gone back when it was requested. */
  era: number
  last: ((tables: SqlTables, result: unknown) => unknown) | undefined
  resolve(result: unknown): void
  reject(error: unknown): void
}

interface JobsOptions {
  clock: Clock
  /** How many connections transactions have at most. */
  most: number
  /** How often the database has gone back. */
  era(): number
  /** The error of a job that was requested before the database went back. */
  outdated(): Error
  /** Throws where the transaction as a whole failed: several works then have no effect, unless the error is a `HeedError`. */
  transact<Result>(task: Task<Result>): Promise<Array<PartOutcome<Result>>>
  /** Called after the commit of a write. */
  committed(replayed: Replayed<unknown>): void
}

const maxQueued = 100_000

/** How many writes run at once: fewer commits at a time have more works each, and the disk flushes less often. */
function besideEachOther(most: number): number {
  return Math.max(Math.min(most, 2), Math.ceil(most / 2))
}

/** Thrown by the first statement of a work that is only asked what it locks. */
class Enough extends Error {}
const enoughIsKnown = new Enough('what it locks is known')

/** The reads and writes of this process that wait for a transaction. */
export class Jobs {
  readonly #options: JobsOptions
  readonly #writes: Lanes<Job>
  readonly #reads: Lanes<Job>

  constructor(options: JobsOptions) {
    this.#options = options
    this.#writes = new Lanes<Job>((groups) => this.#performGroups('write', groups), besideEachOther(options.most))
    this.#reads = new Lanes<Job>((groups) => this.#performGroups('read', groups), options.most)
  }

  write<Result>(work: Work<Result>, last?: (tables: SqlTables, result: Result) => Result): Promise<Result> {
    if (this.#writes.size >= maxQueued) {
      const why = `${maxQueued} writes wait already. Send slower, or try again.`
      return Promise.reject(new HeedError('store_failed', why, { retryable: true }))
    }
    return new Promise<Result>((resolve, reject) => {
      const { locks } = this.#asked(work)
      const settle = { resolve: (result: unknown) => resolve(result as Result), reject }
      this.#writes.add(locks.names, { work, locks, era: this.#options.era(), last: last as Job['last'], ...settle }, locks.kind, locks.kind)
    })
  }

  read<Result>(work: Work<Result>): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      const settle = { resolve: (result: unknown) => resolve(result as Result), reject }
      const { first } = this.#asked(work)
      this.#reads.add(new Set(), { work, locks: new Locks(), era: this.#options.era(), last: undefined, ...settle }, 'reads', first)
    })
  }

  async idle(): Promise<void> {
    await this.#writes.idle()
    await this.#reads.idle()
  }

  /** What the work locks before its first statement, and that statement. */
  #asked(work: Work<unknown>): { locks: Locks; first: string | undefined } {
    const locks = new Locks()
    let first: string | undefined
    const enough = (text: string): never => {
      first = text
      throw enoughIsKnown
    }
    const asked: Statements = {
      messageChanges: 0, threadChanges: 0, dataVersion: () => -1, run: enough, execute: enough, insert: enough, one: enough, all: enough,
      lockThreads: (lock) => locks.addThreads(lock),
      lockDomain: (domain, names, inbox) => locks.addDomain(domain, names, inbox),
      foresee() {},
    }
    try {
      work(new SqlTables(asked, this.#options.clock, newId), asked)
    } catch {
      // Its errors are thrown when it is done.
    }
    return { locks, first }
  }

  async #performGroups(mode: TransactionMode, given: ReadonlyArray<readonly Job[]>): Promise<void> {
    // They may be of different eras.
    const groups = given.map((jobs) => jobs.filter((job) => this.#isCurrent(mode, job))).filter((jobs) => jobs.length > 0)
    const sorted = groups.toSorted(([one], [other]) => inOrder(one?.locks, other?.locks))
    if (groups.length > 1 && (await this.#performTogether(mode, sorted))) return
    await Promise.all(groups.map((jobs) => this.#performGroup(mode, jobs)))
  }

  async #performGroup(mode: TransactionMode, jobs: readonly Job[]): Promise<void> {
    // One that is refused takes the others of its transaction along: each is then done by itself.
    if (await this.#perform(mode, jobs, jobs.length > 1)) return
    for (const job of jobs) if (this.#isCurrent(mode, job)) await this.#perform(mode, [job], false)
  }

  /** Rejects a write that was requested before the database went back: it may rely on a lease that was lost. */
  #isCurrent(mode: TransactionMode, { era, reject }: Job): boolean {
    const isCurrent = mode === 'read' || era === this.#options.era()
    if (!isCurrent) reject(this.#options.outdated())
    return isCurrent
  }

  /** Several groups in one transaction. False, and nothing, where they can't share one. */
  async #performTogether(mode: TransactionMode, groups: ReadonlyArray<readonly Job[]>): Promise<boolean> {
    const all = groups.flat()
    let outcomes: Array<PartOutcome<unknown[]>>
    try {
      outcomes = await this.#options.transact({ mode, works: groups.map(workOf), locks: all.map(({ locks }) => locks) })
    } catch (error) {
      // The errors of works are outcomes: this one is of the database, or the transaction may have been committed.
      if (!isHeedError(error)) return false
      for (const { reject } of all) reject(error)
      return true
    }
    for (const [index, outcome] of outcomes.entries()) {
      const jobs = groups[index] ?? []
      if ('replayed' in outcome) this.#settle(mode, jobs, outcome.replayed)
      else if (jobs.length > 1) await this.#performGroup(mode, jobs)
      else for (const { reject } of jobs) reject(outcome.error)
    }
    return true
  }

  /** False, and nothing, when one of several was refused. */
  async #perform(mode: TransactionMode, jobs: readonly Job[], several: boolean): Promise<boolean> {
    let replayed: Replayed<unknown[]>
    try {
      const [outcome] = await this.#options.transact({ mode, works: [workOf(jobs)], locks: jobs.map(({ locks }) => locks) })
      if (!outcome || 'error' in outcome) throw outcome?.error
      replayed = outcome.replayed
    } catch (error) {
      if (several && !(isHeedError(error) && error.code === 'store_unknown')) return false
      for (const { reject } of jobs) reject(error)
      return true
    }
    this.#settle(mode, jobs, replayed)
    return true
  }

  #settle(mode: TransactionMode, jobs: readonly Job[], replayed: Replayed<unknown[]>): void {
    for (const [index, { resolve }] of jobs.entries()) resolve(replayed.result[index])
    if (mode === 'write') this.#options.committed(replayed)
  }
}

/** The jobs of one group, one after the other: they share what they have read. */
function workOf(jobs: readonly Job[]): Work<unknown[]> {
  return (tables, statements) => {
    const results = jobs.map(({ work }) => work(tables, statements))
    return jobs.map(({ last }, index) => (last ? last(tables, results[index]) : results[index]))
  }
}
