import assert from 'node:assert/strict'
import { notificationChangeConformance } from './changes.ts'
import { notificationDueConformance } from './due.ts'
import { claim, decided, note, now, scope, window, type NotificationCase } from './fixture.ts'
import { notificationKeyConformance } from './keys.ts'

/** What every store of notifications promises. */
export const notificationConformance: NotificationCase[] = [
  ...notificationKeyConformance,
  ...notificationChangeConformance,
  ...notificationDueConformance,
  {
    name: '[N1.1] [H1.2] a known id is the same notification, also after its delivery; for another resource the id is taken',
    async run({ store: open }) {
      const store = await open()
      const answers = await Promise.all(Array.from({ length: 5 }, () => store.ingest([note('n1')])))
      assert.equal(answers.filter(([answer]) => answer?.outcome === 'created').length, 1)
      await store.settle([decided('n1', { action: 'deliver' })])
      await store.delivered([{ threadId: scope.threadId, id: 'n1', signalId: 's1', status: 'delivered', now }])
      const [again] = await store.ingest([note('n1', { summary: 'other words' })])
      assert.deepEqual([again?.outcome, again?.record.status, again?.record.summary], ['counted', 'delivered', 'n1'])
      await assert.rejects(store.ingest([note('n1', { resourceId: 'resource-2' })]), { code: 'id_taken' })
    },
  },
  {
    name: '[H6.5] a call that declares a known id as new is rejected, and nothing is stored',
    async run({ store: open }) {
      const store = await open()
      await store.ingest([note('n1', { isNew: true, dedupeKey: 'k' })])
      await store.ingest([note('counted', { isNew: true, dedupeKey: 'k' })])
      for (const there of ['n1', 'counted']) {
        await assert.rejects(
          store.ingest([note('n2', { isNew: true }), note(there, { isNew: true }), note('n3', { isNew: true })]), { code: 'id_taken' },
        )
      }
      const { notifications } = await store.listNotifications({ threadId: scope.threadId, limit: 10 })
      assert.deepEqual(notifications.map(({ id, coalescedCount }) => [id, coalescedCount]), [['n1', 2]])
    },
  },
  {
    name: '[N1.9] a decision that comes with an event is stored if the event creates a record, and not if it is counted on another',
    async run({ store: open }) {
      const store = await open()
      const settlement = { action: 'summarize', summary: window, now, claimUntil: now + 1_000 } as const
      const [first, second] = await store.ingest([
        note('n1', { dedupeKey: 'k', settlement }), note('n2', { dedupeKey: 'k', settlement: { ...settlement, action: 'discard' } }),
      ])
      assert.deepEqual([first?.outcome, first?.settled?.applied, first?.settled?.record?.deliveryAction], ['created', true, 'summarize'])
      assert.deepEqual([second?.outcome, second?.settled], ['counted', undefined])
      const [third] = await store.ingest([note('n3', { settlement: { ...settlement, action: 'deliver' } })])
      assert.equal(third?.settled?.record?.deliveryAction, 'deliver')
      const due = await store.claimDue({ ...claim, now: now + 5_000, until: now + 10_000 })
      assert.deepEqual(due.batches.map(({ sources }) => sources), [[{ source: 'github', count: 1 }]])
      assert.deepEqual([due.records.map(({ id }) => id), due.undecided], [['n3'], []])
      await store.flush()
    },
  },
  {
    name: '[N2.11] neither one agent, nor records, nor summaries can keep others from being claimed',
    async run({ store: open }) {
      const store = await open()
      const terms = { now, claimUntil: now }
      const summary = { action: 'summarize', summary: { form: 'timed', at: now - 5, withinMs: 0 }, ...terms } as const
      const record = { action: 'defer', deliverAt: now - 3, ...terms } as const
      await store.ingest(Array.from({ length: 30 }, (_, index) => note(`s${index}`, { threadId: `thread-${index}`, settlement: summary })))
      await store.ingest(Array.from({ length: 30 }, (_, index) => note(`r${index}`, { settlement: record })))
      await store.ingest(Array.from({ length: 4 }, (_, index) => note(`o${index}`, { agentId: 'agent-2', settlement: record })))
      const take = (limit: number) => store.claimDue({ ...claim, limit, agentIds: ['agent-1', 'agent-2', 'agent-3'] })
      const first = await take(12)
      // The oldest of its share, all records of the other agent, and some of the rest.
      assert.deepEqual([first.batches.length, first.records.filter(({ agentId }) => agentId === 'agent-2').length], [8, 4])
      const second = await take(40)
      assert.deepEqual([second.batches.length, second.records.length], [22, 18])
      const third = await take(40)
      assert.deepEqual([third.batches.length, third.records.length], [0, 12])
    },
  },
  {
    name: '[N2.11] if the limit is lower than the number of agents, the record that is due longest comes first',
    async run({ store: open }) {
      const store = await open()
      const agentIds = ['agent-1', 'agent-2', 'agent-3']
      const due = (id: string, agentId: string, deliverAt: number) =>
        note(id, { agentId, settlement: { action: 'defer', deliverAt, now, claimUntil: now } })
      await store.ingest([
        due('a', 'agent-1', now + 2), due('b', 'agent-1', now + 5), due('c', 'agent-2', now + 3), due('d', 'agent-3', now + 1),
      ])
      const taken: string[] = []
      for (let index = 0; index < 4; index++) taken.push(
        ...(await store.claimDue({ ...claim, limit: 1, agentIds })).records.map(({ id }) => id),
      )
      assert.deepEqual(taken, ['d', 'a', 'c', 'b'])
    },
  },
  {
    name: '[N4.4] invalid arguments are rejected by name, and nothing changes',
    async run({ store: open }) {
      const store = await open()
      await store.ingest(Array.from({ length: 3 }, (_, index) => note(`n${index}`)))
      const refused = (field: string) => ({ code: 'invalid_argument', details: { field } })
      for (const limit of [0, -1, 1.5, Number.NaN, 10_001]) await assert.rejects(
        store.listNotifications({ ...scope, limit }), refused('limit'),
      )
      await assert.rejects(store.listNotifications({ ...scope, status: 'odd' as never }), refused('status'))
      await assert.rejects(store.listNotifications({ ...scope, priority: ['odd'] as never }), refused('priority'))
      await assert.rejects(store.listNotifications({ ...scope, after: 'nothing' }), refused('after'))
      await assert.rejects(store.listNotifications({ threadId: '' }), refused('threadId'))
      for (const field of ['resourceId', 'source', 'kind', 'search', 'after']) await assert.rejects(
        store.listNotifications({ ...scope, [field]: { odd: 1 } }), refused(field),
      )
      for (const none of [undefined, null, {}] as never[]) {
        for (const ask of [
          () => store.listNotifications(none), () => store.countNotifications(none), () => store.markNotifications(none, ['n0'], 'seen'),
          () => store.retryNotifications(none, ['n0']),
        ]) {
          await assert.rejects(ask(), refused('threadId'))
        }
      }
      await assert.rejects(store.getNotification({ ...scope, id: 7 as never }), refused('id'))
      await assert.rejects(store.markNotifications(scope, ['n0'], 'delivered' as never), refused('status'))
      await assert.rejects(store.markNotifications(scope, 'n0' as never, 'seen'), refused('ids'))
      assert.deepEqual(
        (await store.listNotifications({ ...scope, status: 'pending' })).notifications.map(({ id }) => id), ['n2', 'n1', 'n0'],
      )
      assert.deepEqual((await store.markNotifications(scope, ['n0', 'n0', 'n9'], 'seen')).map(({ id }) => id), ['n0'])
    },
  },
  {
    name: '[N1.7] waiting records are one batch: due after the quiet period, at the latest after the maximum; sources in order of arrival',
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
      // Later records are another batch.
      await store.ingest([note('late')])
      const [late] = await store.settle([decided('late', { action: 'summarize', summary: { form: 'now' } })])
      assert.notEqual(late?.batch?.id, batch?.id)
      await store.summarised(batch?.id ?? '', 'signal-1')
      const record = await store.getNotification({ ...scope, id: 'n0' })
      assert.deepEqual([record?.status, record?.summarySignalId, record?.summaryAt], ['pending', 'signal-1', undefined])
    },
  },
  {
    name: '[N1.7] a summary has records of one agent, resource and thread, at any time',
    async run({ store: open }) {
      const store = await open()
      const owners = [{}, { resourceId: 'resource-2' }, { agentId: 'agent-2' }, { threadId: 'thread-2' }]
      for (const [name, summary] of Object.entries({ window, timed: { form: 'timed', at: now + 5, withinMs: 30 } as const })) {
        const settlement = { action: 'summarize', summary, now, claimUntil: now + 1_000 } as const
        await store.ingest(owners.flatMap(
          (owner, index) => [0, 1].map((turn) => note(`${name}-${index}-${turn}`, { ...owner, source: `${name}-${index}`, settlement })),
        ))
      }
      const { batches } = await store.claimDue({ ...claim, agentIds: ['agent-1', 'agent-2'] })
      const told = batches.map(({ threadId, resourceId, agentId, sources }) => [
        threadId, resourceId, agentId, ...sources.map(({ source, count }) => `${source}: ${count}`),
      ].join(' '))
      const both = (index: number) => `window-${index}: 2 timed-${index}: 2`
      assert.deepEqual(told.toSorted(), [
        `thread-1 resource-1 agent-1 ${both(0)}`, `thread-1 resource-1 agent-2 ${both(2)}`,
        `thread-1 resource-2 agent-1 ${both(1)}`, `thread-2 resource-1 agent-1 ${both(3)}`,
      ])
    },
  },
  {
    name: '[N1.10] an immediate summary covers all records of a call and those that wait; an unread one is counted by the next',
    async run({ store: open }) {
      const store = await open()
      const at = { now, claimUntil: now + 1_000 }
      const settlement = { action: 'summarize', summary: { form: 'now' }, ...at } as const
      await store.ingest([note('waits', { source: 'email', settlement: { action: 'summarize', summary: window, ...at } })])
      const first = await store.ingest([note('a', { settlement }), note('b', { settlement })])
      const batches = first.map(({ settled }) => settled?.batch)
      assert.ok(batches[0] && batches[0].id === batches[1]?.id)
      assert.deepEqual(batches[0].sources, [{ source: 'email', count: 1 }, { source: 'github', count: 2 }])
      await store.summarised(batches[0].id, 'summary-1')
      const [second] = await store.ingest([note('c', { settlement })])
      const [foreign] = await store.ingest([note('d', { agentId: 'agent-2', settlement })])
      const batch = second?.settled?.batch
      assert.ok(batch && foreign?.settled?.batch && batch.id !== batches[0].id)
      const whole = await store.joinBatches(batch.id, [batches[0].id, foreign.settled.batch.id, batch.id, 'none'])
      assert.deepEqual(whole?.sources, [{ source: 'email', count: 1 }, { source: 'github', count: 3 }])
      assert.equal(await store.joinBatches('none', [batch.id]), null)
      await store.summarised(batch.id, 'summary-2')
      const { notifications } = await store.listNotifications({ ...scope, limit: 10 })
      assert.deepEqual(
        notifications.filter(({ agentId }) => agentId === 'agent-1').map(({ summarySignalId }) => summarySignalId),
        Array(4).fill('summary-2'),
      )
      const due = await store.claimDue({ ...claim, now: now + 5_000, until: now + 9_000, agentIds: ['agent-1', 'agent-2'] })
      assert.deepEqual(
        due.batches.map(({ id, agentId, sources }) => [id, agentId, sources]),
        [[foreign.settled.batch.id, 'agent-2', [{ source: 'github', count: 1 }]]],
      )
    },
  },
  {
    name: '[N1.7] a transferred thread keeps the batches that wait on it',
    async run({ store: open }) {
      const store = await open()
      const settlement = { action: 'summarize', summary: window, now, claimUntil: now + 1_000 } as const
      await store.ingest([note('n1', { settlement }), note('n2', { resourceId: 'resource-2', settlement })])
      await store.giveThread(scope.threadId, 'resource-2')
      await store.ingest([note('n3', { resourceId: 'resource-2', settlement })])
      const { batches } = await store.claimDue(claim)
      assert.deepEqual(
        batches.map(({ resourceId, sources }) => `${resourceId}: ${sources[0]?.count}`).toSorted(), ['resource-2: 1', 'resource-2: 2'],
      )
    },
  },
  {
    name: '[N2.1] a claimed record is hidden from other claims until its claim expires, then due again',
    async run({ store: open }) {
      const store = await open()
      await store.ingest(Array.from({ length: 30 }, (_, index) => note(`n${index}`)))
      await store.settle(Array.from({ length: 30 }, (_, index) => decided(`n${index}`, { deliverAt: now + 5 })))
      assert.deepEqual((await store.claimDue({ ...claim, now: now + 4 })).records, [])
      const rounds = await Promise.all(Array.from({ length: 5 }, () => store.claimDue({ ...claim, limit: 10 })))
      const taken = rounds.flatMap(({ records }) => records.map(({ id }) => id))
      assert.equal(taken.length, 30)
      assert.equal(new Set(taken).size, 30)
      await store.delivered(
        taken.slice(0, 20).map((id) => ({ threadId: scope.threadId, id, signalId: `s-${id}`, status: 'delivered', now })),
      )
      assert.equal((await store.claimDue({ ...claim, now: claim.until, until: claim.until + 1 })).records.length, 10)
      assert.deepEqual((await store.claimDue({ ...claim, now: claim.until + 1, agentIds: ['agent-2'] })).records, [])
    },
  },
  {
    name: '[N2.2] a failed delivery is due again, then failed with its error, then pending when it is retried',
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
    name: '[N2.9] the rejection of a delivery fails its record once: it changes nothing after a retry, nor after the next delivery',
    async run({ store: open }) {
      const store = await open()
      const { threadId } = scope
      const deliver = (signalId: string) =>
        store.delivered([{ threadId, id: 'n1', signalId, status: 'delivered', now, confirmAt: now + 50 }])
      const reject = (signalId: string) => store.failed({ threadId, id: 'n1', error: 'rejected', signalId, now })
      const status = async () => (await store.getNotification({ ...scope, id: 'n1' }))?.status
      await store.ingest([note('n1')])
      await store.settle([decided('n1', { action: 'deliver' })])
      await deliver('s1')
      await reject('s1')
      assert.equal(await status(), 'failed')
      await store.retryNotifications(scope, ['n1'], now)
      await reject('s1')
      assert.equal(await status(), 'pending')
      await deliver('s2')
      await reject('s1')
      assert.equal(await status(), 'delivered')
      await reject('s2')
      assert.equal(await status(), 'failed')
    },
  },
  {
    name: '[N2.3] an undecided record is due for a decision',
    async run({ store: open }) {
      const store = await open()
      await store.ingest([note('n1')])
      assert.deepEqual((await store.claimDue({ ...claim, now: now + 30_000, until: now + 60_000 })).undecided.map(({ id }) => id), ['n1'])
    },
  },
  {
    name: '[N2.6] a record that waits until its thread is idle is not due, and is claimed once when the thread is idle',
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
    name: '[N2.6] records that wait longer, or for agents of other processes, do not delay others when the thread is idle',
    async run({ store: open }) {
      const store = await open()
      const idle = { action: 'summarize', summary: window, whenIdle: { recheckAt: now + 500 }, now, claimUntil: now + 1_000 } as const
      await store.ingest(
        Array.from({ length: 5 }, (_, index) => note(`later-${index}`, { settlement: { ...idle, deliverAt: now + 60_000 } })),
      )
      await store.ingest(Array.from({ length: 5 }, (_, index) => note(`foreign-${index}`, { agentId: 'agent-9', settlement: idle })))
      await store.ingest([
        note('n1', { settlement: idle }), note('n2', { agentId: 'agent-2', settlement: { ...idle, deliverAt: now } }),
        note('n3', { settlement: idle }),
      ])
      const two = { ...claim, limit: 2, agentIds: ['agent-2', 'agent-1'] }
      assert.deepEqual((await store.claimIdle(scope.threadId, two)).map(({ id }) => id), ['n1', 'n2'])
      assert.deepEqual((await store.claimIdle(scope.threadId, two)).map(({ id }) => id), ['n3'])
      assert.deepEqual(await store.claimIdle(scope.threadId, two), [])
    },
  },
  {
    name: '[N3.2] a record that was dismissed during its delivery stays dismissed, and names its signal',
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
    name: "[N3.3] another resource can't read or change a notification",
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
  {
    name: '[N2.8] the process that takes a record over reads its decision',
    async run({ store: open }) {
      const store = await open()
      await store.ingest([note('n1'), note('n2')])
      await store.settle([decided('n1', { action: 'queue' }), decided('n2', { action: 'deliver' })])
      const { records } = await store.claimDue({ ...claim, now: now + 1_000, until: now + 2_000 })
      assert.deepEqual(Object.fromEntries(records.map(({ id, deliveryAction }) => [id, deliveryAction])), { n1: 'queue', n2: 'deliver' })
    },
  },
  {
    name: '[N2.9] a record that needs confirmation is due for it once, and not after it was dismissed',
    async run({ store: open }) {
      const store = await open()
      await store.ingest([note('n1'), note('n2'), note('n3')])
      await store.settle(['n1', 'n2', 'n3'].map((id) => decided(id, { action: 'deliver' })))
      await store.delivered(['n1', 'n2', 'n3'].map(
        (id) => ({ threadId: scope.threadId, id, signalId: `s-${id}`, status: 'delivered' as const, now, confirmAt: now + 50 }),
      ))
      await store.markNotifications(scope, ['n3'], 'archived', now)
      assert.equal(await store.nextDue(['agent-1']), now + 50)
      const due = await store.claimDue({ ...claim, now: now + 50, until: now + 100 })
      assert.deepEqual(
        [due.records, due.unconfirmed.map(({ id, deliveredSignalId }) => [id, deliveredSignalId])], [[], [['n1', 's-n1'], ['n2', 's-n2']]],
      )
      await store.confirm([{ threadId: scope.threadId, id: 'n1' }])
      await store.failed({ threadId: scope.threadId, id: 'n2', error: 'refused', now })
      assert.equal(await store.nextDue(['agent-1']), undefined)
      assert.deepEqual(await store.countNotifications(scope), { delivered: 1, failed: 1, archived: 1 })
    },
  },
  {
    name: '[N2.4] summaries and records together do not exceed the limit of a claim',
    async run({ store: open }) {
      const store = await open()
      const ids = Array.from({ length: 10 }, (_, index) => `n${index}`)
      await store.ingest(
        ids.map((id, index) => note(id, { threadId: `thread-${index}`, agentId: index % 3 === 0 ? 'agent-2' : 'agent-1' })),
      )
      await store.settle(ids.map((id, index) => ({
        ...decided(id, index < 5 ? { action: 'summarize', summary: window } : { deliverAt: now }), threadId: `thread-${index}`,
      })))
      let rounds = 0
      for (let left = ids.length; left > 0; rounds++) {
        const { records, batches } = await store.claimDue({
          ...claim, now: now + 30, until: now + 60_000, limit: 3, agentIds: ['agent-1', 'agent-2'],
        })
        assert.ok(records.length + batches.length <= 3 && records.length + batches.length > 0)
        left -= records.length + batches.length
      }
      assert.ok(rounds >= 4)
    },
  },
  {
    name: '[N4.5] a search ignores case in every script, and treats no character as a pattern',
    async run({ store: open }) {
      const store = await open()
      const summaries = ['ÄRGER mit Österreich', 'Ошибка сборки', 'ΟΔΥΣΣΕΥΣ', '100% of [a-z]* and ?', 'plain_text \\ x^2']
      await store.ingest(summaries.map((summary, index) => note(`n${index}`, { summary, source: 'GitHub', kind: 'Ci-Status' })))
      const found = async (search: string) =>
        (await store.listNotifications({ ...scope, search })).notifications.map(({ id }) => id).toReversed().join()
      for (const [search, ids] of [
        ['ärger', 'n0'], ['ÖSTERREICH', 'n0'], ['ошибка', 'n1'], ['ОШИБКА СБ', 'n1'], ['οδυσσευς', 'n2'], ['οδυσσευσ', 'n2'],
        ['%', 'n3'], ['[a-z]', 'n3'], ['*', 'n3'], ['?', 'n3'], ['0%o', ''], ['_', 'n4'], ['\\', 'n4'], ['^', 'n4'], ['x.2', ''],
        ['GITHUB', 'n0,n1,n2,n3,n4'], ['ci-status', 'n0,n1,n2,n3,n4'], ['', 'n0,n1,n2,n3,n4'], ['arger', ''],
      ] as const) assert.equal(await found(search), ids, search)
      assert.equal(await found('Ä'.repeat(1_000)), '')
    },
  },
  {
    name: '[N4.4] invalid searches and unknown filters are rejected by name',
    async run({ store: open }) {
      const store = await open()
      const refused = (field: string) => ({ code: 'invalid_argument', details: { field } })
      for (const search of ['x'.repeat(1_001), 'x'.repeat(60_000), 'a\0b', '\ud800']) await assert.rejects(
        store.listNotifications({ ...scope, search }), refused('search'),
      )
      const misspelt = { ...scope, stauts: 'pending' }
      await assert.rejects(store.listNotifications(misspelt), refused('stauts'))
    },
  },
]
