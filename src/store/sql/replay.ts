import type { Clock } from '../../base/clock.ts'
import { newId } from '../../base/ids.ts'
import type { Statements, SqlValue } from './statements.ts'
import { SqlTables } from './tables.ts'

/** What a statement came to, wherever it was done. */
export interface SqlAnswer {
  rows: Array<Record<string, unknown>>
  changes: number
  lastInsertRowid: number
}

export interface SqlStatement {
  sql: string
  args: SqlValue[]
}

/** Does statements one after the other; one answer for each. */
export type Execute = (statements: readonly SqlStatement[]) => Promise<SqlAnswer[]>

interface Asked extends SqlStatement {
  kind: 'read' | 'run' | 'insert'
}

interface AnsweredStatement extends Asked {
  answer: SqlAnswer
}

/** As many as are sent together: it bounds what is done on a guess, and a loop that only ends with the true answer. */
const atOnce = 64
/** A question to which "nothing" was the true answer so often in a transaction, and never another, is taken to have it again. */
const trustedAfter = 3
const nothing: SqlAnswer = { rows: [], changes: 0, lastInsertRowid: 0 }
const oneChange: SqlAnswer = { rows: [], changes: 1, lastInsertRowid: 0 }

/** Thrown where a transaction can't go on without a true answer. */
class Unanswered extends Error {}

/** Writes were sent on a guess that was wrong. Nothing is committed: the transaction is to be done again without guesses. */
export class SpeculationFailed extends Error {}

/** What is known of the database as a transaction has it. */
class Known {
  readonly answered: AnsweredStatement[] = []
  /** So many were asked for again with true answers before them. */
  verified = 0
  /** Answers to questions that turned out not to be asked there. They are true until something is written. */
  readonly #spare = new Map<string, SqlAnswer>()
  /** How often a question was answered with nothing; -1 once it wasn't. */
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

  /** Those from here on were not to be asked there. False when any of them has changed something. */
  cut(from: number): boolean {
    const inVain = this.answered.splice(from)
    for (const { sql, args, answer } of inVain) this.#spare.set(keyOf(sql, args), answer)
    return inVain.every(({ kind }) => kind === 'read')
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

/** How much is leveld on guesses: writes too after what is trusted, writes only after true answers, nothing. */
export type SpeculationLevel = 'much' | 'little' | 'nothing'

/** Statements of which the first are answered. What comes after them is guessed, and kept to be asked. */
class SpeculativeStatements implements Statements {
  readonly messageChanges = 0
  readonly threadChanges = 0
  readonly #known: Known
  readonly #answered: readonly AnsweredStatement[]
  readonly #verified: number
  readonly #level: SpeculationLevel
  #next = 0
  #doubtful = false
  #stopped: Unanswered | undefined
  /** To be asked, in this order. */
  readonly pending: Asked[] = []
  #divergedAt: number | undefined

  constructor(known: Known, level: SpeculationLevel) {
    this.#known = known
    this.#answered = known.answered
    this.#verified = known.verified
    this.#level = level
  }

  /** From this one on, what was asked is not what is asked for with true answers: other statements are, or none. */
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

  // Records that are handed out may be changed.
  one<Row extends object>(sql: string, ...values: SqlValue[]): Row | undefined {
    const [row] = this.#answer('read', sql, values).rows
    return row && ({ ...row } as Row)
  }

  all<Row extends object>(sql: string, ...values: SqlValue[]): Row[] {
    return this.#answer('read', sql, values).rows.map((row) => ({ ...row }) as Row)
  }

  #answer(kind: Asked['kind'], sql: string, args: SqlValue[]): SqlAnswer {
    // Whoever catches this and goes on gets it again.
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
    } else if (this.#doubtful) throw this.#stop() // Whether it is written may depend on what was only guessed.
    this.pending.push({ kind, sql, args })
    if (this.#level === 'nothing' || kind === 'insert' || this.pending.length >= atOnce) throw this.#stop()
    return guessOf(kind)
  }

  #stop(): Unanswered {
    return (this.#stopped = new Unanswered('this statement was not answered yet'))
  }
}

/** Mostly, what is written is one row, and what is looked for before it is written isn't there. */
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
 * Runs a transaction that is written for a database at hand on one that is far away. It is done again from its start with all answers
 * so far, and goes on with guesses until it needs a true one: what it asked for on the way is sent together. It takes the same way each
 * time up to the first answer that was guessed wrong, since it depends on nothing but its arguments, the answers, and the time and the
 * new ids, which stay the same. Its result counts when every answer behind it is true.
 */
export async function replay<Result>(
  execute: Execute, clock: Clock, work: (tables: SqlTables, statements: Statements) => Result, level: SpeculationLevel = 'much',
): Promise<{ result: Result; purging: boolean }> {
  const now = clock.now()
  const known = new Known()
  const ids: string[] = []
  for (;;) {
    const statements = new SpeculativeStatements(known, level)
    let nth = 0
    const tables = new SqlTables(statements, { ...clock, now: () => now }, () => (ids[nth++] ??= newId()))
    const outcome = attempt(() => {
      const result = work(tables, statements)
      tables.writeLoaded()
      return { result, purging: tables.purging }
    })
    const { divergedAt, pending } = statements
    if (divergedAt !== undefined && !known.cut(divergedAt)) throw new SpeculationFailed('writes were sent on a wrong guess')
    known.verified = known.answered.length
    if (divergedAt !== undefined) continue
    const answers = pending.length === 0 ? [] : await execute(pending)
    if (!statements.stopped && pending.every((asked, index) => isRight(asked, answers[index] ?? nothing))) return outcome()
    known.add(pending, answers)
  }
}

/** What it gives, or throws, when it is asked for. */
function attempt<Value>(act: () => Value): () => Value {
  try {
    const value = act()
    return () => value
  } catch (error) {
    return () => {
      throw error
    }
  }
}
