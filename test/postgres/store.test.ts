import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { Agent, Heed, silentLogger } from '../../src/index.ts'
import { PgStore, PostgresStore, type PostgresStoreOptions } from '../../src/store/postgres/index.ts'
import { Dialect } from '../../src/store/postgres/dialect.ts'
import { migrate } from '../../src/store/postgres/migrations.ts'
import { steps } from '../../src/store/postgres/schema.ts'
import { connectClient, Session } from '../../src/store/postgres/sessions.ts'
import {
  acceptOne, commit, finish, ids, persisted, row, rowIds, scope, send, start, threadId,
} from '../../src/store/conformance/fixture.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { longThread, seed } from './seeding.ts'
import { newSchema, password, startServer, type Server, noPostgres, whyNoPostgres } from './server.ts'
import { newPlace } from './stores.ts'

let server: Server
let folder = ''
beforeAll(async () => {
  // Not a folder of this user alone: another one runs the server.
  folder = join(tmpdir(), `postgres-own-${process.pid}`)
  server = await startServer(folder)
})
afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** A store on the server of this file. */
function open(options: Partial<PostgresStoreOptions> = {}): PostgresStore {
  const store = new PostgresStore({ connectionString: server.url, schemaName: newSchema(), max: 2, ...options })
  onTestFinished(() => store.close())
  return store
}

/** Executes the statements, and returns the rows of the last one. */
async function query(...texts: string[]): Promise<unknown[]> {
  const client = (await connectClient({ connectionString: server.url })) as unknown as { query(text: string): Promise<{ rows: unknown[] }>; end(): Promise<void> }
  let rows: unknown[] = []
  for (const text of texts) ({ rows } = await client.query(text))
  await client.end()
  return rows
}

describe.skipIf(noPostgres)(`a turn${whyNoPostgres}`, () => {
  it.each([-1, 0, 200])('[Q1.1] [Q1.8] takes three round trips on a thread with %i messages, also on a new one', async (messages) => {
    const place = await newPlace()
    const before = place.open()
    const scope = { threadId: 't', resourceId: 'r' }
    if (messages >= 0) await before.createThread({ id: 't', resourceId: 'r', now: Date.now() })
    const content = { format: 2 as const, parts: [{ type: 'text' as const, text: 'x' }] }
    const stored = Array.from({ length: Math.max(0, messages) }, (_, nth) => ({
      id: `m${nth}`, role: nth % 2 === 0 ? ('user' as const) : ('assistant' as const), createdAt: new Date(nth + 1), ...scope, content,
    }))
    if (messages > 0) await before.saveMessages([{ scope, messages: stored }])
    const storage = place.open()
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Hello.'], { loop: true }) })
    const heed = new Heed({ agents: { agent }, storage, logger: silentLogger })
    onTestFinished(() => heed.close())
    await heed.start()
    const trips: number[] = []
    storage.onTransaction = (mode, count) => void (mode === 'write' && trips.push(count))
    const { outcome } = agent.sendMessage('Hi.', scope)
    await outcome
    await expect.poll(async () => (await storage.getThread(scope))?.status).toBe('idle')
    // A heartbeat of the process that falls into the turn is one round trip.
    expect(trips.filter((count) => count > 1)).toEqual([2])
    expect(trips.length).toBeGreaterThanOrEqual(2)
  })

  it('[Q1.1] [Q1.8] takes at most four round trips of all writes at first, and then two or three', async () => {
    const place = await newPlace()
    // No heartbeat falls into a later turn.
    const clock = virtualClock(Date.now())
    const storage = place.open({ clock })
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Hello.'], { loop: true }) })
    const heed = new Heed({ agents: { agent }, storage, logger: silentLogger, clock })
    onTestFinished(() => heed.close())
    await heed.start()
    await place.open().createThread({ id: 't', resourceId: 'r', now: Date.now() })
    const trips: number[] = []
    storage.onTransaction = (mode, count) => void (mode === 'write' && trips.push(count))
    const turn = async (text: string) => {
      await agent.sendMessage(text, { threadId: 't', resourceId: 'r' }).outcome
      await expect.poll(async () => (await storage.getThread({ threadId: 't' }))?.status).toBe('idle')
      return trips.splice(0).reduce((sum, count) => sum + count, 0)
    }
    // With the first heartbeat of a process that has a lease.
    expect(await turn('Hi.')).toBeLessThanOrEqual(4)
    const later: number[] = []
    for (const text of ['And?', 'And then?', 'Go on.']) later.push(await turn(text))
    // One more where a write of the process fell between the two transactions of a turn.
    expect(Math.max(...later)).toBeLessThanOrEqual(4)
    expect([2, 3]).toContain(later.toSorted((one, other) => one - other)[1])
  })

  it('[Q1.8] commits each step of its run in one round trip; a notification takes two, and a read one', async () => {
    const store = (await newPlace()).open()
    const counted: string[] = []
    await store.open()
    const run = await start(store)
    store.onTransaction = (mode, count) => void counted.push(`${mode} ${count}`)
    await commit(store, run, { rows: [row('said', 'assistant')], drain: true })
    await commit(store, run, { step: 1, rows: [row('more', 'assistant')], ...finish })
    expect(counted.splice(0)).toEqual(['write 1', 'write 1'])
    const inbox = await store.getStore('notifications')
    const item = { ...scope, agentId: 'guide', source: 'mail', kind: 'new', summary: 'A letter.', now: 1, undecidedUntil: 2 }
    const settlement = { action: 'summarize', now: 1, claimUntil: 3, summary: { form: 'window', quietMs: 10, maxWaitMs: 20 } } as const
    // The first one of a thread also opens the batch of its summary.
    await inbox?.ingest([{ ...item, id: 'n1', settlement }])
    await inbox?.ingest([{ ...item, id: 'n2', dedupeKey: 'k', settlement }])
    await inbox?.ingest([{ ...item, id: 'n3' }])
    await inbox?.awaitsIdle(scope.threadId)
    await store.getThread(scope)
    expect(counted).toEqual(['write 3', 'write 2', 'write 2', 'read 1', 'read 1'])
  })

  it('[Q1.9] ends its run as the thread is, also where another process has changed what this one left', async () => {
    const place = await newPlace()
    const [one, two] = [place.open(), place.open()]
    const counted: number[] = []
    const run = await start(one)
    one.onTransaction = (mode, count) => void (mode === 'write' && counted.push(count))
    await acceptOne(two, send('b'))
    const drained = await commit(one, run, { rows: [row('said', 'assistant')], ...finish })
    expect([drained.ended, ids(drained.taken)]).toEqual([false, ['b']])
    await two.patchThread(scope, { title: 'Renamed' })
    const ended = await commit(one, run, { step: 1, rows: [row('more', 'assistant')], ...finish })
    expect(ended.ended).toBe(true)
    expect(await rowIds(two, threadId)).toEqual(['a', 'said', 'b', 'more'])
    expect((await two.getThread(scope))?.title).toBe('Renamed')
    // What does not hold costs a round trip, and is then read.
    expect(counted).toEqual([1, 2, 1, 2])
  })
})

describe.skipIf(noPostgres)(`texts that PostgreSQL cannot store${whyNoPostgres}`, () => {
  it.each(['a\0b', 'a\ud800'])('[Q1.4] %j are rejected, and nothing is stored', async (id) => {
    const store = (await newPlace()).open()
    await expect(store.createThread({ id, resourceId: 'r', now: 1 })).rejects.toMatchObject({ code: 'invalid_argument' })
    await expect(store.createThread({ id: 't', resourceId: 'r', title: id, now: 1 })).rejects.toMatchObject({ code: 'invalid_argument' })
    expect(await store.getUsage()).toEqual({ threads: 0, bytes: 0 })
  })
})

describe.skipIf(noPostgres)(`a server that restarts${whyNoPostgres}`, () => {
  it('[Q2.2] answers the calls that were made meanwhile', async () => {
    const store = open()
    await acceptOne(store, send('a', persisted))
    const restarting = server.restart()
    const late = acceptOne(store, send('b', persisted))
    await restarting
    await expect(late).resolves.toMatchObject({ route: 'persist', duplicate: false })
    await acceptOne(store, send('c', persisted))
    expect(await rowIds(store, threadId)).toEqual(['a', 'b', 'c'])
  })
})

describe.skipIf(noPostgres)(`a store that cannot be opened${whyNoPostgres}`, () => {
  it('[Q2.3] says what is wrong, and never the password', async () => {
    const parts = () => ({ connectionString: undefined, host: '127.0.0.1', port: server.port, user: 'heed', password, database: 'postgres' })
    await query(`CREATE ROLE guest LOGIN PASSWORD 'guest'`, `CREATE ROLE reader LOGIN PASSWORD 'reader'`, `ALTER ROLE reader SET default_transaction_read_only = on`)
    const cases: Array<[Partial<PostgresStoreOptions>, string, RegExp]> = [
      [{ ...parts(), password: 'another secret' }, 'store_failed', /rejected the credentials/],
      [{ ...parts(), database: 'nowhere' }, 'store_failed', /does not exist/],
      [{ ...parts(), user: 'guest', password: 'guest', schemaName: 'closed' }, 'store_failed', /want of a right/],
      [{ ...parts(), user: 'reader', password: 'reader' }, 'store_readonly', /read-only/],
      [{ ...parts(), port: 1 }, 'store_failed', /can't be reached/],
    ]
    for (const [options, code, message] of cases) {
      const store = open(options)
      const error = await store.open().then(() => undefined, (reason: unknown) => reason as Error & { code: string })
      expect([error?.code, error?.message]).toEqual([code, expect.stringMatching(message)])
      const texts = [error?.message, String(error?.stack), JSON.stringify(error), String((error?.cause as Error | undefined)?.message), store.place, store.namespace]
      for (const text of texts) expect(text).not.toMatch(/secret/)
    }
    expect(open().place).not.toContain('heed:')
  })

  it('[Q2.4] rejects a schema of a newer Heed, uses one that says it may, and leaves both as they are', async () => {
    const schemaName = newSchema()
    await open({ schemaName }).open()
    await query(`INSERT INTO "${schemaName}".heed_schema (version, code_from) VALUES (${steps.length + 1}, 1)`)
    await open({ schemaName }).open()
    await query(`INSERT INTO "${schemaName}".heed_schema (version, code_from) VALUES (${steps.length + 2}, ${steps.length + 2})`)
    await expect(open({ schemaName }).open()).rejects.toMatchObject({ code: 'store_newer', details: { version: steps.length + 2, known: steps.length } })
  })

  it.each([1, steps.length - 2, steps.length - 1])('[Q2.13] brings tables of schema %i to the present one, with all that they hold, once where several processes open them', async (version) => {
    const [older, fresh] = [newSchema(), newSchema()]
    const client = await connectClient({ connectionString: server.url })
    await migrate(new Session(client, () => {}), new Dialect(older), 'it', steps.slice(0, version))
    await seed(async (text) => ({ rows: (await query(text)) as never }), older, { messages: 40, threads: 5 })
    await client.end()
    const stores = await Promise.all(Array.from({ length: 3 }, async () => {
      const store = open({ schemaName: older })
      await store.open()
      return store
    }))
    await open({ schemaName: fresh }).open()
    const definitions = (schema: string) => query(`SELECT kind, text FROM (
      SELECT 'column' AS kind, table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable || ' ' || coalesce(column_default, '') AS text
        FROM information_schema.columns WHERE table_schema = '${schema}'
      UNION SELECT 'index', replace(indexdef, '${schema}', '') FROM pg_indexes WHERE schemaname = '${schema}'
      UNION SELECT 'function', replace(pg_get_functiondef(p.oid), '${schema}', '') FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = '${schema}'
      UNION SELECT 'trigger', replace(pg_get_triggerdef(t.oid), '${schema}', '') FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
        JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = '${schema}' AND NOT t.tgisinternal
      UNION SELECT 'version', string_agg(version::text, ' ' ORDER BY version) FROM "${schema}".heed_schema) AS d ORDER BY kind, text`)
    const migrated = await definitions(older)
    expect(migrated.length).toBeGreaterThan(100)
    expect(migrated).toEqual(await definitions(fresh))
    const [store] = stores as [PostgresStore]
    expect(await rowIds(store, longThread.threadId)).toHaveLength(40)
    await acceptOne(store, send('new', { ...persisted, ...longThread }))
    expect((await rowIds(store, longThread.threadId)).at(-1)).toBe('new')
  })

  it('[Q2.4] creates the tables once, if several processes open a new database', async () => {
    const schemaName = newSchema()
    await Promise.all(Array.from({ length: 4 }, () => open({ schemaName }).open()))
  })
})

describe.skipIf(noPostgres)(`a store that is closed${whyNoPostgres}`, () => {
  it('[Q2.5] has no connection any more, also none that was being opened', async () => {
    const store = open()
    await store.open()
    // It has a connection of its own.
    const beat = store.heartbeat('process', Date.now() + 60_000)
    await new Promise((resolve) => setImmediate(resolve))
    await store.close()
    await beat
    await expect.poll(() => query(`SELECT pid FROM pg_stat_activity WHERE application_name = 'heed'`)).toEqual([])
  })
})

describe.skipIf(noPostgres)(`the options of a store${whyNoPostgres}`, () => {
  it('are rejected by name', () => {
    const refused = (options: object) => {
      expect(() => new PgStore(options as PostgresStoreOptions)).toThrow(expect.objectContaining({ code: expect.stringMatching(/^(invalid_argument|unsupported_option)$/) as string }))
    }
    for (const options of [{}, { connectionString: 'mysql://x' }, { host: 'x', max: 0 }, { host: 'x', schemaName: 'pg_x' }, { host: 'x', schema: 'y' }, { connectionString: 'postgresql://x/y', host: 'z' }, { connectionString: 'postgresql://x/%zz' }]) refused(options)
  })

  it('give a store its id, clock, retention, namespace and memory for recall, and encrypt its connections', async () => {
    const clock = virtualClock(Date.UTC(2026, 5, 1))
    const store = open({ id: 'mine', clock, retention: { messages: '1d' }, namespace: 'ours', recallMemoryBytes: 0 })
    expect([store.id, store.now(), store.retention, store.namespace]).toEqual(['mine', clock.now(), { messages: '1d' }, 'ours'])
    // Without memory for vectors, words are compared; with it, meaning too.
    for (const [one, found] of [[store, 0], [open(), 1]] as const) {
      await acceptOne(one, send('a', persisted))
      const recall = await one.getStore('recall')
      const embedder = { id: 'test/even', maxBatch: 8, embed: async (texts: readonly string[]) => texts.map(() => Float32Array.of(1, 0)) }
      const question = { threadId, text: 'unheard', limit: 1, embedder }
      await recall?.search(question)
      await recall?.reindex()
      expect(await recall?.search(question)).toHaveLength(found)
    }
    await expect(open({ ssl: true }).open()).rejects.toMatchObject({ code: 'store_failed', message: expect.stringContaining('SSL') as string })
  })

  it('take a pool or a client of the user, and leave them open', async () => {
    const pg = (await import('pg' as string)) as { Pool: new (config: object) => { end(): Promise<void> } }
    const pool = new pg.Pool({ connectionString: server.url, max: 2 })
    const client = await connectClient({ connectionString: server.url })
    for (const given of [{ pool }, { client }]) {
      const store = open({ connectionString: undefined, ...given } as Partial<PostgresStoreOptions>)
      await acceptOne(store, send('a', persisted))
      expect(await rowIds(store, threadId)).toEqual(['a'])
      await store.close()
    }
    await pool.end()
    await client.end()
  })
})
