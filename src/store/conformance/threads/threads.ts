import assert from 'node:assert/strict'
import type { ThreadQuery, ThreadStore } from '../../contract/threads.ts'
import type { StoreCase } from '../case.ts'
import { accept, commit, ids, persisted, refuses, scope, send, start, status } from '../fixture.ts'

async function create(store: ThreadStore, ...made: Array<[id: string, now: number, metadata?: Record<string, string | number | boolean>, resourceId?: string]>): Promise<void> {
  for (const [id, now, metadata, resourceId] of made) await store.createThread({ id, resourceId: resourceId ?? 'resource-1', now, metadata })
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

export const threadCases: StoreCase[] = [
  {
    name: 'a thread is created once, and answered as it is the second time',
    async run(harness) {
      let store = await harness.store()
      const made = await store.createThread({ id: 't', resourceId: 'r', title: 'T', metadata: { a: [1, { b: null }] }, parentId: 'p', now: 1000 })
      if (harness.reopen) store = await harness.reopen(store)
      const again = await store.createThread({ id: 't', resourceId: 'r', title: 'Other', now: 2000 })
      assert.deepEqual([made.created, again.created], [true, false])
      assert.deepEqual(again.thread, made.thread)
      assert.deepEqual(made.thread, {
        id: 't', resourceId: 'r', title: 'T', metadata: { a: [1, { b: null }] }, parentId: 'p', createdAt: new Date(1000), updatedAt: new Date(1000),
        status: 'idle', epoch: 0,
      })
      const both = await Promise.all([store.createThread({ id: 'u', resourceId: 'r', now: 1 }), store.createThread({ id: 'u', resourceId: 'r', now: 2 })])
      assert.equal(both.filter(({ created }) => created).length, 1)
    },
  },
  {
    name: 'metadata is merged key by key, ten writers at once lose nothing, null removes',
    async run({ store: open }) {
      const store = await open()
      await store.createThread({ id: scope.threadId, resourceId: 'resource-1', title: 'Kept', metadata: { gone: 1, stays: { deep: true } }, now: 1 })
      const keys = Array.from({ length: 10 }, (_, index) => `k${index}`)
      await Promise.all(keys.map((key, index) => store.patchThread(scope, { metadata: { [key]: index } })))
      const patched = await store.patchThread(scope, { metadata: { gone: null, never: undefined, list: [1], __proto__: null } })
      assert.deepEqual(patched.metadata, { stays: { deep: true }, ...Object.fromEntries(keys.map((key, index) => [key, index])), list: [1] })
      assert.equal(patched.title, 'Kept')
      assert.deepEqual(await store.getThread(scope), patched)
      assert.ok(patched.updatedAt.getTime() > 1)
      assert.equal(patched.createdAt.getTime(), 1)
    },
  },
  {
    name: 'a title is set; when only wanted for an untitled thread, the first one stays',
    async run({ store: open }) {
      const store = await open()
      await start(store)
      const titles = await Promise.all(['One', 'Two'].map((title) => store.patchThread(scope, { title, onlyIfUntitled: true, metadata: { [title]: true } })))
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
      await refuses('thread_not_found', store.listRows(scope, { limit: 1 }))
      assert.deepEqual((await store.listThreads({ limit: 10 })).threads, [])
    },
  },
  {
    name: '[M4.5] threads below one are listed when asked for, go with it and change hands with it; those of others stay',
    async run({ store: open }) {
      const store = await open()
      const make = (id: string, parentId?: string, resourceId = 'resource-1') => store.createThread({ id, resourceId, now: 1, ...(parentId === undefined ? {} : { parentId }) })
      await make('top')
      await make('top/1', 'top')
      await make('top/1/1', 'top/1')
      await make('top/2', 'top')
      await make('other')
      await make('other/1', 'other')
      await make('foreign', 'top', 'resource-2')
      const listed = async (query: Partial<ThreadQuery>) => ids((await store.listThreads({ limit: 10, orderBy: { field: 'createdAt', direction: 'ASC' }, ...query })).threads)
      assert.deepEqual(await listed({}), ['foreign', 'other', 'other/1', 'top', 'top/1', 'top/1/1', 'top/2'])
      assert.deepEqual(await listed({ parentId: null }), ['other', 'top'])
      assert.deepEqual(await listed({ parentId: 'top', resourceId: 'resource-1' }), ['top/1', 'top/2'])
      assert.equal((await store.listThreads({ limit: 1, parentId: null, total: true })).total, 2)
      await store.transferThread({ threadId: 'other' }, 'resource-3')
      assert.deepEqual(await listed({ resourceId: 'resource-3' }), ['other', 'other/1'])
      await refuses('thread_forbidden', store.getThread({ threadId: 'other/1', resourceId: 'resource-1' }))
      assert.equal(await store.deleteThread({ threadId: 'top', resourceId: 'resource-1' }), true)
      assert.deepEqual(await listed({}), ['foreign', 'other', 'other/1'])
    },
  },
  {
    name: 'threads are listed by page without repeats or gaps, also where times are equal',
    async run({ store: open }) {
      const store = await open()
      await create(store, ['c', 5], ['a', 5], ['e', 9], ['b', 5], ['d', 1], ['x', 5, {}, 'resource-2'])
      for (const field of ['createdAt', 'updatedAt'] as const) {
        for (const limit of [1, 2, 5, 100]) {
          const query = { resourceId: 'resource-1', limit }
          assert.deepEqual(await pages(store, { ...query, orderBy: { field, direction: 'ASC' } }), ['d', 'a', 'b', 'c', 'e'])
          assert.deepEqual(await pages(store, { ...query, orderBy: { field, direction: 'DESC' } }), ['e', 'c', 'b', 'a', 'd'])
        }
      }
      assert.deepEqual(await pages(store, { limit: 2 }), ['e', 'x', 'c', 'b', 'a', 'd'], 'newest first, of all resources, unless told otherwise')
      const offset = await store.listThreads({ resourceId: 'resource-1', limit: 2, offset: 1, total: true })
      assert.deepEqual([ids(offset.threads), offset.more, offset.total], [['c', 'b'], true, 5])
      const last = await store.listThreads({ resourceId: 'resource-1', limit: 3, offset: 2 })
      assert.deepEqual([ids(last.threads), last.more, last.total], [['b', 'a', 'd'], false, undefined])
    },
  },
  {
    name: 'threads that are found by metadata are in the order of their last change too',
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
    name: 'threads are found by metadata of the very same value, and by status',
    async run({ store: open }) {
      const store = await open()
      await create(store, ['text', 1, { k: '1', 'odd "key"': 'x' }], ['number', 2, { k: 1 }], ['true', 3, { k: true }], ['none', 4, {}])
      const found = async (query: Partial<ThreadQuery>) => ids((await store.listThreads({ limit: 10, resourceId: 'resource-1', ...query })).threads)
      assert.deepEqual(await found({ metadata: { k: '1' } }), ['text'])
      assert.deepEqual(await found({ metadata: { k: 1 } }), ['number'])
      assert.deepEqual(await found({ metadata: { k: true } }), ['true'])
      assert.deepEqual(await found({ metadata: { k: null } }), ['none'])
      assert.deepEqual(await found({ metadata: { 'odd "key"': 'x', k: '1' } }), ['text'])
      assert.deepEqual(await found({ metadata: { 'odd "key"': 'x', k: 1 } }), [])

      await start(store, 'a', { threadId: 'running' })
      const waiting = await start(store, 'a', { threadId: 'waiting' })
      await commit(store, waiting, { end: { status: 'suspended', calls: [{ toolCallId: 'c', toolName: 't', args: {}, kind: 'approval' }] } })
      assert.deepEqual(await found({ status: ['running'] }), ['running'])
      assert.deepEqual((await found({ status: ['running', 'suspended'] })).toSorted(), ['running', 'waiting'])
      assert.deepEqual((await store.listThreads({ limit: 10, status: ['suspended'] })).threads.map(({ id }) => id), ['waiting'])
      assert.deepEqual(await found({ status: ['idle'], metadata: { k: 1 } }), ['number'])
    },
  },
]
