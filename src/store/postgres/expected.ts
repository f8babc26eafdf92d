import type { SqlAnswer, SqlStatement } from '../sql/replay/known-answers.ts'
import type { ExpectedThread } from '../sql/recent.ts'
import { runColumns, sql, threadColumns } from '../sql/sql.ts'
import type { SqlValue } from '../sql/statements.ts'
import { arrayOf } from './bulk/arrays.ts'
import type { PlacedStatement } from './bulk/statements.ts'
import type { Dialect } from './dialect.ts'

/** The most threads that are remembered, and the most characters of the texts of one. */
const maxThreads = 1_000
const maxText = 4_000

/**
 * Threads as the last transactions of this process left them. The next transaction of a run, and the next signal for an idle thread that
 * begins no run, expect to find them so: it is sent in one round trip with what it expects as a condition, and done the usual way where
 * that does not hold. So an entry may be out of date, which costs a round trip.
 */
export class ExpectedThreads {
  readonly #threads = new Map<string, ExpectedThread>()

  /** What is expected of the thread, once: the transaction changes it. */
  take(threadId: string): ExpectedThread | undefined {
    const expected = this.#threads.get(threadId)
    this.#threads.delete(threadId)
    return expected
  }

  clear(): void {
    this.#threads.clear()
  }

  keep({ thread, run }: ExpectedThread): void {
    this.#threads.delete(thread.id)
    if (thread.metadata.length + (thread.title?.length ?? 0) + (run ? run.options.length + run.suspended.length : 0) > maxText) return
    this.#threads.set(thread.id, { thread, run })
    for (const oldest of this.#threads.keys()) {
      if (this.#threads.size <= maxThreads) break
      this.#threads.delete(oldest)
    }
  }
}

/** The names of the columns that a list of them selects. */
function namesOf(columns: string): string[] {
  return columns.split(',').flatMap((column) => /(\w+)\s*$/.exec(column)?.[1] ?? [])
}

/** The reads of which a row may be expected, with its columns. Of all others, none is. */
const columnsOf: ReadonlyMap<string, string[]> = new Map([
  [sql.thread, namesOf(threadColumns)], [sql.activeRun, namesOf(runColumns)], [sql.hasMessage, ['found']],
])

/** A read and the rows that it must return: none, or one of a known read. */
export interface ExpectedRead extends SqlStatement {
  expected: SqlAnswer['rows']
}

/** The tables in which new signals and their rows are looked for by their ids: the ids of many are looked for together. */
const tablesOfIds: ReadonlyMap<string, string> = new Map([[sql.mail, 'heed_mailbox'], [sql.row, 'heed_messages']])

/** Reads of one thread that must find none of several ids, as one. */
function byIds(reads: readonly ExpectedRead[]): { lists: Map<string, { thread: SqlValue; ids: string[] }>; others: ExpectedRead[] } {
  const lists = new Map<string, { thread: SqlValue; ids: string[] }>()
  const others = reads.filter(({ sql: text, args: [thread = null, id], expected }) => {
    const list = lists.get(text) ?? { thread, ids: [] }
    if (!tablesOfIds.has(text) || expected.length > 0 || list.thread !== thread || typeof id !== 'string') return true
    list.ids.push(id)
    lists.set(text, list)
    return false
  })
  return { lists, others }
}

/** One statement for several reads. It fails with `22012` where one of them returns something else. */
export function condition(dialect: Dialect, reads: readonly ExpectedRead[]): PlacedStatement {
  const values: SqlValue[] = []
  const { lists, others } = byIds(reads)
  const conditions = others.map(({ sql: text, args, expected: [row] }) => {
    const before = values.length
    values.push(...args)
    const read = dialect.translate(text).replaceAll(/\$(\d+)/g, (_, number: string) => `$${before + Number(number)}`)
    if (!row) return `NOT EXISTS (${read})`
    const same = (columnsOf.get(text) ?? []).map((column) => {
      values.push((row[column] ?? null) as SqlValue)
      return `found."${column}" IS NOT DISTINCT FROM $${values.length}`
    })
    return `EXISTS (SELECT 1 FROM (${read}) AS found WHERE ${same.join(' AND ')})`
  })
  for (const [text, { thread, ids }] of lists) {
    const [of, list] = [values.push(thread), values.push(arrayOf(ids))]
    const table = `${dialect.schema}.${tablesOfIds.get(text)}`
    conditions.push(`NOT EXISTS (SELECT 1 FROM ${table} WHERE thread = $${of} AND id = ANY($${list}::text[]))`)
  }
  return { text: `SELECT 1 / CASE WHEN ${conditions.join(' AND ')} THEN 1 ELSE 0 END AS one`, values }
}
