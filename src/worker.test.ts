import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { inheritedFlags } from './worker.ts'

it('flags are inherited but for those of a program that is a text, and the text', () => {
  expect(inheritedFlags(['--enable-source-maps', '--input-type=module', '-e', 'console.log(1)', '--no-warnings'])).toEqual(['--enable-source-maps', '--no-warnings'])
})

it('threads run in a program that is a text: what it saved is recalled', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'heed-worker-'))
  const module = (name: string) => JSON.stringify(new URL(name, import.meta.url).href)
  const code = `
    import { Memory } from ${module('./index.ts')}
    import { LibSQLStore } from ${module('./store/libsql/index.ts')}
    const storage = new LibSQLStore({ url: ${JSON.stringify(`file:${join(folder, 'a.db')}`)} })
    const memory = new Memory({ storage })
    await memory.createThread({ threadId: 't', resourceId: 'u' })
    await memory.saveMessages({ threadId: 't', messages: ['The key is under the mat.'] })
    const { hits } = await memory.recall({ threadId: 't', vectorSearchString: 'key' })
    console.log(hits[0].text)
    await storage.close()`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code])
  expect(stdout.trim()).toBe('The key is under the mat.')
  rmSync(folder, { recursive: true })
})
