import type { DatabaseSync } from 'node:sqlite'
import { isBusy } from './failure.ts'

const pauseMs = 5
const never = new Int32Array(new SharedArrayBuffer(4))

/**
 * Sets the mode in which readers and a writer use the file at once. SQLite does not wait for a lock here, whatever its `timeout`: a process
 * that opens a new file at the same moment is waited for by this function. It blocks its thread, so it is for worker threads.
 */
export function useWriteAheadLog(database: DatabaseSync, timeoutMs: number): void {
  for (const since = performance.now(); ; Atomics.wait(never, 0, 0, pauseMs * (0.5 + Math.random()))) {
    try {
      return database.exec('PRAGMA journal_mode = WAL')
    } catch (error) {
      if (!isBusy(error) || performance.now() - since >= timeoutMs) throw error
    }
  }
}
