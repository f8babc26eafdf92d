import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { Chance } from '../conformance/fixture.ts'
import type { NotificationStore } from '../contract/notifications.ts'
import { notificationStoreOf } from '../contract/storage.ts'
import { LibSQLStore } from './store.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-checkpoint-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('the log of a database', () => {
  it('stays short when each write has many rows, all over the indexes', async () => {
    const path = join(folder, 'many.db')
    const store = new LibSQLStore({ url: `file:${path}` })
    const inbox = (await notificationStoreOf(store)) as NotificationStore
    const chance = new Chance(3)
    const now = Date.now()
    for (let write = 0; write < 120; write++) {
      await inbox.ingest(Array.from({ length: 250 }, (_, index) => {
        const owner = chance.below(10_000)
        return {
          id: `n-${write}-${index}`, threadId: `thread-${owner}`, resourceId: `resource-${owner}`, agentId: 'agent', source: 's', kind: 'k', summary: 'Something happened.', now, undecidedUntil: now,
          dedupeKey: `event-${chance.below(2 ** 31)}`, settlement: { action: 'defer' as const, deliverAt: now + chance.below(2 ** 31), now, claimUntil: now },
        }
      }))
    }
    const megabytes = statSync(`${path}-wal`).size / 2 ** 20
    await store.close()
    expect(megabytes).toBeLessThan(200)
  })

  it('keeps no process alive that closes nothing, also when it was copied', () => {
    const program = `
      import { LibSQLStore } from '${new URL('store.ts', import.meta.url)}'
      import { Memory } from '${new URL('../../memory/memory.ts', import.meta.url)}'
      const memory = new Memory({ storage: new LibSQLStore({ url: 'file:${join(folder, 'open.db')}' }) })
      await memory.createThread({ threadId: 't', resourceId: 'r' })
      for (let write = 0; write < 24; write++) {
        const messages = Array.from({ length: 500 }, (_, index) => ({ id: write + '-' + index, role: 'user', content: 'x' }))
        await memory.saveMessages({ threadId: 't', messages })
      }`
    const ended = spawnSync(process.execPath, ['--input-type=module', '--eval', program], { encoding: 'utf8', timeout: 100_000 })
    expect(ended).toMatchObject({ status: 0, stderr: '' })
  })

  it('keeps a process alive while it is copied, because writes may wait for that', () => {
    const program = `
      import { Checkpointer } from '${new URL('checkpoint.ts', import.meta.url)}'
      const resumed = Promise.withResolvers()
      const database = { path: '${join(folder, 'held.db')}', pageSize: 4096 }
      const checkpointer = new Checkpointer(database, { hold: () => () => resumed.resolve(), giveUp() {} })
      checkpointer.committed(10_000)
      await resumed.promise
      console.log('resumed')`
    const ended = spawnSync(process.execPath, ['--input-type=module', '--eval', program], { encoding: 'utf8', timeout: 100_000 })
    expect(ended).toMatchObject({ status: 0, stdout: 'resumed\n', stderr: '' })
  })
})
