import assert from 'node:assert/strict'
import type { ClaimedCandidate, InboundClaim, WatchStore } from '../contract/watches.ts'
import { add, annotate, candidates, claim, hour, inbound, now, planned, settle } from './watch-fixture.ts'
import { onThread } from './registration.ts'
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
    name: '[V1.12] [V1.38] when the annotator fails, watches get what rules know at once, and after three failures that is the annotation',
    async run({ store: open }) {
      const store = await open()
      await store.registerWatch(planned('code', { categories: ['auth'] }))
      await store.registerWatch(planned('parcel', { categories: ['parcel'], threadId: 'thread-2' }))
      const reply = { agentId: 'agent-1', threadId: 'thread-3' }
      const [poison, next] = (await add(store, inbound('poison', { reply }), inbound('next', { reply }))) as [number, number]
      assert.deepEqual(await due(store), [poison, next])
      assert.equal(await store.annotateInbound({ seq: next, categories: [], offered: 'all', now }), true)
      const replies = async () => (await store.claimReplies(take)).map(({ inbound: { seq } }) => seq)
      const fail = async (more: object = { rules: ['auth'] }) => {
        await store.deferInbound({ seq: poison, error: 'down', retryAt: now, now, ...more })
        return due(store)
      }
      assert.deepEqual([await fail({}), await candidates(store, 'code')], [[poison], []], 'a close is no failure')
      assert.deepEqual([await fail(), await candidates(store, 'code')], [[poison], [[poison, 'pending']]])
      assert.deepEqual([await fail(), await replies()], [[poison], []])
      const considered = async () => (await store.listConsidered({ watchId: 'code', limit: 1 })).considered[0]
      assert.equal((await considered())?.categories, undefined)
      assert.deepEqual([await fail(), await replies()], [[poison], [poison]], 'the reply waits no longer')
      assert.deepEqual((await considered())?.categories, ['auth'])
      assert.equal(await store.annotateInbound({ seq: poison, categories: ['parcel'], offered: ['parcel'], now }), true)
      assert.deepEqual([await candidates(store, 'parcel'), await candidates(store, 'code')], [[[poison, 'pending']], [[poison, 'pending']]])
      const [last] = (await add(store, inbound('last'))) as [number]
      for (let nth = 1; nth <= 12; nth += 1) {
        assert.deepEqual(await due(store), [last])
        await store.deferInbound({ seq: last, error: 'down', retryAt: now, now, rules: [] })
      }
      assert.deepEqual(await due(store), [], 'it is asked no more')
    },
  },
  {
    name: '[V4.18] a message tells whether its categories are those of the rules alone, and a candidate waits for the others',
    async run({ store: open }) {
      const store = await open()
      const [seq] = (await add(store, inbound('poison'))) as [number]
      await store.registerWatch(planned('any', { channels: ['sms'], expiresAt: now + hour, since: now }))
      const asked = async () => {
        const [claimed] = await store.claimCandidates({ agentIds: ['agent-1'], now, until: now + 1, limit: 1 })
        if (claimed) {
          const release = { watchId: 'any', seq, attempt: claimed.attempt, unannotated: true, retryAt: now + 5, now } as const
          assert.equal(await store.releaseCandidate(release), true)
        }
        return claimed && (claimed.inbound.rulesOnly ?? 'none')
      }
      const fail = () => store.deferInbound({ seq, error: 'down', retryAt: now, now, rules: [] })
      for (let nth = 1; nth <= 11; nth += 1) {
        assert.deepEqual(await due(store), [seq])
        await fail()
        const first = nth === 1 ? 'none' : nth < 3 ? undefined : 'for_now'
        assert.deepEqual([await asked(), await asked()], [first, undefined], `${nth}`)
      }
      assert.deepEqual(await due(store), [seq])
      await fail()
      assert.equal(await asked(), 'for_good')
      const [lost, later] = (await add(store, inbound('lost'), inbound('later'))) as [number, number]
      await store.annotateInbound({ seq: lost, categories: [], offered: 'rules', now })
      await store.annotateInbound({ seq: later, categories: [], offered: 'all', now })
      await store.endWatch({ id: 'any' }, { reason: 'cancelled', now })
      const next = planned('own', { categories: ['own'], since: now, maxEvaluations: 10 })
      await store.registerWatch(next)
      assert.deepEqual(await due(store), [seq], 'what ended its processes is not annotated again')
      await store.annotateInbound({ seq, categories: ['own'], offered: ['own'], now })
      const [claimed] = await store.claimCandidates({ agentIds: ['agent-1'], now, until: now + 1, limit: 1 })
      assert.deepEqual([claimed?.inbound.id, claimed?.inbound.rulesOnly], ['inbound-phone-poison', undefined])
    },
  },
  {
    name: '[V1.31] [V1.42] the open watches of a resource expect at most 4,096 categories together; more are refused by name',
    async run({ store: open }) {
      const store = await open()
      const labels = (first: number) => Array.from({ length: 256 }, (_, nth) => `label_${first + nth}`)
      for (let nth = 0; nth < 16; nth += 1) await store.registerWatch(planned(`w-${nth}`, { categories: labels(nth * 256) }))
      await assert.rejects(store.registerWatch(planned('more', { categories: ['one_more'] })), { code: 'too_many_categories' })
      assert.equal(await store.getWatch({ id: 'more' }), null)
      if (store.threads) {
        const onNew = onThread('more', { threadId: 'new', categories: ['one_more'] })
        await assert.rejects(store.registerWatch(onNew), { code: 'too_many_categories' })
        assert.equal(await store.threads.getThread({ threadId: 'new' }), null)
      }
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
  {
    name: '[V1.5] [V1.34] candidates behind one that waits for categories are judged; it is claimed ten minutes after the expiry',
    async run({ store: open }) {
      const store = await open()
      await store.registerWatch(planned('w', { mode: 'continuous' }))
      const [poison, real, other] = (await add(store, inbound('poison'), inbound('real'), inbound('other'))) as [number, number, number]
      const take = async (at = claim.now) => (await store.claimCandidates({ ...claim, now: at, until: at + 1_000 }))[0]
      const release = (seq: number, attempt = 1) =>
        store.releaseCandidate({ watchId: 'w', seq, attempt, unannotated: true, retryAt: now + hour, now: claim.now })
      assert.equal((await take())?.inbound.seq, poison)
      assert.equal(await release(poison), true)
      assert.equal((await take())?.inbound.seq, real)
      assert.equal(await release(real), true)
      const third = await take()
      assert.equal(third?.inbound.seq, other)
      await annotate(store, real)
      assert.equal(await settle(store, third, { action: 'reject' }), true)
      const second = await take(now + 20)
      assert.deepEqual([second?.inbound.seq, second?.attempt], [real, 2])
      assert.equal(await settle(store, second as ClaimedCandidate, { action: 'reject' }), true)
      assert.equal(await take(now + hour), undefined)
      assert.equal(await take(now + hour + 600_000), undefined)
      assert.equal(await store.expireWatches({ now: now + hour + 600_000, until: now + 2 * hour, limit: 10 }), 0)
      assert.equal((await take(now + hour + 600_001))?.inbound.seq, poison)
    },
  },
]
