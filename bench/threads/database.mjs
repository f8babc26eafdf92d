import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The address of a new database file, which goes with this process. */
export function newDatabase() {
  const folder = mkdtempSync(join(tmpdir(), 'heed-bench-threads-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  return `file:${join(folder, 'threads.db')}`
}
