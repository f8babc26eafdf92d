import assert from 'node:assert/strict'
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { commit, finish, row, start } from '../../src/store/conformance/fixture.ts'
import type { PostgresStore } from '../../src/store/postgres/index.ts'
import { Session } from '../../src/store/postgres/sessions.ts'
import { noPostgres, whyNoPostgres } from './server.ts'
import { inDatabase, newPlace, useSharedServer } from './stores.ts'

beforeAll(useSharedServer)

const many = 30
/** Of each table, what is the same in two databases that did the same. */
const compared = {
  heed_threads: 'id, resource_id, status, owner, run_id, next_seq, next_ord, ordinal, turn, bytes, metadata',
  heed_mailbox: 'thread, ord, id, agent_id, route, kind, state, open, rows, options',
  heed_messages: 'thread, seq, id, message_id, role, type, run_id, step, content, ordinal, turn, counted',
  heed_runs: 'thread, run_id, agent_id, status, step, attempts, started, suspended, error, usage, taken',
  heed_notifications: 'thread_id, id, resource_id, status, priority, dedupe_slot, coalesce_slot, coalesced_count, summary, payload, delivered_signal_id',
  heed_notification_merged: 'thread_id, id, dedupe_slot',
  heed_notification_changes: 'resource_id',
}

/** Runs with an answer, and notifications of which each second one repeats another, on several threads at once. */
async function work(store: PostgresStore, name: string): Promise<void> {
  const inbox = await store.getStore('notifications')
  assert(inbox)
  const threads = Array.from({ length: many }, (_, nth) => `${name}-${String(nth).padStart(2, '0')}`)
  const runs = await Promise.all(threads.map((threadId) => start(store, `s-${threadId}`, { threadId, id: `s-${threadId}` })))
  await Promise.all(runs.map((run, nth) => commit(store, run, { rows: [row(`said-"${nth}"\\{,}NULL`, 'assistant')], ...finish })))
  for (const id of ['first', 'again']) {
    await Promise.all(threads.map((threadId) => inbox.ingest([{
      threadId, resourceId: `of-${threadId}`, id: `${id}-${threadId}`, agentId: 'guide', source: 'mail', kind: 'new', summary: `"${id}" \\ {é,NULL}\n`,
      payload: { id: [null, 'NULL', '"'] }, dedupeKey: 'a "key", {with} \\ more', now: 1, undecidedUntil: 2,
    }])))
  }
  await Promise.all(threads.map((threadId) => (
    inbox.delivered([{ threadId, resourceId: `of-${threadId}`, id: `first-${threadId}`, signalId: 's', status: 'delivered', now: 2 }])
  )))
}

/** The rows of a schema, without the keys of threads. */
async function rowsOf(schema: string): Promise<Record<string, string[]>> {
  return inDatabase(async (query) => {
    const found: Record<string, string[]> = {}
    for (const [table, columns] of Object.entries(compared)) {
      const { rows } = await query(`SELECT ${columns} FROM "${schema}".${table}`)
      found[table] = rows.map(({ thread: _, ...row }) => JSON.stringify(row)).toSorted()
    }
    return found
  })
}

/** The statements that the store sends with each batch. */
function watched({ types: told = true } = {}): string[][] {
  const sent: string[][] = []
  const { batch } = Session.prototype
  const spied = vi.spyOn(Session.prototype, 'batch').mockImplementation(function (this: Session, statements, types) {
    sent.push(statements.map(({ text }) => text))
    return batch.call(this, statements, told ? types : undefined)
  })
  onTestFinished(() => spied.mockRestore())
  return sent
}

describe.skipIf(noPostgres)(`works that share a transaction${whyNoPostgres}`, () => {
  it('[Q1.12] have the same rows whether their statements take lists or are sent one by one', async () => {
    const [alone, together] = [await newPlace(), await newPlace()]
    const sent = watched()
    // One connection, so that they wait for each other. The server tells the types of values with the first statements.
    const store = together.open({ max: 1 })
    await work(store, 'warm')
    await inDatabase(async (query) => {
      for (const table of Object.keys(compared)) await query(`TRUNCATE "${together.schema}".${table}`)
    })
    sent.length = 0
    await work(store, 'all')
    expect(sent.flat().filter((text) => text.includes('WITH ORDINALITY AS given')).length).toBeGreaterThan(20)
    const apart = alone.open({ max: 1 })
    // As with a driver that passes no types on: nothing is known to make lists of.
    vi.restoreAllMocks()
    const one = watched({ types: false })
    await work(apart, 'all')
    expect(one.flat().filter((text) => text.includes('AS given (p1'))).toEqual([])
    expect(await rowsOf(together.schema)).toEqual(await rowsOf(alone.schema))
  })

  it('[Q1.12] send few statements, which are planned with indexes', async () => {
    const place = await newPlace()
    const store = place.open({ max: 1 })
    await work(store, 'warm')
    const sent = watched()
    await work(store, 'all')
    // Thirty sends, begins, commits, notifications, repeated notifications and deliveries: one by one they are some 1,000.
    const own = sent.flat().filter((text) => /heed_(?:threads|mailbox|messages|runs|notification)/.test(text))
    expect(own.length).toBeLessThan(200)
    const wrong: string[] = []
    await inDatabase(async (query) => {
      for (const name of ['seqscan', 'hashjoin', 'mergejoin']) await query(`SET enable_${name} = off`)
      for (const text of new Set(sent.flat().filter((one) => one.includes('AS given (')))) {
        const { rows } = await query(`EXPLAIN (GENERIC_PLAN) ${text}`)
        const plan = rows.map((one) => String(one['QUERY PLAN'])).join('\n')
        if (/Seq Scan on heed_|Hash Join|Merge Join/.test(plan)) wrong.push(`${plan}\n${text}`)
      }
    })
    expect(wrong).toEqual([])
  })
})
