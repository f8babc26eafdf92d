import assert from 'node:assert/strict'
import type { ClaimedCandidate } from '../contract/watches.ts'
import { add, annotate, candidates, claim, delivered, inbound, judge, match, now, planned, settle } from './watch-fixture.ts'
import type { WatchCase } from './watches.ts'

/** Messages and verdicts that several watches or senders compete for. Part of `watchConformance`. */
export const takenCases: WatchCase[] = [
  {
    name: '[V1.10] an earlier watch of a thread gets a message that ended a later one, also if it is annotated after that',
    async run({ store: open }) {
      const store = await open()
      await store.registerWatch(planned('earlier', { categories: ['auth'] }))
      await store.registerWatch(planned('later'))
      const [seq] = (await add(store, inbound('code'))) as [number]
      await judge(store, match)
      await annotate(store, seq, 'auth')
      const { considered } = await store.listConsidered({ watchId: 'earlier', limit: 10 })
      assert.deepEqual(considered.map(({ taken, candidate }) => [taken, candidate?.state]), [[false, 'pending']])
      await judge(store, match)
      for (const id of ['earlier', 'later']) assert.equal((await store.getWatch({ id }))?.reason, 'matched')
    },
  },
  {
    name: '[V1.10] a watch that looks back waits for an earlier `once` watch of its thread, and does not get what that matched',
    async run({ store: open }) {
      for (const verdict of [match, { action: 'reject' }] as const) {
        const store = await open()
        await store.registerWatch(planned('first'))
        const [seq] = (await add(store, inbound('code'))) as [number]
        const [claimed] = await store.claimCandidates(claim)
        await store.registerWatch(planned('second'))
        await store.registerWatch(planned('elsewhere', { threadId: 'thread-2' }))
        assert.deepEqual((await store.claimCandidates(claim)).map(({ watch }) => watch.id), ['elsewhere'])
        assert.equal(await settle(store, claimed as ClaimedCandidate, verdict), true)
        const second = await store.claimCandidates({ ...claim, now: now + 20 })
        const isTaken = verdict === match
        assert.deepEqual(second.map(({ watch }) => watch.id), isTaken ? [] : ['second'])
        assert.deepEqual(await candidates(store, 'second'), [[seq, isTaken ? 'consumed' : 'claimed']])
        await store.addInbounds([inbound('new')])
        assert.equal((await candidates(store, 'second')).length, 2)
        await store.close()
      }
    },
  },
  {
    name: '[V1.10] a later exclusive watch takes a message from no earlier one, in whichever order they are judged',
    async run({ store: open }) {
      for (const isLaterFirst of [true, false]) {
        const store = await open()
        for (const [id, exclusive] of [['a', false], ['b', true], ['c', false]] as const)
          await store.registerWatch(planned(id, { threadId: id, exclusive }))
        await add(store, inbound('code'))
        const claimed = await store.claimCandidates(claim)
        assert.deepEqual(claimed.map(({ watch }) => watch.id), ['a', 'b'])
        for (const one of isLaterFirst ? claimed.toReversed() : claimed) assert.equal(await settle(store, one, match), true)
        const states = await Promise.all(['a', 'b', 'c'].map((id) => candidates(store, id)))
        assert.deepEqual(states.map(([one]) => one?.[1]), ['matched', 'matched', 'consumed'])
        await store.close()
      }
    },
  },
  {
    name: '[V1.9] messages that policies deny, or whose judge fails, use nothing of the share of their sender',
    async run({ store: open }) {
      const store = await open()
      await store.registerWatch(planned('w', { maxEvaluations: 5, mode: 'continuous' }))
      for (let nth = 0; nth < 8; nth += 1) {
        await add(store, inbound(`denied-${nth}`))
        await judge(store, { action: 'deny', policies: 'no-links' })
      }
      await add(store, inbound('failing'))
      for (let attempt = 1; attempt <= 3; attempt += 1) {
        const [failing] = await store.claimCandidates(claim)
        const release = { watchId: 'w', seq: failing?.inbound.seq ?? 0, attempt, error: 'down', retryAt: now, now }
        assert.equal(await store.releaseCandidate(release), true)
      }
      const seqs = await add(store, ...Array.from({ length: 6 }, (_, nth) => inbound(`next-${nth}`)))
      const left = (await candidates(store, 'w')).filter(([, state]) => state === 'pending').map(([seq]) => seq)
      assert.deepEqual(left, seqs.slice(0, 5))
      assert.equal((await store.getWatch({ id: 'w' }))?.skipped, 1)
    },
  },
  {
    name: '[V1.41] a delivery of one watch is not taken for that of another, whatever their ids are',
    async run({ store: open }) {
      const store = await open()
      await store.registerWatch(planned('kept', { channels: ['sms'], mode: 'continuous' }))
      const [seq] = (await add(store, inbound('a'))) as [number]
      for (const id of [`kept:${seq}`, `${seq}:kept`, `hit:${seq}:kept`]) {
        await store.registerWatch(planned(id, { resourceId: 'resource-2', threadId: 'thread-2' }))
        await store.endWatch({ id }, { reason: 'cancelled', now })
      }
      await judge(store, match)
      const ids = (await delivered(store)).map(([id]) => id)
      assert.deepEqual([ids.length, new Set(ids).size], [4, 4])
    },
  },
]
