import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The address of a new database file. */
export function newDatabase() {
  return `file:${join(mkdtempSync(join(tmpdir(), 'threads-')), 'threads.db')}`
}
