import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import type { Copied } from './checkpoint.ts'

/**
 * Copies the log into the database, off the main thread: a large checkpoint takes hundreds of milliseconds.
 * - `copy`: what the log holds now. Writers go on meanwhile.
 * - `renew`: the same while no writer of this process is at work, and then begins the log anew.
 * - `end`: the worker ends.
 */
const { path } = workerData as { path: string }
const database = new DatabaseSync(path, { enableForeignKeyConstraints: false, timeout: 0 })
// The checkpoint itself must sync: what it copied may be overwritten in the log.
database.exec('PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0')
const copy = database.prepare('PRAGMA wal_checkpoint(PASSIVE)')

parentPort?.on('message', (wanted: 'copy' | 'renew' | 'end') => {
  if (wanted === 'end') {
    database.close()
    parentPort?.close()
    return
  }
  const pages = Number(copy.get()?.log)
  if (wanted === 'renew') beginLog()
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  parentPort?.postMessage({ how: wanted, pages } satisfies Copied)
})

/** The first write to a log that was copied begins it anew and waits for the disk. So that is a write of this thread, of what is there. */
function beginLog(): void {
  try {
    database.exec('BEGIN IMMEDIATE')
  } catch {
    // Another process writes: then that one begins it.
    return
  }
  const version = Number(database.prepare('PRAGMA user_version').get()?.user_version)
  database.exec(`PRAGMA user_version = ${version}; COMMIT`)
}
