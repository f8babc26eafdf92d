import { sql as texts } from '../sql.ts'
import type { SqlValue } from '../statements.ts'

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

/** A statement of a transaction. `run`: its answer counts one changed row, unless it is known to be another number. */
export interface Asked extends SqlStatement {
  kind: 'read' | 'run' | 'execute' | 'insert' | 'lock'
  /** Where it is known without asking. */
  answer?: SqlAnswer
  /** Of a read that is sent with the commit: the rows that it must return. */
  expected?: SqlAnswer['rows'] | undefined
  /** Which of several works that share a transaction sends it. */
  part?: number
}

/** A read with the key of a thread as its first value, which is not known yet; `sql.thread`, which has its id; or one without values. */
export interface Ahead extends SqlStatement {
  threadId: string
}

export interface AnsweredStatement extends Asked {
  answer: SqlAnswer
}

/** The answer to a read ahead. It is valid until the transaction writes to its table. */
interface AheadAnswer {
  table: string
  answer: SqlAnswer
}

/** A query that found no row so many times in a transaction, and never one, is assumed to find none again. */
const trustedAfter = 3
export const nothing: SqlAnswer = { rows: [], changes: 0, lastInsertRowid: 0 }

/** The answers that one transaction has received. */
export class KnownAnswers {
  readonly answered: AnsweredStatement[] = []
  /** How often statements were sent. */
  trips = 0
  /** How many of them a run of the work has requested again, with only true answers before them. */
  verified = 0
  /** Answers to reads that the work did not make at that point. They are valid until the next write. */
  #spare: Map<string, SqlAnswer> | undefined
  #ahead: Map<string, AheadAnswer> | undefined
  /** The reads ahead that were sent. */
  readonly asked = new Set<string>()
  /** How often a query found no row; -1 once it found one. */
  readonly #nothing = new Map<string, number>()

  add(asked: readonly Asked[], answers: readonly SqlAnswer[]): void {
    for (const [index, one] of asked.entries()) {
      const answer = answers[index] ?? nothing
      this.answered.push({ ...one, answer })
      if (one.kind !== 'read') {
        this.#spare?.clear()
        continue
      }
      if (one.answer) continue
      const times = this.#nothing.get(one.sql) ?? 0
      this.#nothing.set(one.sql, times < 0 || answer.rows.length > 0 ? -1 : times + 1)
    }
  }

  /** Keeps the answers to reads ahead, under the reads that they answer. */
  addAhead(asked: readonly Ahead[], answers: readonly SqlAnswer[]): void {
    if (asked.length === 0) return
    const keys = new Map<string, SqlValue>()
    const all = (this.#ahead ??= new Map<string, AheadAnswer>())
    const known = (one: SqlStatement, answer: SqlAnswer) => all.set(keyOf(one.sql, one.args), { table: tableOf(one.sql), answer })
    for (const [index, one] of asked.entries()) {
      const answer = answers[index] ?? nothing
      if (one.sql !== texts.thread) continue
      known({ sql: one.sql, args: [one.threadId] }, answer)
      const [thread] = answer.rows
      if (thread) keys.set(one.threadId, Number(thread.key))
    }
    for (const [index, { sql, threadId, args }] of asked.entries()) {
      const key = keys.get(threadId)
      if (!sql.includes('?')) known({ sql, args: [] }, answers[index] ?? nothing)
      else if (sql !== texts.thread && key !== undefined) known({ sql, args: [key, ...args] }, answers[index] ?? nothing)
    }
  }

  ahead(sql: string, args: SqlValue[], written: ReadonlySet<string>): SqlAnswer | undefined {
    const known = this.#ahead?.get(keyOf(sql, args))
    return known && !written.has(known.table) ? known.answer : undefined
  }

  /** Removes the answers from here on, which the work did not request at that point. Returns false if one of them is that of a write. */
  discardFrom(from: number): boolean {
    const removed = this.answered.splice(from)
    const spare = (this.#spare ??= new Map<string, SqlAnswer>())
    for (const { sql, args, answer } of removed) spare.set(keyOf(sql, args), answer)
    return removed.every(({ kind }) => kind === 'read' || kind === 'lock')
  }

  spare(sql: string, args: SqlValue[]): SqlAnswer | undefined {
    return this.#spare === undefined || this.#spare.size === 0 ? undefined : this.#spare.get(keyOf(sql, args))
  }

  trusts(sql: string): boolean {
    return (this.#nothing.get(sql) ?? 0) >= trustedAfter
  }
}

const tables = new Map<string, string>()

/** The table that a statement reads first, or writes. */
export function tableOf(sql: string): string {
  let table = tables.get(sql)
  if (table === undefined) tables.set(sql, (table = /\b(?:FROM|INTO|UPDATE)\s+(heed_\w+)/.exec(sql)?.[1] ?? ''))
  return table
}

export function keyOf(sql: string, args: readonly SqlValue[]): string {
  return `${sql} ${args.map((value) => `${typeof value} ${String(value)}`).join(' ')}`
}
