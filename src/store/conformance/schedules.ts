import assert from 'node:assert/strict'
import type { DueClaim } from '../contract/notifications.ts'
import type { NewSchedule, ScheduleStore } from '../contract/schedules.ts'
import type { TwoWriters } from './fixture.ts'
import { exactlyOne, rounds } from './writers/race.ts'

/** Gives the suite a new store of schedules, empty and open. The harness closes it after the case. */
export interface ScheduleHarness {
  store(): Promise<ScheduleStore>
  /** A second connection to the database of `store`, as for `StoreHarness`. */
  another?(store: ScheduleStore): Promise<ScheduleStore>
}

/** One guarantee as a test. The ids in brackets are those of PROTOCOL.md. */
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
 * What every `ScheduleStore` guarantees, as cases for any test runner:
 *
 *     for (const { name, run } of scheduleConformance) it(name, () => run(harness))
 */
export const scheduleConformance: ScheduleCase[] = [
  {
    name: '[S1.1] a claimed record is hidden from other claims until its claim expires, then due again',
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
    name: '[S1.1] no agent gets more than its share while records of others are due',
    async run({ store: open }) {
      const store = await open()
      for (let index = 0; index < 10; index++) await store.putSchedule(planned(`a${index}`))
      await store.putSchedule(planned('b', { agentId: 'agent-2' }))
      const taken = await store.claimSchedules({ ...claim, limit: 4, agentIds: ['agent-1', 'agent-2'] })
      assert.ok(taken.some(({ id }) => id === 'b'))
    },
  },
  {
    name: '[N2.11] if the limit is lower than the number of agents, the record that is due longest comes first',
    async run({ store: open }) {
      const store = await open()
      for (const [id, agentId, nextAt] of [
        ['a', 'agent-1', now + 2], ['b', 'agent-1', now + 5], ['c', 'agent-2', now + 3], ['d', 'agent-3', now + 1],
      ] as const) await store.putSchedule(planned(id, { agentId, nextAt }))
      const taken: string[] = []
      for (let index = 0; index < 4; index++) taken.push(
        ...(await store.claimSchedules({ ...claim, limit: 1, agentIds: ['agent-1', 'agent-2', 'agent-3'] })).map(({ id }) => id),
      )
      assert.deepEqual(taken, ['d', 'a', 'c', 'b'])
    },
  },
  {
    name: '[S1.2] an occurrence ends once, in whichever process; then the next is due, and after the last the schedule is done',
    async run({ store: open }) {
      const store = await open()
      await store.putSchedule(planned('s'))
      await store.claimSchedules(claim)
      const over = { id: 's', from: now + 5, nextAt: now + 1_005, sent: { at: now + 5, signalId: 'signal-1' }, now: now + 10 }
      assert.deepEqual(await Promise.all([store.advanceSchedule(over), store.advanceSchedule(over)]), [true, false])
      assert.equal(await store.nextScheduleDue(['agent-1']), now + 1_005)
      const record = await store.getSchedule(scope('s'))
      assert.deepEqual(
        [record?.nextAt?.getTime(), record?.lastAt?.getTime(), record?.lastSignalId, record?.status],
        [now + 1_005, now + 5, 'signal-1', 'active'],
      )
      assert.equal(await store.advanceSchedule({ id: 's', from: now + 1_005, error: 'refused', now: now + 1_010 }), true)
      const done = await store.getSchedule(scope('s'))
      assert.deepEqual([done?.status, done?.nextAt, done?.lastError, done?.lastSignalId], ['done', undefined, 'refused', 'signal-1'])
      assert.equal(await store.nextScheduleDue(['agent-1']), undefined)
    },
  },
  {
    name: '[S1.9] a failed occurrence is due again at its retry time, with its error and since when it fails; the next one has neither',
    async run({ store: open }) {
      const store = await open()
      await store.putSchedule(planned('s'))
      await store.claimSchedules(claim)
      const failure = { id: 's', from: now + 5, signalId: 'signal', error: 'disk is full', retryAt: now + 50, now: now + 10 }
      assert.equal(await store.failSchedule(failure), true)
      assert.equal(await store.nextScheduleDue(['agent-1']), now + 50)
      assert.deepEqual(await store.claimSchedules({ ...claim, now: now + 49 }), [])
      const [again] = await store.claimSchedules({ ...claim, now: now + 50 })
      assert.deepEqual(
        [again?.nextAt?.getTime(), again?.lastError, again?.updatedAt.getTime(), again?.status],
        [now + 5, 'disk is full', now + 10, 'active'],
      )
      await store.failSchedule({ ...failure, error: 'still full', retryAt: now + 90, now: now + 51 })
      const still = await store.getSchedule(scope('s'))
      assert.deepEqual([still?.lastError, still?.updatedAt.getTime()], ['still full', now + 10])
      await store.advanceSchedule({ id: 's', from: now + 5, nextAt: now + 1_005, error: 'given up', now: now + 100 })
      await store.failSchedule({ ...failure, from: now + 1_005, now: now + 1_006, retryAt: now + 2_000 })
      assert.equal((await store.getSchedule(scope('s')))?.updatedAt.getTime(), now + 1_006)
      await store.advanceSchedule({
        id: 's', from: now + 1_005, nextAt: now + 2_005, sent: { at: now + 1_005, signalId: 'x' }, now: now + 2_000,
      })
      assert.equal((await store.getSchedule(scope('s')))?.lastError, undefined)
    },
  },
  {
    name: '[S1.9] a failure has no effect on a schedule that was paused, replaced or removed since the claim',
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
        assert.equal(
          await store.failSchedule({ id, from: now + 5, signalId: 'signal', error: 'disk is full', retryAt: now + 9_000, now: now + 10 }),
          false, id,
        )
        assert.equal(
          await store.advanceSchedule({ id, from: now + 5, signalId: 'signal', nextAt: now + 9_000, error: 'given up', now: now + 10 }),
          false, id,
        )
      }
      assert.deepEqual(await Promise.all(ids.map((id) => store.getSchedule(scope(id)))), before)
      assert.deepEqual(
        (await store.claimSchedules({ ...claim, now: now + 2_000, until: now + 3_000 })).map(({ id }) => id).toSorted(),
        ['moved', 'replaced', 'reworded'],
      )
    },
  },
  {
    name: '[S1.5] a schedule that was paused, replaced or removed since the claim is not advanced by the claimer',
    async run({ store: open }) {
      const store = await open()
      for (const id of ['paused', 'replaced', 'removed']) await store.putSchedule(planned(id))
      await store.claimSchedules(claim)
      await store.setSchedule(scope('paused'), { status: 'paused', now })
      await store.putSchedule(planned('replaced', { nextAt: now + 77 }))
      assert.equal(await store.deleteSchedule(scope('removed')), true)
      for (const id of ['paused', 'replaced', 'removed']) assert.equal(
        await store.advanceSchedule({ id, from: now + 5, nextAt: now + 2_000, now }), false,
      )
      assert.equal((await store.getSchedule(scope('paused')))?.status, 'paused')
      assert.equal(await store.nextScheduleDue(['agent-1']), now + 77)
      assert.equal(await store.getSchedule(scope('removed')), null)
    },
  },
  {
    name: '[S1.5] a paused schedule is not due until it is resumed; lists are ordered by id, paged and filtered',
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
      assert.deepEqual(
        (await store.listSchedules({ threadId: 'thread-2', limit: 5 })).schedules.map(({ timing }) => timing),
        [{ cron: '0 0 * * *', timeZone: 'Europe/Zurich' }],
      )
      assert.equal(await store.setSchedule(scope('none'), { status: 'paused', now }), null)
    },
  },
  {
    name: '[S1.5] resuming an active schedule does not change its due time',
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
    name: "[S1.6] another resource can't read, change or replace a schedule",
    async run({ store: open }) {
      const store = await open()
      const before = await store.putSchedule(planned('s'))
      const foreign = { id: 's', resourceId: 'resource-2' }
      assert.equal(await store.getSchedule(foreign), null)
      assert.equal(await store.setSchedule(foreign, { status: 'paused', now }), null)
      assert.equal(await store.deleteSchedule(foreign), false)
      assert.deepEqual((await store.listSchedules({ resourceId: 'resource-2', limit: 5 })).schedules, [])
      assert.deepEqual(await store.getSchedule(scope('s')), before)
    },
  },
  {
    name: '[S1.13] an id that another resource has is one of its own for each resource, which finds, replaces and removes its own',
    async run({ store: open }) {
      const store = await open()
      const before = await store.putSchedule(planned('s'))
      const foreign = { id: 's', resourceId: 'resource-2' }
      const made = await store.putSchedule(planned('s', { resourceId: 'resource-2', timing: { every: 60_000 } }))
      assert.notEqual(made.id, 's')
      assert.deepEqual(await store.getSchedule(foreign), made)
      assert.deepEqual(await store.getSchedule({ id: made.id }), made)
      assert.deepEqual(await store.addSchedule(planned('s', { resourceId: 'resource-2' })), { schedule: made, added: false })
      const replaced = await store.putSchedule(planned(made.id, { resourceId: 'resource-2', timing: { every: 90_000 } }))
      assert.deepEqual([replaced.id, replaced.timing], [made.id, { every: 90_000 }])
      assert.deepEqual((await store.listSchedules({ limit: 5 })).schedules.map(({ id }) => id), ['s', made.id])
      // The suffix of another resource can't be taken before it.
      const squat = store.putSchedule(planned(`t${made.id.slice(1)}`, { resourceId: 'resource-3' }))
      await assert.rejects(squat, { code: 'invalid_argument' })
      assert.equal((await store.setSchedule(foreign, { status: 'paused', now }))?.id, made.id)
      assert.deepEqual(await store.getSchedule(scope('s')), before)
      assert.equal(await store.deleteSchedule(foreign), true)
      assert.equal(await store.deleteSchedule(foreign), false)
      assert.deepEqual(await store.getSchedule(scope('s')), before)
    },
  },
  {
    name: "[S1.6] another agent can't read, change or replace a schedule",
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
    name: '[S1.10] the last send of a schedule that was paused or advanced since the claim is recorded, and nothing else changes',
    async run({ store: open }) {
      const store = await open()
      for (const id of ['paused', 'resumed', 'reworded']) await store.putSchedule(planned(id))
      await store.claimSchedules(claim)
      for (const id of ['paused', 'resumed']) await store.setSchedule(scope(id), { status: 'paused', now })
      await store.setSchedule(scope('resumed'), { status: 'active', nextAt: now + 60, now })
      await store.putSchedule(planned('reworded', { signal: { ...signal, id: 'another', contents: 'Look up.' } }))
      const over = (id: string, at = now + 5) => store.advanceSchedule({
        id, from: now + 5, signalId: 'signal', nextAt: now + 2_000, sent: { at, signalId: `sent-${at - now}` }, now: now + 10,
      })
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
    name: '[S1.10] pausing a schedule that is done has no effect',
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
    name: '[H6.5] adding a schedule does not change an existing one with its id, also concurrently',
    async run({ store: open }) {
      const store = await open()
      const added = await Promise.all(
        [1, 2, 3, 4].map((number) => store.addSchedule(planned('s', { signal: { ...signal, contents: `${number}` } }))),
      )
      assert.equal(added.filter((one) => one.added).length, 1)
      await store.setSchedule(scope('s'), { status: 'paused', now })
      const before = await store.getSchedule(scope('s'))
      assert.deepEqual(await store.addSchedule(planned('s', { timing: { every: 60_000 } })), { schedule: before, added: false })
      assert.equal((await store.addSchedule(planned('s', { resourceId: 'resource-2' }))).added, true)
      assert.deepEqual(await store.getSchedule(scope('s')), before)
    },
  },
]

/** A case with two writers of schedules. */
export interface ScheduleWriterCase {
  name: string
  run(harness: TwoWriters<ScheduleHarness>): Promise<void>
}

const advance = { from: now + 5, nextAt: now + 1_005, sent: { at: now + 5, signalId: 'sent' }, now: now + 11 }

function plannedFor(agentId: string, id: string, contents: string = signal.contents): NewSchedule {
  return planned(id, { agentId, signal: { ...signal, id: `signal-${contents}`, contents } })
}

/** What a `ScheduleStore` guarantees to two connections, as cases for any test runner. They need a harness with `another`. */
export const scheduleWriterConformance: ScheduleWriterCase[] = [
  {
    name: '[S1.1] [R1.6] an occurrence is claimed by one of two',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const agentId = `agent-${nth}`
      const ids = [0, 1, 2, 3].map((index) => `s-${nth}-${index}`)
      for (const id of ids) await one.putSchedule(plannedFor(agentId, id))
      const claim = { now: now + 10, until: now + 1_000, limit: 100, agentIds: [agentId] }
      const claims = await together(() => one.claimSchedules(claim), () => two.claimSchedules(claim))
      assert.deepEqual(claims.flat().map(({ id }) => id).toSorted(), ids)
    }),
  },
  {
    name: '[S1.5] [R1.6] a schedule that both add is one, and both are answered with it',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const id = `s-${nth}`
      const add = (store: ScheduleStore, contents: string) => store.addSchedule(plannedFor('agent-1', id, contents))
      const answers = await together(() => add(one, 'a'), () => add(two, 'b'))
      exactlyOne(answers.map(({ added }) => added))
      const kept = await two.getSchedule({ id })
      assert.deepEqual(answers.map(({ schedule }) => schedule), [kept, kept])
      assert.equal(kept?.signal.contents, answers[0].added ? 'a' : 'b')
    }),
  },
  {
    name: '[S1.10] [R1.6] a schedule that is replaced while its occurrence is recorded is the new one, with the due time of the new one',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const id = `s-${nth}`
      const agentId = `agent-${nth}`
      const { signal } = await one.putSchedule(plannedFor(agentId, id, 'old'))
      await one.claimSchedules({ now: now + 10, until: now + 1_000, limit: 1, agentIds: [agentId] })
      await together(
        () => one.advanceSchedule({ ...advance, id, signalId: signal.id }),
        () => two.putSchedule({ ...plannedFor(agentId, id, 'new'), nextAt: now + 7 }),
      )
      const kept = await two.getSchedule({ id })
      assert.deepEqual([kept?.signal.contents, kept?.nextAt?.getTime(), kept?.status], ['new', now + 7, 'active'])
    }),
  },
]
