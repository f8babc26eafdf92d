import { systemClock, type Clock } from '../../../base/clock.ts'
import { newId } from '../../../base/ids.ts'
import type { ExpectedThread } from '../recent.ts'
import { SeenHeartbeats } from '../seen-heartbeats.ts'
import { sql as texts } from '../sql.ts'
import {
  changesTable, messageTable, threadTables, type KeyedTable, type LockedDomain, type Statements, type SqlValue,
  type ThreadsLock,
} from '../statements.ts'
import { SqlTables } from '../tables.ts'
import {
  KnownAnswers, keyOf, nothing, tableOf, type Ahead, type AnsweredStatement, type Asked, type SqlAnswer, type SqlStatement,
} from './known-answers.ts'

/** What is sent in one round trip. */
export interface RoundTrip {
  /** In order. */
  statements: readonly Asked[]
  /** After the statements that lock, before all others. */
  ahead: readonly Ahead[]
  /**
   * The transaction ends with these statements: it is committed if each `run` changes one row and each read returns what is expected, and
   * fails otherwise. Reads are of tables that no statement before them writes to.
   */
  last: boolean
}

/** Executes statements, and returns one answer for each, and for each of those ahead. */
export type Execute = (trip: RoundTrip) => Promise<{ answers: SqlAnswer[]; ahead?: SqlAnswer[] }>

/** What a database with several writers needs besides. */
export interface ReplayDriver {
  /** The statement that locks. Undefined: the transaction has the locks already. Throws `SpeculationFailed` where it may not lock more. */
  lockThreads(lock: ThreadsLock): SqlStatement | undefined
  lockDomain(domain: LockedDomain, names: readonly string[] | undefined): SqlStatement | undefined
  newKey(): number
  /** Reads keys for the next rows of another table, in ascending order: they are above those of committed rows. Its value is a number. */
  reserve(table: KeyedTable): SqlStatement
  /** Throws for a value that the database cannot store. */
  check(value: SqlValue): void
}

/**
 * How many statements are sent together at first. It bounds the work on a guess, and ends a loop that needs a true answer to end. It
 * doubles with each round trip: a long transaction is done again a few times, not once for each of its parts.
 */
const firstPending = 256
const maxPending = 16_384
const oneChange: SqlAnswer = { rows: [], changes: 1, lastInsertRowid: 0 }

/** Thrown where a transaction cannot continue without a true answer. One for all: it is thrown often, and its stack is not read. */
class Unanswered extends Error {}
const unanswered = new Unanswered('this statement was not answered yet')

/** Writes were sent on a wrong guess. Nothing is committed: the caller must repeat the transaction with fewer guesses. */
export class SpeculationFailed extends Error {}

/** `much`: sends writes after true answers and trusted guesses. `little`: sends writes only after true answers. `nothing`: no guesses. */
export type SpeculationLevel = 'much' | 'little' | 'nothing'

/** The reads that return a row, whatever the database has. */
const notFound: ReadonlyMap<string, SqlAnswer> = new Map([[texts.hasMessage, { ...nothing, rows: [{ found: 0 }] }]])

/** The reads that find nothing for a new signal on a thread without a run. Where such a transaction reads more, it needs true answers. */
const foundByNoSend: ReadonlySet<string> = new Set([texts.mail, texts.row, texts.pending, texts.hasMessage])

/** Returns known answers to the first statements of a transaction. Guesses the answers to the rest, and collects them to be sent. */
class SpeculativeStatements implements Statements {
  messageChanges = 0
  threadChanges = 0
  readonly #known: KnownAnswers
  readonly #answered: readonly AnsweredStatement[]
  readonly #verified: number
  readonly #level: SpeculationLevel
  readonly #maxPending: number
  #next = 0
  #doubtful = false
  #stopped: Unanswered | undefined
  /** To be sent, in this order. */
  readonly pending: Asked[] = []
  /** To be sent with them. */
  readonly ahead: Ahead[] = []
  /** Why the work can't be done in this transaction. */
  refused: unknown
  #divergedAt: number | undefined
  /** The tables that the transaction has written to. */
  readonly #written = new Set<string>()
  /** The domains and names that are locked. */
  readonly #names = new Set<string>()
  readonly #check: ReplayDriver['check'] | undefined
  /** The answers that are expected instead of asked for, by read. All other reads are expected to find nothing. */
  readonly #expected: ReadonlyMap<string, SqlAnswer> | undefined
  /** A thread without a run is expected. */
  readonly #isIdle: boolean
  #reserved: Map<KeyedTable, number[]> | undefined
  #reservations = 0
  readonly newKey?: NonNullable<Statements['newKey']>
  readonly lockThreads?: NonNullable<Statements['lockThreads']>
  readonly lockDomain?: NonNullable<Statements['lockDomain']>
  readonly foresee?: NonNullable<Statements['foresee']>

  constructor(known: KnownAnswers, level: SpeculationLevel, driver?: ReplayDriver, expected?: ExpectedThread) {
    this.#known = known
    this.#answered = known.answered
    this.#verified = known.verified
    this.#level = level
    this.#maxPending = expected ? maxPending : Math.min(maxPending, firstPending * 2 ** known.trips)
    this.#isIdle = expected !== undefined && expected.run === undefined
    this.#expected = expected && new Map([
      [keyOf(texts.thread, [expected.thread.id]), { ...nothing, rows: [{ ...expected.thread }] }],
      [keyOf(texts.activeRun, [expected.thread.key]), { ...nothing, rows: expected.run ? [{ ...expected.run }] : [] }],
    ])
    if (!driver) return
    this.#check = (value) => driver.check(value)
    this.newKey = (table) => (table === 'heed_threads' ? driver.newKey() : this.#reservedKey(table, driver.reserve(table)))
    this.lockThreads = (lock) => this.#lock(() => driver.lockThreads(lock))
    this.lockDomain = (domain, names) => {
      const keys = names ? names.map((name) => `${domain} ${name}`) : [domain]
      if (this.#names.has(domain) || keys.every((key) => this.#names.has(key))) return
      for (const key of keys) this.#names.add(key)
      this.#lock(() => driver.lockDomain(domain, names))
    }
    this.foresee = (threadId, sql, ...args) => {
      if (expected) return
      const key = keyOf(sql, [threadId, ...args])
      if (this.#known.asked.has(key)) return
      this.#known.asked.add(key)
      this.ahead.push({ threadId, sql, args })
    }
  }

  #reservedKey(table: KeyedTable, { sql }: SqlStatement): number {
    let keys = this.#reserved?.get(table) ?? []
    if (keys.length === 0) {
      // Numbers are not used up for a row that may not be inserted.
      if (this.#doubtful) throw this.#stop()
      // Each reservation is a read of its own.
      keys = this.#answer('read', sql, [this.#reservations++]).rows.map(({ key }) => Number(key))
      this.#reserved ??= new Map()
      this.#reserved.set(table, keys)
    }
    const key = keys.shift()
    if (key === undefined) throw this.#stop()
    return key
  }

  #lock(statementOf: () => SqlStatement | undefined): void {
    let statement: SqlStatement | undefined
    try {
      statement = statementOf()
    } catch (error) {
      this.refused ??= error
      throw this.#stop()
    }
    if (statement) this.#answer('lock', statement.sql, statement.args)
  }

  /** The index of the first known answer that the work did not request, given true answers before it. */
  get divergedAt(): number | undefined {
    return this.#divergedAt ?? (!this.#stopped && this.#next < this.#answered.length ? this.#next : undefined)
  }

  get stopped(): boolean {
    return this.#stopped !== undefined
  }

  /** No record is kept between transactions. */
  dataVersion(): number {
    return -1
  }

  run(sql: string, ...values: SqlValue[]): number {
    return this.#write('run', sql, values).changes
  }

  execute(sql: string, ...values: SqlValue[]): void {
    this.#write('execute', sql, values)
  }

  insert(sql: string, ...values: SqlValue[]): number {
    const [key] = values
    if (!this.newKey || typeof key !== 'number') return this.#write('insert', sql, values).lastInsertRowid
    this.#write('execute', sql, values)
    return key
  }

  #write(kind: Asked['kind'], sql: string, values: SqlValue[]): SqlAnswer {
    if (changesTable(messageTable, sql)) this.messageChanges += 1
    if (changesTable(threadTables, sql)) this.threadChanges += 1
    const answer = this.#answer(kind, sql, values)
    this.#written.add(tableOf(sql))
    return answer
  }

  // Copies, because the caller may change the records.
  one<Row extends object>(sql: string, ...values: SqlValue[]): Row | undefined {
    const [row] = this.#answer('read', sql, values).rows
    return row && ({ ...row } as Row)
  }

  all<Row extends object>(sql: string, ...values: SqlValue[]): Row[] {
    return this.#answer('read', sql, values).rows.map((row) => ({ ...row }) as Row)
  }

  #answer(kind: Asked['kind'], sql: string, args: SqlValue[]): SqlAnswer {
    // Code that catches the error and continues gets it again.
    if (this.#stopped) throw this.#stopped
    if (this.#check) for (const value of args) this.#check(value)
    const at = this.#next
    this.#next += 1
    const known = this.#answered[at]
    if (known) {
      if (at < this.#verified || (known.sql === sql && same(known.args, args))) return known.answer
      this.#divergedAt = at
      throw this.#stop()
    }
    if (kind === 'read' && this.#expected) return this.#expect(sql, args)
    if (kind === 'read') {
      const answer = this.pending.length === 0 ? this.#known.spare(sql, args) : undefined
      if (answer) {
        this.#known.add([{ kind, sql, args }], [answer])
        return answer
      }
      const ahead = this.#known.ahead(sql, args, this.#written)
      if (ahead) {
        this.pending.push({ kind, sql, args, answer: ahead })
        return ahead
      }
      // It is sent without this statement, and its answer is known before a guess is needed.
      if (this.ahead.some((one) => one.sql === texts.thread && sql === texts.thread && one.threadId === args[0])) throw this.#stop()
      this.#doubtful ||= this.#level !== 'much' || !this.#known.trusts(sql)
    } else if (kind !== 'lock' && this.#doubtful) throw this.#stop() // Whether this write happens may depend on a guess.
    this.pending.push({ kind, sql, args })
    // A lock waits for no answer.
    if (kind === 'lock') return nothing
    if (this.#level === 'nothing' || kind === 'insert' || this.pending.length >= this.#maxPending) throw this.#stop()
    return guessOf(kind)
  }

  /** It is sent before all writes, so a table that was written to would answer with what it had before. */
  #expect(sql: string, args: SqlValue[]): SqlAnswer {
    if (this.#written.has(tableOf(sql)) || !/^\s*SELECT\b/.test(sql)) throw this.#stop()
    const known = this.#expected?.get(keyOf(sql, args))
    if (!known && this.#isIdle && !foundByNoSend.has(sql)) throw this.#stop()
    const answer = known ?? notFound.get(sql) ?? nothing
    this.pending.push({ kind: 'read', sql, args, expected: answer.rows })
    return answer
  }

  #stop(): Unanswered {
    return (this.#stopped = unanswered)
  }
}

/** Most writes change one row, and most reads before a write find no row. */
function guessOf(kind: Asked['kind']): SqlAnswer {
  return kind === 'run' ? oneChange : nothing
}

function isRight({ kind, answer: known }: Asked, answer: SqlAnswer): boolean {
  if (known || kind === 'execute' || kind === 'lock') return true
  return kind === 'run' ? answer.changes === oneChange.changes : answer.rows.length === 0
}

function same(a: readonly SqlValue[], b: readonly SqlValue[]): boolean {
  return a.length === b.length && a.every((value, index) => isSame(value, b[index]))
}

/** Bytes are made anew by each run of the work. */
function isSame(a: SqlValue, b: SqlValue | undefined): boolean {
  return a === b || (a instanceof Uint8Array && b instanceof Uint8Array && Buffer.compare(a, b) === 0)
}

/** What a work asks for, given all answers so far. */
export interface Pass<Result> {
  readonly pending: readonly Asked[]
  /** Those of them that are not known. */
  readonly sent: readonly Asked[]
  readonly ahead: readonly Ahead[]
  /** The work needs answers to continue. */
  readonly stopped: boolean
  /** These are its last statements, and all answers before them are known: they may be sent with the commit. */
  readonly last: boolean
  readonly failed: boolean
  /** Returns what the work returned, or throws its error. */
  outcome(): Replayed<Result>
}

type ReplayedWork<Result> = (tables: SqlTables, statements: Statements) => Result

/** A work that is executed again and again from its start, each time with more answers. Time and new ids stay the same. */
export class Replay<Result> {
  readonly #clock: Clock
  readonly #work: ReplayedWork<Result>
  readonly #options: ReplayOptions<Result>
  readonly #now: number
  readonly #known = new KnownAnswers()
  readonly #ids: string[] = []
  readonly #keys: number[] = []

  constructor(clock: Clock, work: ReplayedWork<Result>, options: ReplayOptions<Result>) {
    this.#clock = clock
    this.#work = work
    this.#options = options
    this.#now = clock.now()
  }

  /** Executes the work until it needs an answer, or to its end. */
  next(): Pass<Result> {
    const { seen = new SeenHeartbeats(), level = 'much', driver, done, expected, isResting = false } = this.#options
    const known = this.#known
    for (;;) {
      let nthKey = 0
      const newKey = driver && (() => (this.#keys[nthKey++] ??= driver.newKey()))
      const statements = new SpeculativeStatements(known, level, driver && { ...driver, newKey: newKey ?? driver.newKey }, expected)
      let nth = 0
      const ofStore = { ...this.#clock, now: () => this.#now, byServer: this.#clock === systemClock ? seen : undefined, isResting }
      const tables = new SqlTables(statements, ofStore, () => (this.#ids[nth++] ??= newId()))
      const outcome = capture(() => {
        const result = this.#work(tables, statements)
        tables.writeLoaded()
        return { result, purging: tables.purging, changedMessages: statements.messageChanges > 0, left: tables.left() }
      })
      const { divergedAt, pending, ahead, stopped, refused } = statements
      if (refused !== undefined) throw refused
      if (divergedAt !== undefined && !known.discardFrom(divergedAt)) throw new SpeculationFailed('writes were sent on a wrong guess')
      known.verified = known.answered.length
      if (divergedAt !== undefined) continue
      const sent = pending.filter(({ answer }) => !answer)
      const last = driver !== undefined && level !== 'nothing' && done !== undefined && sent.length > 0 && ahead.length === 0
        && !stopped && !outcome.failed
        && sent.every((one) => one.kind === 'run' || one.kind === 'execute' || (expected && (one.kind === 'lock' || one.expected)))
      if (expected && !last) throw new SpeculationFailed('the transaction reads more than was expected')
      return { pending, sent, ahead, stopped, last, failed: outcome.failed, outcome }
    }
  }

  /** Whether the work is done with these answers to what it asked for. */
  answered({ pending, ahead, stopped }: Pass<Result>, given: { answers: SqlAnswer[]; ahead?: SqlAnswer[] }): boolean {
    this.#known.trips += 1
    let at = 0
    const answers = pending.map(({ answer }) => answer ?? given.answers[at++] ?? nothing)
    this.#known.addAhead(ahead, given.ahead ?? [])
    if (!stopped && pending.every((asked, index) => isRight(asked, answers[index] ?? nothing))) return true
    this.#known.add(pending, answers)
    return false
  }
}

/**
 * Runs a transaction that is written for a local database on a remote one, with few round trips. It runs `work` repeatedly from its start
 * with all answers so far, and continues with guesses until `work` needs a true answer; then it sends the collected statements together.
 * `work` depends only on its arguments, the answers, the time and the new ids, and the last two stay the same: so each run makes the same
 * statements up to the first wrong guess. The result is returned once all its answers are true. Heartbeats have the server's time, unless
 * the store was given a clock.
 *
 * With a `driver` the last statements are sent with the commit, where all answers before them are known: `done` is then called with the
 * result before they are sent.
 */
export async function replay<Result>(
  execute: Execute, clock: Clock, work: ReplayedWork<Result>, options: ReplayOptions<Result> = {},
): Promise<Replayed<Result>> {
  const replayed = new Replay(clock, work, options)
  for (;;) {
    const pass = replayed.next()
    const { sent, ahead, last } = pass
    if (last) options.done?.(pass.outcome())
    const answered = sent.length + ahead.length === 0 ? { answers: [] } : await execute({ statements: sent, ahead, last })
    if (last || replayed.answered(pass, answered)) return pass.outcome()
  }
}

export interface ReplayOptions<Result> {
  /** No lease is granted now. */
  isResting?: boolean
  /** The heartbeats that this process has read from the database in earlier transactions. */
  seen?: SeenHeartbeats
  level?: SpeculationLevel
  driver?: ReplayDriver | undefined
  done?(result: Replayed<Result>): void
  /**
   * What the transaction probably finds: it is then sent in one round trip, with the reads as conditions. Throws `SpeculationFailed` where
   * they do not hold, or where it needs other answers.
   */
  expected?: ExpectedThread | undefined
}

export interface Replayed<Result> {
  result: Result
  /** Whether rows of a deleted thread remain. */
  purging: boolean
  changedMessages: boolean
  /** The threads that it wrote, as it left them. */
  left: ExpectedThread[]
}

/** Calls `act` now. The returned function returns its value, or throws its error. */
function capture<Value>(act: () => Value): (() => Value) & { failed: boolean } {
  try {
    const value = act()
    return Object.assign(() => value, { failed: false })
  } catch (error) {
    const fail = () => {
      throw error
    }
    return Object.assign(fail, { failed: true })
  }
}
