import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { sleep, systemClock } from '../../base/clock.ts'

/** How long, and how many, messages are kept for slow readers. A reader that is slower has lost messages. */
const keptMs = 10_000
const keptRows = 4_096

/** A process that has not renewed its membership for so long is gone. */
const presentMs = 60_000

const readRows = 256

/** How long an open waits for the lock of another process, and the pause between two attempts where SQLite itself does not wait. */
const lockMs = 250
const pauseMs = 5

const BUSY = 5

/** Whether another connection has the lock that a statement needs. */
export function isLocked(error: unknown): boolean {
  return resultCode(error) === BUSY
}

/** SQLite's primary result code, if it threw the error. */
export function resultCode(error: unknown): number | undefined {
  const isCoded = typeof error === 'object' && error !== null && 'errcode' in error && typeof error.errcode === 'number'
  return isCoded ? Number(error.errcode) & 0xff : undefined
}

interface QueueRow {
  id: number
  process: string
  body: string
}

/**
 * The queue of messages between processes: a small database beside the main one. It has a folder of its own, so that a watch on it reports
 * nothing of the main database. It is never synced: after a power cut no process is left to read it.
 */
export class QueueDB {
  readonly #database: DatabaseSync
  readonly #process: string
  readonly #statements: Record<keyof typeof sql, StatementSync>
  #version: number
  /** The id of the last row that was read, or that existed at `open`. */
  #last: number
  #writes = 0

  static async open(folder: string, process: string): Promise<QueueDB> {
    const { DatabaseSync: Database } = await import('node:sqlite')
    await mkdir(folder, { recursive: true })
    const database = new Database(join(folder, 'bus.db'), { timeout: lockMs })
    try {
      await useWriteAheadLog(database)
      database.exec(`
        PRAGMA synchronous = OFF;
        PRAGMA wal_autocheckpoint = 200;
        PRAGMA cache_size = -500;
        CREATE TABLE IF NOT EXISTS messages (
          id INTEGER PRIMARY KEY, process TEXT NOT NULL, at INTEGER NOT NULL, body TEXT NOT NULL
        ) STRICT;
        CREATE TABLE IF NOT EXISTS members (
          namespace TEXT NOT NULL, process TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (namespace, process)
        ) STRICT, WITHOUT ROWID`)
      return new QueueDB(database, process)
    } catch (error) {
      database.close()
      throw error
    }
  }

  private constructor(database: DatabaseSync, process: string) {
    this.#database = database
    this.#process = process
    const prepared = Object.entries(sql).map(([name, text]) => [name, database.prepare(text)])
    this.#statements = Object.fromEntries(prepared) as Record<keyof typeof sql, StatementSync>
    this.#version = this.#dataVersion()
    this.#last = Number(this.#statements.last.get()?.id ?? 0)
    this.#statements.expire.run(Date.now() - presentMs)
  }

  /** From here on a lock of another process fails at once: the caller retries. */
  stopWaiting(): void {
    this.#database.exec('PRAGMA busy_timeout = 0')
  }

  /** Renews the membership of this process in a namespace. Returns whether another process is in it. */
  renew(namespace: string): boolean {
    this.#statements.renew.run(namespace, this.#process, Date.now())
    return this.peers(namespace).length > 0
  }

  /** The other processes that renewed their membership of the namespace of late. */
  peers(namespace: string): string[] {
    return this.#statements.peers.all(namespace, this.#process, Date.now() - presentMs).map(({ process }) => String(process))
  }

  /** Ends the membership of this process in a namespace. */
  leave(namespace: string): void {
    this.#statements.leave.run(namespace, this.#process)
  }

  write(body: string): void {
    const now = Date.now()
    this.#statements.write.run(this.#process, now, body)
    if (++this.#writes % 64 === 0) this.#statements.prune.run(now - keptMs, keptRows)
  }

  /** What other processes wrote since the last read; `lost` when rows were pruned before they were read. */
  read(): { rows: QueueRow[]; lost: boolean } {
    const version = this.#dataVersion()
    if (version === this.#version) return { rows: [], lost: false }
    const found: QueueRow[] = []
    let lost = false
    for (;;) {
      const page = this.#statements.read.all(this.#last, readRows) as unknown as QueueRow[]
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
      this.#statements.leaveAll.run(this.#process)
    } catch {
      // Another process holds the lock: the memberships expire.
    } finally {
      this.#database.close()
    }
  }

  /** Changes with the commits of other connections, and not with those of this one. */
  #dataVersion(): number {
    return Number(this.#statements.version.get()?.data_version)
  }
}

/**
 * SQLite does not wait for a lock when it changes to this mode, whatever its timeout: of two processes that open a new queue at once, one
 * would fail, and miss the messages until it tries again.
 */
async function useWriteAheadLog(database: DatabaseSync): Promise<void> {
  for (const since = performance.now(); ; await sleep(systemClock, pauseMs * (0.5 + Math.random()))) {
    try {
      return database.exec('PRAGMA journal_mode = WAL')
    } catch (error) {
      if (!isLocked(error) || performance.now() - since >= lockMs) throw error
    }
  }
}

const sql = {
  version: 'PRAGMA data_version',
  last: 'SELECT max(id) AS id FROM messages',
  write: 'INSERT INTO messages (process, at, body) VALUES (?, ?, ?)',
  read: 'SELECT id, process, body FROM messages WHERE id > ? ORDER BY id LIMIT ?',
  // The newest row stays: the next id follows it.
  prune: 'DELETE FROM messages WHERE id < (SELECT max(id) FROM messages) AND (at < ? OR id <= (SELECT max(id) FROM messages) - ?)',
  renew: 'INSERT INTO members (namespace, process, at) VALUES (?, ?, ?) ON CONFLICT (namespace, process) DO UPDATE SET at = excluded.at',
  peers: 'SELECT process FROM members WHERE namespace = ? AND process <> ? AND at > ?',
  leave: 'DELETE FROM members WHERE namespace = ? AND process = ?',
  expire: 'DELETE FROM members WHERE at < ?',
  leaveAll: 'DELETE FROM members WHERE process = ?',
} as const
