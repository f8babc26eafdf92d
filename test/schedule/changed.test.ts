import { describe, expect, it } from 'vitest'
import { Agent, type HeedError, type ScheduleStore } from '../../src/index.ts'
import { scheduleStoreOf } from '../../src/store/contract/storage.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openWorld, thread, type World } from '../inbox/world.ts'
import { openHeed, placeKinds } from '../thread/places.ts'
import { idle, soon } from '../thread/said.ts'

const minute = 60_000

/** What is asked of the store goes on after `act`. */
async function before<Name extends 'claimSchedules' | 'advanceSchedule'>({ storage }: World, name: Name, act: () => Promise<unknown>) {
  const store = (await scheduleStoreOf(storage)) as ScheduleStore
  const asked = store[name].bind(store) as (given: never) => Promise<unknown>
  Object.defineProperty(store, name, {
    configurable: true,
    async value(given: never) {
      if (name === 'advanceSchedule') await act()
      const answer = await asked(given)
      if (Array.isArray(answer) && answer.length > 0) await act()
      return answer
    },
  })
}

describe.each(placeKinds())('schedules that are changed while they are due, $name', ({ make }) => {
  it.each(['remove', 'pause'] as const)('[S1.10] are not sent after a %s, although they were taken', async (change) => {
    const world = await openWorld(make)
    const { agent, clock, calls, heed } = world
    await agent.schedule({ ...thread, id: 'x', message: 'Tick.', every: minute })
    let changed = 0
    await before(world, 'claimSchedules', async () => {
      await agent.schedules[change]({ id: 'x' })
      changed++
    })
    await clock.advance(minute)
    await soon(async () => {
      await clock.advance(0)
      return changed
    }).toBe(1)
    await heed.close()
    expect(calls()).toBe(0)
  })

  it('[S1.10] of several missed ones the rest is not sent', async () => {
    const world = await openWorld(make, {}, { dispatch: { enabled: false } })
    const { agent, clock, storage, heed } = world
    await agent.schedule({ ...thread, id: 'x', message: 'Tick.', every: minute, missed: 'all' })
    const accept = storage.accept.bind(storage)
    Object.defineProperty(storage, 'accept', {
      configurable: true,
      async value(sends: Parameters<typeof accept>[0]) {
        await agent.schedules.pause({ id: 'x' })
        return accept(sends)
      },
    })
    const first = clock.now() + minute
    await clock.advance(10 * minute)
    await heed.tick()
    await idle(agent, thread)
    const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
    expect(messages.filter(({ role }) => role !== 'assistant')).toHaveLength(1)
    expect(await agent.schedules.get({ id: 'x' })).toMatchObject({ status: 'paused', lastAt: new Date(first), lastSignalId: expect.stringMatching(/^schedule:x:/) })
  })

  it('[S1.10] what was sent is written down, also of one that was paused meanwhile', async () => {
    const world = await openWorld(make)
    const { agent, clock, calls } = world
    const at = new Date(clock.now() + minute)
    await agent.schedule({ ...thread, id: 'x', message: 'Tick.', at })
    await before(world, 'advanceSchedule', () => agent.schedules.pause({ id: 'x' }))
    await clock.advance(minute)
    await soon(calls).toBe(1)
    await soon(async () => (await agent.schedules.get({ id: 'x' }))?.lastAt).toEqual(at)
    expect(await agent.schedules.get({ id: 'x' })).toMatchObject({ status: 'paused', lastSignalId: expect.stringMatching(/^schedule:x:/) })
    expect(await agent.schedules.resume({ id: 'x' })).toMatchObject({ status: 'done' })
    expect(await agent.schedules.pause({ id: 'x' })).toMatchObject({ status: 'done' })
    expect(calls()).toBe(1)
  })

  it('[S1.6] of another agent can be neither seen, changed nor replaced', async () => {
    const [mine, other] = ['mine', 'other'].map((id) => new Agent({ id, model: scriptedModel(() => 'Noted.') })) as [Agent, Agent]
    const heed = openHeed({ mine, other }, make().store())
    const before = await mine.schedule({ ...thread, id: 's', message: 'Mine.', every: minute })
    expect(await other.schedules.get({ id: 's' })).toBeNull()
    expect(await other.schedules.remove({ id: 's' })).toBe(false)
    for (const change of ['pause', 'resume'] as const) await expect(other.schedules[change]({ id: 's' })).rejects.toMatchObject({ code: 'invalid_argument', details: { id: 's' } })
    for (const create of ['create', 'createOnce'] as const) {
      await expect(other.schedules[create]({ ...thread, id: 's', message: 'Theirs.', every: minute })).rejects.toMatchObject({ code: 'id_taken', details: { id: 's' } })
    }
    expect(await mine.schedules.get({ id: 's' })).toEqual(before)
    await heed.close()
  })

  it('[S1.7] what can\'t be listed is refused by name', async () => {
    const { agent } = await openWorld(make)
    const named = async (query: object) => {
      const error = (await agent.schedules.list(query).then(() => undefined, (failed: unknown) => failed)) as HeedError | undefined
      return error?.details?.field ?? error?.details?.option
    }
    expect(await named({ status: 'bogus' })).toBe('status')
    expect(await named({ status: ['active'] })).toBe('status')
    for (const field of ['threadId', 'resourceId', 'after']) for (const value of [5, '', null, ['x']]) expect(await named({ [field]: value }), field).toBe(field)
    expect(await named({ stauts: 'active' })).toBe('stauts')
  })
})
