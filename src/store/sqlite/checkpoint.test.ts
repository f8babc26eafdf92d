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
    for (let write = 0; write < 160; write++) {
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
})
