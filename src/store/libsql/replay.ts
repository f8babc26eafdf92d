import type { Clock } from '../../clock.ts'
import { newId } from '../../ids.ts'
import { Statements, type SqlValue } from './statements.ts'
import { SqlTables } from './tables.ts'

/** What a statement came to, wherever it was done. */
export interface SqlAnswer {
  rows: Array<Record<string, unknown>>
  changes: number
  lastInsertRowid: number
}

export type Execute = (sql: string, values: SqlValue[]) => Promise<SqlAnswer>

/** Thrown where a transaction needs an answer that isn't there yet. */
class Unanswered extends Error {
  readonly sql: string
  readonly values: SqlValue[]

  constructor(sql: string, values: SqlValue[]) {
    super('this statement was not answered yet')
    this.sql = sql
    this.values = values
  }
}

/** Statements of which the first are answered. */
class Answered extends Statements {
  readonly #answers: readonly SqlAnswer[]
  #next = 0
  unanswered: Unanswered | undefined

  constructor(answers: readonly SqlAnswer[]) {
    super({ prepare: () => { throw new Error('nothing is prepared here') } })
    this.#answers = answers
  }

  override run(sql: string, ...values: SqlValue[]): number {
    return this.#answer(sql, values).changes
  }

  override insert(sql: string, ...values: SqlValue[]): number {
    return this.#answer(sql, values).lastInsertRowid
  }

  // Records that are handed out may be changed.
  override one<Row extends object>(sql: string, ...values: SqlValue[]): Row | undefined {
    // What is kept at hand between transactions is compared by this; here nothing is.
    if (sql === 'PRAGMA data_version') return undefined
    const [row] = this.#answer(sql, values).rows
    return row && ({ ...row } as Row)
  }

  override all<Row extends object>(sql: string, ...values: SqlValue[]): Row[] {
    return this.#answer(sql, values).rows.map((row) => ({ ...row }) as Row)
  }

  #answer(sql: string, values: SqlValue[]): SqlAnswer {
    const answer = this.unanswered ? undefined : this.#answers[this.#next]
    this.#next += 1
    if (answer) return answer
    // Whoever catches this and goes on gets it again: the answers after it are of no use.
    throw (this.unanswered ??= new Unanswered(sql, values))
  }
}

/**
 * Runs a transaction that is written for a database at hand on one that is far away. It is done again from its start for each answer
 * that comes in, with all answers so far: up to its last statement it takes the same way each time, since it depends on nothing but
 * its arguments, the answers, and the time and the new ids, which stay the same.
 */
export async function replay<Result>(
  execute: Execute, clock: Clock, work: (tables: SqlTables, statements: Statements) => Result,
): Promise<{ result: Result; purging: boolean }> {
  const now = clock.now()
  const answers: SqlAnswer[] = []
  const ids: string[] = []
  for (;;) {
    const statements = new Answered(answers)
    let nth = 0
    const tables = new SqlTables(statements, { ...clock, now: () => now }, () => (ids[nth++] ??= newId()))
    try {
      const result = work(tables, statements)
      tables.settle()
      if (!statements.unanswered) return { result, purging: tables.purging }
    } catch (error) {
      if (!statements.unanswered) throw error
    }
    const { sql, values } = statements.unanswered
    answers.push(await execute(sql, values))
  }
}
