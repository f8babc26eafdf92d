import { describe, expect, it } from 'vitest'
import type { DueClaim, NotificationStore } from '../../src/index.ts'
import { placeKinds } from '../thread/places.ts'
import { soon } from '../thread/said.ts'
import { ci, openWorld, thread, type World } from './world.ts'

const second = 1_000

/** A record that is due, of which nothing in this process knows: one that another left. */
async function leave(inbox: NotificationStore, id: string, now: number): Promise<void> {
  await inbox.ingest([{ ...thread, source: 'github', kind: 'ci-status', summary: 'Left.', id, agentId: 'support', now, undecidedUntil: now, settlement: { action: 'defer', deliverAt: now, now, claimUntil: now } }])
}

function limitsOf(inbox: NotificationStore): number[] {
  const limits: number[] = []
  const claim = inbox.claimDue.bind(inbox)
  inbox.claimDue = (given: DueClaim) => {
    limits.push(given.limit)
    return claim(given)
  }
  return limits
}

const status = (world: World) => async () => {
  await world.clock.advance(0)
  return (await world.list()).map((record) => record.status)
}

describe.each(placeKinds())('notifications.dispatch, $name', ({ make }) => {
  it('[N2.12] `cron` is a look besides the timers, when its time has come and not before', async () => {
    const world = await openWorld(make, {}, { dispatch: { enabled: true, cron: '*/5 * * * * *' } })
    await world.heed.start()
    await world.agent.sendNotificationSignal(ci, thread)
    const looks = limitsOf(world.inbox)
    await world.clock.advance(5 * second - (world.clock.now() % (5 * second)))
    await soon(() => looks.length).toBe(1)
    await world.clock.advance(4 * second)
    expect(looks).toHaveLength(1)
    await world.clock.advance(second)
    await soon(() => looks.length).toBe(2)
    await leave(world.inbox, 'left', world.clock.now())
    await world.clock.advance(5 * second)
    await soon(status(world)).toEqual(['delivered', 'delivered'])
  })

  it('[N2.12] a `cron` of the night takes nothing by day', async () => {
    const world = await openWorld(make, {}, { dispatch: { enabled: true, cron: '0 3 * * *' } })
    await world.heed.start()
    await world.agent.sendNotificationSignal(ci, thread)
    await soon(status(world)).toEqual(['delivered'])
    const looks = limitsOf(world.inbox)
    for (let minute = 0; minute < 10; minute++) await world.clock.advance(60 * second)
    expect(looks).toEqual([])
  })

  it('[N2.12] `batchSize` is how many are taken at once, until none is left', async () => {
    const later = ({ now }: { now: Date }) => ({ action: 'defer' as const, deliverAt: new Date(now.getTime() + second) })
    const world = await openWorld(make, { notifications: { deliveryPolicy: { decide: later } } }, { dispatch: { enabled: true, batchSize: 3 } })
    await world.agent.sendNotificationSignal(Array.from({ length: 8 }, () => ci), thread)
    const limits = limitsOf(world.inbox)
    await world.clock.advance(second)
    await soon(status(world)).toEqual(Array.from({ length: 8 }, () => 'delivered'))
    expect(limits.slice(0, 3)).toEqual([3, 3, 3])
  })

  it('[N2.13] 500 that wait for a busy thread are a few looks in an hour, and are sent when the run ends', async () => {
    const world = await openWorld(make)
    await world.work()
    await world.agent.sendNotificationSignal(Array.from({ length: 500 }, () => ({ ...ci, priority: 'high' as const })), thread)
    const looks = limitsOf(world.inbox)
    for (let passed = 0; passed < 3_600; passed += 15) {
      await world.clock.advance(15 * second)
      await new Promise((resolve) => setImmediate(resolve))
    }
    await soon(() => looks.length).toBeGreaterThan(5)
    expect(looks.length).toBeLessThan(25)
    await world.rest()
    await soon(async () => {
      await world.clock.advance(0)
      return (await world.inbox.countNotifications(thread)).delivered
    }).toBe(500)
  })

  it('[N2.12] `enabled: false` leaves all of it to tick()', async () => {
    const world = await openWorld(make, {}, { dispatch: { enabled: false, cron: '* * * * * *', batchSize: 3 } })
    await world.heed.start()
    await world.agent.sendNotificationSignal({ ...ci, priority: 'low' }, thread)
    await leave(world.inbox, 'left', world.clock.now())
    const looks = limitsOf(world.inbox)
    for (let minute = 0; minute < 5; minute++) await world.clock.advance(60 * second)
    expect(looks).toEqual([])
    expect(await world.heed.tick()).toMatchObject({ notifications: 2 })
    await soon(status(world)).toEqual(['delivered', 'pending'])
    expect(await world.summarised()).toBe(1)
  })
})
