import assert from 'node:assert/strict'
import type { StoreCase } from '../case.ts'
import { accept, acceptOne, begin, commit, finish, ids, queued, scope, send, signalRow, start, states, status, unclaimed } from '../fixture.ts'

export const queueCases: StoreCase[] = [
  {
    name: '[R4.1] queued rows get one run each, in their order, after the active one',
    async run({ store: open }) {
      const store = await open()
      let run = await start(store)
      await accept(store, send('q1', queued), send('q2', queued), send('q3', queued))
      assert.deepEqual((await commit(store, run, finish)).taken, [], 'they don\'t enter it')
      for (const id of ['q1', 'q2', 'q3']) {
        run = await begin(store, run.fence)
        assert.deepEqual([run.run.runId, ids(run.taken)], [`run-of-${id}`, [id]])
        assert.deepEqual((await commit(store, run, finish)).more, id !== 'q3')
      }
      assert.equal(await status(store), 'idle')
    },
  },
  {
    name: '[R4.1] what was meant to enter a run is answered before what is queued',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      await accept(store, send('q', queued), send('b'))
      await commit(store, run, { end: { status: 'finished' } })
      const next = await begin(store, run.fence)
      assert.deepEqual(ids(next.taken), ['b'])
      await commit(store, next, finish)
      assert.deepEqual(ids((await begin(store, run.fence)).taken), ['q'])
    },
  },
  {
    name: '[R4.1] a queued row that wakes the thread starts its own run, and what comes for that run enters it behind',
    async run({ store: open }) {
      const store = await open()
      const { fence, runId } = await acceptOne(store, send('q', queued))
      const behind = await acceptOne(store, send('b'))
      await acceptOne(store, send('q2', queued))
      assert.ok(fence)
      assert.deepEqual([runId, behind.runId], ['run-of-q', 'run-of-q'])
      const run = await begin(store, fence)
      assert.deepEqual([run.run.runId, ids(run.taken)], ['run-of-q', ['q', 'b']])
      await commit(store, run, finish)
      assert.deepEqual(ids((await begin(store, fence)).taken), ['q2'])
    },
  },
  {
    name: '[R4.1] a wake takes along what waited already, and what is queued comes after that',
    async run({ store: open }) {
      const store = await open()
      for (const [id, mode, answered] of [['b', 'now', ['a', 'b']], ['q', 'queue', ['a']]] as const) {
        const of = { threadId: `woken-by-${id}` }
        await acceptOne(store, send('a', { ...of, ...unclaimed }))
        const woken = await acceptOne(store, send(id, { ...of, mode }))
        assert.equal(woken.runId, id === 'b' ? 'run-of-a' : 'run-of-q')
        assert.ok(woken.fence)
        const run = await begin(store, woken.fence)
        assert.deepEqual([run.run.runId, ids(run.taken)], ['run-of-a', answered])
        assert.equal((await commit(store, run, finish)).more, id === 'q')
      }
    },
  },
  {
    name: '[R4.1] queued rows of an idle thread that nobody claimed get one run each too',
    async run({ store: open }) {
      const store = await open()
      await accept(store, send('q1', { ...queued, ...unclaimed }), send('q2', { ...queued, ...unclaimed }))
      const claimed = await store.claim(scope.threadId, 'p1')
      assert.ok(claimed)
      const run = await begin(store, claimed.fence)
      assert.deepEqual(ids(run.taken), ['q1'])
      await commit(store, run, finish)
      assert.deepEqual(ids((await begin(store, claimed.fence)).taken), ['q2'])
    },
  },
  {
    name: '[R4.1] the queue can be put in another order, and rows can be cancelled while they wait',
    async run({ store: open }) {
      const store = await open()
      let run = await start(store)
      await accept(store, ...['q1', 'q2', 'q3', 'q4'].map((id) => send(id, queued)), send('b'))
      assert.deepEqual(await store.reorderSignals(scope, ['q3', 'a', 'q1', 'b', 'unknown']), ['q3', 'q1', 'q2', 'q4'])
      assert.deepEqual(await store.cancelSignals(scope, ['q2', 'a', 'unknown']), ['q2'])
      assert.deepEqual(await store.cancelSignals(scope, ['q2']), [])
      assert.equal((await store.getSignal(scope, 'q2'))?.state, 'cancelled')
      await commit(store, run, { drain: true })
      await commit(store, run, { step: 1, ...finish })
      const order: string[] = []
      for (let more = true; more;) {
        run = await begin(store, run.fence)
        order.push(...ids(run.taken))
        ;({ more } = await commit(store, run, finish))
      }
      assert.deepEqual(order, ['q3', 'q1', 'q4'])
      assert.deepEqual(await states(store), { a: 'consumed', q1: 'consumed', q2: 'cancelled', q3: 'consumed', q4: 'consumed', b: 'consumed' })
    },
  },
  {
    name: '[R4.1] a message for another agent than the active one gets a run of that agent',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      const foreign = await acceptOne(store, send('b', { agentId: 'agent-2', rows: [signalRow('b')] }))
      assert.deepEqual([foreign.route, foreign.runId], ['queue', 'run-of-b'])
      await commit(store, run, finish)
      const next = await begin(store, run.fence)
      assert.deepEqual([next.run.agentId, ids(next.taken)], ['agent-2', ['b']])
      assert.equal((await acceptOne(store, send('c', { agentId: 'agent-2' }))).route, 'deliver')
      assert.equal((await acceptOne(store, send('d'))).route, 'queue')
    },
  },
]
