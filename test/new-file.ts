import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** The path of a database that does not exist yet, in a folder of its own that goes with the test. */
export function newFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'heed-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'heed.db')
}
