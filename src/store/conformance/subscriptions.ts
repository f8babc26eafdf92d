import assert from 'node:assert/strict'
import type { NewSubscription, SubscriptionStore } from '../contract/subscriptions.ts'
import type { TwoWriters } from './fixture.ts'
import { answerOr, rounds } from './writers/race.ts'

/** Gives the suite a new store of subscriptions, empty and open. The harness closes it after the case. */
export interface SubscriptionHarness {
  store(): Promise<SubscriptionStore>
  /** A second connection to the database of `store`, as for `StoreHarness`. */
  another?(store: SubscriptionStore): Promise<SubscriptionStore>
}

/** One guarantee as a test. The ids in brackets are those of PROTOCOL.md. */
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
 * What every `SubscriptionStore` guarantees, as cases for any test runner:
 *
 *     for (const { name, run } of subscriptionConformance) it(name, () => run(harness))
 */
export const subscriptionConformance: SubscriptionCase[] = [
  {
    name: '[E1.3] a subscription is one row; lists are ordered by external id and thread, and paged',
    async run({ store: open }) {
      const store = await open()
      await store.putSubscription(wanted('a', 't1', { metadata: { one: 1 } }))
      const again = await store.putSubscription(wanted('a', 't1', { metadata: { two: 2 }, agentId: 'agent-2' }))
      assert.deepEqual([again.metadata, again.agentId, again.subscribedAt.getTime()], [{ one: 1, two: 2 }, 'agent-2', now])
      for (const [externalId, threadId] of [['b', 't1'], ['a', 't3'], ['a', 't2']] as const) await store.putSubscription(
        wanted(externalId, threadId),
      )
      await store.putSubscription(wanted('a', 't1', { sourceId: 'source-2' }))
      const first = await store.listSubscriptions({ sourceId, limit: 3 })
      assert.deepEqual(
        [first.subscriptions.map(({ externalId, threadId }) => externalId + threadId), first.more], [['at1', 'at2', 'at3'], true],
      )
      const [, , last] = first.subscriptions
      const rest = await store.listSubscriptions({ sourceId, limit: 3, ...(last ? { after: last } : {}) })
      assert.deepEqual([rest.subscriptions.map(({ externalId, threadId }) => externalId + threadId), rest.more], [['bt1'], false])
      assert.equal((await store.listSubscriptions({ sourceId, externalId: 'a', limit: 9 })).subscriptions.length, 3)
    },
  },
  {
    name: "[E1.8] another resource can't read, replace or remove a subscription; it is deleted and transferred with its thread",
    async run({ store: open }) {
      const store = await open()
      for (const threadId of ['t1', 't2', 't3']) await store.putSubscription(wanted('a', threadId))
      const threads = async (resourceId?: string) => (await store.listSubscriptions({
        sourceId, limit: 9, ...(resourceId === undefined ? {} : { resourceId }),
      })).subscriptions.map(({ threadId }) => threadId)
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
    name: '[E1.6] a poll belongs to one holder until it ends or expires; only the present holder can store its cursor',
    async run({ store: open }) {
      const store = await open()
      const claim = (holder: string, at: number) => store.claimPoll({ sourceId, holder, now: now + at, until: now + at + 100 })
      const [one, two] = await Promise.all([claim('p1', 0), claim('p2', 0)])
      assert.deepEqual([one, two], [{}, null])
      // A renewed claim hides it from others.
      assert.deepEqual([await claim('p1', 90), await claim('p2', 150)], [{}, null])
      assert.equal(await store.endPoll({ sourceId, holder: 'p2', nextAt: now, cursor: 'wrong' }), false)
      assert.equal(await store.endPoll({ sourceId, holder: 'p1', nextAt: now + 200, cursor: { after: 7 } }), true)
      assert.deepEqual([await claim('p1', 199), await claim('p2', 200)], [null, { cursor: { after: 7 } }])
      // A holder whose claim expired changes nothing.
      assert.deepEqual(await claim('p1', 300), { cursor: { after: 7 } })
      assert.equal(await store.endPoll({ sourceId, holder: 'p2', nextAt: now, cursor: { after: 9 } }), false)
      assert.equal(await store.endPoll({ sourceId, holder: 'p1', nextAt: now + 300 }), true)
      assert.deepEqual(await claim('p3', 300), { cursor: { after: 7 } })
      assert.deepEqual(await store.claimPoll({ sourceId: 'source-2', holder: 'p1', now, until: now + 1 }), {})
    },
  },
  {
    name: '[E1.1] a recorded delivery is recognized by its id and time of signature',
    async run({ store: open }) {
      const store = await open()
      const delivery = { sourceId, id: 'msg', timestamp: now / 1_000 }
      assert.equal(await store.isDelivered(delivery), false)
      assert.equal(await store.isDelivered(delivery), false)
      await store.recordDelivery({ ...delivery, now })
      await store.recordDelivery({ ...delivery, now })
      const others = [
        { timestamp: delivery.timestamp - 3 }, { timestamp: delivery.timestamp + 3 }, { id: 'other' }, { sourceId: 'source-2' },
      ]
      assert.deepEqual(
        await Promise.all([{}, ...others].map((other) => store.isDelivered({ ...delivery, ...other }))), [true, false, false, false, false],
      )
      await store.recordDelivery({ sourceId, id: 'later', timestamp: delivery.timestamp + 600, now: now + 600_000 })
      assert.equal(await store.isDelivered(delivery), true)
    },
  },
]

/** A case with two writers of subscriptions. */
export interface SubscriptionWriterCase {
  name: string
  run(harness: TwoWriters<SubscriptionHarness>): Promise<void>
}

const thing = { externalId: 'thing', threadId: 'thread-1', resourceId: 'resource-1', agentId: 'agent-1', now }

/** What a `SubscriptionStore` guarantees to two connections, as cases for any test runner. They need a harness with `another`. */
export const subscriptionWriterConformance: SubscriptionWriterCase[] = [
  {
    name: '[E1.3] [R1.6] a subscription that both make is one row with the metadata of both',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const sourceId = `source-${nth}`
      const put = async (store: SubscriptionStore, prefix: string) => {
        for (const index of [0, 1, 2]) await store.putSubscription({ ...thing, sourceId, metadata: { [prefix + index]: index } })
      }
      await together(() => put(one, 'a'), () => put(two, 'b'))
      const { subscriptions } = await two.listSubscriptions({ sourceId, limit: 10 })
      assert.deepEqual(subscriptions.map(({ metadata }) => Object.keys(metadata).toSorted()), [['a0', 'a1', 'a2', 'b0', 'b1', 'b2']])
    }),
  },
  {
    name: '[E1.8] [R1.6] of two resources that subscribe one thread to one thing one does',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const sourceId = `source-${nth}`
      const put = (store: SubscriptionStore, resourceId: string) =>
        answerOr(store.putSubscription({ ...thing, sourceId, resourceId, metadata: {} }), 'thread_forbidden')
      const answers = await together(() => put(one, 'resource-1'), () => put(two, 'resource-2'))
      const made = answers.findIndex((answer) => answer !== 'thread_forbidden')
      assert.equal(answers[1 - made], 'thread_forbidden')
      const { subscriptions } = await two.listSubscriptions({ sourceId, limit: 10 })
      assert.deepEqual(subscriptions.map(({ resourceId }) => resourceId), [`resource-${made + 1}`])
    }),
  },
  {
    name: '[E1.6] [R1.6] of two claims of the turn to poll a source one gets it, for a new source and after a turn expired',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const sourceId = `source-${nth}`
      for (const at of [now, now + 200]) {
        const claim = (store: SubscriptionStore, holder: string) =>
          store.claimPoll({ sourceId, holder: `${holder}-${at}`, now: at, until: at + 100 })
        const turns = await together(() => claim(one, 'p1'), () => claim(two, 'p2'))
        assert.equal(turns.filter((turn) => turn !== null).length, 1)
        const ended = await together(
          () => one.endPoll({ sourceId, holder: `p1-${at}`, nextAt: at + 100, cursor: 'p1' }),
          () => two.endPoll({ sourceId, holder: `p2-${at}`, nextAt: at + 100, cursor: 'p2' }),
        )
        assert.deepEqual(ended, turns.map((turn) => turn !== null))
      }
    }),
  },
  {
    name: '[E1.1] [R1.6] a delivery that both record is recorded, and neither call fails',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const delivery = { sourceId: `source-${nth}`, id: 'msg', timestamp: now / 1_000 }
      await together(() => one.recordDelivery({ ...delivery, now }), () => two.recordDelivery({ ...delivery, now }))
      assert.deepEqual([await one.isDelivered(delivery), await two.isDelivered(delivery)], [true, true])
    }),
  },
]
