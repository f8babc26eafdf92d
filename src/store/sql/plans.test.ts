import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { systemClock } from '../../base/clock.ts'
import {
  accept, acceptOne, commit, finish, gone, persisted, row, scope, send, start, threadId, wide, windows,
} from '../conformance/fixture.ts'
import { dependentsSql } from './thread-dependents.ts'
import { sql } from './sql.ts'
import { findMessagesSql, listThreads } from './queries.ts'
import { migrations } from '../sqlite/migrations.ts'
import { PreparedStatements } from './statements.ts'
import { LibSQLStore } from '../sqlite/store.ts'
import { SqlTables } from './tables.ts'

let database: DatabaseSync
beforeAll(() => {
  database = new DatabaseSync(':memory:')
  for (const step of migrations) database.exec(step)
})
afterAll(() => database.close())

function planOf(text: string): string {
  return database.prepare(`EXPLAIN QUERY PLAN ${text}`).all().map((step) => String(step.detail)).join('\n')
}

/** Over tables that are small by nature, who lives and what is being purged; a count of all messages, where all go; a copy that numbers anew. */
const excused: ReadonlySet<string> = new Set([sql.forgetProcesses, sql.forgetProcessesByServer, sql.anyPurge, sql.countMessages, sql.copySome])

describe('query plans', () => {
  it.each(Object.entries({ ...sql, ...dependentsSql }).filter(([, text]) => !excused.has(text)))('%s searches', (_, text) => {
    const plan = planOf(text).replaceAll(/SCAN (CONSTANT ROW|\w+ VIRTUAL TABLE.*)/g, '')
    expect(plan).not.toMatch(/SCAN|TEMP B-TREE/)
  })

  it('look only at what is open in a mailbox, however much came before', () => {
    expect(planOf(sql.pending)).toMatch(/USING INDEX heed_mailbox_open/)
    expect(planOf(sql.finishTaken)).toMatch(/USING INDEX heed_mailbox_ord \(thread=\? AND ord>\? AND ord<\?\)/)
    expect(planOf(sql.boundMail)).toMatch(/USING INDEX heed_mailbox_calls/)
    expect(planOf(sql.cancelBound)).toMatch(/USING INDEX heed_mailbox_bound/)
  })

  it('count runs that wait without reading them', async () => {
    const counted = vi.spyOn(PreparedStatements.prototype, 'one')
    const store = new LibSQLStore({ url: ':memory:' })
    await store.countRuns({ agentId: 'a', status: ['suspended'] })
    await store.countRuns({ agentId: 'a', resourceId: 'r', status: ['suspended'], from: 1 })
    const texts = counted.mock.calls.map(([text]) => text).filter((text) => text.includes('count(*)'))
    counted.mockRestore()
    await store.close()
    expect(texts).toHaveLength(2)
    for (const text of texts) expect(planOf(text)).toMatch(/SEARCH r USING COVERING INDEX heed_runs_waiting/)
  })

  it('are as good for every list and read of the contract', async () => {
    const texts = new Set<string>()
    const seen = vi.spyOn(PreparedStatements.prototype, 'all').mockImplementation(function (this: PreparedStatements, text) {
      texts.add(text)
      return []
    })
    const store = new LibSQLStore({ url: ':memory:' })
    try {
      await store.createThread({ id: threadId, resourceId: 'resource-1', now: 1 })
      for (const field of ['createdAt', 'updatedAt'] as const) {
        for (const direction of ['ASC', 'DESC'] as const) {
          const query = { limit: 10, orderBy: { field, direction } }
          await store.listThreads(query)
          await store.listThreads({ ...query, resourceId: 'r', after: { at: 1, id: 'x' } })
          await store.listThreads({ ...query, resourceId: 'r', metadata: { a: 1 } })
          await store.listThreads({ ...query, resourceId: 'r', metadata: { a: 1, b: null }, after: { at: 1, id: 'x' } })
          await store.listThreads({ ...query, resourceId: 'r', metadata: { a: 1, b: 'x' } })
          await store.listThreads({ ...query, metadata: { a: 1 } })
          await store.listThreads({ ...query, resourceId: 'r', metadata: { a: null } })
        }
      }
      await store.listThreads({ limit: 10, cloneOf: 't', orderBy: { field: 'createdAt', direction: 'ASC' } })
      await store.listMessageStarts(scope, { limit: 10 })
      await store.listMessageStarts(scope, { limit: 10, before: 5, from: new Date(1) })
      await store.listMessageStarts(scope, { limit: 10, after: 5 })
      await store.listRows(scope, { limit: 10 })
      await store.listRows(scope, { limit: 10, before: 5 })
      await store.listRows(scope, { limit: 10, after: 5, from: new Date(1), context: true })
      await store.listSignals(scope, { states: ['pending'] })
      await store.listSignals(scope, { after: 4 })
      await store.listRuns({ threadId })
      await store.listRuns({ resourceId: 'r' })
      await store.listRuns({ resourceId: 'r', status: ['suspended'] })
      await store.listOrphans(1, 10)
    } finally {
      seen.mockRestore()
      await store.close()
    }
    expect(texts.size).toBeGreaterThan(15)
    for (const text of texts) {
      // To go along an index in its order, up to a limit, is no search and yet cheap.
      let plan = planOf(text).replaceAll(/SCAN (\w+ VIRTUAL TABLE.*|heed_threads USING INDEX heed_threads_all_\w+)/g, '')
      // Of all resources, the few threads that have a rare value are sorted.
      const sorted = /SEARCH m USING (?:COVERING )?INDEX heed_thread_metadata_\w+ \(name=\? AND value=\?\)/.test(plan) && !text.includes('of_resource')
      if (sorted) plan = plan.replace('USE TEMP B-TREE FOR ORDER BY', '')
      expect(plan, text).not.toMatch(/SCAN|TEMP B-TREE/)
    }
  })
})

describe('finding by a value', () => {
  it.each([['createdAt', 'heed_thread_metadata_value'], ['updatedAt', 'heed_thread_metadata_updated']] as const)('goes along the index of metadata in the order of %s', (field, index) => {
    const texts: string[] = []
    const statements = new PreparedStatements({ prepare: (text) => ({ run: () => ({ changes: 0, lastInsertRowid: 0 }), get: () => undefined, all: () => (texts.push(text), []), columns: () => [], setReturnArrays: () => {} }) })
    for (const direction of ['ASC', 'DESC'] as const) listThreads(statements, new SqlTables(statements, systemClock), { resourceId: 'r', metadata: { a: 1 }, orderBy: { field, direction }, limit: 10 })
    expect(texts).toHaveLength(2)
    for (const text of texts) {
      expect(planOf(text)).toMatch(new RegExp(String.raw`SEARCH m USING (COVERING )?INDEX ${index} \(name=\? AND value=\? AND of_resource=\?\)`))
      expect(planOf(text)).not.toMatch(/TEMP B-TREE|SCAN heed/)
    }
  })

  it('finds threads below one by an index', () => {
    const texts: string[] = []
    const statements = new PreparedStatements({ prepare: (text) => ({ run: () => ({ changes: 0, lastInsertRowid: 0 }), get: () => undefined, all: () => (texts.push(text), []), columns: () => [], setReturnArrays: () => {} }) })
    const tables = new SqlTables(statements, systemClock)
    listThreads(statements, tables, { parentId: 't', orderBy: { field: 'createdAt', direction: 'ASC' }, limit: 10 })
    tables.children({ id: 't' } as never)
    expect(texts).toHaveLength(2)
    for (const text of texts) expect(planOf(text)).toMatch(/^SEARCH heed_threads USING INDEX heed_threads_parent \(parent_id=\?\)\n(?!.*TEMP)/)
    texts.length = 0
    listThreads(statements, tables, { parentId: null, resourceId: 'r', orderBy: { field: 'updatedAt', direction: 'DESC' }, limit: 10 })
    expect(planOf(texts[0] ?? '')).toMatch(/^SEARCH heed_threads USING (COVERING )?INDEX heed_threads_updated \(resource_id=\?\)\n(?!.*TEMP)/)
  })

  it('finds clones and messages by an index', () => {
    const clones = `SELECT id FROM heed_threads WHERE json_extract(metadata, '$.clone.sourceThreadId') = ? ORDER BY created_at, key`
    expect(planOf(clones)).toMatch(/^SEARCH heed_threads USING (COVERING )?INDEX heed_threads_clones/)
    expect(planOf(findMessagesSql)).toMatch(/SEARCH heed_messages USING INDEX heed_messages_id \(id=\?\)/)
    expect(planOf(findMessagesSql)).toMatch(/SEARCH heed_messages USING INDEX heed_messages_part \(message_id=\?\)/)
  })
})

describe('a plain turn', () => {
  /** Runs `act` and answers which statements it made. */
  async function statementsOf(act: () => Promise<unknown>): Promise<string[]> {
    const texts: string[] = []
    const spies = (['run', 'one', 'all', 'insert'] as const).map((name) => {
      const actual = PreparedStatements.prototype[name] as (text: string, ...values: never[]) => never
      return vi.spyOn(PreparedStatements.prototype, name).mockImplementation(function (this: PreparedStatements, text: string, ...values: unknown[]) {
        texts.push(text)
        return actual.call(this, text, ...(values as never[]))
      })
    })
    try {
      await act()
    } finally {
      for (const spy of spies) spy.mockRestore()
    }
    return texts
  }

  it('is three transactions, and as many statements on a long thread as on a short one', async () => {
    const store = new LibSQLStore({ url: ':memory:' })
    await store.open()
    await gone(store, 'p1')
    const turn = async (id: string) => {
      const begun = await start(store, id)
      await commit(store, begun, { rows: [row(`answer-${id}`, 'assistant')], ...finish })
    }
    await turn('first')
    const short = await statementsOf(() => turn('second'))
    await accept(store, ...Array.from({ length: 3000 }, (_, index) => send(`p${index}`, persisted)))
    const long = await statementsOf(() => turn('third'))
    await store.close()

    // One more is the heartbeat with which `start` begins.
    expect(short.filter((text) => text === 'BEGIN IMMEDIATE')).toHaveLength(3 + 1)
    expect(short.filter((text) => text === 'COMMIT')).toHaveLength(3 + 1)
    // Where its window begins takes three, and what is in it one: a short thread has that in memory.
    expect(long.length - short.length).toBeLessThanOrEqual(4)
    expect(short.length).toBeLessThanOrEqual(32)
  })

  it('is two transactions where the send begins the run', async () => {
    const store = new LibSQLStore({ url: ':memory:' })
    await store.open()
    const claim = { owner: 'p1', begin: windows(wide, 'agent-1') }
    const turn = async (id: string) => {
      const { fence, begun } = await acceptOne(store, send(id, { claim }))
      if (!fence || !begun) throw new Error('The run was to begin with the send.')
      await commit(store, { ...begun, fence }, { rows: [row(`answer-${id}`, 'assistant')], ...finish })
    }
    await turn('first')
    const texts = await statementsOf(() => turn('second'))
    await store.close()
    expect(texts.filter((text) => text === 'BEGIN IMMEDIATE')).toHaveLength(2)
    expect(texts.length).toBeLessThanOrEqual(22)
  })
})
