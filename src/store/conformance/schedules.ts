import assert from 'node:assert/strict'
import type { DueClaim } from '../contract/notifications.ts'
import type { NewSchedule, ScheduleStore } from '../contract/schedules.ts'

/** How the suite gets at the schedules it tries: fresh ones, none there and open. Whoever gives them out closes them after the case. */
export interface ScheduleHarness {
  store(): Promise<ScheduleStore>
  /** A second connection to the database of `store`, as for `StoreHarness`. */
  another?(store: ScheduleStore): Promise<ScheduleStore>
}

/** One promise, tried. The ids in brackets are those of the protocol. */
export interface ScheduleCase {
  name: string
  run(harness: ScheduleHarness): Promise<void>
}

const now = 1_700_000_000_000
const signal = { id: 'signal', type: 'user', tagName: 'user', contents: 'Look around.', createdAt: new Date(now).toISOString() } as const

function planned(id: string, more: Partial<NewSchedule> = {}): NewSchedule {
  return {
    id, agentId: 'agent-1', threadId: 'thread-1', resourceId: 'resource-1', timing: { every: 1_000 }, overlap: 'allow', missed: 'once',
    signal: { ...signal, ...more.signal }, nextAt: now + 5, now, ...more,
  }
}

const claim: DueClaim = { now: now + 10, until: now + 1_000, limit: 100, agentIds: ['agent-1'] }
const scope = (id: string) => ({ id, resourceId: 'resource-1' })

/**
 * What every `ScheduleStore` keeps, as cases for any test runner:
 *
 *     for (const { name, run } of scheduleConformance) it(name, () => run(harness))
 */
export const scheduleConformance: ScheduleCase[] = [
  {
    name: '[S1.1] what is claimed is hidden from every other claim until its time, and then due again',
    async run({ store: open }) {
      const store = await open()
      for (let index = 0; index < 30; index++) await store.putSchedule(planned(`s${index}`))
      assert.equal(await store.nextScheduleDue(['agent-1']), now + 5)
      assert.deepEqual(await store.claimSchedules({ ...claim, now: now + 4 }), [])
      const rounds = await Promise.all(Array.from({ length: 5 }, () => store.claimSchedules({ ...claim, limit: 10 })))
      const taken = rounds.flat().map(({ id }) => id)
      assert.equal(taken.length, 30)
      assert.equal(new Set(taken).size, 30)
      assert.equal(await store.nextScheduleDue(['agent-1']), claim.until)
      assert.equal((await store.claimSchedules({ ...claim, now: claim.until, until: claim.until + 1 })).length, 30)
      assert.deepEqual(await store.claimSchedules({ ...claim, now: claim.until + 1, agentIds: ['agent-2'] }), [])
    },
  },
  {
    name: '[S1.1] no agent gets more than its share while others wait',
    async run({ store: open }) {
      const store = await open()
      for (let index = 0; index < 10; index++) await store.putSchedule(planned(`a${index}`))
      await store.putSchedule(planned('b', { agentId: 'agent-2' }))
      const taken = await store.claimSchedules({ ...claim, limit: 4, agentIds: ['agent-1', 'agent-2'] })
      assert.ok(taken.some(({ id }) => id === 'b'))
    },
  },
  {
    name: '[N2.11] where less is taken than there are agents, what has waited longest comes first, whatever their order',
    async run({ store: open }) {
      const store = await open()
      for (const [id, agentId, nextAt] of [['a', 'agent-1', now + 2], ['b', 'agent-1', now + 5], ['c', 'agent-2', now + 3], ['d', 'agent-3', now + 1]] as const) await store.putSchedule(planned(id, { agentId, nextAt }))
      const taken: string[] = []
      for (let index = 0; index < 4; index++) taken.push(...(await store.claimSchedules({ ...claim, limit: 1, agentIds: ['agent-1', 'agent-2', 'agent-3'] })).map(({ id }) => id))
      assert.deepEqual(taken, ['d', 'a', 'c', 'b'])
    },
  },
  {
    name: '[S1.2] an occurrence is over once, whoever says so; the next is due then, and the last makes it done',
    async run({ store: open }) {
      const store = await open()
      await store.putSchedule(planned('s'))
      await store.claimSchedules(claim)
      const over = { id: 's', from: now + 5, nextAt: now + 1_005, sent: { at: now + 5, signalId: 'signal-1' }, now: now + 10 }
      assert.deepEqual(await Promise.all([store.advanceSchedule(over), store.advanceSchedule(over)]), [true, false])
      assert.equal(await store.nextScheduleDue(['agent-1']), now + 1_005)
      const record = await store.getSchedule(scope('s'))
      assert.deepEqual([record?.nextAt?.getTime(), record?.lastAt?.getTime(), record?.lastSignalId, record?.status], [now + 1_005, now + 5, 'signal-1', 'active'])
      assert.equal(await store.advanceSchedule({ id: 's', from: now + 1_005, error: 'refused', now: now + 1_010 }), true)
      const done = await store.getSchedule(scope('s'))
      assert.deepEqual([done?.status, done?.nextAt, done?.lastError, done?.lastSignalId], ['done', undefined, 'refused', 'signal-1'])
      assert.equal(await store.nextScheduleDue(['agent-1']), undefined)
    },
  },
  {
    name: '[S1.9] one that failed is due again at its time with the error on it, and says since when; the next occurrence begins anew',
    async run({ store: open }) {
      const store = await open()
      await store.putSchedule(planned('s'))
      await store.claimSchedules(claim)
      const failure = { id: 's', from: now + 5, signalId: 'signal', error: 'disk is full', retryAt: now + 50, now: now + 10 }
      assert.equal(await store.failSchedule(failure), true)
      assert.equal(await store.nextScheduleDue(['agent-1']), now + 50)
      assert.deepEqual(await store.claimSchedules({ ...claim, now: now + 49 }), [])
      const [again] = await store.claimSchedules({ ...claim, now: now + 50 })
      assert.deepEqual([again?.nextAt?.getTime(), again?.lastError, again?.updatedAt.getTime(), again?.status], [now + 5, 'disk is full', now + 10, 'active'])
      await store.failSchedule({ ...failure, error: 'still full', retryAt: now + 90, now: now + 51 })
      const still = await store.getSchedule(scope('s'))
      assert.deepEqual([still?.lastError, still?.updatedAt.getTime()], ['still full', now + 10])
      await store.advanceSchedule({ id: 's', from: now + 5, nextAt: now + 1_005, error: 'given up', now: now + 100 })
      await store.failSchedule({ ...failure, from: now + 1_005, now: now + 1_006, retryAt: now + 2_000 })
      assert.equal((await store.getSchedule(scope('s')))?.updatedAt.getTime(), now + 1_006)
      await store.advanceSchedule({ id: 's', from: now + 1_005, nextAt: now + 2_005, sent: { at: now + 1_005, signalId: 'x' }, now: now + 2_000 })
      assert.equal((await store.getSchedule(scope('s')))?.lastError, undefined)
    },
  },
  {
    name: '[S1.9] what the claimer of one that was paused, replaced or removed meanwhile failed at changes nothing of it',
    async run({ store: open }) {
      const store = await open()
      const ids = ['paused', 'replaced', 'reworded', 'removed', 'moved']
      for (const id of ids) await store.putSchedule(planned(id))
      await store.claimSchedules(claim)
      await store.setSchedule(scope('paused'), { status: 'paused', now })
      await store.putSchedule(planned('replaced', { nextAt: now + 77 }))
      await store.putSchedule(planned('reworded', { signal: { ...signal, id: 'another', contents: 'Look up.' } }))
      await store.deleteSchedule(scope('removed'))
      await store.advanceSchedule({ id: 'moved', from: now + 5, nextAt: now + 1_005, now })
      const before = await Promise.all(ids.map((id) => store.getSchedule(scope(id))))
      for (const id of ids) {
        assert.equal(await store.failSchedule({ id, from: now + 5, signalId: 'signal', error: 'disk is full', retryAt: now + 9_000, now: now + 10 }), false, id)
        assert.equal(await store.advanceSchedule({ id, from: now + 5, signalId: 'signal', nextAt: now + 9_000, error: 'given up', now: now + 10 }), false, id)
      }
      assert.deepEqual(await Promise.all(ids.map((id) => store.getSchedule(scope(id)))), before)
      assert.deepEqual((await store.claimSchedules({ ...claim, now: now + 2_000, until: now + 3_000 })).map(({ id }) => id).toSorted(), ['moved', 'replaced', 'reworded'])
    },
  },
  {
    name: '[S1.5] one that was paused, replaced or removed while it was claimed is not moved on by the claimer',
    async run({ store: open }) {
      const store = await open()
      for (const id of ['paused', 'replaced', 'removed']) await store.putSchedule(planned(id))
      await store.claimSchedules(claim)
      await store.setSchedule(scope('paused'), { status: 'paused', now })
      await store.putSchedule(planned('replaced', { nextAt: now + 77 }))
      assert.equal(await store.deleteSchedule(scope('removed')), true)
      for (const id of ['paused', 'replaced', 'removed']) assert.equal(await store.advanceSchedule({ id, from: now + 5, nextAt: now + 2_000, now }), false)
      assert.equal((await store.getSchedule(scope('paused')))?.status, 'paused')
      assert.equal(await store.nextScheduleDue(['agent-1']), now + 77)
      assert.equal(await store.getSchedule(scope('removed')), null)
    },
  },
  {
    name: '[S1.5] paused ones are not due until they go on; lists are by id, by page and by filter',
    async run({ store: open }) {
      const store = await open()
      const at = new Date(now + 5)
      await store.putSchedule(planned('a', { timing: { at } }))
      await store.putSchedule(planned('b', { timing: { cron: '0 0 * * *', timeZone: 'Europe/Zurich' }, threadId: 'thread-2' }))
      await store.putSchedule(planned('c', { overlap: 'skip', missed: 'all' }))
      const paused = await store.setSchedule(scope('a'), { status: 'paused', now: now + 1 })
      assert.deepEqual([paused?.status, paused?.nextAt], ['paused', undefined])
      assert.deepEqual((await store.claimSchedules(claim)).map(({ id }) => id).toSorted(), ['b', 'c'])
      await store.setSchedule(scope('a'), { status: 'active', nextAt: now + 8, now: now + 2 })
      assert.deepEqual((await store.claimSchedules(claim)).map(({ id, timing }) => [id, timing]), [['a', { at }]])
      const first = await store.listSchedules({ resourceId: 'resource-1', limit: 2 })
      assert.deepEqual([first.schedules.map(({ id }) => id), first.more], [['a', 'b'], true])
      const rest = await store.listSchedules({ resourceId: 'resource-1', limit: 2, after: 'b' })
      assert.deepEqual([rest.schedules.map(({ id, overlap, missed }) => [id, overlap, missed]), rest.more], [[['c', 'skip', 'all']], false])
      assert.deepEqual((await store.listSchedules({ threadId: 'thread-2', limit: 5 })).schedules.map(({ timing }) => timing), [{ cron: '0 0 * * *', timeZone: 'Europe/Zurich' }])
      assert.equal(await store.setSchedule(scope('none'), { status: 'paused', now }), null)
    },
  },
  {
    name: '[S1.5] what goes on already is not moved by whoever lets it go on',
    async run({ store: open }) {
      const store = await open()
      await store.putSchedule(planned('a'))
      await store.setSchedule(scope('a'), { status: 'paused', now })
      await store.putSchedule(planned('a', { timing: { every: 60_000 }, nextAt: now + 60_000 }))
      const record = await store.setSchedule(scope('a'), { status: 'active', nextAt: now + 1, now })
      assert.deepEqual([record?.status, record?.nextAt?.getTime()], ['active', now + 60_000])
      assert.equal(await store.nextScheduleDue(['agent-1']), now + 60_000)
    },
  },
  {
    name: '[S1.6] another resource sees, changes and replaces nothing',
    async run({ store: open }) {
      const store = await open()
      const before = await store.putSchedule(planned('s'))
      const foreign = { id: 's', resourceId: 'resource-2' }
      assert.equal(await store.getSchedule(foreign), null)
      assert.equal(await store.setSchedule(foreign, { status: 'paused', now }), null)
      assert.equal(await store.deleteSchedule(foreign), false)
      assert.deepEqual((await store.listSchedules({ resourceId: 'resource-2', limit: 5 })).schedules, [])
      await assert.rejects(store.putSchedule(planned('s', { resourceId: 'resource-2' })), { code: 'thread_forbidden' })
      assert.deepEqual(await store.getSchedule(scope('s')), before)
    },
  },
  {
    name: '[S1.6] another agent sees, changes and replaces nothing',
    async run({ store: open }) {
      const store = await open()
      const before = await store.putSchedule(planned('s'))
      const foreign = { id: 's', agentId: 'agent-2' }
      assert.equal(await store.getSchedule(foreign), null)
      assert.equal(await store.setSchedule(foreign, { status: 'paused', now }), null)
      assert.equal(await store.deleteSchedule(foreign), false)
      await assert.rejects(store.putSchedule(planned('s', { agentId: 'agent-2' })), { code: 'id_taken' })
      await assert.rejects(store.addSchedule(planned('s', { agentId: 'agent-2' })), { code: 'id_taken' })
      assert.deepEqual(await store.getSchedule({ id: 's', agentId: 'agent-1' }), before)
    },
  },
  {
    name: '[S1.10] what was sent of one that was paused or moved on meanwhile is written down, and nothing else of it changes',
    async run({ store: open }) {
      const store = await open()
      for (const id of ['paused', 'resumed', 'reworded']) await store.putSchedule(planned(id))
      await store.claimSchedules(claim)
      for (const id of ['paused', 'resumed']) await store.setSchedule(scope(id), { status: 'paused', now })
      await store.setSchedule(scope('resumed'), { status: 'active', nextAt: now + 60, now })
      await store.putSchedule(planned('reworded', { signal: { ...signal, id: 'another', contents: 'Look up.' } }))
      const over = (id: string, at = now + 5) => store.advanceSchedule({ id, from: now + 5, signalId: 'signal', nextAt: now + 2_000, sent: { at, signalId: `sent-${at - now}` }, now: now + 10 })
      for (const id of ['paused', 'resumed', 'reworded']) assert.equal(await over(id), false)
      const seen = async (id: string) => {
        const record = await store.getSchedule(scope(id))
        return [record?.status, record?.nextAt?.getTime(), record?.lastAt?.getTime(), record?.lastSignalId]
      }
      assert.deepEqual(await seen('paused'), ['paused', undefined, now + 5, 'sent-5'])
      assert.deepEqual(await seen('resumed'), ['active', now + 60, now + 5, 'sent-5'])
      assert.deepEqual(await seen('reworded'), ['active', now + 5, undefined, undefined])
      await over('paused', now + 3)
      assert.deepEqual(await seen('paused'), ['paused', undefined, now + 5, 'sent-5'])
    },
  },
  {
    name: '[S1.10] what is done stays done when it is paused',
    async run({ store: open }) {
      const store = await open()
      await store.putSchedule(planned('s', { timing: { at: new Date(now + 5) } }))
      await store.claimSchedules(claim)
      await store.advanceSchedule({ id: 's', from: now + 5, sent: { at: now + 5, signalId: 'sent' }, now: now + 10 })
      assert.equal((await store.setSchedule(scope('s'), { status: 'paused', now: now + 11 }))?.status, 'done')
      assert.equal((await store.getSchedule(scope('s')))?.status, 'done')
    },
  },
  {
    name: '[H6.5] what is added leaves one of its id as it is, also at once',
    async run({ store: open }) {
      const store = await open()
      const added = await Promise.all([1, 2, 3, 4].map((number) => store.addSchedule(planned('s', { signal: { ...signal, contents: `${number}` } }))))
      assert.equal(added.filter((one) => one.added).length, 1)
      await store.setSchedule(scope('s'), { status: 'paused', now })
      const before = await store.getSchedule(scope('s'))
      assert.deepEqual(await store.addSchedule(planned('s', { timing: { every: 60_000 } })), { schedule: before, added: false })
      await assert.rejects(store.addSchedule(planned('s', { resourceId: 'resource-2' })), { code: 'thread_forbidden' })
      assert.deepEqual(await store.getSchedule(scope('s')), before)
    },
  },
]
