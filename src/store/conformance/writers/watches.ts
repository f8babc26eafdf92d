import assert from 'node:assert/strict'
import type { ClaimedCandidate } from '../../contract/watches.ts'
import type { TwoWriters } from '../fixture.ts'
import { add, candidates, claim, inbound, match, now, planned, settle, type WatchHarness } from '../watch-fixture.ts'
import { onThread } from '../registration.ts'
import { replyWriterCases } from '../replies.ts'
import { exactlyOne, rounds } from './race.ts'

/** A case with two writers of watches. */
export interface WatchWriterCase {
  name: string
  run(harness: TwoWriters<WatchHarness>): Promise<void>
}

/** What a `WatchStore` guarantees to two connections, as cases for any test runner. They need a harness with `another`. */
export const watchWriterConformance: WatchWriterCase[] = [
  {
    name: '[V1.2] [R1.6] a message that arrives while a watch is registered is its candidate, once',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const own = { resourceId: `resource-${nth}`, channelId: `phone-${nth}` }
      const [added] = await together(
        () => one.addInbounds([inbound('a', own)]),
        () => two.registerWatch(planned(`w-${nth}`, { resourceId: own.resourceId, channels: ['sms'] })),
      )
      assert.deepEqual(await candidates(one, `w-${nth}`), [[added[0]?.inbound.seq, 'pending']])
    }),
  },
  {
    name: '[V1.2] [R1.6] a message that is annotated while a watch for its category is registered is its candidate, once',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const own = { resourceId: `resource-${nth}`, channelId: `phone-${nth}` }
      const [seq] = (await add(one, inbound('a', own))) as [number]
      await together(
        () => one.annotateInbound({ seq, categories: ['urgent'], now }),
        () => two.registerWatch(planned(`w-${nth}`, { resourceId: own.resourceId, categories: ['urgent'] })),
      )
      assert.deepEqual(await candidates(two, `w-${nth}`), [[seq, 'pending']])
    }),
  },
  {
    name: '[V1.44] [R1.6] two resources that choose one id at the same time have a watch each',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const [id, resources] = [`same-${nth}`, [`ada-${nth}`, `bob-${nth}`] as const]
      const register = (store: typeof one, resourceId: string) =>
        store.registerWatch(planned(id, { resourceId, threadId: `of-${resourceId}` }))
      const made = await together(() => register(one, resources[0]), () => register(two, resources[1]))
      assert.deepEqual(made.map(({ added, watch }) => [added, watch.resourceId]), resources.map((resourceId) => [true, resourceId]))
      exactlyOne(made.map(({ watch }) => watch.id === id))
      for (const [nthMade, resourceId] of resources.entries())
        assert.deepEqual(await two.getWatch({ id, resourceId }), made[nthMade]?.watch)
    }),
  },
  {
    name: '[V1.1] [R1.6] a message that both store is one',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const own = { channelId: `phone-${nth}` }
      const answers = await together(
        () => one.addInbounds([inbound('a', { ...own, id: `one-${nth}` })]),
        () => two.addInbounds([inbound('a', { ...own, id: `two-${nth}` })]),
      )
      exactlyOne(answers.flat().map(({ repeated }) => !repeated))
      assert.deepEqual(answers[0][0]?.inbound, answers[1][0]?.inbound)
    }),
  },
  {
    name: '[V1.5] [R1.6] a candidate is claimed by one of two',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const own = { resourceId: `resource-${nth}`, agentId: `agent-${nth}` }
      await one.registerWatch(planned(`w-${nth}`, own))
      await add(one, inbound('a', { resourceId: own.resourceId, channelId: `phone-${nth}` }))
      const claims = await together(
        () => one.claimCandidates({ ...claim, agentIds: [own.agentId] }), () => two.claimCandidates({ ...claim, agentIds: [own.agentId] }),
      )
      assert.equal(claims.flat().length, 1)
    }),
  },
  {
    name: '[V1.6] [V1.11] [R1.6] a match and a cancellation at once end the watch once, with one delivery',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const own = { resourceId: `resource-${nth}`, agentId: `agent-${nth}` }
      const watchId = `w-${nth}`
      await one.registerWatch(planned(watchId, own))
      await add(one, inbound('a', { resourceId: own.resourceId, channelId: `phone-${nth}` }))
      const [claimed] = await one.claimCandidates({ ...claim, agentIds: [own.agentId] })
      const [settled] = await together(
        () => settle(one, claimed as ClaimedCandidate, match),
        () => two.endWatch({ id: watchId }, { reason: 'cancelled', now: now + 20 }),
      )
      const deliveries = await two.claimDeliveries({ ...claim, now: now + 30, agentIds: [own.agentId] })
      assert.deepEqual(deliveries.map(({ reason }) => reason), [settled ? 'matched' : 'cancelled'])
      assert.equal((await two.getWatch({ id: watchId }))?.reason, settled ? 'matched' : 'cancelled')
    }),
  },
  {
    name: '[V1.13] [R1.6] a delivery is claimed by one of two',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const agentIds = [`agent-${nth}`]
      await one.registerWatch(planned(`w-${nth}`, { agentId: `agent-${nth}` }))
      await one.endWatch({ id: `w-${nth}` }, { reason: 'cancelled', now })
      const claims = await together(() => one.claimDeliveries({ ...claim, agentIds }), () => two.claimDeliveries({ ...claim, agentIds }))
      assert.equal(claims.flat().length, 1)
    }),
  },
  {
    name: '[V1.42] [R1.6] two watches that create their thread at once are of one thread',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const own = { resourceId: `resource-${nth}`, agentId: `agent-${nth}`, threadId: `thread-${nth}` }
      const answers = await together(
        () => one.registerWatch(onThread(`one-${nth}`, { ...own, now })),
        () => two.registerWatch(onThread(`two-${nth}`, { ...own, now: now + 1 })),
      )
      assert.deepEqual(answers.map(({ added }) => added), [true, true])
      for (const id of ['one', 'two']) await one.endWatch({ id: `${id}-${nth}` }, { reason: 'cancelled', now: now + 2 })
      const deliveries = await two.claimDeliveries({ ...claim, agentIds: [own.agentId] })
      assert.equal(new Set(deliveries.map(({ threadCreatedAt }) => threadCreatedAt)).size, 1)
      assert.equal(deliveries.length, 2)
    }),
  },
  {
    name: '[V1.42] [R1.6] a watch is never open on a thread that was deleted while it was registered',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      // One of the two may be a connection of another thread of this process, which carries calls alone.
      const [other, { threads }] = typeof one.threads === 'object' ? [two, one] : [one, two]
      const own = { resourceId: `resource-${nth}`, threadId: `thread-${nth}` }
      assert.ok(threads)
      await threads.createThread({ id: own.threadId, resourceId: own.resourceId, now })
      await together(() => other.registerWatch(onThread(`w-${nth}`, own)), () => threads.deleteThread(own))
      const [watch, thread] = [await other.getWatch({ id: `w-${nth}` }), await threads.getThread(own)]
      assert.equal(watch === null, thread === null)
    }),
  },
  ...replyWriterCases,
]
