import assert from 'node:assert/strict'
import type { SubscriptionStore } from '../../contract/subscriptions.ts'
import type { TwoWriters } from '../case.ts'
import type { SubscriptionHarness } from '../subscriptions.ts'
import { answerOr, rounds } from './race.ts'

export interface SubscriptionWriterCase {
  name: string
  run(harness: TwoWriters<SubscriptionHarness>): Promise<void>
}

const now = 1_700_000_000_000
const wanted = { externalId: 'thing', threadId: 'thread-1', resourceId: 'resource-1', agentId: 'agent-1', now }

/** What a `SubscriptionStore` guarantees to two connections, as cases for any test runner. They need a harness with `another`. */
export const subscriptionWriterConformance: SubscriptionWriterCase[] = [
  {
    name: '[E1.3] [R1.6] a subscription that both make is one row with the metadata of both',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const sourceId = `source-${nth}`
      const put = async (store: SubscriptionStore, prefix: string) => {
        for (const index of [0, 1, 2]) await store.putSubscription({ ...wanted, sourceId, metadata: { [prefix + index]: index } })
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
        answerOr(store.putSubscription({ ...wanted, sourceId, resourceId, metadata: {} }), 'thread_forbidden')
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
