import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { systemClock } from '../../base/clock.ts'
import { cloneThread } from '../core/threads.ts'
import { deleteMessages } from '../core/messages.ts'
import { carried, type BulkAnswer, type BulkJob, type BulkOrder } from './bulk.ts'
import { restore } from './backup.ts'
import { PreparedStatements } from '../sql/statements.ts'
import { SqlTables } from '../sql/tables.ts'

/**
 * Runs one long job on its own connection, and ends. The transactions are those of the store; this worker thread may block while it
 * waits for the lock.
 */
const { path, busyTimeout, job } = workerData as BulkOrder

function work(database: DatabaseSync): unknown {
  if (job.kind === 'backup') return backup(database, job.to)
  if (job.kind === 'restore') return restore(database, job.from)
  const statements = new PreparedStatements(database)
  const tables = new SqlTables(statements, systemClock)
  database.exec('BEGIN IMMEDIATE')
  try {
    const result = transaction(tables, job)
    tables.writeLoaded()
    database.exec('COMMIT')
    return result
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}

function transaction(tables: SqlTables, wanted: Extract<BulkJob, { kind: 'cloneThread' | 'deleteMessages' }>): unknown {
  return wanted.kind === 'cloneThread' ? cloneThread(tables, wanted.scope, wanted.clone) : deleteMessages(tables, wanted.scope)
}

/** One state of the database, whatever is written meanwhile. */
function backup(database: DatabaseSync, to: string): void {
  database.prepare('VACUUM INTO ?').run(to)
}

function answer(): BulkAnswer {
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(path, { enableForeignKeyConstraints: false, timeout: busyTimeout })
    database.exec('PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = FILE')
    return { result: work(database) }
  } catch (error) {
    return { error: carried(error) }
  } finally {
    database?.close()
  }
}

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
parentPort?.postMessage(answer())
