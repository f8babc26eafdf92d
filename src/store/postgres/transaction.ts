import { createHash } from 'node:crypto'
import { HeedError } from '../../base/errors.ts'
import type { SqlAnswer, SqlStatement } from '../sql/replay/known-answers.ts'
import { SpeculationFailed, type RoundTrip } from '../sql/replay/replay.ts'
import { sql as texts } from '../sql/sql.ts'
import type { KeyedTable, LockedDomain, SqlValue, ThreadsLock } from '../sql/statements.ts'
import { arrayOf } from './bulk/arrays.ts'
import { gatheredReads } from './bulk/reads.ts'
import type { PlacedStatement } from './bulk/statements.ts'
import { gathered, sideBySide } from './bulk/writes.ts'
import type { Dialect } from './dialect.ts'
import { isOfValues, isRefutedGuess, sqlState } from './errors.ts'
import { condition } from './expected.ts'
import type { Session } from './sessions.ts'
import { isOtherTimeline, onTimeline, type Timeline } from './failover/timeline.ts'
import type { WireAnswer, WireStatement } from './wire/batch.ts'

/** Names of prepared statements, by text. */
const names = new Map<string, string>()

export function nameOf(text: string): string {
  let name = names.get(text)
  if (name === undefined) names.set(text, (name = `heed_${createHash('sha1').update(text).digest('hex').slice(0, 20)}`))
  return name
}

export type TransactionMode = 'write' | 'read' | 'heartbeat'

/**
 * What limits a write transaction on the server, in milliseconds: a lock that is not free for so long, and a client that does not continue,
 * end it. Without the last two a transaction of which the network lost a part would keep its locks, and one whose client is gone would
 * still wait for a lock. Not every server has them.
 */
const limits = { lock_timeout: 5_000, idle_in_transaction_session_timeout: 10_000 }
const furtherLimits = { transaction_timeout: 30_000, client_connection_check_interval: 1_000 }

function limiting(named: Readonly<Record<string, number>>): string {
  return `SELECT ${Object.entries(named).map(([name, ms]) => `set_config('${name}', '${ms}', true)`).join(', ')}`
}

/** The statement that limits a write transaction, with all limits that the server knows. */
export async function limitsOf(session: Session): Promise<string> {
  const known: Record<string, number> = { ...limits }
  for (const [name, ms] of Object.entries(furtherLimits)) {
    const isKnown = await session.batch([{ name: '', text: limiting({ [name]: ms }), values: [] }]).then(() => true, (error: unknown) => {
      if (sqlState(error) === undefined) throw error
      return false
    })
    if (isKnown) known[name] = ms
  }
  return limiting(known)
}

/**
 * Of a transaction of several works, whose statements take lists: the planner does not know their lengths, and would read a whole table
 * that is small when the statement is prepared, also when it is large later.
 */
export const byIndex = ['seqscan', 'hashjoin', 'mergejoin'].map((name) => `set_config('enable_${name}', 'off', true)`).join(', ')

/** The first statement of a write transaction: its limits, and that the server is on the timeline which this process knows. */
export function limitsOn(timeline: Timeline, limit: string): string {
  const check = onTimeline(timeline)
  return check === undefined ? limit : `${limit}, ${check}`
}

const begins: Readonly<Record<TransactionMode, string>> = {
  write: 'BEGIN',
  heartbeat: 'BEGIN',
  read: 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY',
}

interface TransactionOptions {
  mode: TransactionMode
  /** Is stored with what the transaction writes. */
  token: string
  /** The first statements of a write transaction, and of a heartbeat. */
  first: readonly string[]
  prepared: boolean
  /** A read that is expected to take one round trip: it ends with it. Throws `SpeculationFailed` where it needs another one. */
  whole?: boolean
  /** The first statements of reads that took more than one round trip. A read that begins with one is a transaction from its start. */
  longReads?: Set<string>
}

/** So many texts of statements are remembered. The stores have fewer; a limit holds where a text depends on the number of its values. */
const mostLongReads = 256

/** One transaction on one connection: its statements in as few round trips as the replay of its work needs. */
export class Transaction {
  /** Round trips that the caller waited for. */
  trips = 0
  committed = false
  /** The commit was sent. */
  committing = false
  readonly #session: Session
  readonly #dialect: Dialect
  readonly #mode: TransactionMode
  readonly #token: string
  readonly #firsts: readonly string[]
  readonly #prepared: boolean
  readonly #longReads: Set<string>
  #whole: boolean
  #first = ''
  #begun = false
  #wrote = false

  constructor(session: Session, dialect: Dialect, options: TransactionOptions) {
    const { mode, token, first, prepared, whole = false, longReads = new Set() } = options
    this.#session = session
    this.#dialect = dialect
    this.#mode = mode
    this.#token = token
    this.#firsts = first
    this.#prepared = prepared
    this.#whole = whole
    this.#longReads = longReads
  }

  async execute({ statements, ahead, last }: RoundTrip): Promise<{ answers: SqlAnswer[]; ahead: SqlAnswer[] }> {
    if (this.trips === 0) {
      this.#first = statements[0]?.sql ?? ''
      if (statements.some(({ sql }) => this.#longReads.has(sql))) this.#whole = false
    }
    if (this.#whole) return { answers: await this.#readWhole(statements), ahead: [] }
    if (last) return this.#writeLast(statements)
    const begin = this.#begin()
    const locks = statements.findLastIndex(({ kind }) => kind === 'lock') + 1
    if (statements.slice(locks).some(({ kind }) => kind !== 'read')) this.#wrote = true
    const placed = statements.map(({ kind, sql, args }) => ({ text: kind === 'lock' ? sql : this.#dialect.translate(sql), values: args }))
    // Reads ahead, and those before the first write of their work, see what was there before all writes of this round trip.
    const writing = new Set<number>()
    const isEarly = statements.map(({ kind, part = 0 }, at) => {
      if (at >= locks && kind !== 'read') writing.add(part)
      return at >= locks && !writing.has(part)
    })
    const reads = this.#gathered([...ahead.map((one) => this.#placedAhead(one)), ...placed.filter((_, at) => isEarly[at])])
    const first = [...begin, ...placed.slice(0, locks).map(({ text, values }) => this.#statement(text, values))]
    const late = placed.filter((_, at) => at >= locks && !isEarly[at]).map(({ text, values }) => this.#statement(text, values))
    const answers = await this.#send([...first, ...reads.statements, ...late], { last: false, guessed: statements.length > 1 })
    const [locked, read] = [answers.slice(begin.length, first.length), answers.slice(first.length)]
    const early = reads.answers(read.splice(0, reads.statements.length))
    const own = early.slice(ahead.length)
    return {
      answers: statements.map((_, at) => answerOf((at < locks ? locked[at] : isEarly[at] ? own.shift() : read.shift()) ?? noAnswer)),
      ahead: early.slice(0, ahead.length).map(answerOf),
    }
  }

  #placedAhead({ threadId, sql, args }: RoundTrip['ahead'][number]): PlacedStatement {
    const text = sql === texts.thread ? this.#dialect.translate(sql) : this.#dialect.translateAhead(sql)
    return { text, values: sql.includes('?') ? [threadId, ...args] : [] }
  }

  /** Reads that see the same database, as few statements. */
  #gathered(reads: readonly PlacedStatement[]): { statements: WireStatement[]; answers(sent: readonly WireAnswer[]): WireAnswer[] } {
    const { statements, answers } = gatheredReads(reads, this.#dialect.types)
    return { statements: statements.map(({ text, values, numbered }) => ({ ...this.#statement(text, values), numbered })), answers }
  }

  /** The last round trip of a transaction. If it is the only one, it locks and checks what it expects to read, writes, and commits. */
  async #writeLast(statements: RoundTrip['statements']): Promise<{ answers: SqlAnswer[]; ahead: SqlAnswer[] }> {
    const begin = this.#begin()
    const locks = statements.filter(({ kind }) => kind === 'lock').map(({ sql, args }) => this.#statement(sql, args))
    const parts = [...Map.groupBy(statements, ({ part = 0 }) => part).values()]
    // What a locked row has is read by a later statement: one that waits for a lock sees what was there before it waited.
    const checks = this.#gathered(parts.flatMap((part) => {
      const reads = part.flatMap(({ sql, args, expected }) => (expected ? { sql, args, expected } : []))
      return reads.length === 0 ? [] : [condition(this.#dialect, reads)]
    }))
    const writes = parts.map((part) => part.filter(({ kind }) => kind === 'run' || kind === 'execute').map(({ kind, sql, args }) => (
      { text: this.#dialect.translate(sql), values: args, asserted: kind === 'run' }
    )))
    const sent = gathered(sideBySide(writes), this.#dialect.types).map(({ text, values }) => this.#statement(text, values))
    this.#wrote = true
    await this.#send([...begin, ...locks, ...checks.statements, ...sent, ...this.#end()], { last: true, guessed: statements.length > 1 })
    return { answers: [], ahead: [] }
  }

  /** One statement sees one snapshot by itself; several need a transaction, whose end is sent with them. */
  async #readWhole(statements: RoundTrip['statements']): Promise<SqlAnswer[]> {
    if (this.trips > 0) {
      if (this.#longReads.size < mostLongReads) this.#longReads.add(this.#first)
      throw new SpeculationFailed('the read needs another round trip')
    }
    const reads = this.#gathered(statements.map(({ sql, args }) => ({ text: this.#dialect.translate(sql), values: args })))
    const sent = reads.statements
    const [begin, end] = sent.length > 1 ? [[this.#statement(begins.read)], [this.#statement('COMMIT')]] : [[], []]
    const answers = await this.#send([...begin, ...sent, ...end], { last: false, guessed: sent.length > 1 })
    this.#begun = false
    return reads.answers(answers.slice(begin.length, begin.length + sent.length)).map(answerOf)
  }

  /** Ends the transaction. One that wrote nothing needs no answer. */
  async commit(): Promise<void> {
    if (this.committed || !this.#begun) return
    if (this.#wrote) await this.#send(this.#end(), { last: true, guessed: false })
    else this.abandon()
  }

  /** Takes back what was not committed; the connection is released when that is done. */
  abandon(): void {
    const rollback = this.#begun && !this.committed ? this.#session.batch([this.#statement('ROLLBACK')]) : Promise.resolve()
    this.#begun = false
    this.#ended = rollback.then(() => {}, () => {})
  }

  #ended: Promise<void> = Promise.resolve()

  async release(): Promise<void> {
    await this.#ended
    this.#session.release()
  }

  #begin(): WireStatement[] {
    if (this.#begun) return []
    return [begins[this.#mode], ...this.#firsts].map((text) => this.#statement(text))
  }

  #end(): WireStatement[] {
    const token = this.#statement(`INSERT INTO ${this.#dialect.schema}.heed_outcomes (token) VALUES ($1)`, [this.#token])
    return [...(this.#mode === 'write' ? [token] : []), this.#statement('COMMIT')]
  }

  async #send(statements: readonly WireStatement[], { last, guessed }: { last: boolean; guessed: boolean }): Promise<WireAnswer[]> {
    this.#begun = true
    this.trips += 1
    if (last) this.committing = true
    try {
      const answers = await this.#session.batch(statements, this.#dialect.types)
      // In a transaction that failed before, COMMIT answers ROLLBACK and no error.
      if (last && answers.at(-1)?.tag !== 'COMMIT') {
        throw new HeedError('store_failed', 'The transaction was rolled back.', { retryable: true })
      }
      if (last) this.committed = true
      return answers
    } catch (error) {
      if (isOtherTimeline(error)) throw error
      if (last && isRefutedGuess(error)) throw new SpeculationFailed('a statement changed another number of rows', { cause: error })
      if (guessed && isOfValues(error) && sqlState(error) !== '23505') {
        throw new SpeculationFailed('statements that were sent on a guess failed', { cause: error })
      }
      throw error
    }
  }

  #statement(text: string, values: readonly SqlValue[] = []): WireStatement {
    return { name: this.#prepared ? nameOf(text) : '', text, values }
  }
}

const noAnswer: WireAnswer = { rows: [], changes: 0, tag: '', numbers: [] }

function answerOf({ rows, changes }: WireAnswer): SqlAnswer {
  return { rows, changes, lastInsertRowid: 0 }
}

/** How many keys a transaction reserves at once. Those that it does not use are not used again. */
const reservedKeys = 64
const keyColumns: Readonly<Record<KeyedTable, string>> = {
  heed_threads: 'key', heed_inbounds: 'seq', heed_watches: 'ord', heed_notification_batches: 'key',
}

/** The statement that reserves keys. The lock of the domain makes the order of numbers that of commits. */
export function reserveKeys({ schema }: Dialect, table: KeyedTable): SqlStatement {
  const sequence = `${schema}.${table}_${keyColumns[table]}_seq`.replaceAll(`'`, `''`)
  return { sql: `SELECT nextval('${sequence}') AS key FROM generate_series(1, ${reservedKeys} * (1 + $1::int)) ORDER BY 1`, args: [] }
}

/** So many numbers of locks are remembered. */
const mostNumbers = 10_000
const numbers = new Map<string, bigint>()

/** Locks by name are numbers of 64 bits. */
function lockNumber(...parts: string[]): bigint {
  const name = JSON.stringify(parts)
  let number = numbers.get(name)
  if (number === undefined) {
    if (numbers.size >= mostNumbers) numbers.clear()
    numbers.set(name, (number = createHash('sha1').update(name).digest().readBigInt64BE(0)))
  }
  return number
}

/** The statement that locks threads: all in one, in the order of the bytes of their ids. What they hold is read by later statements. */
export function lockThreads({ schema }: Dialect, { ids, below, owner }: ThreadsLock): SqlStatement {
  const rows = `SELECT 1 FROM ${schema}.heed_threads locked WHERE`
  const end = 'ORDER BY locked.id FOR NO KEY UPDATE'
  if (owner !== undefined) {
    const owned = `
      SELECT id FROM ${schema}.heed_threads WHERE owner = $1 AND status <> 'idle'
      UNION SELECT t.id FROM ${schema}.heed_mailbox m JOIN ${schema}.heed_threads t ON t.key = m.thread
      WHERE m.bound_to = $1 AND m.open = 1`
    return { sql: `${rows} locked.id IN (${owned}) ${end}`, args: [owner] }
  }
  if (!below) return { sql: `${rows} locked.id = ANY($1::text[]) ${end}`, args: [arrayOf(ids)] }
  const all = `
    WITH RECURSIVE below (id) AS (
      SELECT unnest($2::text[]) COLLATE "C" UNION SELECT t.id FROM ${schema}.heed_threads t JOIN below b ON t.parent_id = b.id)
    ${rows} locked.id IN (SELECT unnest($1::text[]) UNION SELECT id FROM below) ${end}`
  return { sql: all, args: [arrayOf(ids), arrayOf(below)] }
}

/** The statement that locks records of a domain by name, or the whole domain. */
export function lockDomain({ schema }: Dialect, domain: LockedDomain, named: readonly string[] | undefined): SqlStatement {
  const whole = lockNumber('heed', schema, domain)
  if (!named) return { sql: 'SELECT pg_advisory_xact_lock($1::bigint)', args: [String(whole)] }
  const numbers = [...new Set(named.map((name) => lockNumber('heed', schema, domain, name)))].toSorted((a, b) => (a < b ? -1 : 1))
  return {
    sql: `
      SELECT CASE WHEN number IS NULL THEN pg_advisory_xact_lock_shared($1::bigint) ELSE pg_advisory_xact_lock(number) END
      FROM unnest(array_prepend(NULL::bigint, $2::bigint[])) WITH ORDINALITY AS locks (number, nth)`,
    args: [String(whole), arrayOf(numbers)],
  }
}
