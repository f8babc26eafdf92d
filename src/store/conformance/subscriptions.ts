import assert from 'node:assert/strict'
import type { NewSubscription, SubscriptionStore } from '../contract/subscriptions.ts'

/** How the suite gets at the subscriptions it tries: fresh ones, none there and open. Whoever gives them out closes them after the case. */
export interface SubscriptionHarness {
  store(): Promise<SubscriptionStore>
  /** A second connection to the database of `store`, as for `StoreHarness`. */
  another?(store: SubscriptionStore): Promise<SubscriptionStore>
}

/** One promise, tried. The ids in brackets are those of the protocol. */
export interface SubscriptionCase {
  name: string
  run(harness: SubscriptionHarness): Promise<void>
}

const now = 1_700_000_000_000
const sourceId = 'source-1'

function wanted(externalId: string, threadId: string, more: Partial<NewSubscription> = {}): NewSubscription {
  return { sourceId, externalId, threadId, resourceId: 'resource-1', agentId: 'agent-1', metadata: {}, now, ...more }
}

/**
 * What every `SubscriptionStore` keeps, as cases for any test runner:
 *
 *     for (const { name, run } of subscriptionConformance) it(name, () => run(harness))
 */
export const subscriptionConformance: SubscriptionCase[] = [
  {
    name: '[E1.3] a subscription is one row, and lists are by thing and thread, page by page',
    async run({ store: open }) {
      const store = await open()
      await store.putSubscription(wanted('a', 't1', { metadata: { one: 1 } }))
      const again = await store.putSubscription(wanted('a', 't1', { metadata: { two: 2 }, agentId: 'agent-2' }))
      assert.deepEqual([again.metadata, again.agentId, again.subscribedAt.getTime()], [{ one: 1, two: 2 }, 'agent-2', now])
      for (const [externalId, threadId] of [['b', 't1'], ['a', 't3'], ['a', 't2']] as const) await store.putSubscription(wanted(externalId, threadId))
      await store.putSubscription(wanted('a', 't1', { sourceId: 'source-2' }))
      const first = await store.listSubscriptions({ sourceId, limit: 3 })
      assert.deepEqual([first.subscriptions.map(({ externalId, threadId }) => externalId + threadId), first.more], [['at1', 'at2', 'at3'], true])
      const [, , last] = first.subscriptions
      const rest = await store.listSubscriptions({ sourceId, limit: 3, ...(last ? { after: last } : {}) })
      assert.deepEqual([rest.subscriptions.map(({ externalId, threadId }) => externalId + threadId), rest.more], [['bt1'], false])
      assert.equal((await store.listSubscriptions({ sourceId, externalId: 'a', limit: 9 })).subscriptions.length, 3)
    },
  },
  {
    name: '[E1.8] another resource neither sees, replaces nor removes one; it goes with its thread, and changes hands with it',
    async run({ store: open }) {
      const store = await open()
      for (const threadId of ['t1', 't2', 't3']) await store.putSubscription(wanted('a', threadId))
      const threads = async (resourceId?: string) => (await store.listSubscriptions({ sourceId, limit: 9, ...(resourceId === undefined ? {} : { resourceId }) })).subscriptions.map(({ threadId }) => threadId)
      await assert.rejects(store.putSubscription(wanted('a', 't1', { resourceId: 'resource-2' })), { code: 'thread_forbidden' })
      assert.equal(await store.deleteSubscriptions({ sourceId, threadId: 't1', resourceId: 'resource-2' }), 0)
      assert.deepEqual(await threads('resource-2'), [])
      await store.giveThread('t2', 'resource-2')
      assert.deepEqual([await threads('resource-1'), await threads('resource-2')], [['t1', 't3'], ['t2']])
      await store.forgetThreads(['t1', 't2'], 'resource-1')
      assert.deepEqual(await threads(), ['t2', 't3'])
      await store.forgetThreads(['t2'])
      assert.deepEqual(await threads(), ['t3'])
    },
  },
  {
    name: '[E1.6] a turn is one holder\'s until it ends or lapses; its cursor is kept only by whoever still has it',
    async run({ store: open }) {
      const store = await open()
      const claim = (holder: string, at: number) => store.claimPoll({ sourceId, holder, now: now + at, until: now + at + 100 })
      const [one, two] = await Promise.all([claim('p1', 0), claim('p2', 0)])
      assert.deepEqual([one, two], [{}, null])
      // Renewed, it is nobody else's.
      assert.deepEqual([await claim('p1', 90), await claim('p2', 150)], [{}, null])
      assert.equal(await store.endPoll({ sourceId, holder: 'p2', nextAt: now, cursor: 'wrong' }), false)
      assert.equal(await store.endPoll({ sourceId, holder: 'p1', nextAt: now + 200, cursor: { after: 7 } }), true)
      assert.deepEqual([await claim('p1', 199), await claim('p2', 200)], [null, { cursor: { after: 7 } }])
      // Whoever slept through its turn changes nothing.
      assert.deepEqual(await claim('p1', 300), { cursor: { after: 7 } })
      assert.equal(await store.endPoll({ sourceId, holder: 'p2', nextAt: now, cursor: { after: 9 } }), false)
      assert.equal(await store.endPoll({ sourceId, holder: 'p1', nextAt: now + 300 }), true)
      assert.deepEqual(await claim('p3', 300), { cursor: { after: 7 } })
      assert.deepEqual(await store.claimPoll({ sourceId: 'source-2', holder: 'p1', now, until: now + 1 }), {})
    },
  },
  {
    name: '[E1.1] a delivery is known once it was recorded, as it was signed, and no other',
    async run({ store: open }) {
      const store = await open()
      const delivery = { sourceId, id: 'msg', timestamp: now / 1_000 }
      assert.equal(await store.isDelivered(delivery), false)
      assert.equal(await store.isDelivered(delivery), false)
      await store.recordDelivery({ ...delivery, now })
      await store.recordDelivery({ ...delivery, now })
      const others = [{ timestamp: delivery.timestamp - 3 }, { timestamp: delivery.timestamp + 3 }, { id: 'other' }, { sourceId: 'source-2' }]
      assert.deepEqual(await Promise.all([{}, ...others].map((other) => store.isDelivered({ ...delivery, ...other }))), [true, false, false, false, false])
      await store.recordDelivery({ sourceId, id: 'later', timestamp: delivery.timestamp + 600, now: now + 600_000 })
      assert.equal(await store.isDelivered(delivery), true)
    },
  },
]
