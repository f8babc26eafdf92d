import { TAIL_SEQ } from '../contract/thread-row.ts'
import type { CountedRow, MailRecord, RowRecord, RunRecord, ThreadRecord } from '../core/records.ts'
import type { Statements } from './statements.ts'

/** The limits of `RecentRows`: threads, and characters of content, of all threads and of one. */
const maxThreadsWithRows = 128
const maxContent = 1_000_000
const maxContentOfThread = 100_000

/** The limits of `RecentThreads`: threads, and characters of the texts of one, above which it is read again each time. */
const maxThreads = 256
const maxTextOfThread = 4_000

/** All rows of a thread from `from` on, without the tail band. */
interface LastRows {
  from: number
  rows: RowRecord[]
  content: number
}

/**
 * The last rows of threads as the database has them, so that a run does not read again what the previous run read or wrote. Appended
 * rows are added; its owner clears it after any other change of messages, in this process or another.
 */
export class RecentRows {
  readonly #threads = new Map<number, LastRows>()
  #content = 0

  /** The rows from `seq` on, if all of them are cached. */
  rowsFrom(thread: number, seq: number): RowRecord[] | undefined {
    const recent = this.#threads.get(thread)
    if (!recent || recent.from > seq) return undefined
    return recent.rows.slice(recent.rows.findLastIndex((row) => row.seq < seq) + 1)
  }

  /** Stores `rows`, which must be all rows of the thread from `seq` on. */
  keep(thread: number, seq: number, rows: readonly RowRecord[]): void {
    this.#drop(thread)
    const size = rows.reduce((sum, { content }) => sum + content.length, 0)
    if (size > maxContentOfThread) return
    this.#threads.set(thread, { from: seq, rows: [...rows], content: size })
    this.#content += size
    for (const oldest of this.#threads.keys()) {
      if (this.#threads.size <= maxThreadsWithRows && this.#content <= maxContent) break
      this.#drop(oldest)
    }
  }

  appended(thread: number, row: RowRecord): void {
    const recent = row.seq < TAIL_SEQ ? this.#threads.get(thread) : undefined
    if (!recent) return
    recent.rows.push(row)
    recent.content += row.content.length
    this.#content += row.content.length
    if (recent.content > maxContentOfThread) this.#drop(thread)
  }

  /** The first counted message at or after `ordinal`; undefined if an earlier one may not be cached. */
  countedFrom(thread: number, ordinal: number): CountedRow | undefined {
    const rows = this.#threads.get(thread)?.rows ?? []
    let first: RowRecord | undefined
    // From the end, because the ordinal is near it.
    for (let index = rows.length - 1; index >= 0; index -= 1) {
      const row = rows[index]
      if (row?.counted !== 1) continue
      if (row.ordinal < ordinal) return first
      first = row
    }
    return first?.ordinal === ordinal ? first : undefined
  }

  /** The `nth` counted message before and including `ordinal`, if it is cached. */
  countedBack(thread: number, ordinal: number, nth: number): CountedRow | undefined {
    let left = nth
    return this.#threads.get(thread)?.rows.findLast((row) => {
      if (row.counted === 1 && row.ordinal <= ordinal) left -= 1
      return left === 0
    })
  }

  clear(): void {
    this.#threads.clear()
    this.#content = 0
  }

  #drop(thread: number): void {
    const recent = this.#threads.get(thread)
    if (recent) this.#content -= recent.content
    this.#threads.delete(thread)
  }
}

/** A thread within a transaction: read once, and written once at its end, however many jobs change it. */
export interface LoadedThread {
  readonly thread: ThreadRecord
  changed: boolean
  /** The whole record was written, so the database has it once the transaction is committed. */
  written: boolean
  /** The stored values of the columns that are written only where they changed: an index costs more to write, and some seldom change. */
  before: ComparedColumns
  /** The database has no signal of the thread. */
  isNew: boolean
  /** The pending signals, once they were read. */
  pending: MailRecord[] | undefined
  /** New signals of this transaction by id. They are written at its end, because it may take some of them before. */
  readonly mail: Map<string, MailRecord>
  /** The running run, if it is known. */
  run: RunRecord | undefined
  /** The bytes of new rows: they are added to those of the thread when it is written. */
  newBytes: number
}

type ComparedColumns = Pick<ThreadRecord, 'title' | 'metadata' | 'updatedAt' | 'status' | 'owner' | 'dueAt'>

export function comparedColumns({ title, metadata, updatedAt, status, owner, dueAt }: ThreadRecord): ComparedColumns {
  return { title, metadata, updatedAt, status, owner, dueAt }
}

/** What a transaction left of a thread: the next one of this process probably finds it so. */
export interface ExpectedThread {
  readonly thread: Readonly<ThreadRecord>
  /** The running run; undefined where the thread has none. */
  readonly run: Readonly<RunRecord> | undefined
}

/** The threads that a transaction wrote, with their running runs. */
export function leftBy(loaded: Iterable<LoadedThread>): ExpectedThread[] {
  return [...loaded].flatMap(({ thread, run, written }) => (written && (run || thread.begun === 0) ? { thread, run } : []))
}

/** A thread, and its running run where that is known. */
export interface RecentThread {
  readonly thread: ThreadRecord
  readonly run: RunRecord | undefined
}

/**
 * The threads of the last transactions as the database has them, so that the next transaction does not read them again. Its owner clears it
 * after a write of another connection. A record is either cached here or taken by a transaction, which may change it.
 */
export class RecentThreads {
  /** The key of a taken thread stays, with undefined: deleting and adding keys in every transaction would make the map grow and rehash. */
  readonly #threads = new Map<string, RecentThread | undefined>()

  has(id: string): boolean {
    return this.#threads.get(id) !== undefined
  }

  take(id: string): RecentThread | undefined {
    const recent = this.#threads.get(id)
    if (recent) this.#threads.set(id, undefined)
    return recent
  }

  keep(thread: ThreadRecord, run: RunRecord | undefined): void {
    const text = thread.metadata.length + thread.title.length + (run?.options.length ?? 0) + (run?.staged?.length ?? 0)
    if (text > maxTextOfThread) return
    // With many entries the thread moves to the end of the map, so that the oldest entries are removed first.
    if (this.#threads.size > maxThreads / 2) this.#threads.delete(thread.id)
    this.#threads.set(thread.id, { thread, run })
    if (this.#threads.size <= maxThreads) return
    for (const oldest of this.#threads.keys()) {
      this.#threads.delete(oldest)
      break
    }
  }

  clear(): void {
    this.#threads.clear()
  }
}

/**
 * The records that a connection keeps between its transactions, as far as they are still valid: `rows` and `threads` drop records that
 * another connection, or a statement outside of `SqlTables`, may have changed. After its own writes `SqlTables` calls `rowsWritten` or
 * `threadsWritten`.
 */
export class Recent {
  readonly #statements: Statements
  // Made when they are first used: a transaction that is done again with answers makes its tables each time.
  #madeRows: RecentRows | undefined
  #madeThreads: RecentThreads | undefined
  #dataVersion: number | undefined
  #rowsVersion = -1
  #threadsVersion = -1
  #isCompared = false
  #messageChanges = 0
  #threadChanges = 0

  constructor(statements: Statements) {
    this.#statements = statements
  }

  get #rows(): RecentRows {
    return (this.#madeRows ??= new RecentRows())
  }

  get #threads(): RecentThreads {
    return (this.#madeThreads ??= new RecentThreads())
  }

  /** Call when a transaction begins or ends: the data version is read again before cached records are used. */
  newTransaction(): void {
    this.#isCompared = false
    this.#dataVersion = undefined
  }

  /** Changes after another connection's commit. Read once in a transaction. */
  dataVersion(): number {
    this.#dataVersion ??= this.#statements.dataVersion()
    return this.#dataVersion
  }

  rows(): RecentRows {
    if (!this.#isCompared) {
      this.#isCompared = true
      const version = this.dataVersion()
      if (version !== this.#rowsVersion) this.#rows.clear()
      this.#rowsVersion = version
    }
    if (this.#messageChanges !== this.#statements.messageChanges) {
      this.#messageChanges = this.#statements.messageChanges
      this.#rows.clear()
    }
    return this.#rows
  }

  rowsWritten(): void {
    this.#messageChanges = this.#statements.messageChanges
  }

  forgetRows(): void {
    this.#rows.clear()
  }

  threads(): RecentThreads {
    const version = this.dataVersion()
    if (version !== this.#threadsVersion || this.#threadChanges !== this.#statements.threadChanges) this.#threads.clear()
    this.#threadsVersion = version
    this.#threadChanges = this.#statements.threadChanges
    return this.#threads
  }

  threadsWritten(): void {
    this.#threadChanges = this.#statements.threadChanges
  }

  /** Reads the data version only if the thread is cached. */
  takeThread(id: string): RecentThread | undefined {
    return this.#madeThreads?.has(id) ? this.threads().take(id) : undefined
  }

  /** The thread as it was just committed. */
  keepThread(thread: ThreadRecord, run: RunRecord | undefined): void {
    this.#threads.keep(thread, run)
  }
}
