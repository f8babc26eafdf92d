import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, it } from 'vitest'
import { begin } from '../conformance/fixture.ts'
import { migrate, migrations, versionOf } from './migrations.ts'
import { LibSQLStore } from './store.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-migrations-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** What a Heed of that version would have written: one thread that runs, with a message in history and a signal that waits. */
const first: readonly string[] = [
  `INSERT INTO heed_threads (id, resource_id, created_at, updated_at, status, epoch, run_id, agent_id, begun, next_seq, next_ord,
     ordinal, turn, due_at, title, metadata)
   VALUES ('t', 'r', 1, 2, 'running', 3, 'run', 'agent', 1, 2, 3, 1, 1, 5, 'Title', '{"a":1}')`,
  `INSERT INTO heed_messages (thread, seq, id, message_id, role, type, run_id, step, created_at, ordinal, turn, counted, content)
   VALUES (1, 1, 'm', 'm', 'user', NULL, 'run', 0, 1, 1, 1, 1, '{"format":2,"parts":[{"type":"text","text":"hello"}]}')`,
  `INSERT INTO heed_mailbox (thread, ord, id, agent_id, route, kind, state, open, run_id, start_run_id, step, accepted_at, rows)
   VALUES (1, 1, 'm', 'agent', 'wake', 'enter', 'taken', 1, 'run', 'run', 0, 1, '["m"]'),
     (1, 2, 'n', 'agent', 'deliver', 'enter', 'pending', 1, 'run', 'run-2', NULL, 2,
       '[{"id":"n","messageId":"n","role":"user","content":{"format":2,"parts":[]},"createdAt":2}]')`,
  `INSERT INTO heed_runs (thread, resource_id, run_id, agent_id, status, epoch, step, attempts, first_seq, seal_seq, ordinal,
     started_at, started, suspended, options)
   VALUES (1, 'r', 'run', 'agent', 'running', 3, 0, 1, 1, 1, 1, 1, '["call"]', '[]', '{}')`,
  `INSERT INTO heed_lanes (thread, id, version, cache_key, mode, last_signal_id, last_snapshot_id) VALUES (1, 'lane', 4, 'k', 'delta', 'y', 'x')`,
]
const second: readonly string[] = [...first, `INSERT INTO heed_working_memory (owner, version, at, value) VALUES ('r:r', 3, 1, '"# Profile"')`]
const fourth: readonly string[] = [
  ...second,
  `UPDATE heed_lanes SET issued = 5`,
  `INSERT INTO heed_lane_signals (thread, lane, version, signal_id, cache_key, mode) VALUES (1, 'lane', 3, 'x', 'j', 'snapshot'), (1, 'lane', 4, 'y', 'k', 'delta')`,
]
const sixth: readonly string[] = [...fourth, `INSERT INTO heed_titles (thread, thread_id, agent_id, owner, due_at, attempts) VALUES (1, 't', 'agent', 'p0', 5, 1)`]
const seventh: readonly string[] = [
  ...sixth,
  `INSERT INTO heed_notifications (thread_id, id, resource_id, agent_id, status, priority, due_at, created_at, updated_at, source, kind, summary)
   VALUES ('t', 'note', 'r', 'agent', 'pending', 'low', 1, 1, 1, 'github', 'ci', 'failed')`,
]
const scheduled: readonly string[] = [
  ...seventh,
  `INSERT INTO heed_schedules (id, agent_id, thread_id, resource_id, status, created_at, updated_at, overlap, missed, timing, signal)
   VALUES ('s', 'agent', 't', 'r', 'paused', 1, 1, 'allow', 'once', '{"every":1000}', '{}')`,
]
const recalled: readonly string[] = [...scheduled, `INSERT INTO heed_recall (one, generation) VALUES (1, 'g')`, `INSERT INTO heed_recall_changes (message) VALUES (1)`]
const pruned: readonly string[] = [...recalled, `INSERT INTO heed_pruning (id, after, due_at) VALUES (1, 1, 5)`]
const subscribed: readonly string[] = [
  ...pruned,
  `INSERT INTO heed_subscriptions (source_id, external_id, thread_id, resource_id, agent_id, metadata, subscribed_at) VALUES ('github', 'a/b#1', 't', 'r', 'agent', '{}', 1)`,
  `INSERT INTO heed_deliveries (source_id, id, signed_at) VALUES ('shop', 'msg', 5)`,
]
const placed: readonly string[] = [...subscribed, `UPDATE heed_mailbox SET open = NULL WHERE state = 'taken'`, `UPDATE heed_runs SET taken = '1-1'`]
const contents: ReadonlyArray<readonly string[]> = [first, second, second, fourth, fourth, sixth, seventh, scheduled, recalled, pruned, pruned, pruned, subscribed, subscribed, subscribed, subscribed, subscribed, subscribed, subscribed, subscribed, subscribed, subscribed, subscribed, subscribed, placed, placed]

const subscribedFrom = contents.indexOf(subscribed) + 1

function databaseOfVersion(path: string, version: number): void {
  const database = new DatabaseSync(path)
  migrate(database, path, version)
  expect(versionOf(database)).toBe(version)
  for (const text of contents[version - 1] ?? []) database.exec(text)
  database.close()
}

describe('migrations', () => {
  it('have contents to try for every version', () => {
    expect(contents).toHaveLength(migrations.length)
  })

  it.each(contents.map((_, index) => index + 1))('bring a database of version %i up to date, and it goes on where it was', async (version) => {
    const path = join(folder, `v${version}.db`)
    databaseOfVersion(path, version)
    const store = new LibSQLStore({ url: `file:${path}` })
    expect(await store.getThread({ threadId: 't', resourceId: 'r' })).toMatchObject({ title: 'Title', metadata: { a: 1 }, epoch: 3, status: 'running' })
    expect((await store.listThreads({ metadata: { a: 1 }, resourceId: 'r', limit: 5 })).threads).toHaveLength(1)
    expect(await store.findMessages(['m'])).toEqual([{ messageId: 'm', threadId: 't', resourceId: 'r' }])
    const claimed = await store.claim('t', 'p1')
    expect(claimed?.takenOver).toBe(true)
    const begun = claimed && (await begin(store, claimed.fence))
    expect(begun).toMatchObject({ resumed: true, run: { runId: 'run', started: ['call'] }, rows: [{ id: 'm', seq: 1 }] })
    const drained = begun && (await store.commitStep(begun.fence, { runId: 'run', step: 0, rows: [], drain: true }))
    expect(drained?.taken.map(({ id }) => id)).toEqual(['n'])
    expect((await store.listSignals({ threadId: 't' })).map(({ id, state }) => `${id} ${state}`)).toEqual(['m consumed', 'n taken'])
    const [skipped] = await store.accept([{
      threadId: 't', resourceId: 'r', agentId: 'agent', id: 'z', mode: 'now', ifActive: { behavior: 'deliver' }, ifIdle: { behavior: 'wake' }, rows: [],
      runId: 'x', lane: { id: 'lane', cacheKey: 'k', mode: 'delta' }, now: 1,
    }])
    expect(skipped).toMatchObject({ route: 'skipped', lane: { version: 4, lastSnapshotId: 'x' } })
    if (version >= subscribedFrom) expect(await (await store.getStore('subscriptions'))?.isDelivered({ sourceId: 'shop', id: 'msg', timestamp: 5 })).toBe(true)
    await store.close()
    const database = new DatabaseSync(path)
    expect(versionOf(database)).toBe(migrations.length)
    database.close()
  })

  it('know the keys of notifications from before slots began with them', async () => {
    const path = join(folder, 'keys.db')
    const database = new DatabaseSync(path)
    migrate(database, path, 20)
    const slot = (key: string) => JSON.stringify(['t "1"', 'r', 'agent', 'gitHub\n', key])
    database.prepare(`
      INSERT INTO heed_notifications (thread_id, id, resource_id, agent_id, status, priority, due_at, created_at, updated_at, source, kind, summary, dedupe_key, coalesce_key, dedupe_slot, coalesce_slot)
      VALUES ('t "1"', 'note', 'r', 'agent', 'pending', 'low', 1, 1, 1, ?, 'ci', 'failed', 'dé/key', 'state', ?, ?)`).run('gitHub\n', slot('dé/key'), slot('state'))
    database.prepare(`INSERT INTO heed_notification_merged (record, thread_id, id, dedupe_slot) VALUES (1, 't "1"', 'merged', ?)`).run(slot('other'))
    database.close()
    const store = new LibSQLStore({ url: `file:${path}` })
    const inbox = await store.getStore('notifications')
    const event = { threadId: 't "1"', resourceId: 'r', agentId: 'agent', source: 'gitHub\n', kind: 'ci', summary: 'again', now: 5, undecidedUntil: 9 }
    const found = await inbox?.ingest([
      { ...event, id: 'a', dedupeKey: 'dé/key' }, { ...event, id: 'b', dedupeKey: 'other' }, { ...event, id: 'c', coalesceKey: 'state' }, { ...event, id: 'd', dedupeKey: 'state' },
    ])
    expect(found?.map(({ record, outcome }) => [record.id, outcome])).toEqual([['note', 'counted'], ['note', 'counted'], ['note', 'coalesced'], ['d', 'created']])
    await store.close()
  })

  it('happen whole or not at all', () => {
    const database = new DatabaseSync(':memory:')
    database.exec('CREATE TABLE heed_purges (in_the_way)')
    expect(() => migrate(database, 'x')).toThrow(/heed_purges/)
    expect(versionOf(database)).toBe(0)
    expect(database.prepare(`SELECT name FROM sqlite_schema WHERE name LIKE 'heed_%'`).all()).toHaveLength(1)
    database.close()
  })

  it('never change once they were released', () => {
    const prints = migrations.map((step) => createHash('sha256').update(step).digest('hex').slice(0, 12))
    expect(prints).toEqual(['da87a0c18f27', 'ca4fa34e2fab', '8f23532bfe59', '12918f454a31', '242f8c9544d0', '81d3683390d4', '8c404f8f77d3', '7d1ab391b503', '99b3dfdcb292', '8ade46dc0f0f', 'f3b05635ee58', '23e5660dbfe0', 'aacffc3bc8f8', '8149efc0d434', '0ff0e1960078', '95723c31c6d8', '1f311dde85df', '479d4aa3e0b5', '6c191e6b6713', '569163a97b83', 'fcd6a53719d8', 'c33b6014d5c7', '8329bf55f906', '5ba4e28efc8c', '5c4b978e8df0', '1483167dcbd7'])
  })
})
