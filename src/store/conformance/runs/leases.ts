import assert from 'node:assert/strict'
import type { Fence } from '../../contract/threads.ts'
import {
  accept, acceptOne, alive, begin, commit, everything, finish, gone, ids, persisted, queued, rejectsWith, resourceId, row, scope, send,
  start, states, status, threadId, unclaimed, wide, windows, type StoreCase,
} from '../fixture.ts'

/** Claims that also begin the run. */
const beginning = { claim: { owner: 'p1', begin: windows(wide, 'agent-1') } }

export const leaseCases: StoreCase[] = [
  {
    name: '[R1.2] a wake that also begins the run does what beginRun does, with all signals of the transaction',
    async run({ store: open }) {
      const store = await open()
      await alive(store, 'p1')
      await acceptOne(store, send('note', persisted))
      const sent = await accept(store, send('a', beginning), send('b', beginning), send('c', { ...queued, ...beginning }))
      assert.deepEqual(sent.map(({ fence }) => fence !== undefined), [true, false, false])
      assert.deepEqual(sent.map(({ runId }) => runId), ['run-of-a', 'run-of-a', 'run-of-c'])
      const [{ fence, begun } = {}] = sent
      assert.ok(fence)
      const first = begun ? { ...begun, fence } : await begin(store, fence)
      assert.deepEqual([ids(first.taken), ids(first.rows), first.resumed], [['a', 'b'], ['note', 'a', 'b'], false])
      assert.deepEqual([first.run.runId, first.run.step, first.run.attempts], ['run-of-a', 0, 1])
      assert.deepEqual(await states(store), { note: 'consumed', a: 'taken', b: 'taken', c: 'pending' })

      const again = await acceptOne(store, send('a', beginning))
      assert.deepEqual([again.duplicate, again.state, again.fence, again.begun], [true, 'taken', undefined, undefined])
      const { more } = await commit(store, first, { rows: [row('answer', 'assistant')], ...finish })
      assert.equal(more, true)
      assert.deepEqual(ids((await begin(store, fence)).taken), ['c'])
    },
  },
  {
    name: '[R1.2] a wake without a window for its agent is accepted, and the lease is released',
    async run({ store: open }) {
      const store = await open()
      await alive(store, 'p1')
      const others = windows(wide, 'agent-2')
      const { fence, begun } = await acceptOne(store, send('a', { claim: { owner: 'p1', begin: others } }))
      assert.ok(fence)
      assert.equal(begun === undefined ? await store.beginRun(fence, others) : begun, null)
      assert.deepEqual(await states(store), { a: 'pending' })
      const claimed = await store.claim(threadId, 'p1')
      assert.ok(claimed)
      assert.deepEqual(ids((await begin(store, claimed.fence)).taken), ['a'])
    },
  },
  {
    name: '[R1.2] a run begins with the window of its options, else with that of its agent',
    async run({ store: open }) {
      const store = await open()
      const history = ['u1', 'u2', 'u3', 'u4', 'u5'].map((id) => row(id, 'user'))
      await store.createThread({ id: threadId, resourceId: scope.resourceId, now: 1 })
      await store.saveRows(scope, history)
      const own = await start(store, 'a', { options: { window: { low: 2, high: 2 } } })
      assert.deepEqual(ids(own.rows), ['u4', 'u5', 'a'])
      await commit(store, own, finish)
      const agents = await start(store, 'b')
      assert.deepEqual(ids(agents.rows), ['u1', 'u2', 'u3', 'u4', 'u5', 'a', 'b'])
    },
  },
  {
    name: '[R1.1] a stale epoch, another owner or a deleted thread is rejected, and nothing is written',
    async run({ store: open }) {
      const store = await open()
      const { fence, run } = await start(store)
      await acceptOne(store, send('b'))
      const before = await everything(store)
      const stale: Fence[] = [{ ...fence, epoch: fence.epoch - 1 }, { ...fence, epoch: fence.epoch + 1 }, { ...fence, owner: 'p2' }]
      for (const wrong of [...stale, { ...fence, threadId: 'nowhere' }]) {
        await rejectsWith('fenced', store.beginRun(wrong, windows(wide)))
        await rejectsWith('fenced', store.commitStep(wrong, { runId: run.runId, step: 0, rows: [row('x', 'assistant')], ...finish }))
        await rejectsWith('fenced', store.commitStep(wrong, { runId: run.runId, step: 0, rows: [], end: { status: 'rejected' } }))
      }
      assert.deepEqual(await everything(store), before)
      await store.deleteThread(scope)
      await rejectsWith('fenced', store.commitStep(fence, { runId: run.runId, step: 0, rows: [] }))
    },
  },
  {
    name: "[R1.1] a process that lost the lease can't write, after a takeover, a resignation or a decision",
    async run({ store: open }) {
      const store = await open()
      const first = await start(store)
      await gone(store, 'p1')
      await alive(store, 'p2')
      const claimed = await store.claim(threadId, 'p2')
      assert.ok(claimed)
      await rejectsWith('fenced', commit(store, first, { rows: [row('late', 'assistant')], ...finish }))

      const second = await begin(store, claimed.fence)
      await store.resign('p2')
      await rejectsWith('fenced', commit(store, second, finish))

      const third = await store.claim(threadId, 'p3')
      assert.ok(third)
      const suspended = await begin(store, third.fence)
      await commit(
        store, suspended, { end: { status: 'suspended', calls: [{ toolCallId: 'c', toolName: 't', args: {}, kind: 'approval' }] } },
      )
      await rejectsWith('fenced', commit(store, suspended, finish))
      await store.decide(scope, { approved: true }, 'p3')
      await rejectsWith('fenced', commit(store, suspended, finish))
    },
  },
  {
    name: '[R1.1] a commit for a run that is not active is rejected, and nothing is written',
    async run({ store: open }) {
      const store = await open()
      const begun = await start(store)
      const before = await everything(store)
      await rejectsWith('no_active_run', store.commitStep(begun.fence, { runId: 'another', step: 0, rows: [row('x')], ...finish }))
      assert.deepEqual(await everything(store), before)
    },
  },
  {
    name: '[R1.2] of many concurrent wakes one gets the lease',
    async run({ store: open }) {
      const store = await open()
      const sends = Array.from({ length: 20 }, (_, index) => send(`s${index}`, { claim: { owner: `p${index}` } }))
      const answers = await Promise.all(sends.map((one) => acceptOne(store, one)))
      const leases = answers.filter((answer) => answer.fence)
      assert.equal(leases.length, 1)
      const routes = answers.map((answer) => answer.route)
      assert.equal(routes.filter((route) => route === 'wake').length, 1)
      assert.equal(routes.filter((route) => route === 'deliver').length, 19)
      assert.equal(new Set(answers.map((answer) => answer.runId)).size, 1, 'all enter the run that the first one starts')
      assert.equal(new Set(answers.map((answer) => answer.owner)).size, 1)
    },
  },
  {
    name: '[R1.2] of many concurrent claims one gets the lease; while its owner is alive no other process does',
    async run({ store: open }) {
      const store = await open()
      await acceptOne(store, send('a', unclaimed))
      const owners = Array.from({ length: 20 }, (_, index) => `p${index}`)
      await alive(store, ...owners)
      const claims = await Promise.all(owners.map((owner) => store.claim(threadId, owner)))
      const [won, ...others] = claims.filter((claim) => claim !== null)
      assert.ok(won)
      assert.equal(others.length, 0)
      assert.deepEqual([won.agentId, won.takenOver, won.fence.epoch], ['agent-1', false, 2])
      assert.equal(await store.claim(threadId, 'late'), null)
    },
  },
  {
    name: '[R1.2] a thread without pending signals, a suspended or a missing thread is not claimed',
    async run({ store: open }) {
      const store = await open()
      assert.equal(await store.claim(threadId, 'p1'), null)
      const run = await start(store)
      await commit(store, run, { end: { status: 'suspended', calls: [{ toolCallId: 'c', toolName: 't', args: {}, kind: 'approval' }] } })
      assert.equal(await store.claim(threadId, 'p1'), null)
      await store.endSuspended(scope, run.run.runId, {})
      assert.equal(await store.claim(threadId, 'p1'), null)
      assert.equal(await status(store), 'idle')
    },
  },
  {
    name: '[R1.2] [R1.7] a process claims its own thread again only with its present lease',
    async run({ store: open }) {
      const store = await open()
      const { fence } = await start(store)
      await store.heartbeat('p1', Date.now() + 60_000)
      assert.equal(await store.claim(threadId, 'p1'), null)
      assert.equal(await store.claim(threadId, 'p1', undefined, { ...fence, epoch: fence.epoch - 1 }), null)
      const again = await store.claim(threadId, 'p1', undefined, fence)
      assert.deepEqual([again?.fence.epoch, again?.takenOver], [fence.epoch + 1, true])
      assert.equal(await store.claim(threadId, 'p1', undefined, fence), null)
      // A host of the process may run the thread, although its heartbeat came late.
      await gone(store, 'p1')
      assert.equal(await store.claim(threadId, 'p1'), null)
      assert.ok(await store.claim(threadId, 'p2'))
    },
  },
  {
    name: '[R1.2] epochs only grow',
    async run({ store: open }) {
      const store = await open()
      const epochs: number[] = []
      for (const id of ['a', 'b', 'c']) {
        const begun = await start(store, id)
        epochs.push(begun.fence.epoch)
        await commit(store, begun, finish)
        const idle = await store.getThread(scope)
        assert.deepEqual([idle?.status, idle?.owner, idle?.runId, idle?.agentId], ['idle', undefined, undefined, undefined])
      }
      assert.deepEqual(epochs, [1, 2, 3])
    },
  },
  {
    name: '[R11.1] the epochs of a thread are above those of every earlier thread with its id, however it was deleted',
    async run({ store: open }) {
      const store = await open()
      assert.equal(await store.lifeOf(threadId), 0)
      const first = await start(store)
      await commit(store, first, finish)
      const second = await start(store, 'b')
      assert.equal(await store.lifeOf(threadId), 0)
      await store.deleteThread(scope)
      const floor = await store.lifeOf(threadId)
      assert.ok(floor > second.fence.epoch)
      const again = await start(store, 'b')
      assert.deepEqual([again.fence.epoch, await store.lifeOf(threadId)], [floor + 1, floor])
      for (const stale of [first, second]) await rejectsWith('fenced', commit(store, stale, finish))
      assert.equal(await store.claim(threadId, 'p1', undefined, second.fence), null)
      await commit(store, again, finish)

      // Pruned threads count as well.
      const other = await store.createThread({ id: 'thread-2', resourceId, now: 1 })
      const { threadIds } = await store.pruneSome({ threadsBefore: Date.now() + 1e9, limit: 10 })
      assert.deepEqual(threadIds.toSorted(), [threadId, 'thread-2'])
      const { thread } = await store.createThread({ id: 'thread-2', resourceId, now: 2 })
      assert.ok(thread.epoch > other.thread.epoch && thread.epoch > again.fence.epoch)
      assert.ok(await store.lifeOf('nowhere') >= thread.epoch)
    },
  },
  {
    name: '[R1.9] a heartbeat that expires further ahead than twice its length was written before the clock was set back: it has expired',
    async run({ store: open }) {
      const store = await open()
      const now = Date.now()
      await acceptOne(store, send('a'))
      await store.heartbeat('p1', now + 10_000)
      const orphans = async (at: number) => (await store.listOrphans(at, 10)).length
      assert.equal(await orphans(now), 0)
      assert.equal(await orphans(now - 5_000), 0, 'a small correction of the clock does not end a lease')
      assert.equal(await orphans(now - 3_600_000), 1)
      await store.heartbeat('p1', now + 10_000)
      assert.equal(await orphans(now), 0)
    },
  },
  {
    name: 'a process claims only threads of its agents',
    async run({ store: open }) {
      const store = await open()
      await acceptOne(store, send('a', unclaimed))
      assert.equal(await store.claim(threadId, 'p1', ['agent-2']), null)
      const claimed = await store.claim(threadId, 'p1', ['agent-2', 'agent-1'])
      assert.ok(claimed)
      const begun = await begin(store, claimed.fence)
      assert.equal(await store.claim(threadId, 'p2', ['agent-2']), null, 'nor a run whose owner is gone')
      await accept(store, send('b', { agentId: 'agent-2' }))
      assert.deepEqual(await commit(store, begun, finish), { rows: [], taken: [], ended: true, more: true })
      assert.equal(await store.beginRun(begun.fence, windows(wide, 'agent-1')), null, 'it may not run what is next, and lets go')
      assert.deepEqual([await status(store), await states(store)], ['idle', { a: 'consumed', b: 'pending' }])
      assert.deepEqual(await store.listOrphans(Date.now(), 10, ['agent-1']), [])
      assert.deepEqual(await store.listOrphans(Date.now(), 10, ['agent-2']), [{ threadId, agentId: 'agent-2' }])
    },
  },
  {
    name: 'a begin that finds nothing to run releases the lease',
    async run({ store: open }) {
      const store = await open()
      const { fence } = await acceptOne(store, send('a', queued))
      assert.ok(fence)
      assert.deepEqual(await store.cancelSignals(scope, ['a']), ['a'])
      assert.equal(await store.beginRun(fence, windows(wide)), null)
      assert.equal(await status(store), 'idle')
      assert.deepEqual(await store.listOrphans(Date.now(), 10), [])
    },
  },
]
