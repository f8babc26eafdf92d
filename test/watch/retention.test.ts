import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, it } from 'vitest'
import { Channel, directChannel } from '../../src/channel/index.ts'
import { Agent, CompositeStore, silentLogger } from '../../src/index.ts'
import { LibSQLStore, WatchesLibSQL } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { soon } from '../thread/said.ts'
import { jumpingClock } from './shifted-clock.ts'
import { call, message, opened, target } from './watching.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-watch-retention-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const day = 86_400_000
const wait = { description: 'a message', expected_channels: ['sms'] }

function rows(file: string, table: string): number {
  const database = new DatabaseSync(file)
  const { count } = database.prepare(`SELECT count(*) AS count FROM ${table}`).get() as { count: number }
  database.close()
  return count
}

function world(name: string) {
  const clock = jumpingClock()
  const [file, threads] = [join(folder, `${name}.db`), join(folder, `${name}-threads.db`)]
  const watches = new WatchesLibSQL({ url: `file:${file}`, clock })
  const storage = name === 'composite'
    ? new CompositeStore({ default: new LibSQLStore({ url: `file:${threads}`, clock }), domains: { watches }, retention: { watches: '7d' } })
    : new LibSQLStore({ url: `file:${file}`, clock, retention: { watches: '7d' } })
  const adapter = directChannel({ kind: 'sms' })
  const agent = new Agent({ id: 'assistant', model: scriptedModel(() => 'Noted.'), watches: { model: scriptedModel(() => call('complete_task', { result: { matched: true } })), maxExpiryMs: 100 * day } })
  const heed = opened({ agents: { agent }, storage, clock, logger: silentLogger, channels: [new Channel({ id: 'phone', adapter, resourceId: 'ada' })] })
  return { clock, file, storage, adapter, agent, heed }
}

describe('the retention of watches', () => {
  it.each(['file', 'composite'])('[V1.27] removes ended watches and messages that are older, and keeps what an open watch considers: %s', async (name) => {
    const { clock, file, adapter, agent, heed } = world(name)
    const { id } = await agent.awaitSignal(wait, target)
    await adapter.deliver(message('1', 'One.'), message('2', 'Two.'))
    await soon(async () => (await agent.getWatch({ id }))?.reason).toBe('matched')
    await heed.tick()
    clock.jump(6 * day)
    const open = await agent.awaitSignal({ ...wait, expected_channels: ['email'], expires_in_minutes: 60 * 24 * 20 }, { ...target, threadId: 'open' })
    await adapter.deliver(message('3', 'Three.'))
    await heed.tick()
    expect([rows(file, 'heed_watches'), rows(file, 'heed_inbounds'), rows(file, 'heed_watch_candidates')]).toEqual([2, 3, 2])
    clock.jump(2 * day)
    await heed.tick()
    expect(await agent.getWatch({ id })).toBeNull()
    expect([rows(file, 'heed_watches'), rows(file, 'heed_inbounds'), rows(file, 'heed_watch_candidates'), rows(file, 'heed_watch_deliveries')]).toEqual([1, 1, 0, 0])
    // The third message is older than the retention now, and the open watch considers it.
    clock.jump(8 * day)
    await heed.tick()
    expect((await agent.explain({ watchId: open.id }))?.messages.map(({ reason }) => reason)).toEqual(['channel'])
    await agent.cancelWatch({ id: open.id })
    clock.jump(8 * day)
    await heed.tick()
    expect([rows(file, 'heed_watches'), rows(file, 'heed_inbounds')]).toEqual([0, 0])
  })

  it('[V1.27] prune() removes all of it, in small transactions', async () => {
    const { clock, file, adapter, heed, agent } = world('many')
    const { id } = await agent.awaitSignal({ ...wait, expected_channels: ['email'] }, target)
    await adapter.deliver(...Array.from({ length: 450 }, (_, nth) => message(String(nth), 'Hello.')))
    await agent.cancelWatch({ id })
    await soon(() => rows(file, 'heed_inbounds WHERE due_at IS NOT NULL') + rows(file, 'heed_watch_deliveries WHERE due_at IS NOT NULL')).toBe(0)
    await heed.close()
    const storage = new LibSQLStore({ url: `file:${file}` })
    const store = await storage.getStore('watches')
    const now = clock.now() + 8 * day
    expect(await store?.pruneWatches({ before: now, limit: 100 })).toBe(101)
    expect(await storage.prune({ now, retention: { watches: '7d' } })).toEqual({ threads: 0, messages: 0, records: 0, watches: 350 })
    await storage.close()
    expect([rows(file, 'heed_inbounds'), rows(file, 'heed_watches')]).toEqual([0, 0])
  })

  it('[V1.27] keeps everything where no retention is named', async () => {
    const storage = new LibSQLStore({ url: ':memory:', retention: { messages: '1d' } })
    expect(await storage.prune()).not.toHaveProperty('watches')
    await storage.close()
  })
})
