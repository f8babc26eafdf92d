import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { checkPostgres } from '../../src/cli/doctor/postgres.ts'
import { accept, acceptOne, persisted, row, rowIds, send, threadId } from '../../src/store/conformance/fixture.ts'
import { PostgresStore, type PostgresStoreOptions } from '../../src/store/postgres/index.ts'
import { Dialect } from '../../src/store/postgres/dialect.ts'
import { migrate } from '../../src/store/postgres/migrations.ts'
import { steps } from '../../src/store/postgres/schema.ts'
import { connectClient, Session } from '../../src/store/postgres/sessions.ts'
import { transactionPooler } from './pooler.ts'
import { newSchema, noPostgres, startReplica, startServer, whyNoPostgres, type Server } from './server.ts'

let server: Server
let folder = ''
/** A mounted file system that a tablespace is on: sessions that end have its files open for a moment, and the server until it stops. */
let mounted: string | undefined
beforeAll(async () => {
  folder = join(tmpdir(), `postgres-deployments-${process.pid}`)
  server = await startServer(folder, { fsync: 'on', max_connections: '40' }, { trusting: true })
})
afterAll(async () => {
  await server.stop()
  if (mounted !== undefined) execFileSync('umount', [mounted])
  for (const made of [folder, mounted]) if (made !== undefined) rmSync(made, { recursive: true, force: true })
})

const url = (user = 'heed', port = server.port) => `postgresql://${user}@127.0.0.1:${port}/postgres`

function open(options: Partial<PostgresStoreOptions> = {}): PostgresStore {
  const store = new PostgresStore({ connectionString: url(), schemaName: newSchema(), max: 2, ...options })
  onTestFinished(() => store.close())
  return store
}

async function query(text: string, port = server.port): Promise<Array<Record<string, unknown>>> {
  const client = (await connectClient({ connectionString: url('heed', port) })) as unknown as { query(text: string): Promise<{ rows: Array<Record<string, unknown>> }>; end(): Promise<void> }
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

/** What the doctor finds, as `check status`; the messages of those that are not ok. */
async function examine(store: PostgresStore): Promise<{ all: string[]; wrong: string[] }> {
  const found = await checkPostgres(store, 'the database')
  return { all: found.map(({ check, status }) => `${check} ${status}`), wrong: found.flatMap(({ status, message }) => (status === 'ok' ? [] : [message])) }
}

describe.skipIf(noPostgres)(`migrations of a database${whyNoPostgres}`, () => {
  it('[Q2.7] a step that fails leaves the version and the tables of before, and a later one goes on from there', async () => {
    const schemaName = newSchema()
    const store = open({ schemaName })
    await acceptOne(store, send('a', persisted))
    const client = await connectClient({ connectionString: url() })
    onTestFinished(() => client.end())
    const upgrade = (...more: string[]) => migrate(new Session(client, () => {}), new Dialect(schemaName), 'it', [...steps, ...more])
    const broken = 'CREATE TABLE heed_extra (x int);\nINSERT INTO heed_extra VALUES (1 / 0);'
    await expect(upgrade(broken)).rejects.toMatchObject({ code: '22012' })
    const tables = () => query(`SELECT to_regclass('"${schemaName}".heed_extra')::text AS extra, max(version)::int AS version FROM "${schemaName}".heed_schema`)
    expect(await tables()).toEqual([{ extra: null, version: steps.length }])
    await upgrade('CREATE TABLE heed_extra (x int);')
    expect(await tables()).toEqual([{ extra: expect.stringContaining('heed_extra') as string, version: steps.length + 1 }])
    // This Heed may use it, as the new one says.
    await acceptOne(open({ schemaName }), send('b', persisted))
    expect(await rowIds(store, threadId)).toEqual(['a', 'b'])
  })
})

/** Where this user may mount. */
function mountSmall(path: string): boolean {
  try {
    mkdirSync(path)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16m,mode=777', 'tmpfs', path], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

describe.skipIf(noPostgres)(`a disk without space${whyNoPostgres}`, () => {
  const small = join(tmpdir(), `postgres-small-${process.pid}`)
  const isMounted = !noPostgres && mountSmall(small)
  if (isMounted) mounted = small

  it.skipIf(!isMounted)(`[Q2.8] rejects writes with store_full, leaves nothing of them, and accepts them when there is space${isMounted ? '' : ' (skipped: mount is not permitted)'}`, async () => {
    const data = join(small, 'data')
    mkdirSync(data)
    chownSync(data, 65_534, 65_534)
    chmodSync(data, 0o700)
    await query(`CREATE TABLESPACE small LOCATION '${data}'`)
    await query(`CREATE ROLE little LOGIN SUPERUSER; ALTER ROLE little SET default_tablespace = small`)
    const store = open({ connectionString: url('little') })
    await acceptOne(store, send('a', persisted))
    writeFileSync(join(small, 'filler'), Buffer.alloc(1))
    // All that is left.
    try {
      for (;;) writeFileSync(join(small, 'filler'), Buffer.alloc(65_536), { flag: 'a' })
    } catch {
      // It is full.
    }
    const large = (id: string) => send(id, { ...persisted, rows: [row(id, 'user', Array.from({ length: 40_000 }, () => Math.random().toString(36)).join(''))] })
    await expect(accept(store, large('b'))).rejects.toMatchObject({ code: 'store_full', retryable: true })
    expect(await rowIds(store, threadId)).toEqual(['a'])
    rmSync(join(small, 'filler'))
    await acceptOne(store, large('b'))
    expect(await rowIds(store, threadId)).toEqual(['a', 'b'])
    await store.close()
  })
})

describe.skipIf(noPostgres)(`a pooler in transaction mode${whyNoPostgres}`, () => {
  it('[Q2.9] serves stores, and the doctor says that it delivers no notifications', async () => {
    const pooler = await transactionPooler({ port: server.port, user: 'heed', database: 'postgres' }, 2)
    onTestFinished(() => pooler.close())
    const schemaName = newSchema()
    const stores = Array.from({ length: 2 }, () => open({ connectionString: url('heed', pooler.port), schemaName, max: 3 }))
    await Promise.all(stores.map((store) => store.open()))
    // Two stores meet on the only connection of this one.
    const single = await transactionPooler({ port: server.port, user: 'heed', database: 'postgres' }, 1)
    onTestFinished(() => single.close())
    for (const store of [0, 1].map(() => open({ connectionString: url('heed', single.port), schemaName, max: 1 }))) await store.open()
    const ids = Array.from({ length: 20 }, (_, nth) => `s${nth}`)
    await Promise.all(ids.map((id, nth) => acceptOne(stores[nth % 2] as PostgresStore, send(id, { ...persisted, threadId: `t${nth % 3}` }))))
    const stored = await Promise.all(['t0', 't1', 't2'].map((of) => rowIds(stores[0] as PostgresStore, of)))
    expect(stored.flat().toSorted()).toEqual(ids.toSorted())
    expect((await examine(stores[0] as PostgresStore)).wrong).toEqual(['Notifications are not delivered: this is a pooler that shares connections.'])
  })
})

describe.skipIf(noPostgres)(`a failover to a replica that lags${whyNoPostgres}`, () => {
  it('[Q2.10] is rejected while it is a replica; once it is promoted, what it lacks is stored when it is sent again', async () => {
    const primary = await startServer(`${folder}-primary`, {}, { trusting: true })
    onTestFinished(async () => {
      await primary.stop()
      for (const used of ['primary', 'replica']) rmSync(`${folder}-${used}`, { recursive: true, force: true })
    })
    const on = ({ port }: Server) => open({ connectionString: url('heed', port), schemaName: 'failover' })
    const first = on(primary)
    await acceptOne(first, send('a', persisted))
    await primary.stop()
    const replica = await startReplica(primary, `${folder}-replica`)
    onTestFinished(() => replica.stop())
    await primary.restart()
    await acceptOne(first, send('b', persisted))
    await expect(on(replica).open()).rejects.toMatchObject({ code: 'store_readonly' })
    expect((await examine(on(replica))).wrong).toEqual(['the database is a replica, which can not be written.'])

    await query('SELECT pg_promote()', replica.port)
    const second = on(replica)
    expect(await rowIds(second, threadId)).toEqual(['a'])
    expect((await acceptOne(second, send('a', persisted))).duplicate).toBe(true)
    expect((await acceptOne(second, send('b', persisted))).duplicate).toBe(false)
    expect(await rowIds(second, threadId)).toEqual(['a', 'b'])
  })
})

describe.skipIf(noPostgres)(`heed doctor on PostgreSQL${whyNoPostgres}`, () => {
  it('[B4.1] says what is wrong with the server, the role and the schema, and creates nothing', async () => {
    const schemaName = newSchema()
    const healthy = ['postgres ok', 'rights ok', 'notifications ok', 'latency ok', 'connections ok']
    expect(await examine(open({ schemaName }))).toEqual({ all: ['postgres ok', 'rights ok', 'schema warn', 'notifications ok', 'latency ok', 'connections ok'], wrong: ['the database has no tables of Heed.'] })
    expect(await query(`SELECT to_regnamespace('${schemaName}')::text AS made`)).toEqual([{ made: null }])
    await open({ schemaName }).open()
    expect((await examine(open({ schemaName }))).all).toEqual(healthy)
    expect((await examine(open({ schemaName, max: 50 }))).wrong).toEqual([expect.stringMatching(/of \d+ connections are in use, and a process of Heed takes up to 53\./)])

    await query(`CREATE ROLE visitor LOGIN; CREATE ROLE observer LOGIN; ALTER ROLE observer SET default_transaction_read_only = on; CREATE ROLE lazy LOGIN; ALTER ROLE lazy SET synchronous_commit = off; GRANT heed TO lazy`)
    expect((await examine(open({ schemaName, connectionString: url('visitor') }))).wrong).toEqual([`The role lacks USAGE on the schema ${schemaName}.`])
    await query(`GRANT USAGE ON SCHEMA "${schemaName}" TO visitor; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "${schemaName}" TO visitor; REVOKE DELETE ON "${schemaName}".heed_threads FROM visitor`)
    expect((await examine(open({ schemaName, connectionString: url('visitor') }))).wrong).toEqual(['The role lacks SELECT, INSERT, UPDATE, DELETE on heed_threads.'])
    expect((await examine(open({ schemaName, connectionString: url('observer') }))).wrong).toEqual(['the database accepts no writes.'])
    expect((await examine(open({ schemaName, connectionString: url('lazy') }))).wrong).toEqual(['synchronous_commit is off: a crash of the server loses messages that were accepted.'])
    await query(`INSERT INTO "${schemaName}".heed_schema (version, code_from) VALUES (99, 99)`)
    expect((await examine(open({ schemaName }))).wrong).toEqual([`the database has schema 99, and this Heed knows ${steps.length}.`])
    expect((await examine(open({ connectionString: 'postgresql://heed:secret@127.0.0.1:1/postgres' }))).wrong).toEqual([expect.stringMatching(/^the database can not be used: (?!.*secret).*can't be reached/)])
  })

  it('[B4.1] takes the database by --url', async () => {
    await open({ schemaName: 'public' }).open()
    const program = join(import.meta.dirname, '../../src/cli/command-line.ts')
    const child = spawn(process.execPath, [program, 'doctor', '--url', url()], { stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => void (output += text))
    await once(child, 'close')
    const plain = output.replace(/(Node|PostgreSQL) \d+[.\d]*/g, '$1 1.2').replaceAll(String(server.port), 'PORT').replace(/\d+ of \d+ connections/, 'some connections').replaceAll(/\d+\.\d ms/g, 'some ms')
    expect([child.exitCode, plain]).toEqual([0, `  ok    Node 1.2
  ok    PostgreSQL 1.2 answers.
  ok    The role has the rights that it needs.
  ok    Notifications are delivered.
  ok    A round trip takes some ms, and a commit some ms more.
  ok    some connections are in use, and a process of Heed takes up to 11.
  ok    postgresql://127.0.0.1:PORT/postgres/public opens, and its schema is up to date.
  ok    The database can be written.
  ok    The clocks of the database and of this machine agree.
  ok    Every thread with work has a runner.
  ok    No run is parked.

No problems.
`])
  })
})
