import assert from 'node:assert/strict'
import type { InboundClaim, WatchStore } from '../contract/watches.ts'
import { add, annotate, candidates, claim, hour, inbound, now, planned } from './watch-fixture.ts'
import type { WatchCase } from './watches.ts'

const take: InboundClaim = { channelIds: ['phone'], now: now + 10, until: now + 1_000, limit: 100 }

async function due(store: WatchStore, more: Partial<InboundClaim> = {}): Promise<number[]> {
  return (await store.claimInbounds({ ...take, ...more })).map(({ seq }) => seq)
}

/** Which messages are annotated, when, and for whom. Part of `watchConformance`. */
export const annotationCases: WatchCase[] = [
  {
    name: '[V1.30] messages of the look-back are annotated again for categories that no annotator was offered, the newest and each once',
    async run({ store: open }) {
      const store = await open()
      const old = { now: now - 70_000 }
      const [before, first, second, mail, third] = (await add(
        store, inbound('before', old), inbound('first'), inbound('second'), inbound('mail', { kind: 'email' }), inbound('third'),
      )) as [number, number, number, number, number]
      for (const seq of [before, first, second, mail, third]) await annotate(store, seq, 'auth')
      assert.deepEqual(await due(store), [])
      await store.registerWatch(planned('w', { categories: ['parcel'], channels: ['sms'], maxEvaluations: 2 }))
      assert.deepEqual(await due(store), [second, third], 'as many as it may judge')
      assert.equal(await store.annotateInbound({ seq: third, categories: ['parcel'], offered: ['auth', 'parcel'], now }), true)
      assert.equal(await store.annotateInbound({ seq: second, categories: [], offered: ['auth', 'parcel'], now }), true)
      assert.deepEqual(await candidates(store, 'w'), [[third, 'pending']])
      const { considered } = await store.listConsidered({ watchId: 'w', limit: 10 })
      assert.deepEqual(considered.find(({ seq }) => seq === third)?.categories, ['auth', 'parcel'], 'what it had stays')
      await store.registerWatch(planned('again', { categories: ['parcel'], channels: ['sms'], maxEvaluations: 2, threadId: 'thread-2' }))
      assert.deepEqual(await due(store), [first], 'the others were offered it')
      await store.registerWatch(planned('closed', { categories: ['urgent'], threadId: 'thread-3' }))
      assert.deepEqual(await due(store), [], 'the closed set is always offered')
    },
  },
  {
    name: '[V1.30] an annotation that began before the registration is repeated with the categories that the watch expects',
    async run({ store: open }) {
      const store = await open()
      const [seq] = (await add(store, inbound('a'))) as [number]
      assert.deepEqual(await due(store), [seq])
      await store.registerWatch(planned('w', { categories: ['parcel'] }))
      await annotate(store, seq, 'auth')
      assert.deepEqual(await due(store), [seq])
      assert.equal(await store.annotateInbound({ seq, categories: ['parcel'], offered: ['parcel'], now }), true)
      assert.deepEqual([await candidates(store, 'w'), await due(store)], [[[seq, 'pending']], []])
      const [other] = (await add(store, inbound('b'))) as [number]
      assert.equal(await store.annotateInbound({ seq: other, categories: [], offered: 'all', now }), true)
      assert.deepEqual(await due(store), [], 'no annotator could choose more')
    },
  },
  {
    name: '[V1.31] the open watches of a resource expect at most 4,096 categories together; more are refused by name',
    async run({ store: open }) {
      const store = await open()
      const labels = (first: number) => Array.from({ length: 256 }, (_, nth) => `label_${first + nth}`)
      for (let nth = 0; nth < 16; nth += 1) await store.registerWatch(planned(`w-${nth}`, { categories: labels(nth * 256) }))
      await assert.rejects(store.registerWatch(planned('more', { categories: ['one_more'] })), { code: 'too_many_categories' })
      assert.equal(await store.getWatch({ id: 'more' }), null)
      assert.equal((await store.registerWatch(planned('known', { categories: ['label_7'] }))).added, true)
      assert.equal((await store.registerWatch(planned('theirs', { resourceId: 'resource-2', categories: ['one_more'] }))).added, true)
      await store.endWatch({ id: 'w-1' }, { reason: 'cancelled', now })
      assert.equal((await store.registerWatch(planned('more', { categories: ['one_more'] }))).added, true)
    },
  },
  {
    name: '[V1.32] of several channels each gets its share of a claim, and no more than it may have',
    async run({ store: open }) {
      const store = await open()
      const flood = await add(store, ...Array.from({ length: 50 }, (_, nth) => inbound(`f-${nth}`, { now: now - 10 })))
      const [other] = await add(store, inbound('x', { channelId: 'other' }))
      assert.deepEqual(await due(store, { channelIds: ['phone', 'other'], limit: 4 }), [...flood.slice(0, 2), other, flood[2]])
      const most = { phone: 1 }
      assert.deepEqual(await due(store, { channelIds: ['phone', 'other'], limit: 4, most }), [flood[3]])
      assert.deepEqual(await due(store, { channelIds: ['phone'], limit: 4, most: { phone: 0 } }), [])
    },
  },
  {
    name: '[V1.33] a watch of an agent that no process has expires, and watches behind it are due; its messages are left for ten minutes',
    async run({ store: open }) {
      const store = await open()
      await store.registerWatch(planned('idle', { agentId: 'gone', channels: ['email'], threadId: 'thread-2' }))
      await store.registerWatch(planned('exclusive', { agentId: 'gone', exclusive: true, threadId: 'thread-3' }))
      await store.registerWatch(planned('later', { expiresAt: now + 10 * hour }))
      await add(store, inbound('a'))
      assert.deepEqual(await store.claimCandidates(claim), [], 'the exclusive one is first')
      const at = (time: number) => store.expireWatches({ now: time, until: time + 1_000, limit: 10 })
      await at(now + hour)
      assert.equal((await store.getWatch({ id: 'idle' }))?.state, 'open', 'the millisecond of the expiry belongs to it')
      await at(now + hour + 1)
      assert.equal((await store.getWatch({ id: 'idle' }))?.reason, 'expired')
      assert.equal((await store.getWatch({ id: 'exclusive' }))?.state, 'open', 'a process that has the agent may judge what arrived')
      const late = now + hour + 600_001
      await at(late)
      assert.equal((await store.getWatch({ id: 'exclusive' }))?.reason, 'expired')
      const claimed = await store.claimCandidates({ ...claim, now: late, until: late + 1_000 })
      assert.deepEqual(claimed.map(({ watch }) => watch.id), ['later'])
      assert.equal(await at(late), 0)
    },
  },
  {
    name: '[V1.34] a candidate that waits for the categories of its message is due when that is annotated, also if it was meanwhile',
    async run({ store: open }) {
      const store = await open()
      await store.registerWatch(planned('w'))
      const [seq] = (await add(store, inbound('a'))) as [number]
      const retryAt = now + hour
      const wait = async (attempt: number) => {
        assert.equal((await store.claimCandidates(claim))[0]?.attempt, attempt)
        return store.releaseCandidate({ watchId: 'w', seq, attempt, unannotated: true, retryAt, now: claim.now })
      }
      assert.equal(await wait(1), true)
      assert.deepEqual(await store.claimCandidates(claim), [])
      await annotate(store, seq, 'auth')
      assert.equal(await wait(2), true)
      assert.equal((await store.claimCandidates(claim))[0]?.inbound.categories?.join(), 'auth', 'it has them by now')
    },
  },
]
