import assert from 'node:assert/strict'
import {
  accept, acceptInParts, acceptOne, alive, begin, commit, finish, gone, ids, queued, resultRow, row, rowIds, scope, send, start, states,
  status, threadId, unclaimed, wide, windows, type StoreCase,
} from '../fixture.ts'

const small = { low: 1, high: 4 }

export const recoveryCases: StoreCase[] = [
  {
    name: '[R10.1] the calls that a run lost with its process are stored with the run',
    async run(harness) {
      let store = await harness.store()
      const run = await start(store)
      assert.equal(run.run.lost, undefined)
      await commit(store, run, { lost: ['tools', 'onFinish'], drain: true })
      await commit(store, run, { step: 1, ...finish })
      if (harness.reopen) store = await harness.reopen(store)
      assert.deepEqual((await store.getRun(scope, 'run-of-a'))?.lost, ['tools', 'onFinish'])
    },
  },
  {
    name: '[R5.1] after a takeover the run continues with the same rows, step and started calls',
    async run(harness) {
      let store = await harness.store()
      const first = await start(store, 'a', { options: { maxSteps: 7 } })
      await acceptOne(store, send('b'))
      await commit(store, first, { rows: [row('said', 'assistant')], started: ['call-1', 'call-2'] })
      await commit(store, first, { rows: [resultRow('r1', 'call-1')] })
      const before = (await store.listRows(scope, { limit: 100 })).rows
      await gone(store, 'p1')
      if (harness.reopen) store = await harness.reopen(store)

      await alive(store, 'p2')
      const claimed = await store.claim(threadId, 'p2')
      assert.deepEqual([claimed?.takenOver, claimed?.agentId, claimed?.fence.epoch], [true, 'agent-1', first.fence.epoch + 1])
      assert.ok(claimed)
      const again = await begin(store, claimed.fence)
      assert.deepEqual(again.rows, before)
      assert.deepEqual(
        { ...again.run, startedAt: 0 },
        { ...first.run, startedAt: 0, epoch: first.run.epoch + 1, attempts: 2, step: 0, started: ['call-2'] },
      )
      assert.deepEqual([again.resumed, again.taken, again.run.options], [true, [], { maxSteps: 7 }])

      const { taken } = await commit(store, again, { rows: [resultRow('r2', 'call-2')], drain: true })
      assert.deepEqual(ids(taken), ['b'])
      const run = await store.getRun(scope, 'run-of-a')
      assert.deepEqual([run?.step, run?.started], [1, []])
    },
  },
  {
    name: '[R5.3] a handover of a run does not count as an attempt; the death of its process does',
    async run({ store: open }) {
      const store = await open()
      await start(store)
      let attempts = 0
      for (const [index, end] of (['resign', 'resign', 'resign', 'die', 'resign', 'die'] as const).entries()) {
        const owner = `p${index + 1}`
        if (end === 'resign') await store.resign(owner)
        else await gone(store, owner)
        await alive(store, `p${index + 2}`)
        const claimed = await store.claim(threadId, `p${index + 2}`)
        assert.ok(claimed)
        attempts = (await begin(store, claimed.fence)).run.attempts
      }
      assert.equal(attempts, 4)
    },
  },
  {
    name: '[R5.7] an attempt that the store ended does not count',
    async run({ store: open }) {
      const store = await open()
      let { fence } = await start(store)
      const attempts: number[] = []
      for (const excused of [true, true, false, true]) {
        const claimed = await store.claim(threadId, 'p1', undefined, { ...fence, excused })
        assert.ok(claimed)
        fence = claimed.fence
        attempts.push((await begin(store, fence)).run.attempts)
      }
      assert.deepEqual(attempts, [2, 2, 3, 3])
    },
  },
  {
    name: '[R5.1] a continued run has the window that it began with',
    async run({ store: open }) {
      const store = await open()
      await alive(store, 'p1')
      for (const id of ['u1', 'u2', 'u3']) {
        const turn = await start(store, id)
        await commit(store, turn, { rows: [row(`answer-${id}`, 'assistant')], ...finish })
      }
      const { fence } = await acceptOne(store, send('u4'))
      assert.ok(fence)
      const begun = await store.beginRun(fence, windows(small))
      assert.ok(begun)
      for (const step of [0, 1, 2, 3]) {
        await store.commitStep(fence, { runId: begun.run.runId, step, rows: [row(`step-${step}`, 'assistant')], drain: true })
      }
      await gone(store, 'p1')
      const claimed = await store.claim(threadId, 'p2')
      assert.ok(claimed)
      const again = await store.beginRun(claimed.fence, windows(small))
      assert.deepEqual(ids(again?.rows ?? []), [...ids(begun.rows), 'step-0', 'step-1', 'step-2', 'step-3'])
    },
  },
  {
    name: '[R5.1] a thread that was woken and not begun starts its run after a takeover',
    async run({ store: open }) {
      const store = await open()
      await accept(store, send('a', { claim: { owner: 'dead' } }), send('b', { claim: { owner: 'dead' } }))
      const claimed = await store.claim(threadId, 'p2')
      assert.equal(claimed?.takenOver, false)
      assert.ok(claimed)
      const run = await begin(store, claimed.fence)
      assert.deepEqual([run.resumed, run.run.runId, ids(run.taken)], [false, 'run-of-a', ['a', 'b']])
    },
  },
  {
    name: '[R5.1] stored data is complete after the store was closed and opened again',
    async run(harness) {
      if (!harness.reopen) return
      let store = await harness.store()
      await accept(store, send('a', unclaimed), send('q', { ...queued, ...unclaimed }))
      await store.flush()
      store = await harness.reopen(store)
      assert.deepEqual(await states(store), { a: 'pending', q: 'pending' })
      assert.deepEqual(await store.listOrphans(Date.now(), 10), [{ threadId, agentId: 'agent-1' }])
      const claimed = await store.claim(threadId, 'p1')
      assert.ok(claimed)
      const run = await begin(store, claimed.fence)
      await commit(store, run, { rows: [row('said', 'assistant')], ...finish })
      store = await harness.reopen(store)
      assert.deepEqual(await rowIds(store), ['a', 'said'])
      assert.deepEqual((await begin(store, claimed.fence)).taken.map((mail) => mail.id), ['q'])
    },
  },
  {
    name: 'bound signals are run by their process alone',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      await alive(store, 'p2')
      await accept(store, send('call', { ...queued, boundTo: 'p2', claim: { owner: 'p2' } }))
      assert.deepEqual(await commit(store, run, finish), { rows: [], taken: [], ended: true, more: false, left: true })
      assert.equal(await status(store), 'idle')
      const orphan = [{ threadId, agentId: 'agent-1' }]
      assert.deepEqual(await store.listOrphans(Date.now(), 10), orphan)
      assert.equal(await store.claim(threadId, 'p1'), null, 'another one passes them over')
      assert.deepEqual(await store.listOrphans(Date.now(), 10), orphan)
      const claimed = await store.claim(threadId, 'p2')
      assert.ok(claimed)
      assert.deepEqual(await store.listOrphans(Date.now(), 10), [])
      assert.deepEqual(ids((await begin(store, claimed.fence)).taken), ['call'])
    },
  },
  {
    name: "bound signals never enter or start a run of another process, and don't delay others",
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      await alive(store, 'p2')
      await accept(store, send('bound', { boundTo: 'p2' }), send('q', queued))
      assert.deepEqual((await commit(store, run, finish)).more, true)
      assert.deepEqual(ids((await begin(store, run.fence)).taken), ['q'])
    },
  },
  {
    name: 'bound signals whose process is gone are cancelled by the next claim of the thread',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      await alive(store, 'p2')
      await accept(store, send('call', { ...queued, boundTo: 'p2' }))
      await commit(store, run, finish)
      await gone(store, 'p2')
      assert.equal(await store.claim(threadId, 'p1'), null)
      const cancelled = await store.getSignal(scope, 'call')
      assert.deepEqual([cancelled?.state, typeof cancelled?.reason], ['cancelled', 'string'])
      assert.deepEqual(await store.listOrphans(Date.now(), 10), [])
    },
  },
  {
    name: 'a process that resigns releases its threads and cancels its bound signals that did not start',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      await start(store, 'x', { threadId: 'thread-2', boundTo: 'p1', mode: 'queue' })
      await accept(store, send('bound', { ...queued, boundTo: 'p1' }), send('b'))
      await accept(store, send('bound', { ...queued, ...unclaimed, boundTo: 'p1', threadId: 'thread-3' }))
      await alive(store, 'p2')
      assert.equal(await store.claim(threadId, 'p2'), null)
      await store.resign('p1')

      assert.deepEqual(await states(store), { a: 'taken', bound: 'cancelled', b: 'pending' })
      assert.deepEqual(await states(store, 'thread-3'), { bound: 'cancelled' })
      const orphans = await store.listOrphans(Date.now(), 10)
      assert.deepEqual(
        orphans.map((orphan) => orphan.threadId).toSorted(), [threadId, 'thread-2'], 'what had begun is recovered, bound or not',
      )
      const claimed = await store.claim(threadId, 'p2')
      assert.ok(claimed)
      const again = await begin(store, claimed.fence)
      assert.deepEqual([again.resumed, again.run.runId], [true, run.run.runId])
    },
  },
  {
    name: 'orphans are running threads without a live owner and idle threads with pending signals, and no others',
    async run({ store: open }) {
      const store = await open()
      const now = Date.now()
      await alive(store, 'alive')
      await store.heartbeat('expired', now - 1)
      const on = (owner: string | undefined, more = {}) => ({
        threadId: `by-${owner}`, claim: owner === undefined ? undefined : { owner }, ...more,
      })
      await accept(store, send('a', on('alive')), send('a', on('expired')), send('a', on('unheard')), send('a', on(undefined)))
      await accept(store, send('a', { threadId: 'stored', ifIdle: { behavior: 'persist' } }))
      const idle = await start(store, 'a', { threadId: 'over', claim: { owner: 'alive' } })
      await commit(store, idle, finish)
      const waits = await start(store, 'a', { threadId: 'waits', claim: { owner: 'alive' } })
      await commit(store, waits, { end: { status: 'suspended', calls: [{ toolCallId: 'c', toolName: 't', args: {}, kind: 'approval' }] } })

      const found = async (at: number, limit: number) => (await store.listOrphans(at, limit)).map((orphan) => orphan.threadId).toSorted()
      assert.deepEqual(await found(now, 10), ['by-expired', 'by-undefined', 'by-unheard'])
      assert.equal((await found(now, 2)).length, 2)
      assert.ok((await found(Date.now() + 7_200_000, 10)).includes('by-alive'), 'a heartbeat counts until it says')
      await store.cancelSignals({ threadId: 'by-undefined' }, ['a'])
      assert.deepEqual(await found(now, 10), ['by-expired', 'by-unheard'])
    },
  },
  {
    name: 'all of many orphans are listed',
    async run({ store: open }) {
      const store = await open()
      const many = (prefix: string, claim?: { owner: string }) =>
        Array.from({ length: 450 }, (_, index) => send('a', { threadId: `${prefix}-${index}`, claim, agentId: `agent-${index % 2}` }))
      const sends = [...many('waits'), ...many('dead', { owner: 'dead' })]
      await acceptInParts(store, sends)
      const found = await store.listOrphans(Date.now(), 1000)
      assert.equal(new Set(found.map((orphan) => orphan.threadId)).size, 900)
      assert.equal((await store.listOrphans(Date.now(), 1000, ['agent-1'])).length, 450)
      assert.equal((await store.listOrphans(Date.now(), 7, ['agent-1'])).length, 7)
    },
  },
  {
    name: 'a begin after the last drain of another process takes the signals that it left',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      await accept(store, send('q', queued))
      await commit(store, run, finish)
      await gone(store, 'p1')
      const claimed = await store.claim(threadId, 'p2')
      assert.ok(claimed)
      const next = await store.beginRun(claimed.fence, windows(wide))
      assert.deepEqual([claimed.takenOver, next?.run.runId], [false, 'run-of-q'])
    },
  },
]
