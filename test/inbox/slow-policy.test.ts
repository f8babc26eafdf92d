import { describe, expect, it } from 'vitest'
import type { NotificationDeliveryPolicyConfig, NotificationStore } from '../../src/index.ts'
import { placeKinds } from '../thread/places.ts'
import { soon } from '../thread/said.ts'
import { ci, openWorld, thread, type World } from './world.ts'

const second = 1_000
const elsewhere = { ...thread, threadId: 'thread-2' }

/** A policy that never answers for one source, and puts another off by two seconds. */
function hanging(): { asked: () => number; config: { notifications: { deliveryPolicy: NotificationDeliveryPolicyConfig } } } {
  let asked = 0
  const decide: NotificationDeliveryPolicyConfig['decide'] = ({ record, now }) => {
    if (record.source === 'later') return { action: 'defer', deliverAt: new Date(now.getTime() + 2 * second) }
    if (record.source !== 'hangs') return undefined
    asked++
    return new Promise(() => {})
  }
  return { asked: () => asked, config: { notifications: { deliveryPolicy: { decide } } } }
}

/** Records that a process stored and could not decide about. */
function leave(inbox: NotificationStore, now: number, count: number): Promise<unknown> {
  return inbox.ingest(Array.from({ length: count }, (_, index) => ({ ...elsewhere, source: 'hangs', kind: 'k', summary: 'Left.', id: `left-${index}`, agentId: 'support', now, undecidedUntil: now })))
}

async function pass({ clock }: World, seconds: number): Promise<void> {
  for (let passed = 0; passed < seconds; passed++) {
    await clock.advance(second)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

describe.each(placeKinds())('a policy that takes its time, $name', ({ make }) => {
  it('[N2.11] keeps nothing else that is due from being taken, and is asked once', async () => {
    const { asked, config } = hanging()
    const world = await openWorld(make, config, { decideTimeoutMs: 60 * second })
    await world.agent.sendNotificationSignal(ci, { ...thread, threadId: 'thread-3' })
    await leave(world.inbox, world.clock.now(), 3)
    await world.heed.start()
    await soon(asked).toBe(3)
    await world.agent.sendNotificationSignal({ ...ci, source: 'later' }, thread)
    await world.clock.advance(2 * second)
    await soon(async () => {
      await world.clock.advance(0)
      return (await world.list()).map(({ status }) => status)
    }).toEqual(['delivered'])
    expect((await world.inbox.countNotifications(elsewhere)).pending).toBe(3)
    await pass(world, 50)
    expect(asked()).toBe(3)
    await pass(world, 10)
    await soon(async () => (await world.inbox.listNotifications(elsewhere)).notifications.map(({ deliveryReason }) => deliveryReason)).toEqual(Array(3).fill('policy-timeout: idle-medium'))
    expect(asked()).toBe(3)
  })

  it('[N2.11] is asked about a thousand at once and no more, about the others when there is room', async () => {
    const { asked, config } = hanging()
    const world = await openWorld(make, config, { decideTimeoutMs: 60 * second })
    await world.agent.sendNotificationSignal(ci, thread)
    await leave(world.inbox, world.clock.now(), 1_100)
    await world.heed.start()
    await soon(asked).toBe(1_000)
    await pass(world, 59)
    expect(asked()).toBe(1_000)
    await soon(async () => {
      await world.clock.advance(second)
      return asked()
    }).toBe(1_100)
  })

  it('[N1.6] is called once, however long it takes, and by no other process meanwhile', async () => {
    const { asked, config } = hanging()
    const world = await openWorld(make, config, { decideTimeoutMs: 300 * second })
    const sent = world.agent.sendNotificationSignal({ ...ci, source: 'hangs' }, thread)
    await soon(asked).toBe(1)
    await world.heed.start()
    await pass(world, 299)
    expect(asked()).toBe(1)
    await pass(world, 1)
    expect(await sent).toMatchObject({ decision: { reason: 'policy-timeout: idle-medium' }, record: { status: 'delivered' } })
    expect(asked()).toBe(1)
  })

  it('[N2.3] [N2.5] is not awaited by a close: the next process decides', async () => {
    const { asked, config } = hanging()
    const world = await openWorld(make, config)
    await world.agent.sendNotificationSignal(ci, thread)
    await leave(world.inbox, world.clock.now(), 2)
    await world.heed.start()
    await soon(asked).toBe(2)
    const sent = world.agent.sendNotificationSignal({ ...ci, source: 'hangs', id: 'mine' }, elsewhere)
    const refused = expect(sent).rejects.toMatchObject({ code: 'closed' })
    await soon(asked).toBe(3)
    await world.heed.close()
    await refused
    expect(world.clock.pending).toBe(0)
  })

  it('[N2.4] is waited for by a tick, for as long as that has time', async () => {
    const { asked, config } = hanging()
    const world = await openWorld(make, config, { dispatch: { enabled: false }, decideTimeoutMs: 10 * second })
    await world.agent.sendNotificationSignal(ci, thread)
    await leave(world.inbox, world.clock.now(), 1)
    let over = false
    const short = world.heed.tick({ timeoutMs: second }).finally(() => (over = true))
    await soon(asked).toBe(1)
    expect(over).toBe(false)
    await world.clock.advance(second)
    expect(await short).toMatchObject({ notifications: 1 })
    expect(await world.inbox.countNotifications(elsewhere)).toEqual({ pending: 1 })
    await leave(world.inbox, world.clock.now(), 2)
    const long = world.heed.tick()
    await soon(asked).toBe(2)
    await world.clock.advance(10 * second)
    expect(await long).toMatchObject({ notifications: 1 })
    expect(await world.inbox.countNotifications(elsewhere)).toEqual({ delivered: 2 })
  })
})
