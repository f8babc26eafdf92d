import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@libsql/client'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { acceptOne, persisted, rejectsWith, rowIds, scope, send } from '../conformance/fixture.ts'
import { decided, note, now } from '../conformance/notifications/fixture.ts'
import type { LibSQLClient } from './remote.ts'
import { LibSQLStore } from './store.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-remote-'))
afterAll(() => rmSync(folder, { recursive: true }))
const opened: LibSQLStore[] = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()))
})

let count = 0
const newURL = () => `file:${join(folder, `${count++}.db`)}`

/** What a server would be asked is asked of a file here, through the same client. */
function through(url: string, client: LibSQLClient = createClient({ url })): LibSQLStore {
  const store = new LibSQLStore({ url, client })
  opened.push(store)
  return store
}

async function ready(url: string): Promise<LibSQLStore> {
  const store = through(url)
  await store.open()
  return store
}

describe('a database that is reached through a client', () => {
  it.each([3_600_000, -3_600_000])('[R1.10] has leases in its own time, however far the clock of a process differs: %i ms', async (difference) => {
    const url = newURL()
    const [one, other] = [await ready(url), await ready(url)]
    const now = Date.now()
    // The first process has another time.
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now + difference)
    await one.heartbeat('p1', one.now() + 60_000)
    await acceptOne(one, { ...send('a'), claim: { owner: 'p1' } })
    clock.mockRestore()
    expect(await other.claim(scope.threadId, 'p2')).toBeNull()
    expect(await other.listOrphans(other.now(), 10)).toEqual([])
    vi.spyOn(Date, 'now').mockImplementation(() => now + difference)
    await one.heartbeat('p1', one.now() - 1)
    vi.restoreAllMocks()
    expect(await other.listOrphans(other.now(), 10)).toMatchObject([{ threadId: scope.threadId }])
    expect(await other.claim(scope.threadId, 'p2')).toMatchObject({ fence: { owner: 'p2' } })
  })

  it('that is shared by two stores loses nothing of either', async () => {
    const url = newURL()
    const [a, b] = [await ready(url), await ready(url)]
    await a.createThread({ id: scope.threadId, resourceId: 'resource-1', now: 1 })
    const keys = Array.from({ length: 10 }, (_, index) => `k${index}`)
    await Promise.all(keys.map((key, index) => (index % 2 ? a : b).patchThread(scope, { metadata: { [key]: index } })))
    expect(Object.keys((await a.getThread(scope))?.metadata ?? {}).toSorted()).toEqual(keys)
  })

  it.each([20, 2])('is read by 100 calls at once, also where its client has %i connections', async (concurrency) => {
    const url = newURL()
    const store = through(url, createClient({ url, concurrency }))
    await acceptOne(store, send('a', persisted))
    const reads = Array.from({ length: 100 }, () => rowIds(store))
    expect(await Promise.all([...reads, acceptOne(store, send('b', persisted)).then(() => [])])).toHaveLength(101)
    expect(await rowIds(store)).toEqual(['a', 'b'])
  })

  it('a rejected write does not affect the others of its batch', async () => {
    const store = await ready(newURL())
    const writes = await Promise.allSettled([
      acceptOne(store, send('a', persisted)), store.patchThread({ threadId: 'nowhere' }, { title: 'x' }), acceptOne(store, send('b', persisted)),
    ])
    expect(writes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(await rowIds(store)).toEqual(['a', 'b'])
  })

  it('that breaks off in a transaction leaves nothing of it, and says that it may be tried again', async () => {
    const url = newURL()
    const client: LibSQLClient = createClient({ url })
    const store = through(url, client)
    await store.open()
    const begin = client.transaction.bind(client)
    let broken = true
    vi.spyOn(client, 'transaction').mockImplementation(async (mode) => {
      const transaction = await begin(mode)
      const { execute, batch } = transaction
      let sent = 0
      const breaks = () => broken && ++sent > 1
      transaction.execute = (statement) => (breaks() ? Promise.reject(new Error('the connection broke')) : execute.call(transaction, statement))
      transaction.batch = (statements) => (breaks() || !batch ? Promise.reject(new Error('the connection broke')) : batch.call(transaction, statements))
      return transaction
    })
    await expect(store.accept([send('a', persisted)])).rejects.toMatchObject({ code: 'store_failed', retryable: true })
    broken = false
    expect(await store.getThread(scope)).toBeNull()
    await acceptOne(store, send('a', persisted))
    expect(await rowIds(store)).toEqual(['a'])
  })

  it('reads many notifications once when they are decided, and not again after each write', async () => {
    const url = newURL()
    const client: LibSQLClient = createClient({ url })
    const inbox = await through(url, client).getStore('notifications')
    const ids = Array.from({ length: 100 }, (_, nth) => `n${nth}`)
    await inbox?.ingest(ids.map((id) => note(id)))
    let [statements, trips] = [0, 0]
    const begin = client.transaction.bind(client)
    vi.spyOn(client, 'transaction').mockImplementation(async (mode) => {
      const transaction = await begin(mode)
      const { execute, batch } = transaction
      const count = (sent: number) => {
        statements += sent
        trips += 1
      }
      transaction.execute = (statement) => {
        count(1)
        return execute.call(transaction, statement)
      }
      transaction.batch = (sent) => {
        count(sent.length)
        return batch ? batch.call(transaction, sent) : Promise.all(sent.map((one) => execute.call(transaction, one)))
      }
      return transaction
    })
    const settled = await inbox?.settle(ids.map((id) => decided(id, { deliverAt: now + 60_000 })))
    expect(settled?.filter(({ applied, record }) => applied && record?.deliverAt?.getTime() === now + 60_000)).toHaveLength(100)
    // A read and a write of each, and the number of the change.
    expect(statements).toBeLessThanOrEqual(210)
    expect(trips).toBeLessThanOrEqual(4)
  })

  it('of a newer version is refused', async () => {
    const url = newURL()
    const client = createClient({ url })
    await client.executeMultiple('CREATE TABLE heed_version (version INTEGER NOT NULL) STRICT; INSERT INTO heed_version VALUES (999)')
    await rejectsWith('store_newer', through(url, client).open())
  })

  it.each([1, 26])('of schema %i of the development before 0.1.0 is refused by name', async (version) => {
    const url = newURL()
    const client = createClient({ url })
    await client.executeMultiple(`CREATE TABLE heed_schema (version INTEGER NOT NULL) STRICT; INSERT INTO heed_schema VALUES (${version})`)
    await expect(through(url, client).open()).rejects.toMatchObject({
      code: 'store_failed', message: expect.stringMatching(/development version of Heed .* Name another database/), details: { unreleased: version },
    })
  })

  it('is not backed up from here', async () => {
    const store = await ready(newURL())
    await rejectsWith('unsupported_option', store.backup(join(folder, 'copy.db')))
  })
})

describe('a server', () => {
  it.each(['libsql://127.0.0.1:1?tls=0', 'http://127.0.0.1:1'])('%s that is away is an error that may pass', async (url) => {
    const store = new LibSQLStore({ url, authToken: 'secret', busyTimeout: 50 })
    const failed = await store.open().catch((error: unknown) => error)
    expect(failed).toMatchObject({ code: 'store_failed', retryable: true })
    expect(String(failed)).not.toContain('secret')
    await store.close()
  })
})
