import { describe, expect, it } from 'vitest'
import { Agent, type HeedError, type ScheduleInput, type ScheduleStore } from '../../src/index.ts'
import { scheduleStoreOf } from '../../src/store/contract/storage.ts'
import { scriptedModel, virtualClock, type VirtualClock } from '../../src/testing/index.ts'
import { fileKind, openHeed, placeKinds, type Place, type PlaceKind } from '../thread/places.ts'
import { gate, idle, soon, userTexts } from '../thread/said.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }
const minute = 60_000
const hour = 60 * minute

function openSchedules(make: PlaceKind['make'], { clock = virtualClock(), place = make({ clock }), id = 'support' }: { clock?: VirtualClock; place?: Place; id?: string } = {}) {
  const hold = gate()
  let held = false
  const model = scriptedModel(() => {
    if (!held) return 'Noted.'
    held = false
    return { text: 'Working.', gate: hold.promise }
  })
  const agent = new Agent({ id, model })
  const storage = place.store()
  const heed = openHeed({ agent }, storage, { clock })
  return {
    clock, place, model, agent, heed, storage,
    calls: () => model.callCount,
    release: hold.open,
    holdNext: () => (held = true),
    said: () => userTexts(model.calls.at(-1)),
    /** Time passes, and what it set going is done. */
    async pass(ms: number, step = minute) {
      for (let passed = 0; passed < ms; passed += step) {
        await clock.advance(step)
        await idle(agent, thread)
      }
    },
  }
}

describe.each(placeKinds())('schedules, $name', ({ make }) => {
  it('[S1.1] every so often, by cron and at one time, each occurrence is sent once', async () => {
    const { agent, clock, calls, said } = openSchedules(make)
    const count = async () => {
      await clock.advance(0)
      return calls()
    }
    await agent.schedules.create({ ...thread, id: 'often', message: 'Look around.', every: 10 * minute })
    await clock.advance(10 * minute - 1)
    expect(calls()).toBe(0)
    await clock.advance(1)
    await soon(count).toBe(1)
    expect(said()).toEqual(['Look around.'])
    await agent.schedules.remove({ id: 'often' })
    await agent.schedules.create({ ...thread, id: 'once', signal: { type: 'notification', contents: 'Time to go.' }, at: new Date(clock.now() + minute) })
    await clock.advance(minute)
    await soon(count).toBe(2)
    expect(said().at(-1)).toBe('<notification>Time to go.</notification>')
    await soon(async () => (await agent.schedules.get({ id: 'once' }))?.status).toBe('done')
    const { nextAt } = await agent.schedules.create({ ...thread, id: 'cron', message: 'Good morning.', cron: '30 7 * * *', timeZone: 'Europe/Zurich' })
    expect(nextAt?.toISOString()).toBe('2026-01-01T06:30:00.000Z')
  })

  it('[S1.2] what was sent and not written down is sent again, and the thread has it once', async () => {
    const { agent, clock, storage, heed } = openSchedules(make)
    await agent.schedules.create({ ...thread, id: 's', message: 'Look around.', every: 10 * minute })
    const store = (await scheduleStoreOf(storage)) as ScheduleStore
    const advance = store.advanceSchedule.bind(store)
    let tries = 0
    store.advanceSchedule = (given) => (tries++ === 0 ? Promise.reject(new Error('lost')) : advance(given))
    await clock.advance(10 * minute)
    await soon(async () => {
      await clock.advance(5_000)
      return (await agent.schedules.get({ id: 's' }))?.lastSignalId
    }).toMatch(/^schedule:s:/)
    expect(tries).toBe(2)
    await idle(agent, thread)
    const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
    expect(messages.filter(({ role }) => role !== 'assistant')).toHaveLength(1)
    await heed.close()
  })

  it('[S1.3] on an active thread: a run of its own, skipped, or in place of the current answer', async () => {
    const active = async (overlap: 'allow' | 'skip' | 'replace') => {
      const world = openSchedules(make)
      const { agent, clock, holdNext, calls, release } = world
      holdNext()
      agent.sendMessage('Work.', thread)
      await soon(calls).toBe(1)
      await agent.schedules.create({ ...thread, id: 's', message: 'Look around.', at: new Date(clock.now() + minute), overlap })
      await clock.advance(minute)
      await soon(async () => {
        await clock.advance(0)
        return (await agent.schedules.get({ id: 's' }))?.status
      }).toBe('done')
      return { ...world, release, calls }
    }
    const allow = await active('allow')
    expect(await allow.agent.listQueued(thread)).toHaveLength(1)
    allow.release()
    await soon(allow.calls).toBe(2)
    const skip = await active('skip')
    skip.release()
    await idle(skip.agent, thread)
    expect(skip.calls()).toBe(1)
    const replace = await active('replace')
    await soon(replace.calls).toBe(2)
    expect(replace.said()).toEqual(['Work.', 'Look around.'])
  })

  it('[S1.1] [N2.11] a tick that takes fewer than there are agents reaches each of them in time', async () => {
    const clock = virtualClock()
    const model = scriptedModel(() => 'Noted.')
    const agents = Object.fromEntries(['one', 'two', 'three'].map((id) => [id, new Agent({ id, model })]))
    const heed = openHeed(agents, make({ clock }).store(), { clock, notifications: { dispatch: { enabled: false } } })
    for (const agent of Object.values(agents)) await agent.schedules.create({ threadId: agent.id, resourceId: 'user-1', id: agent.id, message: 'Look around.', every: 1_000 })
    for (let tick = 0; tick < 6; tick++) {
      await clock.advance(minute)
      expect(await heed.tick({ limit: 1 })).toMatchObject({ schedules: 1 })
    }
    for (const agent of Object.values(agents)) expect(await agent.schedules.get({ id: agent.id })).toMatchObject({ lastSignalId: expect.any(String) })
  })

  it('[S1.5] are paused, resumed, replaced and removed; the time of a pause is not made up for', async () => {
    const { agent, clock, calls, pass } = openSchedules(make)
    await agent.schedules.create({ ...thread, id: 's', message: 'One.', every: minute })
    expect(await agent.schedules.pause({ id: 's' })).toMatchObject({ status: 'paused' })
    await pass(10 * minute)
    expect(calls()).toBe(0)
    expect((await agent.schedules.resume({ id: 's' })).nextAt?.getTime()).toBe(clock.now() + minute)
    await agent.schedules.create({ ...thread, id: 's', message: 'Two.', every: hour })
    expect((await agent.schedules.list({ resourceId: 'user-1' })).schedules).toMatchObject([{ id: 's', status: 'active', timing: { every: hour }, signal: { contents: 'Two.' } }])
    expect(await agent.schedules.remove({ id: 's' })).toBe(true)
    expect(await agent.schedules.remove({ id: 's' })).toBe(false)
    await pass(2 * hour, 30 * minute)
    expect(calls()).toBe(0)
  })

  it('[S1.6] of another resource can be neither seen, changed nor replaced', async () => {
    const { agent } = openSchedules(make)
    await agent.schedules.create({ ...thread, id: 's', message: 'One.', every: hour })
    const foreign = { id: 's', resourceId: 'somebody' }
    expect(await agent.schedules.get(foreign)).toBeNull()
    expect(await agent.schedules.remove(foreign)).toBe(false)
    expect((await agent.schedules.list({ resourceId: 'somebody' })).schedules).toEqual([])
    await expect(agent.schedules.pause(foreign)).rejects.toMatchObject({ code: 'invalid_argument' })
    const own = await agent.schedules.create({ threadId: 'other', resourceId: 'somebody', id: 's', message: 'Mine.', every: hour })
    expect(await agent.schedules.get(foreign)).toEqual(own)
    expect(await agent.schedules.get({ id: 's' })).toMatchObject({ resourceId: thread.resourceId, signal: { contents: 'One.' } })
    await agent.sendMessage('Hello.', thread).outcome
    await expect(agent.schedules.create({ ...thread, resourceId: 'somebody', message: 'Mine.', every: hour })).rejects.toMatchObject({ code: 'thread_forbidden' })
  })

  it('[S1.7] that are wrong are refused by name, with nothing written', async () => {
    const { agent } = openSchedules(make)
    const field = async (given: object) =>
      ((await agent.schedules.create({ ...thread, message: 'x', ...given } as ScheduleInput).then(() => undefined, (error: unknown) => error)) as HeedError | undefined)?.details?.field
    expect(await field({})).toBe('cron')
    expect(await field({ every: hour, at: new Date() })).toBe('cron')
    expect(await field({ cron: 'every now and then' })).toBe('cron')
    expect(await field({ cron: '0 0 31 2 *' })).toBe('cron')
    expect(await field({ cron: '* * * * *', timeZone: 'Mars/Olympus' })).toBe('timeZone')
    expect(await field({ every: 5 })).toBe('every')
    expect(await field({ at: 'tomorrow' })).toBe('at')
    expect(await field({ every: hour, overlap: 'perhaps' })).toBe('overlap')
    expect(await field({ every: hour, missed: 'perhaps' })).toBe('missed')
    expect(await field({ at: new Date(), missed: 'all' })).toBe('missed')
    expect(await field({ every: hour, message: { id: 'mine', contents: 'x' } })).toBe('message.id')
    expect(await field({ every: hour, message: undefined, signal: { id: 'mine', type: 'notification', contents: 'x' } })).toBe('signal.id')
    expect(await field({ every: hour, threadId: '' })).toBe('threadId')
    expect(await field({ every: hour, often: true })).toBe('often')
    expect(await field({ every: hour, signal: { type: 'notification', contents: 'x' } })).toBe('message')
    expect((await agent.schedules.list()).schedules).toEqual([])
  })
})

describe('schedules in the next process', () => {
  const libsql = fileKind()

  it.each([['once', 1], ['skip', 0], ['all', 5]] as const)('[S1.4] what was missed is sent as the schedule says: %s', async (missed, expected) => {
    const clock = virtualClock()
    const first = openSchedules(libsql.make, { clock })
    await first.agent.schedules.create({ ...thread, id: 's', message: 'Look around.', every: hour, missed })
    await first.heed.close()
    await clock.advance(5 * hour + 10 * minute)
    const second = openSchedules(libsql.make, { clock, place: first.place })
    await second.heed.start()
    await soon(async () => (await second.agent.schedules.get({ id: 's' }))?.nextAt?.getTime()).toBe(Date.UTC(2026, 0, 1, 6))
    await idle(second.agent, thread)
    await soon(() => second.calls()).toBe(expected)
  })

  it('[S1.8] neither a clock that jumps nor summer time loses or doubles an occurrence', async () => {
    // On 29 March 2026 clocks in Zurich go from 2:00 to 3:00; on 25 October from 3:00 to 2:00.
    const { agent } = openSchedules(libsql.make, { clock: virtualClock(Date.UTC(2026, 2, 28, 12)) })
    const { nextAt } = await agent.schedules.create({ ...thread, id: 'spring', message: 'x', cron: '30 7 * * *', timeZone: 'Europe/Zurich' })
    expect(nextAt?.toISOString()).toBe('2026-03-29T05:30:00.000Z')

    let ahead = 0
    const still = virtualClock()
    const jumping: VirtualClock = { ...still, now: () => still.now() + ahead, get pending() { return still.pending } }
    const world = openSchedules(libsql.make, { clock: jumping })
    await world.agent.schedules.create({ ...thread, id: 's', message: 'Look around.', every: 10 * minute })
    const sent = async (ms = minute) => {
      await still.advance(ms)
      return (await world.agent.schedules.get({ id: 's' }))?.lastAt?.getTime()
    }
    await still.advance(10 * minute)
    await soon(() => sent(0)).toBe(Date.UTC(2026, 0, 1, 0, 10))
    await soon(world.calls).toBe(1)
    ahead = -hour
    for (let passed = 0; passed < 30; passed++) await still.advance(minute)
    expect(world.calls()).toBe(1)
    ahead = hour
    await soon(async () => ((await sent()) ?? 0) > Date.UTC(2026, 0, 1, 0, 10)).toBe(true)
    await idle(world.agent, thread)
    const { messages } = await (await world.agent.getMemory()).recall({ ...thread, perPage: false })
    const ids = messages.filter(({ role }) => role !== 'assistant').map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.length).toBeGreaterThanOrEqual(2)
  })
})
