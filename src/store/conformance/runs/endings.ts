import assert from 'node:assert/strict'
import type { StepCommit } from '../../contract/threads.ts'
import {
  accept, acceptOne, begin, commit, everything, finish, ids, persisted, queued, rejectsWith, row, rowIds, scope, send, start, states,
  status, threadId, wide, windows, type StoreCase,
} from '../fixture.ts'

const refused = { end: { status: 'rejected', error: { message: 'not allowed' } } } as const

export const endingCases: StoreCase[] = [
  {
    name: '[R5.3] a parked run is retried where it stopped',
    async run(harness) {
      let store = await harness.store()
      const run = await start(store)
      await commit(store, run, { rows: [row('said', 'assistant')], drain: true })
      await commit(store, run, { step: 1, rows: [row('asked', 'assistant')], started: ['call-1'] })
      await rejectsWith('run_not_parked', store.retryParked(scope, 'run-of-a', { owner: 'p2' }))
      await commit(store, run, { step: 1, rows: [row('why', 'assistant')], end: { status: 'parked', error: { code: 'run_parked' } } })
      const parked = await store.getRun(scope, 'run-of-a')
      assert.deepEqual([parked?.status, parked?.step, parked?.started, await status(store)], ['parked', 1, ['call-1'], 'idle'])
      if (harness.reopen) store = await harness.reopen(store)

      await rejectsWith('run_not_parked', store.retryParked(scope, 'another', { owner: 'p2' }))
      await rejectsWith('thread_forbidden', store.retryParked({ ...scope, resourceId: 'resource-2' }, 'run-of-a', { owner: 'p2' }))
      const { fence, agentId } = await store.retryParked(scope, 'run-of-a', { owner: 'p2', removed: ['why'] })
      assert.ok(fence)
      assert.deepEqual([agentId, fence.owner, fence.epoch], ['agent-1', 'p2', run.fence.epoch + 1])
      await rejectsWith('run_not_parked', store.retryParked(scope, 'run-of-a', { owner: 'p3' }))
      const again = await begin(store, fence)
      const { resumed, run: { status: now, step, attempts, started, error }, rows } = again
      assert.deepEqual([resumed, now, step, attempts, started, error], [true, 'running', 1, 2, ['call-1'], undefined])
      assert.deepEqual(ids(rows), ['a', 'said', 'asked'])
      await commit(store, again, { step: 1, ...finish })
      assert.deepEqual([(await store.getRun(scope, 'run-of-a'))?.status, await status(store)], ['finished', 'idle'])
    },
  },
  {
    name: '[R5.3] a run stays parked during and after other runs; retried without an owner, its thread is due for any process',
    async run({ store: open }) {
      const store = await open()
      const park = { end: { status: 'parked' } } as const
      await commit(store, await start(store), park)
      const { fence } = await store.retryParked(scope, 'run-of-a', {})
      assert.deepEqual([fence, await status(store)], [undefined, 'running'])
      assert.deepEqual((await store.listOrphans(Date.now(), 10)).map((orphan) => orphan.threadId), [threadId])
      const claimed = await store.claim(threadId, 'p2')
      assert.ok(claimed)
      await commit(store, await begin(store, claimed.fence), park)
      const next = await start(store, 'b')
      const before = await everything(store)
      await rejectsWith('run_not_parked', store.retryParked(scope, 'run-of-a', { owner: 'p2' }))
      assert.deepEqual(await everything(store), before)
      await commit(store, next, finish)
      await rejectsWith('run_not_parked', store.retryParked(scope, 'run-of-a', { owner: 'p2' }))
    },
  },
  {
    name: '[R7.1] a rejected run leaves no rows, and the signals that it took are rejected; pending signals stay',
    async run({ store: open }) {
      const store = await open()
      const before = await start(store, 'before')
      await commit(store, before, { rows: [row('kept', 'assistant')], ...finish })
      const run = await start(store, 'a')
      await commit(store, run, { rows: [row('one', 'assistant'), row('result', 'tool')], drain: true })
      await acceptOne(store, send('b'))
      const { rows, ended, more } = await commit(store, run, { step: 1, rows: [row('two', 'assistant')], ...refused })
      assert.deepEqual([rows, ended, more], [[], true, true])
      assert.deepEqual(await rowIds(store), ['before', 'kept'])
      assert.deepEqual(await states(store), { before: 'consumed', a: 'rejected', b: 'pending' })
      const rejected = await store.getSignal(scope, 'a')
      assert.deepEqual([rejected?.reason, rejected?.rows], ['not allowed', []])
      const { status: runStatus, error } = (await store.getRun(scope, 'run-of-a')) ?? {}
      assert.deepEqual([runStatus, error], ['rejected', { message: 'not allowed' }])
      assert.deepEqual(ids((await begin(store, run.fence)).rows), ['before', 'kept', 'b'])
    },
  },
  {
    name: '[R7.7] an end, a row or a change that is not JSON is rejected without effect, and the run can still end',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store, 'a')
      await commit(store, run, { rows: [row('one', 'assistant')], drain: true })
      const before = JSON.stringify([await rowIds(store), await states(store), await status(store)])
      const odd = {
        ...row('odd', 'assistant'), content: { format: 2, parts: [], metadata: { a: 1n as unknown as number } },
      } as ReturnType<typeof row>
      const error = { message: 'no', a: 1n } as unknown as { message: string }
      const changes: Array<Partial<StepCommit>> = [
        { step: 1, end: { status: 'rejected', error } },
        { step: 1, end: { status: 'failed', error } },
        { step: 1, rows: [row('two', 'assistant'), odd] },
        { step: 1, removed: ['one'], revised: [{ ...odd, id: 'one', messageId: 'one' }], rows: [row('two', 'assistant')] },
      ]
      for (const change of changes) {
        await assert.rejects(commit(store, run, change))
        assert.equal(JSON.stringify([await rowIds(store), await states(store), await status(store)]), before)
      }
      await commit(store, run, { step: 1, ...refused })
      assert.deepEqual([await rowIds(store), await states(store), await status(store)], [[], { a: 'rejected' }, 'idle'])
    },
  },
  {
    name: '[R7.1] a rejected run on a new thread leaves it empty and idle',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      await commit(store, run, refused)
      assert.deepEqual([await rowIds(store), await status(store)], [[], 'idle'])
      const next = await start(store, 'b')
      assert.deepEqual(ids(next.rows), ['b'])
    },
  },
  {
    name: '[R7.1] new input seals the rows before it: a later rejection removes only the rows after it',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      await acceptOne(store, send('b'))
      await commit(store, run, { rows: [row('answer', 'assistant')], drain: true })
      await commit(store, run, { step: 1, rows: [row('more', 'assistant')], drain: true })
      await commit(store, run, { step: 2, ...refused })
      assert.deepEqual(await rowIds(store), ['a', 'answer'])
      assert.deepEqual(await states(store), { a: 'consumed', b: 'rejected' })
    },
  },
  {
    name: '[R7.1] a rejection keeps rows that others stored during the run, and the window is counted correctly afterwards',
    async run({ store: open }) {
      const store = await open()
      for (const id of ['u1', 'u2']) await commit(store, await start(store, id), { rows: [row(`answer-${id}`, 'assistant')], ...finish })
      const run = await start(store, 'bad', { rows: [row('bad-1'), row('bad-2'), row('bad-3')] })
      await acceptOne(store, send('note', persisted))
      await commit(store, run, refused)
      assert.deepEqual(await rowIds(store), ['u1', 'answer-u1', 'u2', 'answer-u2', 'note'])
      const { fence } = await acceptOne(store, send('u3'))
      assert.ok(fence)
      const next = await store.beginRun(fence, windows({ low: 2, high: 5 }))
      assert.deepEqual(
        ids(next?.rows ?? []), ['u2', 'answer-u2', 'note', 'u3'], 'six messages: one chunk of three is cut, back to its turn',
      )
    },
  },
  {
    name: '[R8.1] an aborted run keeps its rows and leaves pending signals',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      await accept(store, send('b'), send('q', queued))
      const end = { status: 'aborted', usage: { tokens: 1 } } as const
      const { ended, more } = await commit(store, run, { rows: [row('partial', 'assistant')], end })
      assert.deepEqual([ended, more], [true, true])
      assert.deepEqual(await rowIds(store), ['a', 'partial'])
      assert.deepEqual(await states(store), { a: 'consumed', b: 'pending', q: 'pending' })
      const aborted = await store.getRun(scope, 'run-of-a')
      assert.deepEqual([aborted?.status, aborted?.usage, typeof aborted?.endedAt], ['aborted', { tokens: 1 }, 'number'])
    },
  },
  {
    name: '[R8.1] an aborted run cancels pending signals with clearPending',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      await accept(store, send('b'), send('q', queued))
      const { ended, more } = await commit(
        store, run, { rows: [row('partial', 'assistant')], end: { status: 'aborted', clearPending: true } },
      )
      assert.deepEqual([ended, more, await status(store)], [true, false, 'idle'])
      assert.deepEqual(await states(store), { a: 'consumed', b: 'cancelled', q: 'cancelled' })
      assert.deepEqual(await store.listOrphans(Date.now(), 10), [])
      const late = await acceptOne(store, send('b'))
      assert.deepEqual([late.duplicate, late.state], [true, 'cancelled'])
    },
  },
  {
    name: 'a run id that the thread has already is replaced by a generated one',
    async run({ store: open }) {
      const store = await open()
      const first = await start(store, 'a', { runId: 'same' })
      await acceptOne(store, send('b', { runId: 'same' }))
      await commit(store, first, { end: { status: 'finished' } })
      const second = await begin(store, first.fence)
      assert.deepEqual([ids(second.taken), first.run.runId], [['b'], 'same'])
      assert.notEqual(second.run.runId, 'same')
      assert.equal((await store.getSignal(scope, 'b'))?.runId, second.run.runId)
    },
  },
  {
    name: 'rows that processors changed are stored as they are shown',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      await commit(store, run, { revised: [row('a', 'user', 'masked'), row('unknown')], rows: [row('said', 'assistant')] })
      const { rows } = await store.listRows(scope, { limit: 10 })
      assert.deepEqual(rows.map(({ id, seq, runId, content }) => [id, seq, runId, content.parts]), [
        ['a', 1, 'run-of-a', [{ type: 'text', text: 'masked' }]], ['said', 2, 'run-of-a', [{ type: 'text', text: 'said' }]],
      ])
    },
  },
  {
    name: 'a row whose id exists already is not changed or moved',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store, 'a')
      const { rows } = await commit(store, run, { rows: [row('a', 'assistant', 'other'), row('said', 'assistant')], ...finish })
      assert.deepEqual(rows.map(({ id, seq, role }) => [id, seq, role]), [['a', 1, 'signal'], ['said', 2, 'assistant']])
      const { fence } = await acceptOne(store, send('again', { rows: [row('said', 'user'), row('new')] }))
      assert.ok(fence)
      const next = await store.beginRun(fence, windows(wide))
      assert.deepEqual(
        next?.rows.map(({ id, seq, role }) => [id, seq, role]), [['a', 1, 'signal'], ['said', 2, 'assistant'], ['new', 3, 'user']],
      )
    },
  },
  {
    name: 'runs are found by id and listed newest first',
    async run({ store: open }) {
      const store = await open()
      for (const [id, more] of [
        ['a', {}], ['b', { threadId: 'thread-2', resourceId: 'resource-2', agentId: 'agent-2' }], ['c', {}],
      ] as const) {
        const run = await start(store, id, more)
        await commit(store, run, id === 'b' ? { end: { status: 'failed', error: { message: 'broken' } } } : finish)
      }
      const listed = async (filter: Parameters<typeof store.listRuns>[0]) => (await store.listRuns(filter)).map((run) => run.runId)
      assert.deepEqual(await listed({}), ['run-of-c', 'run-of-b', 'run-of-a'])
      assert.deepEqual(await listed({ resourceId: 'resource-1' }), ['run-of-c', 'run-of-a'])
      assert.deepEqual(await listed({ threadId: 'thread-2' }), ['run-of-b'])
      assert.deepEqual(await listed({ agentId: 'agent-2' }), ['run-of-b'])
      assert.deepEqual(await listed({ status: ['failed', 'parked'] }), ['run-of-b'])
      assert.deepEqual(
        [await store.countRuns({}), await store.countRuns({ status: ['failed', 'parked'] }), await store.countRuns({ agentId: 'nobody' })],
        [(await listed({})).length, 1, 0],
      )
      assert.deepEqual(await listed({ limit: 1, offset: 1 }), ['run-of-b'])
      assert.deepEqual(await listed({ to: 1 }), [])
      assert.deepEqual(await listed({ from: 1, threadId: 'thread-2' }), ['run-of-b'])
      const found = await store.findRun('run-of-b')
      assert.deepEqual([found?.threadId, found?.resourceId, found?.error], ['thread-2', 'resource-2', { message: 'broken' }])
      assert.equal(await store.findRun('unknown'), null)
      assert.equal(await store.getRun(scope, 'run-of-b'), null)
    },
  },
]
