import assert from 'node:assert/strict'
import type { NewNotification, SettlementTerms } from '../../contract/notifications.ts'
import { claim, decided, note, now, scope, type NotificationCase } from './fixture.ts'

/** Repeated events: what a `dedupeKey` and a `coalesceKey` guarantee. */
export const notificationKeyConformance: NotificationCase[] = [
  {
    name: '[N5.2] a missing thread belongs to the first resource that has records for it, also concurrently; on others its ids are taken',
    async run({ store: open }) {
      const store = await open()
      const resources = ['resource-1', 'resource-2', 'resource-3']
      const results = await Promise.allSettled(
        resources.map((resourceId, index) => store.ingest([note(`n${index}`, { resourceId, awaitsThread: true })])),
      )
      const first = results.findIndex(({ status }) => status === 'fulfilled')
      assert.deepEqual(results.map(({ status }) => status), resources.map((_, index) => (index === first ? 'fulfilled' : 'rejected')))
      const foreign = { resourceId: resources[(first + 1) % 3] ?? '' }
      await store.ingest([note('made-up', foreign)])
      for (const id of [`n${first}`, 'free', 'made-up']) await assert.rejects(
        store.ingest([note(id, { ...foreign, awaitsThread: true })]), { code: 'thread_forbidden' },
      )
      await assert.rejects(store.ingest([note(`n${first}`, foreign)]), { code: 'id_taken' })
      await store.ingest([note('free', foreign)])
      await store.ingest([note('n9', { ...foreign, awaitsThread: true, threadId: 'thread-9' })])
      assert.equal((await store.listNotifications({ threadId: scope.threadId })).notifications.length, 3)
    },
  },
  {
    name: '[E1.2] [N1.2] an event that was counted on another record is recognized when repeated, and replaces no newer summary',
    async run({ store: open }) {
      const store = await open()
      const inbox = async () => (await store.listNotifications({ ...scope, limit: 50 })).notifications.map(
        ({ id, summary, coalescedCount }) => [id, summary, coalescedCount],
      )
      const send = async (id: string, more: Partial<NewNotification> = {}) => (await store.ingest([note(id, more)]))[0]?.outcome
      const state = { coalesceKey: 'k' }
      assert.deepEqual(
        [await send('a', state), await send('b', state), await send('c', { ...state, dedupeKey: 'd', rememberMs: 100 })],
        ['created', 'coalesced', 'coalesced'],
      )
      assert.deepEqual([await send('b', state), await send('a', state), await send('c', state)], ['counted', 'counted', 'counted'])
      assert.deepEqual(await inbox(), [['a', 'c', 3]])
      assert.equal(await send('d', { dedupeKey: 'd' }), 'counted')
      assert.equal(await send('d', { dedupeKey: 'd' }), 'counted')
      assert.deepEqual(await inbox(), [['a', 'c', 4]])
      await store.markNotifications(scope, ['a'], 'seen', now)
      assert.deepEqual(
        [await send('b', state), await send('c', state), await send('d'), await send('e', { dedupeKey: 'd' })],
        ['counted', 'counted', 'counted', 'counted'],
      )
      assert.equal((await inbox()).length, 1)
      assert.equal(await send('f', { ...state, now: now + 100 }), 'created')
      assert.equal(await send('g', { dedupeKey: 'd', now: now + 100 }), 'created')
      // It is recognized only on its thread and for its resource, and deleted with them.
      assert.equal(await send('b', { threadId: 'thread-2' }), 'created')
      await assert.rejects(store.ingest([note('b', { resourceId: 'resource-2' })]), { code: 'id_taken' })
      await store.forgetThreads([scope.threadId])
      assert.equal(await send('b', state), 'created')
    },
  },
  {
    name: '[E1.2] a counted event is recognized after a transfer of its thread; of very many, the last ones are',
    async run({ store: open }) {
      const store = await open()
      for (let index = 0; index < 400; index++) await store.ingest([
        note(`n${index}`, { coalesceKey: 'k', dedupeKey: `d${index}`, rememberMs: 1_000 }),
      ])
      await store.giveThread(scope.threadId, 'resource-2')
      await store.markNotifications({ threadId: scope.threadId }, ['n0'], 'seen', now)
      const again = (id: string, dedupeKey: string) => store.ingest([note(id, { resourceId: 'resource-2', dedupeKey })])
      assert.deepEqual(
        (await Promise.all([again('n399', 'x'), again('n200', 'y'), again('z', 'd399')])).map(([one]) => one?.outcome),
        ['counted', 'counted', 'counted'],
      )
      assert.equal((await again('n5', 'w'))[0]?.outcome, 'created')
    },
  },
  {
    name: '[N1.1] a repeated record that a summary counts does not cause another immediate summary',
    async run({ store: open }) {
      const store = await open()
      const settlement = {
        action: 'summarize', summary: { form: 'now' }, deliverAt: now, whenIdle: { recheckAt: now + 50 }, now, claimUntil: now + 1_000,
      } as const
      const [first] = await store.ingest([note('n1', { dedupeKey: 'k', settlement })])
      assert.ok(first?.settled?.batch)
      await store.ingest([note('n2', { dedupeKey: 'k' })])
      const [again] = await store.settle([decided('n1', settlement)])
      assert.deepEqual([again?.applied, again?.batch, again?.record?.coalescedCount], [true, undefined, 2])
      await store.summarised(first.settled.batch.id, 's1')
      const [third] = await store.settle([decided('n1', settlement)])
      assert.deepEqual([third?.batch, third?.record?.summarySignalId], [undefined, 's1'])
      assert.equal(await store.awaitsIdle(scope.threadId), true)
    },
  },
  {
    name: '[N1.2] a record that is being delivered does not accept further events of its coalesceKey',
    async run({ store: open }) {
      const store = await open()
      await store.ingest([note('n1', { coalesceKey: 'k' }), note('n2', { coalesceKey: 'k', summary: 'newer' })])
      assert.deepEqual(
        (await store.listNotifications({ ...scope, limit: 5 })).notifications.map(({ id, summary }) => [id, summary]), [['n1', 'newer']],
      )
      await store.settle([decided('n1', { action: 'deliver' })])
      const [third] = await store.ingest([note('n3', { coalesceKey: 'k' })])
      assert.deepEqual([third?.record.id, third?.outcome], ['n3', 'created'])
    },
  },
  {
    name: '[N1.1] concurrent sends of one dedupeKey are one record with their count',
    async run({ store: open }) {
      const store = await open()
      const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => store.ingest([note(`n${index}`, { dedupeKey: 'k' })])))
      assert.equal(answers.filter(([answer]) => answer?.outcome === 'created').length, 1)
      const { notifications } = await store.listNotifications({ ...scope, limit: 50 })
      assert.deepEqual(notifications.map(({ coalescedCount }) => coalescedCount), [20])
    },
  },
  {
    name: '[N1.1] a repeated event is only counted: priority, summary and time do not change',
    async run({ store: open }) {
      const store = await open()
      const settlement: SettlementTerms = { action: 'defer', deliverAt: now + 50, now, claimUntil: now + 1_000 }
      await store.ingest([note('n1', { dedupeKey: 'k', priority: 'high', payload: 'all of it', settlement })])
      const [again] = await store.ingest([note('n2', { dedupeKey: 'k', priority: 'low', payload: 'nothing', now: now + 40 })])
      assert.deepEqual(
        [again?.outcome, again?.record.priority, again?.record.summary, again?.record.payload], ['counted', 'high', 'n1', 'all of it'],
      )
      assert.deepEqual([again?.record.coalescedCount, again?.record.deliverAt?.getTime()], [2, now + 50])
    },
  },
  {
    name: '[N1.1] [N1.2] a new decision never delays a delivery, and may advance it',
    async run({ store: open }) {
      const store = await open()
      await store.ingest([
        note('deferred', { coalesceKey: 'a' }), note('timed', { coalesceKey: 'b' }), note('window', { coalesceKey: 'c' }),
      ])
      const times = async (at: number): Promise<Array<number | undefined>> => {
        const terms = { now: now + at, claimUntil: now + at }
        const settled = await store.settle([
          decided('deferred', { ...terms, deliverAt: now + at + 50 }),
          decided('timed', { ...terms, action: 'summarize', summary: { form: 'timed', at: now + at + 50, withinMs: 5 } }),
          decided('window', { ...terms, action: 'summarize', summary: { form: 'window', quietMs: 50, maxWaitMs: 500 } }),
        ])
        return settled.map(({ record }) => (record?.deliverAt ?? record?.summaryAt)?.getTime())
      }
      assert.deepEqual(await times(0), [now + 50, now + 50, now + 50])
      for (const later of [10, 20, 40]) assert.deepEqual(await times(later), [now + 50, now + 50, now + 50])
      assert.deepEqual(await times(-20), [now + 30, now + 30, now + 30])
    },
  },
  {
    name: '[N1.2] a newer event does not lower the priority of a record, and does not remove its full text',
    async run({ store: open }) {
      const store = await open()
      const high = {
        action: 'summarize', summary: { form: 'now' }, deliverAt: now, whenIdle: { recheckAt: now + 50 }, now, claimUntil: now + 1_000,
      } as const
      await store.ingest([note('n1', { coalesceKey: 'k', priority: 'high', settlement: high })])
      const [merged] = await store.ingest([note('n2', { coalesceKey: 'k', priority: 'low', summary: 'newer' })])
      assert.deepEqual([merged?.outcome, merged?.record.priority, merged?.record.summary], ['coalesced', 'high', 'newer'])
      await store.settle([decided('n1', { action: 'summarize', summary: { form: 'window', quietMs: 5, maxWaitMs: 30 } })])
      assert.deepEqual((await store.claimIdle(scope.threadId, claim)).map(({ id, summary }) => [id, summary]), [['n1', 'newer']])
    },
  },
  {
    name: '[N1.1] a delivered record is not delivered again at any time; an idle thread may get its full text',
    async run({ store: open }) {
      const store = await open()
      const summary = { form: 'window', quietMs: 5, maxWaitMs: 30 } as const
      const settlement: SettlementTerms = { action: 'summarize', summary, now, claimUntil: now + 1_000 }
      await store.ingest([note('n1', { dedupeKey: 'k', settlement })])
      const [batch] = (await store.claimDue(claim)).batches
      await store.summarised(batch?.id ?? '', 's1')
      const [again] = await store.ingest([note('n2', { dedupeKey: 'k', summary: 'other words' })])
      assert.deepEqual([again?.outcome, again?.record.coalescedCount, again?.record.summary], ['coalesced', 2, 'n1'])
      const [active] = await store.settle([decided('n1', settlement)])
      assert.deepEqual([active?.record?.summarySignalId, await store.nextDue(['agent-1'])], ['s1', undefined])
      const [idle] = await store.settle([decided('n1', { action: 'deliver' })])
      assert.deepEqual([idle?.applied, idle?.record?.deliveryAction], [true, 'deliver'])
    },
  },
  {
    name: '[N1.1] a key is remembered for its time, whichever way its record left the inbox',
    async run({ store: open }) {
      const store = await open()
      const { threadId } = scope
      for (const status of ['seen', 'dismissed', 'archived'] as const) {
        for (const before of ['pending', 'delivered'] as const) {
          const id = `${before}-${status}`
          const send = async (turn: number, at: number) =>
            (await store.ingest([note(`${id}-${turn}`, { dedupeKey: id, rememberMs: 100, now: now + at })]))[0]?.outcome
          await send(1, 0)
          if (before === 'delivered') await store.delivered([
            { threadId, id: `${id}-1`, signalId: 's', status: 'delivered', now, rememberUntil: now + 100 },
          ])
          await store.markNotifications(scope, [`${id}-1`], status, now)
          assert.deepEqual([await send(2, 99), await send(3, 100)], ['counted', 'created'], id)
        }
      }
      await store.ingest([note('read-1', { dedupeKey: 'read', rememberMs: 100 })])
      await store.delivered([{ threadId, id: 'read-1', signalId: 's', status: 'seen', now }])
      assert.equal((await store.ingest([note('read-2', { dedupeKey: 'read', now: now + 99 })]))[0]?.outcome, 'counted')
      await store.ingest([note('short-1', { dedupeKey: 'short' })])
      await store.markNotifications(scope, ['short-1'], 'seen', now)
      assert.equal((await store.ingest([note('short-2', { dedupeKey: 'short' })]))[0]?.outcome, 'created')
    },
  },
  {
    name: '[N1.1] [N2.2] a failed record has its keys again when it is retried: repeated events are counted on it',
    async run({ store: open }) {
      const store = await open()
      const { threadId } = scope
      const send = async (id: string, more: Partial<NewNotification> = {}) =>
        (await store.ingest([note(id, { dedupeKey: 'k', rememberMs: 100, ...more })]))[0]
      for (const [round, before] of (['pending', 'delivered'] as const).entries()) {
        const id = `n${round}`
        const later = { now: now + round * 1_000 }
        await send(id, later)
        if (before === 'delivered') await store.delivered([
          { threadId, id, signalId: 's', status: 'delivered', ...later, rememberUntil: now + 5_000 },
        ])
        await store.failed({ threadId, id, error: 'refused', ...later })
        assert.equal(await store.retryNotifications(scope, [id, id, 'none'], later.now), 1)
        assert.deepEqual(
          [(await send(`${id}-again`, later))?.outcome, (await store.getNotification({ ...scope, id }))?.coalescedCount], ['counted', 2],
        )
        await store.delivered([{ threadId, id, signalId: 's2', status: 'delivered', ...later, rememberUntil: later.now + 100 }])
        assert.equal((await send(`${id}-late`, { now: later.now + 99 }))?.outcome, 'counted')
      }
      await store.ingest([
        note('state', { coalesceKey: 'c', settlement: { action: 'summarize', summary: { form: 'now' }, now, claimUntil: now } }),
      ])
      await store.failed({ threadId, id: 'state', error: 'refused', now })
      await store.retryNotifications(scope, ['state'], now)
      const [newer] = await store.ingest([note('newer', { coalesceKey: 'c' })])
      assert.deepEqual([newer?.outcome, newer?.record.id, newer?.record.summary], ['coalesced', 'state', 'newer'])
    },
  },
  {
    name: '[N1.1] [N2.2] a failed record accepts no events until it is retried; an event with another record since is not delivered twice',
    async run({ store: open }) {
      const store = await open()
      const { threadId } = scope
      const state = { coalesceKey: 'c' }
      const fail = async (id: string, more: Partial<NewNotification>) => {
        await store.ingest([note(id, more)])
        await store.delivered([{ threadId, id, signalId: `s-${id}`, status: 'delivered', now, rememberUntil: now + 500 }])
        await store.failed({ threadId, id, error: 'refused', now })
      }
      await fail('a', { dedupeKey: 'k' })
      const [other] = await store.ingest([note('b', { dedupeKey: 'k' })])
      assert.deepEqual([other?.outcome, other?.record.id], ['created', 'b'])
      assert.equal(await store.retryNotifications(scope, ['a'], now + 1), 0)
      const [a, b] = await Promise.all(['a', 'b'].map((id) => store.getNotification({ ...scope, id })))
      assert.deepEqual([a?.status, a?.deliveryReason, b?.status, b?.coalescedCount], ['discarded', 'duplicate', 'pending', 2])
      // Also by the key of an event that was counted on it.
      await store.ingest([note('c', { ...state, dedupeKey: 'first' }), note('d', { ...state, dedupeKey: 'second', rememberMs: 500 })])
      await fail('c', { ...state, dedupeKey: 'first' })
      assert.equal((await store.ingest([note('e', { dedupeKey: 'second' })]))[0]?.outcome, 'created')
      // A record in a final state has no key, and a newer event gets its own record.
      await fail('f', { dedupeKey: 'g' })
      await store.ingest([note('h', { dedupeKey: 'g' })])
      await store.delivered([{ threadId, id: 'h', signalId: 's-h', status: 'delivered', now, rememberUntil: now + 10 }])
      await store.ingest([note('newer', state)])
      assert.equal(await store.retryNotifications(scope, ['f', 'c'], now + 10), 2)
      assert.equal((await store.ingest([note('i', { dedupeKey: 'g', now: now + 11 })]))[0]?.record.id, 'f')
      assert.deepEqual((await store.ingest([note('newest', { ...state, now: now + 11 })])).map(({ record }) => record.id), ['newer'])
    },
  },
  {
    name: '[N1.3] joined text above the limit of a record is rejected by the name of its field, and nothing changes',
    async run({ store: open }) {
      const store = await open()
      const half = 'x'.repeat(6 * 1024 * 1024)
      await store.ingest([note('n1', { coalesceKey: 'k', attributes: { a: half }, metadata: { a: half } })])
      for (const [field, more] of Object.entries({ attributes: { attributes: { b: half } }, metadata: { metadata: { b: half } } })) {
        await assert.rejects(
          store.ingest([note('other'), note('n2', { coalesceKey: 'k', ...more })]),
          (error: { code?: string; details?: { field?: string } }) => error.code === 'invalid_argument' && error.details?.field === field,
        )
      }
      const { notifications } = await store.listNotifications(scope)
      assert.deepEqual(notifications.map(
        ({ id, coalescedCount, attributes, metadata }) => [id, coalescedCount, Object.keys({ ...attributes, ...metadata })],
      ), [['n1', 1, ['a']]])
      const [replaced] = await store.ingest([note('n3', { coalesceKey: 'k', attributes: { a: half }, metadata: { a: half } })])
      assert.equal(replaced?.outcome, 'coalesced')
    },
  },
  {
    name: '[N1.11] a transferred thread keeps all of its records; of two with one key, that of the new owner keeps it, else the first',
    async run({ store: open }) {
      const store = await open()
      const terms = { action: 'defer', deliverAt: now + 5, now, claimUntil: now } as const
      const of = (resourceId: string, id: string, more: Partial<NewNotification> = {}) =>
        note(id, { resourceId, settlement: terms, ...more })
      await store.ingest([
        of('resource-1', 'a', { dedupeKey: 'k' }), of('resource-2', 'b', { dedupeKey: 'k' }), of('resource-3', 'c', { dedupeKey: 'k' }),
        of('resource-1', 'd', { coalesceKey: 'k' }), of('resource-2', 'e', { coalesceKey: 'k' }),
        of('resource-1', 'f', { dedupeKey: 'f', coalesceKey: 'f' }),
      ])
      await store.giveThread(scope.threadId, 'resource-3')
      const inbox = { ...scope, resourceId: 'resource-3' }
      const records = async () => (await store.listNotifications({ ...inbox, limit: 10 })).notifications.toReversed()
      assert.deepEqual((await records()).map(({ id, status }) => [id, status]), ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => [id, 'pending']))
      const again = await store.ingest([
        of('resource-3', 'g', { dedupeKey: 'k' }), of('resource-3', 'h', { coalesceKey: 'k', summary: 'newest' }),
        of('resource-3', 'i', { dedupeKey: 'f' }),
      ])
      assert.deepEqual(again.map(({ record, outcome }) => [record.id, outcome]), [['c', 'counted'], ['d', 'coalesced'], ['f', 'counted']])
      assert.deepEqual((await records()).map(({ id, coalescedCount, dedupeKey }) => [id, coalescedCount, dedupeKey]), [
        ['a', 1, 'k'], ['b', 1, 'k'], ['c', 2, 'k'], ['d', 2, undefined], ['e', 1, undefined], ['f', 2, 'f'],
      ])
      const due = await store.claimDue(claim)
      assert.deepEqual(due.records.map(({ id }) => id).toSorted(), ['a', 'b', 'c', 'd', 'e', 'f'])
      // Again, as after an interrupted call.
      await store.giveThread(scope.threadId, 'resource-3')
      assert.equal((await records()).length, 6)
    },
  },
]
