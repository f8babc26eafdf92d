import assert from 'node:assert/strict'
import type { LaneWrite } from '../../contract/threads.ts'
import {
  accept, acceptInParts, acceptOne, begin, commit, finish, ids, persisted, queued, rejectsWith, row, rowIds, scope, send, signalRow, start,
  tick, type StoreCase,
} from '../fixture.ts'

const lane = (cacheKey: string, mode: LaneWrite['mode'] = 'snapshot', id = 'browser'): { lane: LaneWrite } => ({
  lane: { id, cacheKey, mode },
})

export const laneCases: StoreCase[] = [
  {
    name: '[L1.1] a state that the lane has already, in the same mode, is skipped and not stored',
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
      assert.deepEqual(answers.map(
        (answer) => [answer.route, answer.lane?.version, answer.lane?.lastSignalId, answer.lane?.lastSnapshotId],
      ), [
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
    name: '[L1.1] of twenty concurrent signals with the same state one is stored',
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
    name: '[L1.1] a discarded signal does not advance the lane',
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
    name: '[L1.1] a repeated signal is a duplicate and does not advance the lane; lanes of two threads are separate',
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
  {
    name: '[L1.2] twenty concurrent lanes are all stored, and described in the metadata of the thread, which no caller can overwrite',
    async run(harness) {
      let store = await harness.store()
      const before = (await store.createThread({ id: scope.threadId, resourceId: scope.resourceId, metadata: { a: 1 }, now: 1 })).thread
      const sends = Array.from(
        { length: 20 }, (_, index) => send(`s${index}`, { ...persisted, ...lane(`k${index}`, 'snapshot', `lane-${index}`) }),
      )
      await Promise.all(sends.map((one) => acceptOne(store, one)))
      if (harness.reopen) store = await harness.reopen(store)
      assert.equal((await store.listLanes(scope, { limit: 100 })).length, 20)
      assert.deepEqual(ids(await store.listLanes(scope, { limit: 2, after: 'lane-10' })), ['lane-11', 'lane-12'])
      const expected = Object.fromEntries(sends.map(({ id, lane: told }) => [
        told?.id, { currentCacheKey: told?.cacheKey, currentMode: 'snapshot', version: 1, lastSignalId: id, lastSnapshotSignalId: id },
      ]))
      const thread = await store.patchThread(scope, { metadata: { ...before.metadata, b: 2, heed: { stateSignals: {} } } })
      assert.deepEqual(thread.metadata, { a: 1, b: 2, heed: { stateSignals: expected } })
      assert.deepEqual((await store.getThread(scope))?.metadata, thread.metadata)
      assert.deepEqual((await store.listThreads({ limit: 1 })).threads[0]?.metadata, thread.metadata)
    },
  },
  {
    name: '[L1.3] a lane is read as its last snapshot and all deltas since, in order, pending or stored; its signals are listed by version',
    async run(harness) {
      let store = await harness.store()
      await acceptOne(store, send('old', { ...persisted, ...lane('k0') }))
      await acceptOne(store, send('snap', { ...persisted, ...lane('k1') }))
      const run = await start(store)
      await commit(store, run, { rows: [signalRow('own', 'state')], lane: { rowId: 'own', ...lane('k2', 'delta').lane } })
      await acceptOne(store, send('beside', { ...persisted, ...lane('k3', 'delta') }))
      await acceptOne(store, send('waits', lane('k4', 'delta')))
      if (harness.reopen) store = await harness.reopen(store)
      const read = await store.readLane(scope, 'browser')
      assert.deepEqual([read?.version, read?.lastSignalId, read?.lastSnapshotId, read?.left], [5, 'waits', 'snap', 0])
      assert.deepEqual(read?.signals.map((signal) => [signal.version, signal.mode, signal.row.id, signal.waiting]), [
        [2, 'snapshot', 'snap', false], [3, 'delta', 'own', false], [4, 'delta', 'beside', true], [5, 'delta', 'waits', true],
      ])
      const placed = await store.readLane(scope, 'browser', { placed: true })
      assert.deepEqual(placed?.signals.map((signal) => signal.row.id), ['snap', 'own'])
      const first = await store.listLaneSignals(scope, 'browser', { limit: 2 })
      assert.deepEqual([first.signals.map((signal) => signal.row.id), first.more], [['waits', 'beside'], true])
      const rest = await store.listLaneSignals(scope, 'browser', { limit: 10, before: 4 })
      assert.deepEqual([rest.signals.map((signal) => signal.row.id), rest.more], [['own', 'snap', 'old'], false])
      assert.equal(await store.readLane(scope, 'none'), null)
    },
  },
  {
    name: '[L1.3] a long chain is read without its middle, and reports how much is left out',
    async run({ store: open }) {
      const store = await open()
      await acceptOne(store, send('snap', { ...persisted, ...lane('k') }))
      const deltas = Array.from({ length: 1_200 }, (_, index) => send(`d${index}`, { ...persisted, ...lane(`k${index}`, 'delta') }))
      await acceptInParts(store, deltas)
      const read = await store.readLane(scope, 'browser')
      assert.deepEqual(
        [read?.signals.length, read?.left, read?.signals[0]?.row.id, read?.signals[1]?.row.id, read?.signals.at(-1)?.row.id],
        [1_000, 201, 'snap', 'd201', 'd1199'],
      )
    },
  },
  {
    name: '[L1.4] a cancelled, rejected or deleted signal is removed from its lane, and its state may be sent again; no version is reused',
    async run({ store: open }) {
      const store = await open()
      const again = async (id: string, key: string) => (await acceptOne(store, send(id, { ...persisted, ...lane(key) }))).lane?.version
      await acceptOne(store, send('s1', { ...persisted, ...lane('k1') }))
      const run = await start(store)
      await acceptOne(store, send('s2', { ...queued, ...lane('k2') }))
      assert.deepEqual(await store.cancelSignals(scope, ['s2']), ['s2'])
      const cancelled = await store.readLane(scope, 'browser')
      assert.deepEqual([cancelled?.version, cancelled?.cacheKey, cancelled?.signals.map((signal) => signal.row.id)], [1, 'k1', ['s1']])

      await commit(store, run, { rows: [signalRow('s3', 'state')], lane: { rowId: 's3', ...lane('k2').lane } })
      await commit(store, run, { end: { status: 'rejected' } })
      const rejected = await store.listLaneSignals(scope, 'browser', { limit: 10 })
      assert.deepEqual(rejected.signals.map((signal) => signal.row.id), ['s1'])
      assert.equal(await again('s4', 'k2'), 4)

      await store.deleteMessages(scope, ['s4'])
      assert.equal((await store.readLane(scope, 'browser'))?.lastSnapshotId, 's1')
      assert.equal(await again('s5', 'k2'), 5)
      await store.deleteMessages(scope)
      assert.equal(await store.readLane(scope, 'browser'), null)
      assert.deepEqual(await store.listLanes(scope, { limit: 10 }), [])
      assert.deepEqual((await store.getThread(scope))?.metadata, {})
      assert.equal(await again('s6', 'k2'), 6)
    },
  },
  {
    name: '[L1.4] a rejected run removes only unsealed signals from a lane; pending signals stay in it',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store, 'a', lane('k1'))
      await acceptOne(store, send('b', lane('k2')))
      await commit(store, run, { rows: [row('said', 'assistant')], drain: true })
      await acceptOne(store, send('c', { ...queued, ...lane('k3', 'delta') }))
      const { more } = await commit(store, run, { step: 1, end: { status: 'rejected' } })
      assert.equal(more, true)
      const read = await store.readLane(scope, 'browser')
      // A delta of a rejected snapshot does not apply to the one before it.
      assert.deepEqual(read?.signals.map((signal) => [signal.version, signal.row.id, signal.waiting]), [[3, 'c', true]])
      const next = await begin(store, run.fence)
      assert.deepEqual(
        next.lanes.map(({ id, lastSignalId, lastSnapshotId }) => [id, lastSignalId, lastSnapshotId]), [['browser', 'c', undefined]],
      )
      await commit(store, next, finish)
      assert.deepEqual((await store.readLane(scope, 'browser'))?.signals.map((signal) => signal.waiting), [false])
    },
  },
  {
    name: '[L1.11] deltas of a removed snapshot never apply to the one before it, in any order of removal; then the lane is as before',
    async run(harness) {
      let store = await harness.store()
      const told = async (...kinds: string[]) => {
        for (const id of kinds) await acceptOne(store, send(id, { ...persisted, ...lane(id, id.startsWith('d') ? 'delta' : 'snapshot') }))
      }
      const read = async () => {
        const found = await store.readLane(scope, 'browser')
        return [found?.signals.map(({ row: { id } }) => id).join(' '), found?.lastSnapshotId]
      }
      const history = async () =>
        (await store.listLaneSignals(scope, 'browser', { limit: 10 })).signals.map(({ row: { id } }) => id).join(' ')
      await told('s1', 'd2', 's3', 'd4', 'd5')
      await store.deleteMessages(scope, ['s3'])
      assert.deepEqual(await read(), ['d4 d5', undefined])
      assert.equal(await history(), 'd5 d4 d2 s1')
      for (const [limit, more] of [[2, true], [4, false]] as const) assert.equal(
        (await store.listLaneSignals(scope, 'browser', { limit })).more, more,
      )
      assert.deepEqual(
        (await store.listLaneSignals(scope, 'browser', { before: 4, limit: 1 })).signals.map(({ row: { id } }) => id), ['d2'],
      )
      if (harness.reopen) store = await harness.reopen(store)
      const copy = await store.cloneThread(scope, { id: 'copy', metadata: {}, now: tick() })
      assert.deepEqual((await store.readLane({ threadId: copy.id }, 'browser'))?.signals.map(({ version }) => version), [4, 5])

      await store.deleteMessages(scope, ['d5'])
      assert.deepEqual(await read(), ['d4', undefined])
      await told('d6', 's7', 'd8')
      assert.deepEqual(await read(), ['s7 d8', 's7'])
      await store.deleteMessages(scope, ['d4', 's7', 'd6'])
      assert.deepEqual(await read(), ['d8', undefined])
      await store.deleteMessages(scope, ['d8'])
      assert.deepEqual(await read(), ['s1 d2', 's1'])
      await told('s9', 'd10', 's11')
      await store.deleteMessages(scope, ['s9', 's11', 'd10'])
      assert.deepEqual(await read(), ['s1 d2', 's1'])
      await told('s12', 'd13')
      await store.deleteMessages(scope, ['s12', 's1', 'd2'])
      assert.deepEqual(await read(), ['d13', undefined])
      await store.deleteMessages(scope)
      assert.equal(await store.readLane(scope, 'browser'), null)
    },
  },
  {
    name: '[L1.4] input that a processor removes is removed from its lane; a row that is committed twice advances it once',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store, 'a', lane('k1'))
      await commit(store, run, { removed: ['a'] })
      assert.equal(await store.readLane(scope, 'browser'), null)
      const own = { rows: [signalRow('own', 'state')], lane: { rowId: 'own', ...lane('k1').lane } }
      await commit(store, run, own)
      await commit(store, run, own)
      assert.equal((await store.readLane(scope, 'browser'))?.version, 2)
    },
  },
  {
    name: '[X1.1] the lanes of another resource are rejected',
    async run({ store: open }) {
      const store = await open()
      await acceptOne(store, send('s1', { ...persisted, ...lane('k1') }))
      const foreign = { ...scope, resourceId: 'resource-2' }
      await rejectsWith('thread_forbidden', store.listLanes(foreign, { limit: 1 }))
      await rejectsWith('thread_forbidden', store.readLane(foreign, 'browser'))
      await rejectsWith('thread_forbidden', store.listLaneSignals(foreign, 'browser', { limit: 1 }))
    },
  },
  {
    name: '[L1.3] a copy of a thread has the lanes of the copied signals, and they change independently',
    async run({ store: open }) {
      const store = await open()
      await acceptOne(store, send('s1', { ...persisted, ...lane('k1') }))
      await acceptOne(store, send('s2', { ...persisted, ...lane('k2', 'delta') }))
      await start(store)
      await acceptOne(store, send('s3', { ...queued, ...lane('k3', 'delta') }))
      const copy = await store.cloneThread(
        scope, { id: 'copy', title: '', metadata: (await store.getThread(scope))?.metadata ?? {}, now: 1 },
      )
      const markOf = async (of: string) => /~\w+$/.exec((await rowIds(store, of))[0] ?? '')?.[0] ?? ''
      const mark = await markOf('copy')
      const tracked = {
        currentCacheKey: 'k2', currentMode: 'delta', version: 2, lastSignalId: `s2${mark}`, lastSnapshotSignalId: `s1${mark}`,
      }
      assert.deepEqual(copy.metadata.heed, { stateSignals: { browser: tracked } })
      const read = await store.readLane({ threadId: 'copy' }, 'browser')
      assert.deepEqual(read?.signals.map((signal) => signal.row.id), [`s1${mark}`, `s2${mark}`])
      const next = await acceptOne(store, send('s4', { ...persisted, ...lane('k4'), threadId: 'copy' }))
      assert.equal(next.lane?.version, 4)
      assert.equal((await store.readLane(scope, 'browser'))?.lastSignalId, 's3')
      const some = await store.cloneThread(scope, { id: 'some', title: '', metadata: {}, messageIds: ['s1'], now: 1 })
      const first = `s1${await markOf('some')}`
      assert.deepEqual(some.metadata.heed, { stateSignals: {
        browser: { currentCacheKey: 'k1', currentMode: 'snapshot', version: 1, lastSignalId: first, lastSnapshotSignalId: first },
      } })
    },
  },
]
