import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { inheritedFlags } from './worker.ts'

it('flags are inherited but for those of a program that is a text, and the text', () => {
  expect(inheritedFlags(['--enable-source-maps', '--input-type=module', '-e', 'console.log(1)', '--no-warnings'])).toEqual(['--enable-source-maps', '--no-warnings'])
})

it.each([
  ['in a program that is a text', []],
  ['whatever the size of its heap', ['--max-old-space-size=128', '--stack-size=900']],
])('threads run %s: what it saved is recalled', async (_where, flags) => {
  const folder = mkdtempSync(join(tmpdir(), 'heed-worker-'))
  const module = (name: string) => JSON.stringify(new URL(name, import.meta.url).href)
  const code = `
    import { Memory } from ${module('../index.ts')}
    import { LibSQLStore } from ${module('../store/sqlite/index.ts')}
    const storage = new LibSQLStore({ url: ${JSON.stringify(`file:${join(folder, 'a.db')}`)} })
    const memory = new Memory({ storage })
    await memory.createThread({ threadId: 't', resourceId: 'u' })
    await memory.saveMessages({ threadId: 't', messages: ['The key is under the mat.'] })
    const { hits } = await memory.recall({ threadId: 't', vectorSearchString: 'key' })
    console.log(hits[0].text)
    await storage.close()`
  const run = promisify(execFile)
  const { stdout } = await run(process.execPath, [...flags, '--input-type=module', '-e', code])
  expect(stdout.trim()).toBe('The key is under the mat.')
  // The same as a file, where nothing has to be left out.
  const file = join(folder, 'program.mjs')
  writeFileSync(file, code.replace('a.db', 'b.db'))
  expect((await run(process.execPath, [...flags, file])).stdout.trim()).toBe('The key is under the mat.')
  rmSync(folder, { recursive: true })
})
