import assert from 'node:assert/strict'
import type { StepCommit, ThreadStore, TitleClaim, WantedTitle } from '../../contract/threads.ts'
import type { StoreCase } from '../case.ts'
import { commit, row, scope, send, acceptOne, alive, begin, start, threadId } from '../fixture.ts'

const later = () => Date.now() + 3_600_000
const titled = (until: number): Partial<StepCommit> => ({ rows: [row('said', 'assistant')], drain: true, end: { status: 'finished', titleUntil: until } })

function claim(store: ThreadStore, more: Partial<TitleClaim> = {}): Promise<WantedTitle[]> {
  return store.claimTitles({ owner: 'p2', now: Date.now(), until: later(), limit: 10, agentIds: ['agent-1'], ...more })
}

export const titleCases: StoreCase[] = [
  {
    name: '[M3.1] a run that ends marks its thread in the same transaction; the mark is this process\'s until its time is over',
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
    name: '[M3.1] of two that claim at once one gets the mark; one who resigns hands it over; a mark with no time left is anybody\'s',
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
    name: '[M3.2] a title that was made is set only where there is none, touches nothing else, and takes the mark away',
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
    name: '[M3.1] threads that are parts of others are not marked, and a mark goes with its thread',
    async run({ store: open }) {
      const store = await open()
      assert.equal((await commit(store, await start(store, 'a', { thread: { parentId: 'other' } }), titled(later()))).wantsTitle, undefined)
      const own = await start(store, 'b', { threadId: 'thread-2' })
      assert.equal((await commit(store, own, titled(0))).wantsTitle, undefined)
      await store.deleteThread({ threadId: 'thread-2' })
      assert.deepEqual(await claim(store), [])
    },
  },
]
