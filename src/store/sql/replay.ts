import { systemClock, type Clock } from '../../base/clock.ts'
import { newId } from '../../base/ids.ts'
import type { Statements, SqlValue } from './statements.ts'
import { SqlTables } from './tables.ts'

/** The result of a statement. */
export interface SqlAnswer {
  rows: Array<Record<string, unknown>>
  changes: number
  lastInsertRowid: number
}

export interface SqlStatement {
  sql: string
  args: SqlValue[]
}

/** Executes statements in order, and returns one answer for each. */
export type Execute = (statements: readonly SqlStatement[]) => Promise<SqlAnswer[]>

interface Asked extends SqlStatement {
  kind: 'read' | 'run' | 'insert'
}

interface AnsweredStatement extends Asked {
  answer: SqlAnswer
}

/** How many statements are sent together. It bounds the work on a guess, and ends a loop that needs a true answer to end. */
const maxPending = 64
/** A query that found no row so many times in a transaction, and never one, is assumed to find none again. */
const trustedAfter = 3
const nothing: SqlAnswer = { rows: [], changes: 0, lastInsertRowid: 0 }
const oneChange: SqlAnswer = { rows: [], changes: 1, lastInsertRowid: 0 }

/** Thrown where a transaction cannot continue without a true answer. */
class Unanswered extends Error {}

/** Writes were sent on a wrong guess. Nothing is committed: the caller must repeat the transaction with fewer guesses. */
export class SpeculationFailed extends Error {}

/** The answers that one transaction has received. */
class KnownAnswers {
  readonly answered: AnsweredStatement[] = []
  /** How many of them a run of the work has requested again, with only true answers before them. */
  verified = 0
  /** Answers to reads that the work did not make at that point. They are valid until the next write. */
  readonly #spare = new Map<string, SqlAnswer>()
  /** How often a query found no row; -1 once it found one. */
  readonly #nothing = new Map<string, number>()

  add(asked: readonly Asked[], answers: readonly SqlAnswer[]): void {
    for (const [index, one] of asked.entries()) {
      const answer = answers[index] ?? nothing
      this.answered.push({ ...one, answer })
      if (one.kind !== 'read') {
        this.#spare.clear()
        continue
      }
      const times = this.#nothing.get(one.sql) ?? 0
      this.#nothing.set(one.sql, times < 0 || answer.rows.length > 0 ? -1 : times + 1)
    }
  }

  /** Removes the answers from here on, which the work did not request at that point. Returns false if one of them is that of a write. */
  discardFrom(from: number): boolean {
    const removed = this.answered.splice(from)
    for (const { sql, args, answer } of removed) this.#spare.set(keyOf(sql, args), answer)
    return removed.every(({ kind }) => kind === 'read')
  }

  spare(sql: string, args: SqlValue[]): SqlAnswer | undefined {
    return this.#spare.size === 0 ? undefined : this.#spare.get(keyOf(sql, args))
  }

  trusts(sql: string): boolean {
    return (this.#nothing.get(sql) ?? 0) >= trustedAfter
  }
}

function keyOf(sql: string, args: readonly SqlValue[]): string {
  return `${sql} ${args.map((value) => `${typeof value} ${String(value)}`).join(' ')}`
}

/** `much`: sends writes after true answers and trusted guesses. `little`: sends writes only after true answers. `nothing`: no guesses. */
export type SpeculationLevel = 'much' | 'little' | 'nothing'

/** Returns known answers to the first statements of a transaction. Guesses the answers to the rest, and collects them to be sent. */
class SpeculativeStatements implements Statements {
  readonly messageChanges = 0
  readonly threadChanges = 0
  readonly #known: KnownAnswers
  readonly #answered: readonly AnsweredStatement[]
  readonly #verified: number
  readonly #level: SpeculationLevel
  #next = 0
  #doubtful = false
  #stopped: Unanswered | undefined
  /** To be sent, in this order. */
  readonly pending: Asked[] = []
  #divergedAt: number | undefined

  constructor(known: KnownAnswers, level: SpeculationLevel) {
    this.#known = known
    this.#answered = known.answered
    this.#verified = known.verified
    this.#level = level
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
    return this.#answer('run', sql, values).changes
  }

  insert(sql: string, ...values: SqlValue[]): number {
    return this.#answer('insert', sql, values).lastInsertRowid
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
    const at = this.#next
    this.#next += 1
    const known = this.#answered[at]
    if (known) {
      if (at < this.#verified || (known.sql === sql && same(known.args, args))) return known.answer
      this.#divergedAt = at
      throw this.#stop()
    }
    if (kind === 'read') {
      const answer = this.pending.length === 0 ? this.#known.spare(sql, args) : undefined
      if (answer) {
        this.#known.add([{ kind, sql, args }], [answer])
        return answer
      }
      this.#doubtful ||= this.#level !== 'much' || !this.#known.trusts(sql)
    } else if (this.#doubtful) throw this.#stop() // Whether this write happens may depend on a guess.
    this.pending.push({ kind, sql, args })
    if (this.#level === 'nothing' || kind === 'insert' || this.pending.length >= maxPending) throw this.#stop()
    return guessOf(kind)
  }

  #stop(): Unanswered {
    return (this.#stopped = new Unanswered('this statement was not answered yet'))
  }
}

/** Most writes change one row, and most reads before a write find no row. */
function guessOf(kind: Asked['kind']): SqlAnswer {
  return kind === 'run' ? oneChange : nothing
}

function isRight({ kind }: Asked, answer: SqlAnswer): boolean {
  return kind === 'run' ? answer.changes === oneChange.changes : answer.rows.length === 0
}

function same(a: readonly SqlValue[], b: readonly SqlValue[]): boolean {
  return a.length === b.length && a.every((value, index) => value === b[index])
}

/**
 * Runs a transaction that is written for a local database on a remote one, with few round trips. It runs `work` repeatedly from its start
 * with all answers so far, and continues with guesses until `work` needs a true answer; then it sends the collected statements together.
 * `work` depends only on its arguments, the answers, the time and the new ids, and the last two stay the same: so each run makes the same
 * statements up to the first wrong guess. The result is returned once all its answers are true. Heartbeats have the server's time, unless
 * the store was given a clock.
 */
export async function replay<Result>(
  execute: Execute, clock: Clock, work: (tables: SqlTables, statements: Statements) => Result, level: SpeculationLevel = 'much',
): Promise<{ result: Result; purging: boolean }> {
  const now = clock.now()
  const known = new KnownAnswers()
  const ids: string[] = []
  for (;;) {
    const statements = new SpeculativeStatements(known, level)
    let nth = 0
    const tables = new SqlTables(statements, { ...clock, now: () => now, byServer: clock === systemClock }, () => (ids[nth++] ??= newId()))
    const outcome = capture(() => {
      const result = work(tables, statements)
      tables.writeLoaded()
      return { result, purging: tables.purging }
    })
    const { divergedAt, pending } = statements
    if (divergedAt !== undefined && !known.discardFrom(divergedAt)) throw new SpeculationFailed('writes were sent on a wrong guess')
    known.verified = known.answered.length
    if (divergedAt !== undefined) continue
    const answers = pending.length === 0 ? [] : await execute(pending)
    if (!statements.stopped && pending.every((asked, index) => isRight(asked, answers[index] ?? nothing))) return outcome()
    known.add(pending, answers)
  }
}

/** Calls `act` now. The returned function returns its value, or throws its error. */
function capture<Value>(act: () => Value): () => Value {
  try {
    const value = act()
    return () => value
  } catch (error) {
    return () => {
      throw error
    }
  }
}
