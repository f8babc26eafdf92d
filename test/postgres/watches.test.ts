import { expect, it } from 'vitest'
import { add, claim, inbound, match, now, planned, settle } from '../../src/store/conformance/watch-fixture.ts'
import type { ClaimedCandidate, WatchStore } from '../../src/store/contract/watches.ts'
import { onThread } from '../../src/store/conformance/registration.ts'
import { inDatabase, newPlace } from './stores.ts'

const theirs = { resourceId: 'resource-2', channelId: 'theirs' }

/** Whether the writes of another resource end while a verdict waits. Undefined where the verdict gave up waiting meanwhile: the machine is busy. */
async function tried(): Promise<boolean | undefined> {
  const place = await newPlace()
  const [storage, other] = [place.open(), place.open()]
  const [store, two] = (await Promise.all([storage, other].map((one) => one.getStore('watches')))) as [WatchStore, WatchStore]
  await store.registerWatch(planned('w'))
  await add(store, inbound('a'))
  const [claimed] = await store.claimCandidates(claim)
  const [seq] = (await add(two, inbound('before', theirs))) as [number]
  let attempts = 0
  storage.onTransaction = () => void (attempts += 1)
  return inDatabase(async (query) => {
    await query(`BEGIN; SELECT 1 FROM "${place.schema}".heed_watches FOR UPDATE`)
    const settled = settle(store, claimed as ClaimedCandidate, match)
    // Within a transaction, PostgreSQL answers from the sessions that it saw first until they are forgotten.
    const waits = async () => {
      await query('SELECT pg_stat_clear_snapshot()')
      return query(`SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%${place.schema}%'`)
    }
    await expect.poll(async () => (await waits()).rows.length, { timeout: 60_000 }).toBeGreaterThan(0)
    await two.registerWatch(onThread('theirs', { ...theirs, threadId: 'theirs', categories: ['urgent'] }))
    await add(two, inbound('after', theirs))
    await two.annotateInbound({ seq, categories: ['urgent'], now })
    const ended = attempts
    await query('COMMIT')
    expect(await settled).toBe(true)
    expect((await two.listCandidates({ watchId: 'theirs', limit: 10 })).candidates.map((candidate) => candidate.seq)).toEqual([seq])
    return ended === 0 ? true : undefined
  })
}

it('[Q1.5] registrations, messages and annotations of a resource do not wait for a verdict of another that waits', { timeout: 120_000 }, async () => {
  let passed: boolean | undefined
  for (let nth = 0; nth < 5 && !passed; nth += 1) passed = await tried()
  expect(passed).toBe(true)
})
