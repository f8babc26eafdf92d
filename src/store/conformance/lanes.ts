import assert from 'node:assert/strict'
import type { LaneWrite } from '../contract.ts'
import type { StoreCase } from './case.ts'
import { accept, acceptOne, ids, persisted, scope, send, start } from './fixture.ts'

const lane = (cacheKey: string, mode: LaneWrite['mode'] = 'snapshot', id = 'browser'): { lane: LaneWrite } => ({ lane: { id, cacheKey, mode } })

export const laneCases: StoreCase[] = [
  {
    name: '[L1.1] a lane that says the same again in the same mode is skipped, and leaves no trace',
    async run({ store: open }) {
      const store = await open()
      await start(store)
      const answers = await accept(
        store,
        send('s1', lane('k1')),
        send('s2', lane('k1')),
        send('s3', lane('k1', 'delta')),
        send('s4', lane('k2', 'delta')),
        send('s5', lane('k2', 'delta', 'other')),
        send('s6', lane('k1')),
      )
      assert.deepEqual(answers.map((answer) => [answer.route, answer.lane?.version, answer.lane?.lastSignalId, answer.lane?.lastSnapshotId]), [
        ['deliver', 1, 's1', 's1'],
        ['skipped', 1, 's1', 's1'],
        ['deliver', 2, 's3', 's1'],
        ['deliver', 3, 's4', 's1'],
        ['deliver', 1, 's5', undefined],
        ['deliver', 4, 's6', 's6'],
      ])
      assert.deepEqual([answers[1]?.state, answers[1]?.runId], ['cancelled', undefined])
      assert.equal(await store.getSignal(scope, 's2'), null)
      assert.deepEqual(ids(await store.listSignals(scope)), ['a', 's1', 's3', 's4', 's5', 's6'])
    },
  },
  {
    name: '[L1.1] of twenty producers that say the same at once, one is stored',
    async run({ store: open }) {
      const store = await open()
      await start(store)
      const sends = Array.from({ length: 20 }, (_, index) => send(`s${index}`, lane('k1')))
      const answers = await Promise.all(sends.map((one) => acceptOne(store, one)))
      assert.equal(answers.filter((answer) => answer.route === 'deliver').length, 1)
      assert.equal(answers.filter((answer) => answer.route === 'skipped').length, 19)
      assert.deepEqual(new Set(answers.map((answer) => answer.lane?.version)), new Set([1]))
    },
  },
  {
    name: '[L1.1] what is discarded does not advance the lane',
    async run({ store: open }) {
      const store = await open()
      await acceptOne(store, send('s1', { ...persisted, ...lane('k1') }))
      const dropped = await acceptOne(store, send('s2', { ifIdle: { behavior: 'discard' }, ...lane('k2') }))
      assert.equal(dropped.route, 'discard')
      const same = await acceptOne(store, send('s3', { ...persisted, ...lane('k1') }))
      const other = await acceptOne(store, send('s4', { ...persisted, ...lane('k2') }))
      assert.deepEqual([same.route, other.route, other.lane?.version], ['skipped', 'persist', 2])
    },
  },
  {
    name: '[L1.1] the same signal again says duplicate and leaves the lane; lanes of two threads don\'t touch',
    async run(harness) {
      let store = await harness.store()
      const first = send('s1', { ...persisted, ...lane('k1') })
      await acceptOne(store, first)
      await acceptOne(store, send('s2', { ...persisted, ...lane('k2') }))
      if (harness.reopen) store = await harness.reopen(store)
      const again = await acceptOne(store, first)
      assert.deepEqual([again.duplicate, again.lane?.version, again.lane?.cacheKey], [true, 2, 'k2'])
      const elsewhere = await acceptOne(store, send('s1', { ...persisted, ...lane('k2'), threadId: 'thread-2' }))
      assert.deepEqual([elsewhere.route, elsewhere.lane?.version], ['persist', 1])
    },
  },
]
