import { describe, expect, it } from 'vitest'
import { Agent, type Clock, type NotificationDeliveryDecision, type NotificationStore } from '../../src/index.ts'
import { notificationStoreOf } from '../../src/store/contract/storage.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { openHeed, placeKinds, type PlaceKind } from '../thread/places.ts'
import { idle, soon } from '../thread/said.ts'
import { ci, thread } from './world.ts'

const minute = 60_000
const hour = 60 * minute

/** A clock whose time of day can be set while its timers go on as they were. */
async function openAt(make: PlaceKind['make'], start: Date, decide: (now: Date) => NotificationDeliveryDecision) {
  const time = virtualClock(start)
  let set = 0
  const clock: Clock = { now: () => time.now() + set, after: (...given) => time.after(...given) }
  const model = scriptedModel(() => 'Noted.')
  const agent = new Agent({ id: 'support', model, notifications: { deliveryPolicy: { decide: ({ now }) => decide(now) } } })
  const storage = make({ clock }).store()
  openHeed({ agent }, storage, { clock })
  const inbox = (await notificationStoreOf(storage)) as NotificationStore
  return {
    clock,
    send: () => agent.sendNotificationSignal({ ...ci, priority: 'low' }, thread),
    jump: (ms: number) => (set += ms),
    /** So much time passes, in steps small enough for leases to be renewed. */
    async pass(ms: number) {
      for (let passed = 0; passed < ms; passed += 2 * minute) {
        await time.advance(Math.min(2 * minute, ms - passed))
        await idle(agent, thread)
      }
    },
    /** How many records were sent on, and as how many signals in the thread. */
    async sent() {
      await time.advance(0)
      const { notifications } = await inbox.listNotifications({ ...thread, limit: 100 })
      const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
      const done = notifications.filter(({ deliveredSignalId, summarySignalId }) => deliveredSignalId !== undefined || summarySignalId !== undefined)
      return [done.length, messages.filter(({ role }) => role === 'signal').length]
    },
  }
}

const january = new Date('2026-01-15T12:00:00Z')
const defer = (now: Date): NotificationDeliveryDecision => ({ action: 'defer', deliverAt: new Date(now.getTime() + 30 * minute) })
const summarize = (now: Date): NotificationDeliveryDecision => ({ action: 'summarize', summaryAt: new Date(now.getTime() + 30 * minute) })
const kinds = [['a delivery', defer], ['a summary', summarize]] as const

describe.each(placeKinds())('a clock that is set, $name', ({ make }) => {
  it.each(kinds)('[N2.10] an hour ahead: %s that is due by it comes within a minute, once', async (_, decide) => {
    const { send, jump, pass, sent } = await openAt(make, january, decide)
    await send()
    jump(hour)
    await pass(minute)
    await soon(sent).toEqual([1, 1])
    jump(-hour)
    // Until after both times at which it would be due again.
    await pass(95 * minute)
    expect(await sent()).toEqual([1, 1])
  })

  it.each(kinds)('[N2.10] an hour back: %s comes when the clock says so, once', async (_, decide) => {
    const { send, jump, pass, sent } = await openAt(make, january, decide)
    await send()
    await pass(20 * minute)
    jump(-hour)
    await pass(60 * minute)
    expect(await sent()).toEqual([0, 0])
    await pass(12 * minute)
    await soon(sent).toEqual([1, 1])
    await pass(65 * minute)
    expect(await sent()).toEqual([1, 1])
  })

  it.each([
    ['begins', '2026-03-29T00:45:00Z'],
    ['ends', '2026-10-25T00:45:00Z'],
  ].flatMap(([what, at]) => kinds.map(([name, decide]) => ({ what, at, name, decide }))))('[N2.10] when summer time $what, $name is neither early nor late', async ({ at, decide }) => {
    const { send, pass, sent } = await openAt(make, new Date(at ?? ''), decide)
    await send()
    await pass(28 * minute)
    expect(await sent()).toEqual([0, 0])
    await pass(2 * minute)
    await soon(sent).toEqual([1, 1])
    await pass(65 * minute)
    expect(await sent()).toEqual([1, 1])
  })
})
