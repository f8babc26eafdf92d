import assert from 'node:assert/strict'
import type { StoreCase } from '../case.ts'
import {
  accept, begin, commit, everything, finish, ids, persisted, queued, refuses, row, rowIds, scope, send, start, states, status, threadId, tick,
} from '../fixture.ts'

const foreign = { threadId, resourceId: 'resource-2' }

export const tenancyCases: StoreCase[] = [
  {
    name: '[X1.1] another resource is refused by every method, and nothing is written',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      await accept(store, send('b'), send('q', queued))
      await commit(store, run, { end: { status: 'suspended', calls: [{ toolCallId: 'c', toolName: 't', args: {}, kind: 'approval' }] } })
      const before = await everything(store)
      const attempts: Record<string, () => Promise<unknown>> = {
        decide: () => store.decide(foreign, { approved: true }, 'p2'),
        endSuspended: () => store.endSuspended(foreign, run.run.runId, {}),
        listSignals: () => store.listSignals(foreign),
        getSignal: () => store.getSignal(foreign, 'b'),
        cancelSignals: () => store.cancelSignals(foreign, ['b']),
        reorderSignals: () => store.reorderSignals(foreign, ['q']),
        getRun: () => store.getRun(foreign, run.run.runId),
        getThread: () => store.getThread(foreign),
        createThread: () => store.createThread({ id: threadId, resourceId: 'resource-2', now: tick() }),
        patchThread: () => store.patchThread(foreign, { title: 'Mine' }),
        deleteThread: () => store.deleteThread(foreign),
        listRows: () => store.listRows(foreign, { limit: 10 }),
        readWindow: () => store.readWindow(foreign, { low: 1, high: 2 }, 1),
        saveRows: () => store.saveRows(foreign, [row('a', 'user', 'overwritten')]),
        deleteMessages: () => store.deleteMessages(foreign, ['a']),
        deleteAllMessages: () => store.deleteMessages(foreign),
      }
      for (const attempt of Object.values(attempts)) await refuses('thread_forbidden', attempt())
      const answers = await store.accept([send('b', foreign), send('new', { ...foreign, ...persisted }), send('x', { ...foreign, ifActive: { behavior: 'discard' } })])
      for (const answer of answers) {
        assert.ok('error' in answer)
        await refuses('thread_forbidden', Promise.reject(answer.error))
      }
      assert.deepEqual(await everything(store), before)
      assert.deepEqual(await store.listRuns({ threadId, resourceId: 'resource-2' }), [])
      assert.deepEqual((await store.listThreads({ resourceId: 'resource-2', limit: 10 })).threads, [])
    },
  },
  {
    name: '[X1.1] a scope without a resource is trusted; a thread that doesn\'t exist is named',
    async run({ store: open }) {
      const store = await open()
      await start(store)
      assert.equal((await store.getThread({ threadId }))?.resourceId, 'resource-1')
      assert.equal((await store.listSignals({ threadId })).length, 1)
      const nowhere = { threadId: 'nowhere', resourceId: 'resource-1' }
      assert.equal(await store.getThread(nowhere), null)
      assert.equal(await store.deleteThread(nowhere), false)
      await refuses('thread_not_found', store.listSignals(nowhere))
      await refuses('thread_not_found', store.getSignal(nowhere, 'a'))
      await refuses('thread_not_found', store.cancelSignals(nowhere, ['a']))
      await refuses('thread_not_found', store.reorderSignals(nowhere, ['a']))
      await refuses('thread_not_found', store.getRun(nowhere, 'a'))
      await refuses('thread_not_found', store.patchThread(nowhere, { title: 'x' }))
      await refuses('thread_not_found', store.listRows(nowhere, { limit: 1 }))
      await refuses('thread_not_found', store.saveRows(nowhere, [row('a')]))
      await refuses('thread_not_found', store.deleteMessages(nowhere))
      await refuses('thread_not_found', store.endSuspended(nowhere, 'a', {}))
    },
  },
  {
    name: '[X1.2] the same message, signal and run ids on two threads don\'t touch',
    async run({ store: open }) {
      const store = await open()
      const other = { threadId: 'thread-2', resourceId: 'resource-2' }
      const mine = await start(store, 'a', { rows: [row('m', 'user', 'mine')], runId: 'run' })
      const theirs = await start(store, 'a', { ...other, rows: [row('m', 'user', 'theirs')], runId: 'run' })
      assert.deepEqual([mine.run.runId, theirs.run.runId], ['run', 'run'])
      await accept(store, send('q', queued), send('q', { ...queued, ...other }))
      const before = await everything(store, other.threadId)

      await store.cancelSignals(scope, ['q', 'a'])
      await store.saveRows(scope, [row('m', 'user', 'rewritten')])
      await commit(store, mine, { rows: [row('said', 'assistant')], ...finish })
      await store.deleteMessages(scope, ['m'])
      assert.deepEqual(await everything(store, other.threadId), before)
      assert.deepEqual([await states(store), await rowIds(store)], [{ a: 'consumed', q: 'cancelled' }, ['said']])

      await store.deleteThread(scope)
      assert.deepEqual(await everything(store, other.threadId), before)
      assert.equal((await store.getRun(other, 'run'))?.threadId, other.threadId)
      assert.equal((await store.findRun('run'))?.threadId, other.threadId)
      await commit(store, theirs, { rows: [row('said', 'assistant')], ...finish })
      assert.deepEqual(ids((await begin(store, theirs.fence)).taken), ['q'])
    },
  },
  {
    name: '[X1.2] a thread that was deleted leaves nothing to one that gets its id',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store, 'a', { lane: { id: 'lane', cacheKey: 'k', mode: 'snapshot' } })
      await accept(store, send('p', persisted), send('q', queued))
      await commit(store, run, { rows: [row('said', 'assistant')], end: { status: 'finished' } })
      assert.equal(await store.deleteThread(scope), true)
      assert.deepEqual([await store.getThread(scope), await store.findRun('run-of-a'), await store.listRuns({})], [null, null, []])
      assert.deepEqual(await store.listOrphans(Date.now() + 1e9, 10), [])

      const again = await accept(store, send('a', { resourceId: 'resource-2', lane: { id: 'lane', cacheKey: 'k', mode: 'snapshot' } }))
      assert.deepEqual(again.map((answer) => [answer.route, answer.duplicate, answer.lane?.version]), [['wake', false, 1]])
      assert.deepEqual([await rowIds(store), await states(store), await status(store)], [[], { a: 'pending' }, 'running'])
    },
  },
]
