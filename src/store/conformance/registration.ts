import assert from 'node:assert/strict'
import type { ThreadStore } from '../contract/threads.ts'
import type { NewWatch, WatchStore } from '../contract/watches.ts'
import { now, planned, type WatchHarness } from './watch-fixture.ts'
import type { WatchCase } from './watches.ts'

/** A watch whose thread is in the same database. */
export function onThread(id: string, more: Parameters<typeof planned>[1] = {}): NewWatch {
  const { threadCreatedAt: _, ...watch } = planned(id, more)
  return watch
}

/** What a registration does with its thread, for stores with `threads`. Part of `watchConformance`. */
export const registrationCases: WatchCase[] = [
  {
    name: '[V1.42] a watch creates its thread with it, and is that of a thread which exists',
    run: (harness) => withThreads(harness, async (store, threads) => {
      const { watch, added } = await store.registerWatch(onThread('w'))
      assert.deepEqual([added, watch.threadId, watch.resourceId], [true, 'thread-1', 'resource-1'])
      const thread = await threads.getThread({ threadId: 'thread-1', resourceId: 'resource-1' })
      assert.equal(thread?.createdAt.getTime(), now)
      await store.registerWatch(onThread('later', { now: now + 5 }))
      for (const id of ['w', 'later']) await store.endWatch({ id }, { reason: 'cancelled', now: now + 6 })
      const deliveries = await store.claimDeliveries({ now: now + 10, until: now + 20, limit: 10, agentIds: ['agent-1'] })
      assert.deepEqual(deliveries.map(({ id, threadCreatedAt }) => [id, threadCreatedAt]), [['watch:w', now], ['watch:later', now]])
      assert.deepEqual((await threads.listThreads({ limit: 10 })).threads.map(({ id }) => id), ['thread-1'])
    }),
  },
  {
    name: '[V1.42] a registration that is rejected leaves nothing: no thread, no watch, no category',
    run: (harness) => withThreads(harness, async (store, threads) => {
      await threads.createThread({ id: 'taken', resourceId: 'resource-2', now })
      await store.registerWatch(onThread('w', { threadId: 'first' }))
      const { bytes } = await threads.getUsage()
      const many = Array.from({ length: 20 }, (_, nth) => `name_${nth}`)
      const refused: Array<[string, Parameters<typeof planned>[1]]> = [
        ['too_many_watches', { limit: 1 }],
        ['invalid_argument', { channels: many, contacts: many }],
        ['thread_forbidden', { threadId: 'taken' }],
        ['quota_exceeded', { quota: { resource: { threads: 1 } } }],
        ['quota_exceeded', { quota: { all: { bytes: bytes + 1 } } }],
      ]
      for (const [code, more] of refused) {
        await assert.rejects(store.registerWatch(onThread('new', { threadId: 'new', categories: ['own'], ...more })), { code })
        assert.equal(await threads.getThread({ threadId: 'new' }), null, code)
        assert.equal(await store.getWatch({ id: 'new' }), null, code)
      }
      await assert.rejects(store.registerWatch(onThread('w', { threadId: 'new' })), { code: 'id_taken' })
      assert.equal(await threads.getThread({ threadId: 'new' }), null)
      assert.deepEqual(await store.expectedCategories('resource-1'), [])
      const child = 'child:thread/call'
      await assert.rejects(store.registerWatch(onThread('new', { threadId: child })), { code: 'invalid_argument' })
      assert.deepEqual([await threads.getThread({ threadId: child }), await store.getWatch({ id: 'new' })], [null, null])
    }),
  },
]

async function withThreads({ store: open }: WatchHarness, run: (store: WatchStore, threads: ThreadStore) => Promise<void>): Promise<void> {
  const store = await open()
  if (store.threads) await run(store, store.threads)
}
