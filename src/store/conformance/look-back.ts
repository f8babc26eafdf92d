import assert from 'node:assert/strict'
import { add, annotate, candidates, hour, inbound, now, planned } from './watch-fixture.ts'
import type { WatchCase } from './watches.ts'

/** Which messages a watch considers. Part of `watchConformance`. */
export const lookBackCases: WatchCase[] = [
  {
    name: '[V1.28] a message that was stored before the look-back is no candidate, also if it is annotated after the registration',
    async run({ store: open }) {
      const store = await open()
      const both = [inbound('old', { now: now - 70_000 }), inbound('recent', { now: now - 30_000 })]
      const [old, recent] = (await add(store, ...both)) as [number, number]
      await store.registerWatch(planned('w', { categories: ['auth'] }))
      for (const seq of [old, recent]) await annotate(store, seq, 'auth')
      assert.deepEqual(await candidates(store, 'w'), [[recent, 'pending']])
    },
  },
  {
    name: '[V1.28] a message that is stored after the registration is considered, though the clock was set back before the look-back',
    async run({ store: open }) {
      const store = await open()
      await add(store, inbound('old', { now: now - 70_000 }))
      await store.registerWatch(planned('w', { categories: ['auth'] }))
      const [later] = (await add(store, inbound('later', { now: now - hour }))) as [number]
      await annotate(store, later, 'auth')
      assert.deepEqual(await candidates(store, 'w'), [[later, 'pending']])
      const { considered } = await store.listConsidered({ watchId: 'w', limit: 10 })
      assert.deepEqual(considered.map(({ seq }) => seq), [later])
      const page = await store.listConsidered({ watchId: 'w', limit: 10, after: later })
      assert.deepEqual(page.considered, [])
      const [other] = (await add(store, inbound('other', { now: now - hour, kind: 'email', channelId: 'work' }))) as [number]
      await annotate(store, other)
      await store.pruneWatches({ before: now, limit: 10 })
      const after = await store.listConsidered({ watchId: 'w', limit: 10 })
      assert.deepEqual(after.considered.map(({ seq }) => seq), [later, other], 'what an open watch considers is kept')
    },
  },
  {
    name: '[V1.28] what a watch considered ends with the watch, also if the clock is set back then',
    async run({ store: open }) {
      const store = await open()
      await store.registerWatch(planned('w', { channels: ['email'] }))
      const [during] = (await add(store, inbound('during', { now: now + 50 }))) as [number]
      await store.endWatch({ id: 'w' }, { reason: 'cancelled', now: now + 10 })
      await add(store, inbound('after', { now: now + 5 }))
      const { considered } = await store.listConsidered({ watchId: 'w', limit: 10 })
      assert.deepEqual(considered.map(({ seq }) => seq), [during])
    },
  },
  {
    name: '[V1.29] a look-back finds a message behind any number of others, also of its own channel, and counts what it leaves out',
    async run({ store: open }) {
      const store = await open()
      const sender = { address: '+15550009', verified: true }
      const [code] = (await add(store, inbound('code', { sender, now: now - 40_000 }))) as [number]
      const seqs: number[] = []
      for (let from = 0; from < 10_050; from += 150) {
        seqs.push(...(await add(store, ...Array.from({ length: 150 }, (_, nth) => inbound(`flood-${from + nth}`, { now: now - 30_000 })))))
      }
      const [first] = seqs
      const { watch } = await store.registerWatch(planned('w', { channels: ['sms'], maxEvaluations: 20 }))
      const found = await candidates(store, 'w')
      assert.deepEqual(found.map(([seq]) => seq), [code, first, ...[1, 2, 3, 4].map((nth) => (first as number) + nth)])
      assert.equal(watch.skipped, 10_045)
    },
  },
]
