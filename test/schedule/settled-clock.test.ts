import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Agent, InMemoryStore, type Storage } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel, virtualClock, type VirtualClock } from '../../src/testing/index.ts'
import { hranaServer } from '../memory/hrana-server.ts'
import { openHeed } from '../thread/places.ts'

const minute = 60_000

const stores: Array<[string, number, (clock: VirtualClock) => Promise<Storage>]> = [
  ['in memory', 16, async (clock) => new InMemoryStore({ clock })],
  ['a file', 16, async (clock) => {
    const folder = mkdtempSync(join(tmpdir(), 'heed-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    return new LibSQLStore({ url: `file:${join(folder, 'heed.db')}`, clock })
  }],
  // Each statement is a request.
  ['a server', 4, async (clock) => {
    const folder = mkdtempSync(join(tmpdir(), 'heed-'))
    const server = await hranaServer(join(folder, 'heed.db'), 'token')
    onTestFinished(async () => {
      await server.close()
      rmSync(folder, { recursive: true, force: true })
    })
    return new LibSQLStore({ url: server.url, authToken: 'token', clock })
  }],
]

describe.each(stores)('a virtual clock, with a store that is %s', (_name, count, open) => {
  it('has moved when what became due is stored: schedules and notifications, and what the agent answered', async () => {
    const clock = virtualClock()
    const agent = new Agent({ id: 'guide', model: scriptedModel(({ index }) => `Answer ${index}.`), notifications: { deliveryPolicy: { default: 'persist' } } })
    const heed = openHeed({ agent }, (await open(clock)) as never, { clock })
    await heed.start()
    const threads = Array.from({ length: count }, (_, n) => ({ threadId: `t${n}`, resourceId: 'user-1' }))
    for (const thread of threads) await agent.schedules.create({ ...thread, id: thread.threadId, message: 'Look.', every: 2 * minute })
    const memory = await agent.getMemory()
    const counts = () => Promise.all(threads.map(async (thread) => (await memory.recall({ ...thread, perPage: false })).messages.length))
    for (let round = 1; round <= 3; round++) {
      await clock.advance(2 * minute)
      expect(await counts()).toEqual(threads.map(() => 2 * round))
    }
  })
})
