import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { started } from './server.ts'

it('a server of the tests that does not start fails every process that waits for it, with the log of its keeper', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'heed-keeper-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const shared = join(folder, 'postgres')
  mkdirSync(shared)
  writeFileSync(`${shared}.log`, 'initdb: no space left')
  const waiting = started(shared, `${shared}.url`)
  // The keeper ends.
  rmSync(shared, { recursive: true })
  await expect(waiting).rejects.toThrow('did not start: initdb: no space left')
})
