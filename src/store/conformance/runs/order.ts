import assert from 'node:assert/strict'
import {
  accept, acceptOne, begin, commit, finish, ids, persisted, queued, row, rowIds, scope, send, signalRow, start, states, status, unclaimed,
  wide, windows, type StoreCase,
} from '../fixture.ts'

export const orderCases: StoreCase[] = [
  {
    name: '[D1.1] order is acceptance order, not time',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      const at = (id: string, time: number) => send(id, { now: time, rows: [{ ...signalRow(id), createdAt: new Date(time) }] })
      await accept(store, at('e', 5), at('d', 5), at('c', 5), at('late', 9), at('early', 1))
      const { taken } = await commit(store, run, { drain: true })
      assert.deepEqual(ids(taken), ['e', 'd', 'c', 'late', 'early'])
      assert.deepEqual(await rowIds(store), ['a', 'e', 'd', 'c', 'late', 'early'])
      assert.deepEqual(ids(await store.listSignals(scope)), ['a', 'e', 'd', 'c', 'late', 'early'])
    },
  },
  {
    name: '[D1.1] many concurrent sends are stored in the order of their calls',
    async run({ store: open }) {
      const store = await open()
      const names = Array.from({ length: 300 }, (_, index) => `s${index}`)
      const answers = await Promise.all(names.map((id) => acceptOne(store, send(id, persisted))))
      assert.deepEqual(await rowIds(store), names)
      assert.deepEqual(answers.flatMap((answer) => answer.rows.map(({ seq }) => seq)), names.map((_, index) => index + 1))
    },
  },
  {
    name: '[D1.1] a row that is persisted beside a run can be read at once, is not in its window, and follows it in history when it ended',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      const [note] = await accept(
        store, send('note-1', persisted), send('note-2', { ...persisted, rows: [signalRow('note-2', 'reactive')] }),
      )
      assert.deepEqual([note?.route, note?.state, note?.runId], ['persist', 'consumed', undefined])
      assert.deepEqual(await rowIds(store), ['a', 'note-1', 'note-2'])
      await store.saveRows(scope, [row('saved')])
      const { rows, taken } = await commit(store, run, { rows: [row('said', 'assistant')], drain: true })
      assert.deepEqual([rows[0]?.seq, taken], [2, []])
      assert.deepEqual(await rowIds(store), ['a', 'said', 'note-1', 'note-2', 'saved'])

      await store.resign('p1')
      const claimed = await store.claim(scope.threadId, 'p2')
      assert.ok(claimed)
      const again = await begin(store, claimed.fence)
      assert.deepEqual(ids(again.rows), ['a', 'said'], 'nor after a takeover')
      await commit(store, again, { step: 1, rows: [row('more', 'assistant')], ...finish })
      const after = await store.listRows(scope, { limit: 10 })
      assert.deepEqual(
        after.rows.map(({ id, seq }) => [id, seq]), [['a', 1], ['said', 2], ['more', 3], ['note-1', 4], ['note-2', 5], ['saved', 6]],
      )
      assert.deepEqual((await store.getSignal(scope, 'note-1'))?.rows.map(({ seq }) => seq), [4])

      const next = await start(store, 'b')
      assert.deepEqual(ids(next.rows), ['a', 'said', 'more', 'note-1', 'note-2', 'saved', 'b'])
      await commit(store, next, finish)
      await acceptOne(store, send('idle', persisted))
      assert.deepEqual((await rowIds(store)).slice(-2), ['b', 'idle'])
    },
  },
  {
    name: '[D1.1] a row that is persisted beside a run is in the window of the next run, also under the same lease',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      await accept(store, send('note', persisted), send('q', queued))
      await commit(store, run, { rows: [row('said', 'assistant')], ...finish })
      await acceptOne(store, send('between', persisted))
      const next = await store.beginRun(run.fence, windows(wide))
      assert.deepEqual(ids(next?.rows ?? []), ['a', 'said', 'note', 'q'])
      assert.deepEqual(await rowIds(store), ['a', 'said', 'note', 'q', 'between'])
    },
  },
  {
    name: '[R4.1] queued signals get one run each, in their order, after the active one',
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
    name: '[R4.1] signals that may enter a run are answered before queued ones',
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
    name: '[R4.1] a queued signal that wakes the thread starts its own run, and later signals for that run enter after it',
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
    name: '[R4.1] a wake takes signals that were pending already, and queued signals follow',
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
    name: '[R4.1] queued signals of an idle thread without an owner get one run each too',
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
    name: '[R4.1] queued signals can be reordered and cancelled',
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
      assert.deepEqual(
        await states(store), { a: 'consumed', q1: 'consumed', q2: 'cancelled', q3: 'consumed', q4: 'consumed', b: 'consumed' },
      )
    },
  },
  {
    name: '[R8.1] signals are cancelled only on the thread that is meant, and not on a later one with its id',
    async run({ store: open }) {
      const store = await open()
      const { fence } = await start(store)
      await accept(store, send('q', queued))
      assert.deepEqual(await store.cancelSignals(scope, ['q'], { epoch: fence.epoch - 1 }), [], 'another epoch')
      assert.deepEqual(await store.cancelSignals(scope, ['q'], { epoch: fence.epoch + 1 }), [], 'another epoch')
      assert.deepEqual(await store.cancelSignals(scope, ['q'], { epoch: fence.epoch }), ['q'])
      await store.deleteThread(scope)
      const later = await start(store)
      await accept(store, send('q', queued))
      assert.deepEqual(await store.cancelSignals(scope, ['q'], { since: fence.epoch }), [], 'an earlier thread is meant')
      assert.deepEqual(await store.cancelSignals(scope, ['q'], { epoch: fence.epoch }), [], 'an earlier thread is meant')
      await commit(store, later, { ...finish, drain: false })
      assert.equal((await store.getSignal(scope, 'q'))?.state, 'pending')
      const next = await begin(store, later.fence)
      await accept(store, send('r', queued))
      await commit(store, next, finish)
      assert.deepEqual(await store.cancelSignals(scope, ['r'], { since: later.fence.epoch }), ['r'], 'it existed at that epoch')
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
