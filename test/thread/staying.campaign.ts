import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { QueueDB } from '../../src/bus/libsql/queue-db.ts'
import { Agent, Heed } from '../../src/index.ts'
import { silentLogger } from '../../src/base/logger.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-staying-'))
const children: ChildProcess[] = []
afterEach(() => children.splice(0).forEach((child) => child.kill('SIGKILL')))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function start(program: string, file: string, ...how: string[]) {
  const child = spawn(process.execPath, [join(import.meta.dirname, program), `file:${file}`, ...how], { stdio: ['ignore', 'pipe', 'ignore'] })
  children.push(child)
  return { child, ended: once(child, 'exit'), lines: createInterface({ input: child.stdout })[Symbol.asyncIterator]() }
}

describe('a program that only subscribes to an inbox', () => {
  it('[W5.1] stays alive', async () => {
    const { child, lines, ended } = start('inbox-listener.ts', join(folder, 'inbox.db'), 'forever')
    expect((await lines.next()).value).toBe('One.')
    expect((await lines.next()).value).toBe('waits')
    child.kill('SIGTERM')
    expect(await ended).toEqual([null, 'SIGTERM'])
  })

  it.each(['close', 'unsubscribe', 'break'])('[W5.1] ends by itself after %s', async (how) => {
    const { ended } = start('inbox-listener.ts', join(folder, `inbox-${how}.db`), how)
    expect(await ended).toEqual([0, null])
  })
})

describe('a program that only awaits an outcome', () => {
  it('[W5.2] runs its thread beside a process that never responds', async () => {
    const file = join(folder, 'silent.db')
    const silent = await QueueDB.open(`${file}-bus`, 'silent')
    try {
      silent.renew('')
      const { lines, ended } = start('sender.ts', file)
      let line = (await lines.next()).value as unknown
      // While it waits for the answer of the silent process, it may say so.
      if (line === 'waits') line = (await lines.next()).value
      expect(line).toBe('woke')
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
      const { lines, ended } = start('sender.ts', file)
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
