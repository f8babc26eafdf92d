import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import type { Copied } from './checkpoint.ts'

/**
 * Copies the log into the database, beside the event loop: a large checkpoint takes hundreds of milliseconds.
 * - `copy`: copies the present log. Writers continue meanwhile.
 * - `renew`: copies it while no writer of this process is active, and then resets the log.
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
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
  parentPort?.postMessage({ how: wanted, pages } satisfies Copied)
})

/** The first write after a complete copy resets the log and waits for the disk: the worker makes it, with the version that is stored. */
function beginLog(): void {
  try {
    database.exec('BEGIN IMMEDIATE')
  } catch {
    // Another process is writing: its write resets the log.
    return
  }
  const version = Number(database.prepare('PRAGMA user_version').get()?.user_version)
  database.exec(`PRAGMA user_version = ${version}; COMMIT`)
}
