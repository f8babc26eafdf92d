import assert from 'node:assert/strict'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { acceptOne, commit, finish, persisted, row, rowIds, send, start, type Begun } from '../../src/store/conformance/fixture.ts'
import { PostgresStore } from '../../src/store/postgres/index.ts'
import { nameOf } from '../../src/store/postgres/transaction.ts'
import { proxyTo } from './proxy.ts'
import { noPostgres, whyNoPostgres } from './server.ts'
import { inDatabase, newPlace, sharedURL, useSharedServer } from './stores.ts'

beforeAll(useSharedServer)

const names = (count: number, name = 'thread') => Array.from({ length: count }, (_, nth) => `${name}-${String(nth).padStart(3, '0')}`)

/** Collects the transactions of a store, as its mode and the number of its round trips. */
function counted(store: PostgresStore): string[] {
  const transactions: string[] = []
  store.onTransaction = (mode, trips) => void (mode !== 'heartbeat' && transactions.push(`${mode} ${trips}`))
  return transactions
}

const notification = (threadId: string, id: string, resourceId = `of-${threadId}`) => ({
  threadId, resourceId, id, agentId: 'guide', source: 'mail', kind: 'new', summary: 'A letter.', now: 1, undecidedUntil: 2,
})

async function inboxOf(store: PostgresStore) {
  const inbox = await store.getStore('notifications')
  assert(inbox)
  return inbox
}

/** A database of its own: the server counts deadlocks by database. */
async function newDatabase(): Promise<{ url: string; deadlocks(): Promise<number> }> {
  const name = `shared_transactions_${process.pid}`
  await inDatabase((query) => query(`CREATE DATABASE ${name}`))
  onTestFinished(() => inDatabase((query) => query(`DROP DATABASE ${name} WITH (FORCE)`)).then(() => {}))
  return {
    url: Object.assign(new URL(sharedURL()), { pathname: `/${name}` }).href,
    deadlocks: () => inDatabase(async (query) => Number((await query(`SELECT deadlocks FROM pg_stat_database WHERE datname = '${name}'`)).rows[0]?.deadlocks)),
  }
}

describe.skipIf(noPostgres)(`writes and reads of different threads that wait for a connection${whyNoPostgres}`, () => {
  it('[Q1.10] share transactions: 40 sends that make threads, the ends of their runs, 40 notifications, their deliveries, 40 reads', async () => {
    const store = (await newPlace()).open({ max: 1 })
    await store.open()
    const transactions = counted(store)
    const threads = names(40)
    const runs = await Promise.all(threads.map((threadId) => start(store, `s-${threadId}`, { threadId, id: `s-${threadId}` })))
    expect(transactions.filter((one) => one === 'write 2').length).toBeLessThanOrEqual(4)
    transactions.length = 0
    const ends = await Promise.all(runs.map((run, nth) => commit(store, run, { rows: [row(`said-${nth}`, 'assistant')], ...finish })))
    expect([ends.every(({ ended }) => ended), transactions]).toEqual([true, ['write 1']])
    for (const [nth, threadId] of threads.entries()) expect(await rowIds(store, threadId)).toEqual([`s-${threadId}`, `said-${nth}`])
    const inbox = await inboxOf(store)
    transactions.length = 0
    await Promise.all(threads.map((threadId) => inbox.ingest([notification(threadId, `n-${threadId}`)])))
    expect(transactions.splice(0)).toEqual(['write 2'])
    await Promise.all(threads.map((threadId) => (
      inbox.delivered([{ threadId, resourceId: `of-${threadId}`, id: `n-${threadId}`, signalId: 's', status: 'delivered', now: 2 }])
    )))
    expect(transactions.splice(0)).toEqual(['write 2'])
    const found = await Promise.all(threads.map((threadId) => inbox.getNotification({ threadId, id: `n-${threadId}` })))
    expect([found.map((record) => record?.status), transactions.length]).toEqual([threads.map(() => 'delivered'), 1])
  })

  it('[Q1.10] fail alone: of ten commits one has a lost lease, and of ten sends one names another resource', async () => {
    const store = (await newPlace()).open({ max: 1 })
    const threads = names(10)
    const runs: Begun[] = []
    for (const threadId of threads) runs.push(await start(store, `s-${threadId}`, { threadId, id: `s-${threadId}` }))
    const transactions = counted(store)
    const lost = (epoch: number, nth: number) => (nth === 3 ? epoch - 1 : epoch)
    const ends = await Promise.allSettled(runs.map(({ fence, ...run }, nth) => (
      commit(store, { ...run, fence: { ...fence, epoch: lost(fence.epoch, nth) } }, { rows: [row(`said-${nth}`, 'assistant')], ...finish })
    )))
    expect(ends.map(({ status }, nth) => (status === 'rejected' ? nth : ''))).toEqual(['', '', '', 3, '', '', '', '', '', ''])
    expect(ends[3]).toMatchObject({ reason: { code: 'fenced' } })
    expect(transactions.length).toBeLessThanOrEqual(2)
    const stored = await Promise.all(threads.map((threadId) => rowIds(store, threadId)))
    expect(stored).toEqual(threads.map((threadId, nth) => (nth === 3 ? [`s-${threadId}`] : [`s-${threadId}`, `said-${nth}`])))
    const answers = await Promise.allSettled(threads.map((threadId, nth) => (
      acceptOne(store, send(`more-${nth}`, { ...persisted, threadId, ...(nth === 5 && { resourceId: 'another' }) }))
    )))
    expect(answers.map(({ status }, nth) => (status === 'rejected' ? nth : ''))).toEqual(['', '', '', '', '', 5, '', '', '', ''])
  })

  it.each(['cut before', 'cut after'] as const)('[Q2.1] [Q1.10] have the effect of one transaction each if their connection is lost: %s', async (harm) => {
    const server = new URL(sharedURL())
    const proxy = await proxyTo(Number(server.port))
    onTestFinished(() => proxy.close())
    const store = (await newPlace()).open({ max: 1, connectionString: Object.assign(server, { port: String(proxy.port) }).href })
    await store.open()
    let harmed = 0
    proxy.harm = (bytes) => (bytes.includes(nameOf('COMMIT')) && harmed++ === 0 ? harm : 'pass')
    const threads = names(12)
    const accepted = await Promise.all(threads.map((threadId) => acceptOne(store, send(`s-${threadId}`, { ...persisted, threadId }))))
    expect([harmed > 0, accepted.some(({ duplicate }) => duplicate)]).toEqual([true, false])
    for (const threadId of threads) expect(await rowIds(store, threadId)).toEqual([`s-${threadId}`])
  })

  it('[Q1.11] of two processes do not wait for each other in a circle, in whichever order they come', async () => {
    const { url: connectionString, deadlocks } = await newDatabase()
    const stores = [new PostgresStore({ connectionString, max: 2 }), new PostgresStore({ connectionString, max: 2 })]
    await Promise.all(stores.map((store) => store.open()))
    const resources = ['one', 'two', 'three']
    for (let round = 0; round < 8; round++) {
      await Promise.all(stores.map(async (store, of) => {
        const inbox = await inboxOf(store)
        const threads = names(12, `round-${round}`)
        const ordered = of === 0 ? threads : threads.toReversed()
        await Promise.all(ordered.flatMap((threadId, nth) => [
          acceptOne(store, send(`${of}-${threadId}`, { ...persisted, threadId })),
          inbox.ingest([notification(`${of}-${threadId}`, `n-${threadId}`, resources[(nth * (of + 1)) % 3])]),
        ]))
      }))
      for (const threadId of names(12, `round-${round}`)) expect((await rowIds(stores[0] as PostgresStore, threadId)).length).toBe(2)
    }
    // A session reports what it counted when it ends.
    await Promise.all(stores.map((store) => store.close()))
    expect(await deadlocks()).toBe(0)
  })
})
