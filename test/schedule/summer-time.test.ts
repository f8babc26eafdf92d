import { afterEach, describe, expect, it } from 'vitest'
import { Agent } from '../../src/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { ci, openWorld, thread, type World } from '../inbox/world.ts'
import { fileKind, openHeed, placeKinds, type PlaceKind } from '../thread/places.ts'
import { idle, soon } from '../thread/said.ts'

const minute = 60_000

/** In Zurich clocks go from 2:00 to 3:00 on 29 March 2026, and from 3:00 to 2:00 on 25 October. */
const nights = [
  { what: 'begins', quarters: ['01:15', '01:45'], from: '2026-03-28T23:15Z', hourly: ['23:30', '00:30', '01:30', '02:30', '03:30'] },
  { what: 'ends', quarters: ['00:15', '00:45'], from: '2026-10-24T22:15Z', hourly: ['22:30', '23:30', '00:30', '01:30', '02:30'] },
] as const

/** The hours in which a time of day between 2:00 and 3:00 is left out or comes twice, on this day. */
const around = (from: string) => ({ from: `${from.slice(0, 8)}${Number(from.slice(8, 10)) + 1}T00:00Z`, hours: 2.25 })

/** Which occurrences of a schedule the thread has, by the time in their signals. */
async function occurrencesIn(make: PlaceKind['make'], cron: string, from: string, hours: number): Promise<string[]> {
  const clock = virtualClock(new Date(from))
  const agent = new Agent({ id: 'support', model: scriptedModel(() => 'Noted.') })
  openHeed({ agent }, make({ clock }).store(), { clock })
  await agent.schedule({ ...thread, id: 's', message: 'Look around.', cron, timeZone: 'Europe/Zurich', missed: 'all' })
  for (let passed = 0; passed < hours * 60; passed += 15) {
    await clock.advance(15 * minute)
    await soon(async () => {
      await clock.advance(0)
      return ((await agent.schedules.get({ id: 's' }))?.nextAt?.getTime() ?? 0) > clock.now()
    }).toBe(true)
    await idle(agent, thread)
  }
  const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
  return messages.flatMap(({ id }) => /^schedule:s:(\d+):/.exec(id)?.[1] ?? []).map((at) => new Date(Number(at)).toISOString().slice(11, 16))
}

describe.each(placeKinds())('a night in which clocks are set, $name', ({ make }) => {
  it.each(nights)('[S1.8] summer time $what: what is at a time of day is sent once', async ({ from, quarters }) => {
    const night = around(from)
    expect(await occurrencesIn(make, '15,45 2 * * *', night.from, night.hours)).toEqual(quarters)
  })

  it.each(nights)('[S1.8] summer time $what: what is for every hour is sent in every hour that passes', async ({ from, hourly }) => {
    expect(await occurrencesIn(make, '30 * * * *', from, 4.5)).toEqual(hourly)
  })
})

describe('the cron of dispatch in a night in which clocks are set', () => {
  const { make } = fileKind()
  const here = process.env.TZ
  afterEach(() => {
    if (here === undefined) delete process.env.TZ
    else process.env.TZ = here
  })

  /** When it looked: what it claims while nothing is due. */
  function looksOf({ inbox, clock }: World): string[] {
    const looks: string[] = []
    const claim = inbox.claimDue.bind(inbox)
    inbox.claimDue = (given) => {
      looks.push(new Date(clock.now()).toISOString().slice(11, 16))
      return claim(given)
    }
    return looks
  }

  it.each(nights)('[N2.10] [N2.12] summer time $what: it looks once at each of its times', async (given) => {
    const { from, hours } = around(given.from)
    process.env.TZ = 'Europe/Zurich'
    expect(new Intl.DateTimeFormat().resolvedOptions().timeZone).toBe('Europe/Zurich')
    const world = await openWorld(make, {}, { dispatch: { enabled: true, cron: '15,45 2 * * *' } }, new Date(from))
    const { clock, heed, agent, list, history } = world
    await heed.start()
    await agent.sendNotificationSignal(ci, thread)
    await soon(async () => (await list())[0]?.status).toBe('delivered')
    const looks = looksOf(world)
    for (let passed = 0; passed < hours * 60; passed++) {
      await clock.advance(minute)
      // A look that is not over yet is one with the next.
      await list()
    }
    await soon(() => looks).toEqual(given.quarters)
    expect(await history()).toEqual(['notification'])
  })
})
