import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'

/** The URL of a database file that does not exist yet, in a folder that the end of the program removes. */
export function newFile(): string {
  return `file:${join(newFolder(), 'heed.db')}`
}

/** A folder that the end of the program removes. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'heed-program-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
