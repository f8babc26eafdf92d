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
        ['quota_exceeded', { quota: { resource: { watches: 1 } } }],
        ['quota_exceeded', { quota: { all: { watches: 1 } } }],
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

/** Ids of watches that two resources choose. Part of `watchConformance`. */
export const idCases: WatchCase[] = [
  {
    name: '[V1.44] an id that another resource has is one of its own for each resource, which finds, repeats and ends its own',
    async run({ store: open }) {
      const store = await open()
      const { watch: first } = await store.registerWatch(planned('w'))
      const other = { resourceId: 'resource-2', threadId: 'thread-2' }
      const { watch, added } = await store.registerWatch(planned('w', other))
      assert.deepEqual([added, watch.id === 'w', watch.resourceId], [true, false, 'resource-2'])
      assert.deepEqual(await store.registerWatch(planned('w', other)), { watch, added: false })
      assert.deepEqual(await store.registerWatch(planned(watch.id, other)), { watch, added: false })
      assert.deepEqual(await store.getWatch({ id: 'w', resourceId: 'resource-2' }), watch)
      assert.deepEqual([await store.getWatch({ id: 'w', resourceId: 'resource-1' }), await store.getWatch({ id: 'w' })], [first, first])
      assert.equal(await store.getWatch({ id: 'w', resourceId: 'resource-3' }), null)
      assert.equal(await store.getWatch({ id: watch.id, resourceId: 'resource-1' }), null)
      await assert.rejects(store.registerWatch(planned('w', { ...other, threadId: 'thread-3' })), { code: 'id_taken' })
      // The suffix of another resource can't be taken before it.
      const squat = store.registerWatch(planned(`x${watch.id.slice(1)}`, { resourceId: 'resource-3', threadId: 'thread-3' }))
      await assert.rejects(squat, { code: 'invalid_argument' })
      const ended = await store.endWatch({ id: 'w', resourceId: 'resource-2' }, { reason: 'cancelled', now: now + 1 })
      assert.deepEqual([ended?.id, ended?.state, (await store.getWatch({ id: 'w' }))?.state], [watch.id, 'ended', 'open'])
      const deliveries = await store.claimDeliveries({ now: now + 10, until: now + 20, limit: 10, agentIds: ['agent-1'] })
      assert.deepEqual(deliveries.map((delivery) => [delivery.id, delivery.watch.threadId]), [[`watch:${watch.id}`, 'thread-2']])
    },
  },
]

async function withThreads({ store: open }: WatchHarness, run: (store: WatchStore, threads: ThreadStore) => Promise<void>): Promise<void> {
  const store = await open()
  if (store.threads) await run(store, store.threads)
}
