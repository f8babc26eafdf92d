import assert from 'node:assert/strict'
import type { StepCommit, ThreadQuery, ThreadStore, TitleClaim, WantedTitle } from '../../contract/threads.ts'
import {
  accept, acceptOne, alive, begin, commit, everything, finish, ids, persisted, queued, rejectsWith, row, rowIds, scope, send, start,
  states, status, threadId, tick, type StoreCase,
} from '../fixture.ts'

type Made = [id: string, now: number, metadata?: Record<string, string | number | boolean>, resourceId?: string]

async function create(store: ThreadStore, ...made: Made[]): Promise<void> {
  for (const [id, now, metadata, resourceId] of made) await store.createThread({
    id, resourceId: resourceId ?? 'resource-1', now, metadata,
  })
}

/** All pages of a listing, joined. */
async function pages(store: ThreadStore, query: ThreadQuery): Promise<string[]> {
  const listed: string[] = []
  let after: ThreadQuery['after']
  for (;;) {
    const { threads, more } = await store.listThreads({ ...query, after })
    listed.push(...ids(threads))
    const last = threads.at(-1)
    if (!more || !last) return listed
    assert.equal(threads.length, query.limit)
    after = { at: last[query.orderBy?.field ?? 'updatedAt'].getTime(), id: last.id }
  }
}

const later = () => Date.now() + 3_600_000
const titled = (until: number): Partial<StepCommit> => ({
  rows: [row('said', 'assistant')], drain: true, end: { status: 'finished', titleUntil: until },
})

function claim(store: ThreadStore, more: Partial<TitleClaim> = {}): Promise<WantedTitle[]> {
  return store.claimTitles({ owner: 'p2', now: Date.now(), until: later(), limit: 10, agentIds: ['agent-1'], ...more })
}

const foreign = { threadId, resourceId: 'resource-2' }

export const threadCases: StoreCase[] = [
  {
    name: 'a thread is created once; the second call returns it as it is',
    async run(harness) {
      let store = await harness.store()
      const made = await store.createThread({
        id: 't', resourceId: 'r', title: 'T', metadata: { a: [1, { b: null }] }, parentId: 'p', now: 1000,
      })
      if (harness.reopen) store = await harness.reopen(store)
      const again = await store.createThread({ id: 't', resourceId: 'r', title: 'Other', now: 2000 })
      assert.deepEqual([made.created, again.created], [true, false])
      assert.deepEqual(again.thread, made.thread)
      assert.deepEqual(made.thread, {
        id: 't', resourceId: 'r', title: 'T', metadata: {
          a: [1, { b: null }],
        }, parentId: 'p', createdAt: new Date(1000), updatedAt: new Date(1000),
        status: 'idle', epoch: 0,
      })
      const both = await Promise.all([
        store.createThread({ id: 'u', resourceId: 'r', now: 1 }), store.createThread({ id: 'u', resourceId: 'r', now: 2 }),
      ])
      assert.equal(both.filter(({ created }) => created).length, 1)
    },
  },
  {
    name: 'metadata is merged key by key, also by ten concurrent writers; null removes a key',
    async run({ store: open }) {
      const store = await open()
      await store.createThread({
        id: scope.threadId, resourceId: 'resource-1', title: 'Kept', metadata: { gone: 1, stays: { deep: true } }, now: 1,
      })
      const keys = Array.from({ length: 10 }, (_, index) => `k${index}`)
      await Promise.all(keys.map((key, index) => store.patchThread(scope, { metadata: { [key]: index } })))
      const patched = await store.patchThread(scope, { metadata: { gone: null, never: undefined, list: [1], __proto__: null } })
      assert.deepEqual(
        patched.metadata, { stays: { deep: true }, ...Object.fromEntries(keys.map((key, index) => [key, index])), list: [1] },
      )
      assert.equal(patched.title, 'Kept')
      assert.deepEqual(await store.getThread(scope), patched)
      assert.ok(patched.updatedAt.getTime() > 1)
      assert.equal(patched.createdAt.getTime(), 1)
    },
  },
  {
    name: 'a title is set; with onlyIfUntitled the first one stays',
    async run({ store: open }) {
      const store = await open()
      await start(store)
      const titles = await Promise.all(
        ['One', 'Two'].map((title) => store.patchThread(scope, { title, onlyIfUntitled: true, metadata: { [title]: true } })),
      )
      assert.deepEqual(titles.map(({ title }) => title), ['One', 'One'])
      assert.deepEqual(titles[1]?.metadata, { One: true, Two: true })
      assert.equal((await store.patchThread(scope, { title: 'Three' })).title, 'Three')
      assert.equal(await status(store), 'running', 'a patch leaves the run alone')
    },
  },
  {
    name: 'a thread is deleted with everything that belongs to it',
    async run({ store: open }) {
      const store = await open()
      await start(store)
      await accept(store, send('p', persisted))
      assert.equal(await store.deleteThread(scope), true)
      assert.equal(await store.deleteThread(scope), false)
      assert.equal(await store.getThread(scope), null)
      await rejectsWith('thread_not_found', store.listRows(scope, { limit: 1 }))
      assert.deepEqual((await store.listThreads({ limit: 10 })).threads, [])
    },
  },
  {
    name: '[M4.5] child threads are listed on request, and deleted and transferred with their parent; those of another resource stay',
    async run({ store: open }) {
      const store = await open()
      const make = (id: string, parentId?: string, resourceId = 'resource-1') =>
        store.createThread({ id, resourceId, now: 1, ...(parentId === undefined ? {} : { parentId }) })
      await make('top')
      await make('top/1', 'top')
      await make('top/1/1', 'top/1')
      await make('top/2', 'top')
      await make('other')
      await make('other/1', 'other')
      await make('foreign', 'top', 'resource-2')
      const listed = async (query: Partial<ThreadQuery>) =>
        ids((await store.listThreads({ limit: 10, orderBy: { field: 'createdAt', direction: 'ASC' }, ...query })).threads)
      assert.deepEqual(await listed({}), ['top', 'top/1', 'top/1/1', 'top/2', 'other', 'other/1', 'foreign'])
      assert.deepEqual(await listed({ parentId: null }), ['top', 'other'])
      assert.deepEqual(await listed({ parentId: 'top', resourceId: 'resource-1' }), ['top/1', 'top/2'])
      assert.equal((await store.listThreads({ limit: 1, parentId: null, total: true })).total, 2)
      await store.transferThread({ threadId: 'other' }, 'resource-3')
      assert.deepEqual(await listed({ resourceId: 'resource-3' }), ['other', 'other/1'])
      await rejectsWith('thread_forbidden', store.getThread({ threadId: 'other/1', resourceId: 'resource-1' }))
      assert.equal(await store.deleteThread({ threadId: 'top', resourceId: 'resource-1' }), true)
      assert.deepEqual(await listed({}), ['other', 'other/1', 'foreign'])
    },
  },
  {
    name: '[M1.17] threads are paged without repeats or gaps, those of equal times in the order of their creation',
    async run({ store: open }) {
      const store = await open()
      await create(store, ['c', 5], ['a', 5], ['e', 9], ['b', 5], ['d', 1], ['x', 5, {}, 'resource-2'])
      for (const field of ['createdAt', 'updatedAt'] as const) {
        for (const limit of [1, 2, 5, 100]) {
          const query = { resourceId: 'resource-1', limit }
          assert.deepEqual(await pages(store, { ...query, orderBy: { field, direction: 'ASC' } }), ['d', 'c', 'a', 'b', 'e'])
          assert.deepEqual(await pages(store, { ...query, orderBy: { field, direction: 'DESC' } }), ['e', 'b', 'a', 'c', 'd'])
        }
      }
      assert.deepEqual(
        await pages(store, { limit: 2 }), ['e', 'x', 'b', 'a', 'c', 'd'], 'newest first, of all resources, by default',
      )
      const offset = await store.listThreads({ resourceId: 'resource-1', limit: 2, offset: 1, total: true })
      assert.deepEqual([ids(offset.threads), offset.more, offset.total], [['b', 'a'], true, 5])
      const last = await store.listThreads({ resourceId: 'resource-1', limit: 3, offset: 2 })
      assert.deepEqual([ids(last.threads), last.more, last.total], [['a', 'c', 'd'], false, undefined])
    },
  },
  {
    name: 'threads that match metadata are ordered by their last change too',
    async run({ store: open }) {
      const store = await open()
      await create(store, ['a', 5, { k: 1 }], ['b', 6, { k: 1 }], ['c', 7, { k: 1, l: 2 }], ['other', 9, {}])
      const query = { resourceId: 'resource-1', limit: 2, metadata: { k: 1 } }
      const newest = () => pages(store, { ...query, orderBy: { field: 'updatedAt', direction: 'DESC' } })
      assert.deepEqual(await newest(), ['c', 'b', 'a'])
      await store.patchThread({ threadId: 'a' }, { title: 'Newer' })
      assert.deepEqual(await newest(), ['a', 'c', 'b'])
      await store.patchThread({ threadId: 'other' }, { metadata: { k: 1 } })
      assert.deepEqual((await newest()).toSorted(), ['a', 'b', 'c', 'other'])
      assert.deepEqual(await pages(store, { ...query, metadata: { k: 1, l: 2 }, orderBy: { field: 'updatedAt', direction: 'ASC' } }), ['c'])
      assert.deepEqual(await pages(store, { ...query, orderBy: { field: 'createdAt', direction: 'ASC' } }), ['a', 'b', 'c', 'other'])
    },
  },
  {
    name: 'threads are filtered by metadata of exactly the same value, and by status',
    async run({ store: open }) {
      const store = await open()
      await create(store, ['text', 1, { k: '1', 'odd "key"': 'x' }], ['number', 2, { k: 1 }], ['true', 3, { k: true }], ['none', 4, {}])
      const found = async (query: Partial<ThreadQuery>) =>
        ids((await store.listThreads({ limit: 10, resourceId: 'resource-1', ...query })).threads)
      assert.deepEqual(await found({ metadata: { k: '1' } }), ['text'])
      assert.deepEqual(await found({ metadata: { k: 1 } }), ['number'])
      assert.deepEqual(await found({ metadata: { k: true } }), ['true'])
      assert.deepEqual(await found({ metadata: { k: null } }), ['none'])
      assert.deepEqual(await found({ metadata: { 'odd "key"': 'x', k: '1' } }), ['text'])
      assert.deepEqual(await found({ metadata: { 'odd "key"': 'x', k: 1 } }), [])

      await start(store, 'a', { threadId: 'running' })
      const waiting = await start(store, 'a', { threadId: 'waiting' })
      await commit(
        store, waiting, { end: { status: 'suspended', calls: [{ toolCallId: 'c', toolName: 't', args: {}, kind: 'approval' }] } },
      )
      assert.deepEqual(await found({ status: ['running'] }), ['running'])
      assert.deepEqual((await found({ status: ['running', 'suspended'] })).toSorted(), ['running', 'waiting'])
      assert.deepEqual((await store.listThreads({ limit: 10, status: ['suspended'] })).threads.map(({ id }) => id), ['waiting'])
      assert.deepEqual(await found({ status: ['idle'], metadata: { k: 1 } }), ['number'])
    },
  },
  {
    name: '[M3.1] a run that ends marks its thread in the same transaction, claimed for this process until it expires',
    async run(harness) {
      let store = await harness.store()
      const { wantsTitle } = await commit(store, await start(store), titled(later()))
      assert.equal(wantsTitle, true)
      assert.deepEqual(await claim(store), [])
      if (harness.reopen) store = await harness.reopen(store)
      assert.deepEqual(await claim(store, { agentIds: ['agent-2'], now: later() + 1 }), [])
      assert.deepEqual(await claim(store, { now: later() + 1, until: later() * 2 }), [{ threadId, agentId: 'agent-1', attempts: 2 }])
      assert.deepEqual(await claim(store, { now: later() + 1 }), [])
    },
  },
  {
    name: '[M3.1] one of two concurrent claims gets the mark; resigning releases it; an expired one is due for any process',
    async run({ store: open }) {
      const store = await open()
      const { wantsTitle } = await commit(store, await start(store), titled(0))
      assert.equal(wantsTitle, undefined)
      const both = await Promise.all(['p2', 'p3'].map((owner) => claim(store, { owner })))
      assert.deepEqual(both.map(({ length }) => length).toSorted((a, b) => a - b), [0, 1])
      await store.resign('p2')
      await store.resign('p3')
      assert.deepEqual((await claim(store)).map(({ attempts }) => attempts), [2])
      await store.returnTitle(threadId, Date.now() + 1_000)
      assert.deepEqual(await claim(store), [])
      assert.equal((await claim(store, { now: Date.now() + 2_000 })).length, 1)
      await store.returnTitle(threadId, null)
      await store.returnTitle('nowhere', null)
      assert.deepEqual(await claim(store, { now: later() * 2 }), [])
    },
  },
  {
    name: '[M3.2] a generated title is set only on an untitled thread, changes nothing else, and removes the mark',
    async run({ store: open }) {
      const store = await open()
      await commit(store, await start(store), titled(0))
      await store.patchThread(scope, { metadata: { kept: 1 } })
      const before = await store.getThread(scope)
      const after = await store.patchThread(scope, { title: 'Made', onlyIfUntitled: true })
      assert.deepEqual(after, { ...before, title: 'Made' })
      assert.deepEqual(await claim(store), [])
      assert.equal((await store.patchThread(scope, { title: 'Again', onlyIfUntitled: true })).title, 'Made')

      await alive(store, 'p1')
      const { fence } = await acceptOne(store, send('next'))
      assert.ok(fence)
      assert.equal((await commit(store, await begin(store, fence), titled(later()))).wantsTitle, undefined)
      assert.deepEqual(await claim(store, { now: later() * 2 }), [])
    },
  },
  {
    name: '[M3.1] child threads are not marked, and a mark is deleted with its thread',
    async run({ store: open }) {
      const store = await open()
      assert.equal((await commit(store, await start(store, 'a', { thread: { parentId: 'other' } }), titled(later()))).wantsTitle, undefined)
      const own = await start(store, 'b', { threadId: 'thread-2' })
      assert.equal((await commit(store, own, titled(0))).wantsTitle, undefined)
      await store.deleteThread({ threadId: 'thread-2' })
      assert.deepEqual(await claim(store), [])
    },
  },
  {
    name: '[X1.1] every method rejects another resource, and nothing is written',
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
      for (const attempt of Object.values(attempts)) await rejectsWith('thread_forbidden', attempt())
      const answers = await store.accept([
        send('b', foreign), send('new', { ...foreign, ...persisted }), send('x', { ...foreign, ifActive: { behavior: 'discard' } }),
      ])
      for (const answer of answers) {
        assert.ok('error' in answer)
        await rejectsWith('thread_forbidden', Promise.reject(answer.error))
      }
      assert.deepEqual(await everything(store), before)
      assert.deepEqual(await store.listRuns({ threadId, resourceId: 'resource-2' }), [])
      assert.deepEqual((await store.listThreads({ resourceId: 'resource-2', limit: 10 })).threads, [])
    },
  },
  {
    name: '[X1.1] a scope without a resource is trusted; an error names a missing thread',
    async run({ store: open }) {
      const store = await open()
      await start(store)
      assert.equal((await store.getThread({ threadId }))?.resourceId, 'resource-1')
      assert.equal((await store.listSignals({ threadId })).length, 1)
      const nowhere = { threadId: 'nowhere', resourceId: 'resource-1' }
      assert.equal(await store.getThread(nowhere), null)
      assert.equal(await store.deleteThread(nowhere), false)
      await rejectsWith('thread_not_found', store.listSignals(nowhere))
      await rejectsWith('thread_not_found', store.getSignal(nowhere, 'a'))
      await rejectsWith('thread_not_found', store.cancelSignals(nowhere, ['a']))
      await rejectsWith('thread_not_found', store.reorderSignals(nowhere, ['a']))
      await rejectsWith('thread_not_found', store.getRun(nowhere, 'a'))
      await rejectsWith('thread_not_found', store.patchThread(nowhere, { title: 'x' }))
      await rejectsWith('thread_not_found', store.listRows(nowhere, { limit: 1 }))
      await rejectsWith('thread_not_found', store.saveRows(nowhere, [row('a')]))
      await rejectsWith('thread_not_found', store.deleteMessages(nowhere))
      await rejectsWith('thread_not_found', store.endSuspended(nowhere, 'a', {}))
    },
  },
  {
    name: '[X1.2] equal ids of messages, signals and runs on two threads are separate',
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
    name: '[X1.2] a new thread with the id of a deleted one is empty',
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
