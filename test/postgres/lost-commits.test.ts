import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { acceptOne, persisted, rowIds, send, states, threadId } from '../../src/store/conformance/fixture.ts'
import type { PostgresStore } from '../../src/store/postgres/index.ts'
import { nameOf } from '../../src/store/postgres/transaction.ts'
import { lostCommitCases } from './lost-commits.ts'
import { proxyTo, type Harm } from './proxy.ts'
import { noPostgres, whyNoPostgres } from './server.ts'
import { inDatabase, newPlace, sharedURL, useSharedServer } from './stores.ts'

beforeAll(useSharedServer)

/** A store behind a proxy. */
async function behindProxy(): Promise<{ store: PostgresStore; schema: string; proxy: Awaited<ReturnType<typeof proxyTo>> }> {
  const server = new URL(sharedURL())
  const proxy = await proxyTo(Number(server.port))
  onTestFinished(() => proxy.close())
  const { schema, open } = await newPlace()
  return { schema, proxy, store: open({ connectionString: Object.assign(server, { port: String(proxy.port) }).href }) }
}

/** Harms the next commit, and calls `then`. */
function nextCommit(harm: ReturnType<Harm>, then: () => void = () => {}): Harm {
  let left = 1
  return (bytes) => {
    if (!bytes.includes(nameOf('COMMIT')) || left-- <= 0) return 'pass'
    then()
    return harm
  }
}

describe.skipIf(noPostgres)(`a connection that is lost while a transaction is committed${whyNoPostgres}`, () => {
  it.each(['cut before', 'cut after'] as const)('[Q2.1] has the effect of one transaction: %s', async (harm) => {
    const { store, proxy } = await behindProxy()
    await acceptOne(store, send('first', persisted))
    let harmed = 0
    for (let nth = 0; nth < 5; nth++) {
      proxy.harm = nextCommit(harm, () => (harmed += 1))
      const accepted = await acceptOne(store, send(`s${nth}`, persisted))
      expect([accepted.route, accepted.duplicate]).toEqual(['persist', false])
    }
    expect([await rowIds(store, threadId), harmed]).toEqual([['first', 's0', 's1', 's2', 's3', 's4'], 5])
  })

  it('[Q2.1] waits for a transaction that the server still executes', async () => {
    const { store, schema, proxy } = await behindProxy()
    await store.open()
    const waiting = `SELECT 1 FROM pg_locks WHERE NOT granted AND relation = '"${schema}".heed_outcomes'::regclass`
    await inDatabase(async (query) => {
      await query('BEGIN')
      await query(`LOCK TABLE "${schema}".heed_outcomes IN EXCLUSIVE MODE`)
      proxy.harm = nextCommit('cut after')
      const accepting = acceptOne(store, send('a'))
      await expect.poll(async () => (await query(waiting)).rows.length).toBe(2)
      await query('COMMIT')
      const accepted = await accepting
      expect([accepted.route, accepted.duplicate, accepted.fence?.epoch]).toEqual(['wake', false, 1])
    })
    const thread = await store.getThread({ threadId })
    expect([thread?.status, thread?.runId, thread?.epoch, await states(store)]).toEqual(['running', 'run-of-a', 1, { a: 'pending' }])
  })

  it.each(['cut before', 'cut after'] as const)('[Q2.6] is reported as unknown if the server stays away, and the same call stores it once: %s', async (harm) => {
    const { store, proxy } = await behindProxy()
    store.patienceMs = 300
    await acceptOne(store, send('first', persisted))
    proxy.harm = nextCommit(harm, () => (proxy.refusing = true))
    // They share a transaction.
    const answers = await Promise.allSettled(['a', 'b'].map((id) => acceptOne(store, send(id, persisted))))
    expect(answers.map((answer) => (answer.status === 'rejected' ? answer.reason as unknown : answer))).toEqual(
      Array.from({ length: 2 }, () => expect.objectContaining({ code: 'store_unknown', retryable: true }) as unknown))
    proxy.refusing = false
    const again = await Promise.all(['a', 'b'].map((id) => acceptOne(store, send(id, persisted))))
    expect(again.map(({ duplicate }) => duplicate)).toEqual(Array.from({ length: 2 }, () => harm === 'cut after'))
    expect(await rowIds(store, threadId)).toEqual(['first', 'a', 'b'])
  })
})

// A few of them; the campaign has more.
describe.skipIf(noPostgres)(`connections that are lost during commits${whyNoPostgres}`, () => {
  const lost = { before: 0, after: 0 }
  afterAll(() => expect(Math.min(lost.before, lost.after)).toBeGreaterThan(0))

  it.each(lostCommitCases.filter((_, index) => index % 40 === 13))('[Q2.1] leave each write done once, and its result true: $name', async ({ name, run }) => {
    const now = await run(name.length)
    lost.before += now.before
    lost.after += now.after
  })
})
