import assert from 'node:assert/strict'
import type { StoreCase } from '../case.ts'
import { accept, acceptOne, begin, commit, finish, ids, persisted, queued, row, rowIds, scope, send, signalRow, start, wide, windows } from '../fixture.ts'

export const orderCases: StoreCase[] = [
  {
    name: '[D1.1] order is acceptance order, whatever the times say',
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
    name: '[D1.1] many sends at once are stored in the order of their calls',
    async run({ store: open }) {
      const store = await open()
      const names = Array.from({ length: 300 }, (_, index) => `s${index}`)
      const answers = await Promise.all(names.map((id) => acceptOne(store, send(id, persisted))))
      assert.deepEqual(await rowIds(store), names)
      assert.deepEqual(answers.flatMap((answer) => answer.rows.map(({ seq }) => seq)), names.map((_, index) => index + 1))
    },
  },
  {
    name: '[D1.1] what is persisted beside a run can be read at once, is not seen by the run, and follows it when it ended',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      const [note] = await accept(store, send('note-1', persisted), send('note-2', { ...persisted, rows: [signalRow('note-2', 'reactive')] }))
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
      assert.deepEqual(after.rows.map(({ id, seq }) => [id, seq]), [['a', 1], ['said', 2], ['more', 3], ['note-1', 4], ['note-2', 5], ['saved', 6]])
      assert.deepEqual((await store.getSignal(scope, 'note-1'))?.rows.map(({ seq }) => seq), [4])

      const next = await start(store, 'b')
      assert.deepEqual(ids(next.rows), ['a', 'said', 'more', 'note-1', 'note-2', 'saved', 'b'])
      await commit(store, next, finish)
      await acceptOne(store, send('idle', persisted))
      assert.deepEqual((await rowIds(store)).slice(-2), ['b', 'idle'])
    },
  },
  {
    name: '[D1.1] what is persisted beside a run is in the next run, also when that follows under the same lease',
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
]
