import { describe, expect, it } from 'vitest'
import { Agent, type ScheduleInput } from '../../src/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { openHeed, sharedPlaceKinds, type Place } from '../thread/places.ts'
import { idle, soon } from '../thread/said.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }
const minute = 60_000

describe.each(sharedPlaceKinds())('a schedule that is declared at each start, $name', ({ make }) => {
  const clock = virtualClock()
  const boot = (place: Place) => {
    const model = scriptedModel(() => 'Noted.')
    const agent = new Agent({ id: 'support', model })
    return { agent, model, heed: openHeed({ agent }, place.store(), { clock }) }
  }

  it.each<[string, (boot: number) => string]>([
    ['as it was', () => 'Look around.'],
    ['with another text each time', (at) => `Look around (${at}).`],
  ])('[S1.12] keeps its phase, declared %s: hourly, with a start every 40 minutes, it is sent each hour', async (_, message) => {
    const place = make({ clock })
    let sent = 0
    for (let start = 0; start < 6; start++) {
      const { agent, model, heed } = boot(place)
      await agent.schedule({ ...thread, id: 'hourly', message: message(start), every: 60 * minute })
      for (let passed = 0; passed < 40; passed += 20) {
        await clock.advance(20 * minute)
        await soon(async () => (await clock.advance(0), Number((await agent.schedules.get({ id: 'hourly' }))?.nextAt) > clock.now())).toBe(true)
        await idle(agent, thread)
      }
      await heed.close()
      sent += model.callCount
    }
    expect(sent).toBe(4)
  })

  it('[S1.12] stays paused, and done, and is the same record', async () => {
    const place = make({ clock })
    const { agent, model } = boot(place)
    const hourly: ScheduleInput = { ...thread, id: 'hourly', message: 'Look around.', every: 60 * minute }
    const once: ScheduleInput = { ...thread, id: 'once', message: 'Go.', at: new Date(clock.now() + minute) }
    const [first] = [await agent.schedule(hourly), await agent.schedule(once)]
    expect(await agent.schedule(hourly)).toEqual(first)
    const paused = await agent.schedules.pause({ id: 'hourly' })
    await clock.advance(minute)
    await soon(async () => (await agent.schedules.get({ id: 'once' }))?.status).toBe('done')
    expect(await agent.schedule(hourly)).toEqual(paused)
    expect((await agent.schedule(once)).status).toBe('done')
    await clock.advance(minute)
    expect(model.callCount).toBe(1)
  })

  it('[S1.12] is replaced where it differs', async () => {
    const { agent } = boot(make({ clock }))
    await agent.schedule({ ...thread, id: 's', message: 'Look around.', every: 60 * minute })
    const changed = await agent.schedule({ ...thread, id: 's', message: 'Look around.', every: 30 * minute })
    expect(changed).toMatchObject({ timing: { every: 30 * minute }, nextAt: new Date(clock.now() + 30 * minute) })
    expect(await agent.schedule({ ...thread, id: 's', message: 'Look up.', every: 30 * minute, overlap: 'skip' })).toMatchObject({
      overlap: 'skip', signal: { contents: 'Look up.' },
    })
  })
})
