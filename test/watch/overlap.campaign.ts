import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import type { DueClaim } from '../../src/store/contract/notifications.ts'
import { watchStoreOf } from '../../src/store/contract/storage.ts'
import type { NewInbound, NewWatch, WatchStore } from '../../src/store/contract/watches.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { SecondConnection } from '../store/second-connection.ts'

const overlaps = Number(process.env.HEED_OVERLAPS ?? 1_000)
const batch = 500
const now = 1_700_000_000_000
const claim: DueClaim = { now: now + 10, until: now + 1_000, limit: batch, agentIds: ['agent-1'] }

function planned(nth: number): NewWatch {
  return {
    id: `w-${nth}`, resourceId: `resource-${nth}`, threadId: `thread-${nth}`, agentId: 'agent-1', description: 'Wait for the code.',
    criteria: { categories: [], channels: ['sms'], contacts: [] }, mode: 'once', exclusive: false, mayEnd: false, expiresAt: now + 60_000,
    maxEvaluations: 50, since: now, threadCreatedAt: now, limit: 100, now,
  }
}

function arriving(nth: number): NewInbound {
  return {
    id: `inbound-${nth}`, resourceId: `resource-${nth}`, channelId: 'phone', kind: 'sms', providerId: `provider-${nth}`,
    sender: { address: '+15550001', verified: true }, content: { text: 'Your code is 123456.' }, now,
  }
}

/** Judges and delivers what is due, through one of the connections. */
async function work(store: WatchStore): Promise<string[]> {
  for (let claimed = await store.claimCandidates(claim); claimed.length > 0; claimed = await store.claimCandidates(claim)) {
    for (const { watch, inbound: { seq }, attempt } of claimed)
      await store.settleCandidate({ watchId: watch.id, seq, attempt, verdict: { action: 'match', value: true }, now: now + 20 })
  }
  return (await store.claimDeliveries({ ...claim, now: now + 30 })).map(({ id }) => id)
}

it(`[V1.2] [V1.6] ${overlaps} messages arrive while their watches are registered on another connection: none is missed, none doubled`, { timeout: 600_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'heed-overlap-'))
  const url = `file:${join(folder, 'watches.db')}`
  const storage = new LibSQLStore({ url })
  const thread = new SecondConnection()
  onTestFinished(async () => {
    await thread.end()
    await storage.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const here = await watchStoreOf(storage)
  if (!here) throw new Error('The storage has no watches.')
  await here.open()
  const there = thread.store(url, 'watches')
  await there.open()
  const woken = new Map<string, number>()
  for (let nth = 0; nth < overlaps; nth += 1) {
    const [receiving, registering] = nth % 2 === 0 ? [here, there] : [there, here]
    // Both are started before either is answered; which transaction begins first changes from round to round.
    const calls = [
      async () => void (await receiving.addInbounds([arriving(nth)])),
      async () => void (await registering.registerWatch(planned(nth))),
    ]
    const started: Array<Promise<void>> = []
    for (const call of nth % 4 < 2 ? calls : calls.toReversed()) {
      started.push(call())
      if (nth % 8 >= 4) for (let lead = nth % 3; lead > 0; lead -= 1) await turn()
    }
    await Promise.all(started)
    if ((nth + 1) % batch > 0 && nth + 1 < overlaps) continue
    const sent = await Promise.all([work(here), work(there)])
    // A match that one connection settled may have been delivered by neither yet.
    const rest = [...(await work(here)), ...(await work(there))]
    for (const id of [...sent.flat(), ...rest]) woken.set(id, (woken.get(id) ?? 0) + 1)
  }
  const missed = Array.from({ length: overlaps }, (_, nth) => `watch:w-${nth}`).filter((id) => !woken.has(id))
  const doubled = [...woken].filter(([, times]) => times > 1)
  expect({ missed, doubled, woken: woken.size }).toEqual({ missed: [], doubled: [], woken: overlaps })
})
