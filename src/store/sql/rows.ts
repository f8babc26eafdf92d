import type { MessageRow } from '../../message/row.ts'
import { copySuffix } from '../core/threads.ts'
import { messageRow, type CountedRow, type RowRecord, type ThreadRecord } from '../core/records.ts'
import type { WantedMessages } from '../core/tables.ts'
import { copySql } from './copy-sql.ts'
import { SqlMemory } from './memory.ts'
import { RecentRows } from './recent-rows.ts'
import { sql } from './sql.ts'
import type { Statements } from './statements.ts'

const copiedAtOnce = 2_000

/** The table of messages, whose ends are kept at hand. */
export class SqlRows extends SqlMemory {
  readonly #statements: Statements
  readonly #recent = new RecentRows()
  /** What the recent rows were kept by: what this connection did to messages, and whether others committed anything. */
  #messageChanges = 0
  #version = -1
  #isCompared = false
  #dataVersion: number | undefined

  constructor(statements: Statements) {
    super(statements)
    this.#statements = statements
  }

  row(thread: ThreadRecord, id: string): RowRecord | undefined {
    return this.#statements.one<RowRecord>(sql.row, thread.key, id)
  }

  messageRows(thread: ThreadRecord, messageId: string): RowRecord[] {
    return this.#statements.all<RowRecord>(copySql.messageRows, thread.key, messageId).toSorted((a, b) => a.seq - b.seq)
  }

  hasMessage(thread: ThreadRecord, messageId: string): boolean {
    return this.#statements.one<{ found: number }>(sql.hasMessage, thread.key, messageId)?.found === 1
  }

  addRow(thread: ThreadRecord, row: RowRecord): boolean {
    const recent = this.#recentRows()
    const added = this.#statements.run(
      sql.addRow, thread.key, row.seq, row.id, row.messageId, row.role, row.type, row.runId, row.step, row.content, row.createdAt, row.ordinal,
      row.turn, row.counted,
    )
    this.#messageChanges = this.#statements.messageChanges
    if (added === 1) recent.appended(thread.key, row)
    return added === 1
  }

  reviseRow(thread: ThreadRecord, row: RowRecord): void {
    this.#statements.run(sql.reviseRow, row.messageId, row.role, row.type, row.runId, row.step, row.content, row.createdAt, thread.key, row.id)
  }

  mergeTail(thread: ThreadRecord): void {
    this.#statements.run(sql.mergeTail, thread.nextSeq, thread.ordinal, thread.turn, thread.key)
  }

  rowsFrom(thread: ThreadRecord, seq: number): RowRecord[] {
    const recent = this.#recentRows()
    const known = recent.rowsFrom(thread.key, seq)
    if (known) return known
    const rows = this.#statements.all<RowRecord>(sql.rowsFrom, thread.key, seq)
    recent.keep(thread.key, seq, rows)
    return rows
  }

  decoded(thread: ThreadRecord, row: RowRecord): MessageRow {
    return (row.decoded ??= messageRow(thread, row))
  }

  removeRow(thread: ThreadRecord, id: string): void {
    this.#statements.run(copySql.removeRow, thread.key, id)
  }

  copyAllRows(from: ThreadRecord, to: ThreadRecord, context: boolean): void {
    const text = context ? copySql.copyAll : copySql.copyTold
    // What a statement reads and writes in one table, SQLite holds in memory in between.
    for (let after = 0; this.#statements.run(text, from.key, to.key, after, copiedAtOnce, copySuffix(to)) === copiedAtOnce;) {
      after = this.#statements.one<{ seq: number }>(copySql.lastSeq, to.key)?.seq ?? after
    }
  }

  copySomeRows(from: ThreadRecord, to: ThreadRecord, wanted: WantedMessages): void {
    const ids = wanted.messageIds ? JSON.stringify(wanted.messageIds) : null
    this.#statements.run(copySql.copySome, from.key, to.key, wanted.from ?? null, wanted.to ?? null, ids, wanted.limit ?? -1, copySuffix(to))
  }

  removeRowsFrom(thread: ThreadRecord, seq: number): void {
    this.#statements.run(sql.removeRowsFrom, thread.key, seq)
  }

  lastRow(thread: ThreadRecord): RowRecord | undefined {
    return this.#statements.one<RowRecord>(sql.lastRow, thread.key)
  }

  countedFrom(thread: ThreadRecord, ordinal: number): CountedRow | undefined {
    return this.#recentRows().countedFrom(thread.key, ordinal) ?? this.#statements.one<CountedRow>(sql.countedFrom, thread.key, ordinal)
  }

  countedBack(thread: ThreadRecord, ordinal: number, nth: number): CountedRow | undefined {
    const known = this.#recentRows().countedBack(thread.key, ordinal, nth)
    return known ?? this.#statements.one<CountedRow>(sql.countedBack, thread.key, ordinal, nth - 1)
  }

  removeMessage(thread: ThreadRecord, messageId: string): boolean {
    const whole = this.#statements.run(sql.removeMessage, thread.key, messageId)
    return whole + this.#statements.run(sql.removeParts, thread.key, messageId) > 0
  }

  removeQuotes(thread: ThreadRecord, messageIds: readonly string[]): void {
    if (messageIds.length === 0) return
    const ids = JSON.stringify(messageIds)
    this.#statements.run(sql.removeQuotes, thread.key, ids)
    this.#statements.run(sql.removeQuotesElsewhere, thread.key, ids)
  }

  removeAllRows(thread: ThreadRecord): number {
    const counted = this.#statements.one<{ count: number }>(sql.countMessages, thread.key)
    this.#statements.run(sql.removeAllRows, thread.key)
    return counted?.count ?? 0
  }

  /** A transaction begins or is over: what is at hand is compared before it is used again. */
  protected compareRows(): void {
    this.#isCompared = false
    this.#dataVersion = undefined
  }

  /** Changes when others committed something. Asked for once in a transaction. */
  dataVersion(): number {
    this.#dataVersion ??= this.#statements.one<{ data_version: number }>('PRAGMA data_version')?.data_version ?? -1
    return this.#dataVersion
  }

  protected forgetRows(): void {
    this.#recent.clear()
  }

  /** The recent rows, as far as they are still true in this transaction. */
  #recentRows(): RecentRows {
    if (!this.#isCompared) {
      this.#isCompared = true
      const version = this.dataVersion()
      if (version !== this.#version) this.#recent.clear()
      this.#version = version
    }
    if (this.#messageChanges !== this.#statements.messageChanges) {
      this.#messageChanges = this.#statements.messageChanges
      this.#recent.clear()
    }
    return this.#recent
  }
}
