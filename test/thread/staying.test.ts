import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { Sidecar } from '../../src/bus/libsql/sidecar.ts'
import { Agent, Heed } from '../../src/index.ts'
import { silentLogger } from '../../src/logger.ts'
import { LibSQLStore } from '../../src/store/libsql/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-staying-'))
const children: ChildProcess[] = []
afterEach(() => children.splice(0).forEach((child) => child.kill('SIGKILL')))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function sender(file: string) {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'sender.ts'), `file:${file}`], { stdio: ['ignore', 'pipe', 'ignore'] })
  children.push(child)
  return { ended: once(child, 'exit'), lines: createInterface({ input: child.stdout })[Symbol.asyncIterator]() }
}

describe('a program that only awaits an outcome', () => {
  it('[W5.2] runs its thread beside a process that never answers', async () => {
    const file = join(folder, 'silent.db')
    const silent = await Sidecar.open(`${file}-bus`, 'silent')
    try {
      silent.attend()
      const { lines, ended } = sender(file)
      expect((await lines.next()).value).toBe('woke')
      expect(await ended).toEqual([0, null])
    } finally {
      silent.close()
    }
  })

  it('[W5.2] waits for the process that runs the thread', async () => {
    const file = join(folder, 'elsewhere.db')
    const gate = Promise.withResolvers<void>()
    const agent = new Agent({ id: 'guide', model: scriptedModel([{ text: 'Working.', gate: gate.promise }, 'Said.']) })
    const heed = new Heed({ agents: { agent }, storage: new LibSQLStore({ url: `file:${file}` }), logger: silentLogger })
    try {
      await agent.sendMessage('Work.', { resourceId: 'user-7', threadId: 'trip-1' }).outcome
      const { lines, ended } = sender(file)
      expect((await lines.next()).value).toBe('waits')
      gate.resolve()
      expect((await lines.next()).value).toBe('delivered')
      expect(await ended).toEqual([0, null])
    } finally {
      gate.resolve()
      await heed.close()
    }
  })
})
