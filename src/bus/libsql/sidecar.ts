import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { DatabaseSync, StatementSync } from 'node:sqlite'

/** For how long, and how many of, what was said is kept for those who are slow to read. Whoever is slower starts over. */
const keptMs = 10_000
const keptRows = 4_096

/** A process that wrote nothing for so long is gone. */
const presentMs = 60_000

const readRows = 256

export interface SaidRow {
  id: number
  process: string
  body: string
}

/**
 * A small database beside the main one, through which processes speak. It is in a folder of its own, so that watching the folder says
 * nothing of the main database, and nothing of it is ever synced: after a power cut there is nobody left to speak with.
 */
export class Sidecar {
  readonly #database: DatabaseSync
  readonly #process: string
  readonly #statements: Record<keyof typeof sql, StatementSync>
  #version: number
  /** The last row that was read, or was there before. */
  #last: number
  #writes = 0
  /** Whether another process was there as this one came. */
  readonly met: boolean

  static async open(folder: string, process: string): Promise<Sidecar> {
    const { DatabaseSync: Database } = await import('node:sqlite')
    await mkdir(folder, { recursive: true })
    const database = new Database(join(folder, 'bus.db'), { timeout: 250 })
    try {
      database.exec(`
        PRAGMA journal_mode = WAL;
        PRAGMA synchronous = OFF;
        PRAGMA wal_autocheckpoint = 200;
        PRAGMA cache_size = -500;
        CREATE TABLE IF NOT EXISTS said (id INTEGER PRIMARY KEY, process TEXT NOT NULL, at INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
        CREATE TABLE IF NOT EXISTS present (process TEXT PRIMARY KEY, at INTEGER NOT NULL) STRICT`)
      return new Sidecar(database, process)
    } catch (error) {
      database.close()
      throw error
    }
  }

  private constructor(database: DatabaseSync, process: string) {
    this.#database = database
    this.#process = process
    const names = Object.keys(sql) as Array<keyof typeof sql>
    this.#statements = Object.fromEntries(names.map((name) => [name, database.prepare(sql[name])])) as Record<keyof typeof sql, StatementSync>
    this.#version = this.#dataVersion()
    this.#last = Number(this.#statements.last.get()?.id ?? 0)
    this.met = this.attend()
    // From here on nobody is waited for: what can't be done now is done later.
    database.exec('PRAGMA busy_timeout = 0')
  }

  /** Says that this process is here, and answers whether another is. */
  attend(): boolean {
    const now = Date.now()
    this.#statements.attend.run(this.#process, now)
    return this.others().length > 0
  }

  /** Processes that said of late that they are here. */
  others(): string[] {
    return this.#statements.others.all(this.#process, Date.now() - presentMs).map(({ process }) => String(process))
  }

  write(body: string): void {
    const now = Date.now()
    this.#statements.say.run(this.#process, now, body)
    if (++this.#writes % 64 === 0) this.#statements.forget.run(now - keptMs, keptRows)
  }

  /** What others said since the last time; `lost` when some of it is gone already. */
  read(): { rows: SaidRow[]; lost: boolean } {
    const version = this.#dataVersion()
    if (version === this.#version) return { rows: [], lost: false }
    const found: SaidRow[] = []
    let lost = false
    for (;;) {
      const page = this.#statements.news.all(this.#last, readRows) as unknown as SaidRow[]
      for (const row of page) {
        if (row.id !== this.#last + 1) lost = true
        this.#last = row.id
        if (row.process !== this.#process) found.push(row)
      }
      if (page.length < readRows) break
    }
    this.#version = version
    return { rows: found, lost }
  }

  close(): void {
    try {
      this.#statements.gone.run(this.#process)
    } catch {
      // Somebody writes just now: it is forgotten all the same, only later.
    } finally {
      this.#database.close()
    }
  }

  /** Changes with what other connections commit, and not with what this one does. */
  #dataVersion(): number {
    return Number(this.#statements.version.get()?.data_version)
  }
}

const sql = {
  version: 'PRAGMA data_version',
  last: 'SELECT max(id) AS id FROM said',
  say: 'INSERT INTO said (process, at, body) VALUES (?, ?, ?)',
  news: 'SELECT id, process, body FROM said WHERE id > ? ORDER BY id LIMIT ?',
  // The newest stays: the next one is numbered after it.
  forget: 'DELETE FROM said WHERE id < (SELECT max(id) FROM said) AND (at < ? OR id <= (SELECT max(id) FROM said) - ?)',
  attend: 'INSERT INTO present (process, at) VALUES (?, ?) ON CONFLICT (process) DO UPDATE SET at = excluded.at',
  others: 'SELECT process FROM present WHERE process <> ? AND at > ?',
  gone: 'DELETE FROM present WHERE process = ?',
} as const
