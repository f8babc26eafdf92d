import assert from 'node:assert/strict'
import type { ClaimedCandidate } from '../contract/watches.ts'
import { annotationCases } from './annotation.ts'
import { lookBackCases } from './look-back.ts'
import { idCases, registrationCases } from './registration.ts'
import { replyCases } from './replies.ts'
import { takenCases } from './taken.ts'
import {
  add, annotate, candidates, claim, delivered, hour, inbound, judge, match, now, planned, settle, type WatchHarness,
} from './watch-fixture.ts'

export type { WatchHarness }

/** One guarantee as a test. The ids in brackets are those of PROTOCOL.md. */
export interface WatchCase {
  name: string
  run(harness: WatchHarness): Promise<void>
}

/**
 * What every `WatchStore` guarantees, as cases for any test runner:
 *
 *     for (const { name, run } of watchConformance) it(name, () => run(harness))
 */
export const watchConformance: WatchCase[] = [
  {
    name: '[V1.1] a message that a provider repeats is stored once, in whichever order and batch',
    async run({ store: open }) {
      const store = await open()
      const first = await store.addInbounds([inbound('a'), inbound('b'), inbound('a', { id: 'other' })])
      assert.deepEqual(first.map(({ repeated }) => repeated), [false, false, true])
      assert.deepEqual(first[2]?.inbound, first[0]?.inbound)
      const again = await store.addInbounds([inbound('a', { id: 'third' }), inbound('a', { channelId: 'other' })])
      assert.deepEqual(again.map(({ repeated }) => repeated), [true, false])
      assert.ok((again[1]?.inbound.seq ?? 0) > (first[1]?.inbound.seq ?? 0))
    },
  },
  {
    name: '[V1.2] a watch finds messages that were stored since its look-back begins, and those that follow, each once',
    async run({ store: open }) {
      const store = await open()
      const [old, before] = await add(store, inbound('old', { now: now - 70_000 }), inbound('before', { now: now - 30_000 }))
      const { watch, added } = await store.registerWatch(planned('w', { channels: ['sms'] }))
      assert.deepEqual([added, watch.state, watch.evaluations], [true, 'open', 0])
      const [after] = await add(store, inbound('after'), inbound('after'))
      assert.deepEqual(await candidates(store, 'w'), [[before, 'pending'], [after, 'pending']])
      assert.ok(old !== undefined)
      assert.deepEqual(await store.registerWatch(planned('w', { mode: 'continuous' })), { watch, added: false })
      for (const other of [{ threadId: 'thread-2' }, { agentId: 'agent-2' }]) {
        await assert.rejects(store.registerWatch(planned('w', other)), { code: 'id_taken' })
      }
    },
  },
  {
    name: '[V1.3] channels and contacts filter, categories have to overlap, and a filter alone is no match of categories',
    async run({ store: open }) {
      const store = await open()
      await store.registerWatch(planned('code', { categories: ['verification_code'], channels: ['sms'] }))
      await store.registerWatch(planned('instance', { channels: ['sms/phone'] }))
      await store.registerWatch(planned('mother', { contacts: ['mother'] }))
      const [chat, code, mail, fromMother] = (await add(
        store, inbound('chat'), inbound('code'), inbound('mail', { kind: 'email', channelId: 'work' }),
        inbound('mother', { channelId: 'other', contactId: 'mother' }),
      )) as [number, number, number, number]
      assert.deepEqual(await candidates(store, 'code'), [])
      await annotate(store, chat, 'chitchat')
      for (const seq of [code, mail]) await annotate(store, seq, 'auth', 'verification_code')
      await annotate(store, fromMother)
      assert.deepEqual(await candidates(store, 'code'), [[code, 'pending']])
      assert.deepEqual(await candidates(store, 'instance'), [[chat, 'pending'], [code, 'pending']])
      assert.deepEqual(await candidates(store, 'mother'), [[fromMother, 'pending']])
      const { candidates: found } = await store.listCandidates({ watchId: 'code', limit: 1 })
      assert.deepEqual(found[0]?.categories, ['verification_code'])
    },
  },
  {
    name: '[V1.4] a watch never meets a message of another resource, neither in its look-back nor later',
    async run({ store: open }) {
      const store = await open()
      const other = { resourceId: 'resource-2' }
      const [before] = await add(store, inbound('before', { ...other, channelId: 'theirs', contactId: 'mother' }))
      await store.registerWatch(planned('w', { channels: ['sms'] }))
      await store.registerWatch(planned('m', { contacts: ['mother'] }))
      const [after] = await add(store, inbound('after', { ...other, channelId: 'theirs', contactId: 'mother' }))
      await store.registerWatch(planned('theirs', { ...other, threadId: 'thread-2', channels: ['sms'] }))
      assert.deepEqual([await candidates(store, 'w'), await candidates(store, 'm')], [[], []])
      assert.deepEqual(await candidates(store, 'theirs'), [[before, 'pending'], [after, 'pending']])
      assert.equal(await store.getWatch({ id: 'w', ...other }), null)
      assert.deepEqual(await store.expectedCategories('resource-2'), [])
    },
  },
  {
    name: '[V1.5] candidates of a watch are judged one at a time, in the order of their messages; a claim that ends is claimed again',
    async run({ store: open }) {
      const store = await open()
      await store.registerWatch(planned('w', { mode: 'continuous' }))
      const seqs = await add(store, inbound('a'), inbound('b'), inbound('c'))
      const [first, ...others] = await store.claimCandidates(claim)
      assert.deepEqual([first?.inbound.seq, first?.attempt, others.length], [seqs[0], 1, 0])
      assert.deepEqual(await store.claimCandidates(claim), [])
      const later = { ...claim, now: claim.until, until: claim.until + 1_000 }
      const [again] = await store.claimCandidates(later)
      assert.deepEqual([again?.inbound.seq, again?.attempt], [seqs[0], 2])
      assert.equal(await settle(store, first as ClaimedCandidate, match), false, 'the first attempt is fenced')
      assert.equal(await settle(store, again as ClaimedCandidate, { action: 'reject' }, later.now), true)
      const [second] = await store.claimCandidates(later)
      assert.equal(second?.inbound.seq, seqs[1])
      const released = { watchId: 'w', seq: seqs[1] as number, attempt: 1, error: 'no answer', now: later.now }
      assert.equal(await store.releaseCandidate({ ...released, retryAt: later.now + 5 }), true)
      assert.deepEqual(await store.claimCandidates(later), [])
      const [third] = await store.claimCandidates({ ...later, now: later.now + 5 })
      assert.deepEqual([third?.inbound.seq, third?.attempt], [seqs[1], 2])
      const { error: _, ...given } = released
      for (const attempt of [2, 3, 4]) {
        assert.equal(await store.releaseCandidate({ ...given, attempt, retryAt: later.now + 5 }), true, 'given back, which is no failure')
        assert.equal((await store.claimCandidates({ ...later, now: later.now + 5 }))[0]?.attempt, attempt + 1)
      }
      assert.equal(await store.releaseCandidate({ ...released, attempt: 5, retryAt: later.now + 9 }), true)
      const [last] = await store.claimCandidates({ ...later, now: later.now + 9 })
      assert.equal(last?.inbound.seq, seqs[1])
      assert.equal(await store.releaseCandidate({ ...released, attempt: 6, retryAt: later.now + 12 }), true)
      assert.deepEqual(await candidates(store, 'w'), [[seqs[0], 'rejected'], [seqs[1], 'failed'], [seqs[2], 'pending']])
      assert.equal((await store.getWatch({ id: 'w' }))?.evaluations, 1)
    },
  },
  {
    name: '[V1.6] the first match ends a `once` watch with one delivery; nothing is judged or delivered after it',
    async run({ store: open }) {
      const store = await open()
      await store.registerWatch(planned('w'))
      const seqs = await add(store, inbound('a'), inbound('b'), inbound('c'))
      await judge(store, { action: 'reject' })
      await judge(store, match)
      const ended = await store.getWatch({ id: 'w' })
      assert.deepEqual([ended?.state, ended?.reason, ended?.evaluations, ended?.hits], ['ended', 'matched', 2, 1])
      assert.deepEqual(await candidates(store, 'w'), [[seqs[0], 'rejected'], [seqs[1], 'matched'], [seqs[2], 'ended']])
      await add(store, inbound('d'))
      assert.deepEqual(await store.claimCandidates({ ...claim, now: now + hour * 2 }), [])
      assert.deepEqual(await delivered(store), [['watch:w', 'matched', '123456']])
      assert.deepEqual(await delivered(store), [])
      assert.deepEqual(await store.expectedCategories('resource-1'), [])
    },
  },
  {
    name: '[V1.7] each match of a continuous watch is one delivery, and its end another; only a watch that allows it is ended by its judge',
    async run({ store: open }) {
      const store = await open()
      await store.registerWatch(planned('kept', { mode: 'continuous', maxEvaluations: 3 }))
      const [first, second, third] = await add(store, inbound('a'), inbound('b'), inbound('c'))
      await judge(store, match)
      await judge(store, { action: 'complete', value: 'stop' })
      assert.equal((await store.getWatch({ id: 'kept' }))?.state, 'open')
      await judge(store, { action: 'fail' })
      assert.deepEqual(await delivered(store), [
        [`watch-hit:${first}:kept`, 'hit', '123456'], [`watch-hit:${second}:kept`, 'hit', 'stop'], ['watch:kept', 'exhausted', undefined],
      ])
      assert.ok(third !== undefined)
      await store.registerWatch(planned('ended', { mode: 'continuous', mayEnd: true, since: now + hour }))
      const [fourth] = await add(store, inbound('d'))
      await judge(store, { action: 'complete', value: 'stop' })
      assert.deepEqual(await delivered(store), [[`watch-hit:${fourth}:ended`, 'hit', 'stop'], ['watch:ended', 'completed', undefined]])
    },
  },
  {
    name: '[V1.8] a message that was stored at the instant of the expiry is judged; a later one is not; then the watch expires, once',
    async run({ store: open }) {
      const store = await open()
      await store.registerWatch(planned('w', { expiresAt: now + 100 }))
      const [inTime] = await add(store, inbound('in-time', { now: now + 100 }), inbound('late', { now: now + 101 }))
      assert.deepEqual(await candidates(store, 'w'), [[inTime, 'pending']])
      await judge(store, { action: 'reject' }, now + 500)
      assert.equal((await store.getWatch({ id: 'w' }))?.state, 'open')
      assert.equal(await store.nextDue(['agent-1'], []), now + 101)
      assert.deepEqual(await store.claimCandidates({ ...claim, now: now + 500 }), [])
      assert.equal((await store.getWatch({ id: 'w' }))?.reason, 'expired')
      assert.deepEqual(await delivered(store), [['watch:w', 'expired', undefined]])
      await store.registerWatch(planned('early', { expiresAt: now + 100, since: now + hour }))
      assert.deepEqual(await store.claimCandidates({ ...claim, now: now + 100 }), [])
      assert.equal((await store.getWatch({ id: 'early' }))?.state, 'open')
    },
  },
  {
    name: '[V1.8] a watch for categories expires after the messages that arrived in time have their categories',
    async run({ store: open }) {
      const store = await open()
      await store.registerWatch(planned('w', { categories: ['urgent'], expiresAt: now + 100 }))
      const [seq] = (await add(store, inbound('a', { now: now + 50 }))) as [number]
      assert.deepEqual(await store.claimCandidates({ ...claim, now: now + 200, until: now + 300 }), [])
      assert.equal((await store.getWatch({ id: 'w' }))?.state, 'open')
      await annotate(store, seq, 'urgent')
      await judge(store, match, now + 300)
      assert.deepEqual(await delivered(store), [['watch:w', 'matched', '123456']])
    },
  },
  {
    name: '[V1.9] a denied message uses up no evaluation; a sender uses up its share and no more',
    async run({ store: open }) {
      const store = await open()
      await store.registerWatch(planned('w', { maxEvaluations: 20, mode: 'continuous' }))
      const flood = await add(store, ...Array.from({ length: 30 }, (_, index) => inbound(`flood-${index}`)))
      const unverified = Array.from({ length: 30 }, (_, index) =>
        inbound(`spoofed-${index}`, { sender: { address: `+1777${index}`, verified: false } }))
      await add(store, ...unverified)
      const [wanted] = await add(store, inbound('wanted', { sender: { address: '+15559', verified: true } }))
      const found = await candidates(store, 'w')
      assert.deepEqual(found.slice(0, 5).map(([seq]) => seq), flood.slice(0, 5))
      assert.deepEqual([found.length, found.at(-1)?.[0]], [11, wanted])
      assert.equal((await store.getWatch({ id: 'w' }))?.skipped, 50)
      await judge(store, { action: 'deny', policies: 'no-sms' })
      const watch = await store.getWatch({ id: 'w' })
      assert.deepEqual([watch?.evaluations, (await candidates(store, 'w'))[0]?.[1]], [0, 'denied'])
    },
  },
  {
    name: '[V1.10] of two watches for one message both get it, unless the older is exclusive and matches',
    async run({ store: open }) {
      const store = await open()
      await store.registerWatch(planned('a'))
      await store.registerWatch(planned('b', { threadId: 'thread-2' }))
      await add(store, inbound('shared'))
      const both = await store.claimCandidates(claim)
      assert.deepEqual(both.map(({ watch }) => watch.id), ['a', 'b'])
      for (const claimed of both) assert.equal(await settle(store, claimed, match), true)
      for (const id of ['c', 'd']) await store.registerWatch(planned(id, { exclusive: true, threadId: id, since: now + hour }))
      const [secret] = await add(store, inbound('secret'))
      const [oldest, ...others] = await store.claimCandidates(claim)
      assert.deepEqual([oldest?.watch.id, others.length], ['c', 0])
      assert.equal(await settle(store, oldest as ClaimedCandidate, match), true)
      assert.deepEqual(await store.claimCandidates({ ...claim, now: now + 20 }), [])
      assert.deepEqual(await candidates(store, 'd'), [[secret, 'consumed']])
      const [rejected] = await add(store, inbound('next'))
      await store.registerWatch(planned('e', { exclusive: true, threadId: 'e' }))
      assert.deepEqual((await candidates(store, 'e')).map(([seq]) => seq).includes(secret as number), false)
      assert.ok(rejected !== undefined)
    },
  },
  {
    name: '[V1.10] a message that ended a `once` watch of a thread is no candidate of a later watch of that thread',
    async run({ store: open }) {
      const store = await open()
      const [seq] = await add(store, inbound('code'))
      await store.registerWatch(planned('first'))
      await judge(store, match)
      await store.registerWatch(planned('second'))
      await store.registerWatch(planned('elsewhere', { threadId: 'thread-2' }))
      assert.deepEqual([await candidates(store, 'second'), await candidates(store, 'elsewhere')], [[], [[seq, 'pending']]])
    },
  },
  {
    name: '[V1.11] a cancelled watch ends with one delivery, also while it is judged; an ended one stays as it is',
    async run({ store: open }) {
      const store = await open()
      await store.registerWatch(planned('w'))
      await add(store, inbound('a'))
      const [claimed] = await store.claimCandidates(claim)
      const ended = await store.endWatch({ id: 'w', threadId: 'thread-1' }, { reason: 'cancelled', now: now + 15 })
      assert.deepEqual([ended?.state, ended?.reason], ['ended', 'cancelled'])
      assert.equal(await settle(store, claimed as ClaimedCandidate, match), false)
      assert.deepEqual(await store.endWatch({ id: 'w' }, { reason: 'cancelled', now: now + 16 }), ended)
      assert.equal(await store.endWatch({ id: 'w', resourceId: 'resource-2' }, { reason: 'cancelled', now }), null)
      assert.deepEqual(await delivered(store), [['watch:w', 'cancelled', undefined]])
    },
  },
  {
    name: '[V1.12] a message is annotated by one claim at a time, and a failed annotation is due again with the message unchanged',
    async run({ store: open }) {
      const store = await open()
      const [seq] = (await add(store, inbound('a'))) as [number]
      const inbounds = { channelIds: ['phone'], now, until: now + 1_000, limit: 10 }
      assert.equal(await store.nextDue([], ['phone']), now)
      const [claimed] = await store.claimInbounds(inbounds)
      assert.deepEqual([claimed?.seq, claimed?.attempts, claimed?.content.text], [seq, 1, 'Your code is 123456.'])
      assert.deepEqual(await store.claimInbounds(inbounds), [])
      assert.deepEqual(await store.claimInbounds({ ...inbounds, now: now + 2_000, channelIds: ['other'] }), [])
      await store.deferInbound({ seq, error: 'no answer', retryAt: now + 50, now })
      const [again] = await store.claimInbounds({ ...inbounds, now: now + 50 })
      assert.deepEqual([again?.seq, again?.attempts, again?.lastError], [seq, 2, 'no answer'])
      await annotate(store, seq, 'urgent')
      assert.equal(await store.annotateInbound({ seq, categories: ['other'], now }), false)
      assert.equal(await store.nextDue([], ['phone']), undefined)
    },
  },
  {
    name: '[V1.13] [V1.43] a delivery is claimed by one, due again after its claim or a failure, and over when it is confirmed',
    async run({ store: open }) {
      const store = await open()
      for (const id of ['a', 'b']) {
        await store.registerWatch(planned(id))
        await store.endWatch({ id }, { reason: 'cancelled', now: now + 1 })
      }
      const unsent = (watchId: string) => store.listUndelivered({ watchId, limit: 10 })
      const pending = { signalId: 'watch:b', reason: 'cancelled', state: 'pending', attempts: 0, createdAt: new Date(now + 1) }
      assert.deepEqual(await unsent('b'), [pending])
      const [first, second] = await store.claimDeliveries(claim)
      assert.deepEqual([first?.id, second?.id, first?.watch.threadId], ['watch:a', 'watch:b', 'thread-1'])
      assert.deepEqual(await store.claimDeliveries(claim), [])
      await store.confirmDelivery({ id: 'watch:a', now })
      await store.deferDelivery({ id: 'watch:b', error: 'busy', retryAt: now + 500, now })
      assert.equal(await store.nextDue(['agent-1'], []), now + 500)
      const [again] = await store.claimDeliveries({ ...claim, now: now + 500 })
      assert.deepEqual([again?.id, again?.attempts], ['watch:b', 1])
      assert.deepEqual(await unsent('b'), [{ ...pending, attempts: 2, error: 'busy' }])
      await store.deferDelivery({ id: 'watch:b', error: 'refused', now })
      assert.equal(await store.nextDue(['agent-1'], []), undefined)
      assert.deepEqual([await unsent('a'), await unsent('b')], [[], [{ ...pending, state: 'failed', attempts: 2, error: 'refused' }]])
      assert.deepEqual(await unsent('none'), [])
    },
  },
  {
    name: '[V1.13] deliveries of one agent to one thread are claimed in their order, also by two processes; a failed one is passed over',
    async run({ store: open }) {
      const store = await open()
      const ids = ['a', 'b', 'c', 'd']
      for (const id of ids) {
        await store.registerWatch(planned(id))
        await store.endWatch({ id }, { reason: 'cancelled', now: now + 1 })
      }
      await store.registerWatch(planned('other', { threadId: 'thread-2' }))
      await store.endWatch({ id: 'other' }, { reason: 'cancelled', now: now + 2 })
      const take = async (at: number, limit = 100) =>
        (await store.claimDeliveries({ ...claim, now: at, until: at + 1_000, limit })).map(({ id }) => id)
      assert.deepEqual(await take(now + 10, 2), ['watch:a', 'watch:b'])
      assert.deepEqual(await take(now + 10), ['watch:other'], 'the others of the thread are behind those')
      await store.deferDelivery({ id: 'watch:a', error: 'busy', retryAt: now + 5_000, now: now + 10 })
      assert.deepEqual(await take(now + 4_000), ['watch:other'], 'none overtakes the first, which is due later')
      await store.confirmDelivery({ id: 'watch:other', now: now + 4_000 })
      assert.equal(await store.nextDue(['agent-1'], []), now + 5_000)
      assert.deepEqual(await take(now + 5_000, 3), ['watch:a', 'watch:b', 'watch:c'])
      await store.confirmDelivery({ id: 'watch:a', now: now + 5_000 })
      assert.deepEqual(await take(now + 5_000), [])
      assert.deepEqual(await take(now + 6_001, 1), ['watch:b'], 'the claim of a process that is gone has ended')
      assert.deepEqual(await take(now + 6_001), [])
      await store.deferDelivery({ id: 'watch:b', error: 'refused', now: now + 6_001 })
      assert.deepEqual(await take(now + 6_001), ['watch:c', 'watch:d'])
      for (const id of ['watch:c', 'watch:d']) await store.confirmDelivery({ id, now: now + 6_001 })
      assert.equal(await store.nextDue(['agent-1'], []), undefined)
    },
  },
  {
    name: '[V1.24] claims that end without a report count: the third of a candidate is its last, the sixth of a message too',
    async run({ store: open }) {
      const store = await open()
      await store.registerWatch(planned('w', { exclusive: true }))
      await store.registerWatch(planned('later', { threadId: 'thread-2' }))
      const [seq] = (await add(store, inbound('a', { reply: { agentId: 'agent-1', threadId: 'thread-3' } }))) as [number]
      let at = now + 10
      for (const attempt of [1, 2, 3]) {
        const claimed = await store.claimCandidates({ ...claim, now: at, until: at + 1_000 })
        assert.deepEqual(claimed.map(({ watch, attempt: nth }) => [watch.id, nth]), [['w', attempt]])
        at += 1_000
      }
      const [next] = await store.claimCandidates({ ...claim, now: at, until: at + 1_000 })
      assert.equal(next?.watch.id, 'later', 'the later watch need not wait any more')
      const [failed] = (await store.listCandidates({ watchId: 'w', limit: 1 })).candidates
      assert.deepEqual([failed?.state, failed?.attempts, failed?.detail], ['failed', 3, 'claim_expired'])
      const take = () => store.claimInbounds({ channelIds: ['phone'], now: at, until: at, limit: 10 })
      for (let lost = 0; lost < 6; lost += 1) assert.deepEqual((await take()).map((one) => [one.lost, one.failed]), [[lost, undefined]])
      const [ended] = await take()
      assert.deepEqual([ended?.seq, ended?.failed, ended?.lastError], [seq, true, 'claim_expired'])
      assert.deepEqual(await take(), [])
      assert.equal(await store.nextDue([], ['phone']), undefined)
      assert.equal(await store.annotateInbound({ seq, categories: ['urgent'], now: at }), false)
      const replies = await store.claimReplies({ channelIds: ['phone'], now: at, until: at + 1_000, limit: 10 })
      assert.deepEqual(replies.map(({ inbound: answered }) => answered.seq), [seq], 'it is answered without categories')
    },
  },
  {
    name: '[V1.10] the end of an exclusive watch makes the later watches of its messages due',
    async run({ store: open }) {
      const store = await open()
      await store.registerWatch(planned('w', { exclusive: true }))
      await store.registerWatch(planned('later', { threadId: 'thread-2' }))
      await add(store, inbound('a'))
      assert.deepEqual((await store.claimCandidates(claim)).map(({ watch }) => watch.id), ['w'])
      assert.equal(await store.nextDue(['agent-1'], []), claim.until)
      await store.endWatch({ id: 'w' }, { reason: 'cancelled', now: now + 20 })
      const [next] = await store.claimCandidates({ ...claim, now: now + 20 })
      assert.equal(next?.watch.id, 'later')
    },
  },
  {
    name: '[V1.25] the messages that a watch considered are listed from its look-back to its end, with what became of each',
    async run({ store: open }) {
      const store = await open()
      await add(store, inbound('old', { now: now - 70_000 }))
      const [first] = (await add(store, inbound('first', { now: now - 30_000 }))) as [number]
      await store.registerWatch(planned('w', { channels: ['sms'] }))
      const [mail] = (await add(store, inbound('mail', { kind: 'email', channelId: 'work', now: now + 1 }))) as [number]
      await judge(store, match)
      await add(store, inbound('late', { now: now + hour }))
      const { considered, more } = await store.listConsidered({ watchId: 'w', limit: 10 })
      assert.deepEqual(considered.map(({ seq, candidate }) => [seq, candidate?.state]), [[first, 'matched'], [mail, undefined]])
      assert.equal(more, false)
      const page = await store.listConsidered({ watchId: 'w', limit: 1, after: 0 })
      assert.deepEqual([page.considered.map(({ seq }) => seq), page.more], [[first], true])
      assert.deepEqual(await store.listConsidered({ watchId: 'unknown', limit: 1 }), { considered: [], more: false })
      await store.registerWatch(planned('again', { now: now + 20 }))
      const again = await store.listConsidered({ watchId: 'again', limit: 10 })
      assert.deepEqual(again.considered.map(({ seq, taken }) => [seq, taken]).slice(0, 2), [[first, true], [mail, false]])
    },
  },
  {
    name: '[V1.27] ended watches and messages before a time are pruned, but none that an open watch considers or that is to be delivered',
    async run({ store: open }) {
      const store = await open()
      await store.registerWatch(planned('w'))
      const [seq] = (await add(store, inbound('a'))) as [number]
      await annotate(store, seq)
      await judge(store, match)
      const prune = (limit = 100) => store.pruneWatches({ before: now + hour, limit })
      assert.equal(await prune(), 0, 'its result is to be delivered')
      await store.claimDeliveries(claim)
      await store.confirmDelivery({ id: 'watch:w', now: now + 30 })
      await store.registerWatch(planned('open', { since: now + 5, threadId: 'thread-2', channels: ['email'] }))
      const [considered] = (await add(store, inbound('b', { now: now + 10 }), inbound('c', { now: now + 10 }))) as [number]
      await annotate(store, considered)
      assert.equal(await prune(1), 2)
      assert.equal(await store.getWatch({ id: 'w' }), null)
      assert.equal(await prune(), 0, 'an open watch considers the others')
      await store.endWatch({ id: 'open' }, { reason: 'cancelled', now: now + 40 })
      assert.equal(await prune(), 1, 'one is not annotated, and the end is to be delivered')
      const [asked] = (await add(store, inbound('d', { reply: { agentId: 'agent-1', threadId: 'thread-3' } }))) as [number]
      await annotate(store, asked)
      assert.equal(await prune(), 0, 'it is not answered')
      await store.forgetThreads(['thread-3'])
      assert.equal(await prune(), 1)
      await store.forgetWatch({ id: 'open', now: now + 50 })
      assert.equal(await store.getWatch({ id: 'open' }), null)
      assert.equal(await store.nextDue(['agent-1'], []), undefined)
    },
  },
  {
    name: '[V1.14] the watches of a deleted thread are removed; those of a thread that another resource gets are cancelled',
    async run({ store: open }) {
      const store = await open()
      await store.registerWatch(planned('w', { categories: ['urgent'] }))
      await store.registerWatch(planned('given', { threadId: 'thread-2', categories: ['urgent'] }))
      await store.forgetThreads(['thread-1'])
      assert.equal(await store.getWatch({ id: 'w' }), null)
      await store.giveThread('thread-2', 'resource-2')
      const given = await store.getWatch({ id: 'given' })
      assert.deepEqual([given?.resourceId, given?.reason], ['resource-2', 'cancelled'])
      assert.deepEqual(await store.expectedCategories('resource-1'), [])
      // The transfer is at the time of the store's clock.
      assert.deepEqual(await delivered(store, Number.MAX_SAFE_INTEGER - hour), [['watch:given', 'cancelled', undefined]])
    },
  },
  {
    name: '[V1.15] a resource has at most as many open watches as its limit; ended ones do not count',
    async run({ store: open }) {
      const store = await open()
      const limit = 2
      for (const id of ['a', 'b']) await store.registerWatch(planned(id, { limit }))
      await assert.rejects(store.registerWatch(planned('c', { limit })), { code: 'too_many_watches' })
      await store.endWatch({ id: 'a' }, { reason: 'cancelled', now })
      assert.equal((await store.registerWatch(planned('c', { limit }))).added, true)
      const all = await store.listWatches({ resourceId: 'resource-1', limit: 2 })
      assert.deepEqual([all.watches.map(({ id }) => id), all.more], [['a', 'b'], true])
      const open2 = await store.listWatches({ state: 'open', threadId: 'thread-1', limit: 10, after: 'a' })
      assert.deepEqual(open2.watches.map(({ id }) => id), ['b', 'c'])
    },
  },
  ...lookBackCases,
  ...registrationCases,
  ...idCases,
  ...annotationCases,
  ...takenCases,
  ...replyCases,
]
