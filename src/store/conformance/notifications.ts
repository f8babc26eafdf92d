import assert from 'node:assert/strict'
import type { DueClaim, NewNotification, NotificationStore, Settlement } from '../notifications.ts'

/** How the suite gets at the inbox it tries: a fresh one, empty and open. Whoever gives it out closes it after the case. */
export interface NotificationHarness {
  store(): Promise<NotificationStore>
}

/** One promise, tried. The ids in brackets are those of the protocol. */
export interface NotificationCase {
  name: string
  run(harness: NotificationHarness): Promise<void>
}

const scope = { threadId: 'thread-1', resourceId: 'resource-1' }
const now = 1_700_000_000_000

function note(id: string, more: Partial<NewNotification> = {}): NewNotification {
  return { ...scope, id, agentId: 'agent-1', source: 'github', kind: 'ci', summary: id, now, undecidedUntil: now + 30_000, ...more }
}

function decided(id: string, more: Partial<Settlement>): Settlement {
  return { threadId: scope.threadId, id, action: 'defer', now, claimUntil: now + 1_000, ...more }
}

const claim: DueClaim = { now: now + 10, until: now + 1_000, limit: 100, agentIds: ['agent-1'] }
const window = { form: 'window', quietMs: 5, maxWaitMs: 30 } as const

export const notificationConformance: NotificationCase[] = [
  {
    name: '[N1.1] sends of one dedupeKey at once are one record with their count',
    async run({ store: open }) {
      const store = await open()
      const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => store.ingest([note(`n${index}`, { dedupeKey: 'k' })])))
      assert.equal(answers.filter(([answer]) => answer?.outcome === 'created').length, 1)
      const { notifications } = await store.listNotifications({ ...scope, limit: 50 })
      assert.deepEqual(notifications.map(({ coalescedCount }) => coalescedCount), [20])
    },
  },
  {
    name: '[N1.1] [H1.2] an id that is there is the same notification, also when it was delivered, and nothing of another resource',
    async run({ store: open }) {
      const store = await open()
      const answers = await Promise.all(Array.from({ length: 5 }, () => store.ingest([note('n1')])))
      assert.equal(answers.filter(([answer]) => answer?.outcome === 'created').length, 1)
      await store.settle([decided('n1', { action: 'deliver' })])
      await store.delivered([{ threadId: scope.threadId, id: 'n1', signalId: 's1', status: 'delivered', now }])
      const [again] = await store.ingest([note('n1', { summary: 'other words' })])
      assert.deepEqual([again?.outcome, again?.record.status, again?.record.summary], ['counted', 'delivered', 'n1'])
      await assert.rejects(store.ingest([note('n1', { resourceId: 'resource-2' })]), { code: 'thread_forbidden' })
    },
  },
  {
    name: '[N1.2] what is on its way takes in no more words of its coalesceKey',
    async run({ store: open }) {
      const store = await open()
      await store.ingest([note('n1', { coalesceKey: 'k' }), note('n2', { coalesceKey: 'k', summary: 'newer' })])
      assert.deepEqual((await store.listNotifications({ ...scope, limit: 5 })).notifications.map(({ id, summary }) => [id, summary]), [['n1', 'newer']])
      await store.settle([decided('n1', { action: 'deliver' })])
      const [third] = await store.ingest([note('n3', { coalesceKey: 'k' })])
      assert.deepEqual([third?.record.id, third?.outcome], ['n3', 'created'])
    },
  },
  {
    name: '[N1.7] what waits is one batch: due after the quiet period, at the latest after the maximum; its sources in the order of their coming',
    async run({ store: open }) {
      const store = await open()
      for (const [index, source] of ['b', 'a', 'b'].entries()) {
        await store.ingest([note(`n${index}`, { source, priority: 'low' })])
        await store.settle([decided(`n${index}`, { action: 'summarize', summary: window, now: now + index * 14 })])
      }
      assert.equal(await store.nextDue(['agent-1']), now + 30)
      assert.deepEqual((await store.claimDue({ ...claim, now: now + 29 })).batches, [])
      const [batch, ...others] = (await store.claimDue({ ...claim, now: now + 30 })).batches
      assert.deepEqual(others, [])
      assert.deepEqual(batch?.sources, [{ source: 'b', count: 2 }, { source: 'a', count: 1 }])
      assert.equal(batch?.wakes, false)
      // Whatever comes now is another batch.
      await store.ingest([note('late')])
      const [late] = await store.settle([decided('late', { action: 'summarize', summary: { form: 'now' } })])
      assert.notEqual(late?.batch?.id, batch?.id)
      await store.summarised(batch?.id ?? '', 'signal-1')
      const record = await store.getNotification({ ...scope, id: 'n0' })
      assert.deepEqual([record?.status, record?.summarySignalId, record?.summaryAt], ['pending', 'signal-1', undefined])
    },
  },
  {
    name: '[N2.1] what is claimed is hidden from every other claim until its time, and then due again',
    async run({ store: open }) {
      const store = await open()
      await store.ingest(Array.from({ length: 30 }, (_, index) => note(`n${index}`)))
      await store.settle(Array.from({ length: 30 }, (_, index) => decided(`n${index}`, { deliverAt: now + 5 })))
      assert.deepEqual((await store.claimDue({ ...claim, now: now + 4 })).records, [])
      const rounds = await Promise.all(Array.from({ length: 5 }, () => store.claimDue({ ...claim, limit: 10 })))
      const taken = rounds.flatMap(({ records }) => records.map(({ id }) => id))
      assert.equal(taken.length, 30)
      assert.equal(new Set(taken).size, 30)
      await store.delivered(taken.slice(0, 20).map((id) => ({ threadId: scope.threadId, id, signalId: `s-${id}`, status: 'delivered', now })))
      assert.equal((await store.claimDue({ ...claim, now: claim.until, until: claim.until + 1 })).records.length, 10)
      assert.deepEqual((await store.claimDue({ ...claim, now: claim.until + 1, agentIds: ['agent-2'] })).records, [])
    },
  },
  {
    name: '[N2.2] what fails is due again, then failed with its error, then pending when it is retried',
    async run({ store: open }) {
      const store = await open()
      await store.ingest([note('n1')])
      await store.settle([decided('n1', { action: 'deliver' })])
      await store.failed({ threadId: scope.threadId, id: 'n1', error: 'first', retryAt: now + 50, now })
      assert.equal(await store.nextDue(['agent-1']), now + 50)
      await store.failed({ threadId: scope.threadId, id: 'n1', error: 'second', now })
      const failed = await store.getNotification({ ...scope, id: 'n1' })
      assert.deepEqual([failed?.status, failed?.lastDeliveryError, failed?.deliveryAttempts], ['failed', 'second', 2])
      assert.equal(await store.nextDue(['agent-1']), undefined)
      assert.equal(await store.retryNotifications(scope, ['n1'], now + 60), 1)
      assert.equal(await store.nextDue(['agent-1']), now + 60)
    },
  },
  {
    name: '[N2.3] what nobody decided about is due for a decision',
    async run({ store: open }) {
      const store = await open()
      await store.ingest([note('n1')])
      assert.deepEqual((await store.claimDue({ ...claim, now: now + 30_000, until: now + 60_000 })).undecided.map(({ id }) => id), ['n1'])
    },
  },
  {
    name: '[N2.6] what waits for an idle thread is not due, and is taken once when the thread is idle',
    async run({ store: open }) {
      const store = await open()
      await store.ingest([note('n1')])
      await store.settle([decided('n1', { whenIdle: { recheckAt: now + 500 } })])
      assert.deepEqual((await store.claimDue(claim)).idleThreads, [])
      assert.deepEqual((await store.claimDue({ ...claim, now: now + 500 })).idleThreads, [scope.threadId])
      assert.equal(await store.awaitsIdle(scope.threadId), true)
      const taken = await Promise.all([store.claimIdle(scope.threadId, claim), store.claimIdle(scope.threadId, claim)])
      assert.deepEqual(taken.flat().map(({ id }) => id), ['n1'])
      assert.equal(await store.awaitsIdle(scope.threadId), false)
    },
  },
  {
    name: '[N3.2] a record that was put away while it was sent stays away, and says which signal it was',
    async run({ store: open }) {
      const store = await open()
      await store.ingest([note('n1')])
      await store.settle([decided('n1', { action: 'deliver' })])
      await store.markNotifications(scope, ['n1'], 'dismissed', now)
      await store.delivered([{ threadId: scope.threadId, id: 'n1', signalId: 's', status: 'delivered', now }])
      const record = await store.getNotification({ ...scope, id: 'n1' })
      assert.deepEqual([record?.status, record?.deliveredSignalId], ['dismissed', 's'])
      assert.deepEqual(await store.markNotifications(scope, ['n1'], 'seen', now), [])
    },
  },
  {
    name: '[N3.3] another resource sees and changes nothing',
    async run({ store: open }) {
      const store = await open()
      await store.ingest([note('n1')])
      const foreign = { ...scope, resourceId: 'resource-2' }
      assert.equal(await store.getNotification({ ...foreign, id: 'n1' }), null)
      assert.deepEqual((await store.listNotifications({ ...foreign, limit: 5 })).notifications, [])
      assert.deepEqual(await store.markNotifications(foreign, ['n1'], 'seen', now), [])
      assert.deepEqual(await store.countNotifications(foreign), {})
      assert.deepEqual(await store.countNotifications(scope), { pending: 1 })
    },
  },
]
