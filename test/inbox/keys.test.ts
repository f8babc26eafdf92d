import { describe, expect, it } from 'vitest'
import { placeKinds } from '../thread/places.ts'
import { gate, idle, soon } from '../thread/said.ts'
import { ci, openWorld, thread } from './world.ts'

describe.each(placeKinds())('the keys of notifications, $name', ({ make }) => {
  it('[N1.1] twenty sends of one key at once are one record with a count of twenty, and one signal', async () => {
    const { agent, list, calls, history } = await openWorld(make)
    const results = await Promise.all(Array.from({ length: 20 }, () => agent.sendNotificationSignal({ ...ci, dedupeKey: 'ci:main' }, thread)))
    expect(new Set(results.map(({ record }) => record.id)).size).toBe(1)
    expect(await list()).toMatchObject([{ coalescedCount: 20, status: 'delivered' }])
    await soon(calls).toBe(1)
    expect(await history()).toEqual(['notification'])
  })

  it('[N1.1] one that interrupts an active run is summarized once, then delivered in full once, however often it is sent', async () => {
    const { agent, work, rest, list, calls, history } = await openWorld(make)
    await work()
    const high = { ...ci, priority: 'high', dedupeKey: 'ci:main' } as const
    for (let index = 0; index < 5; index++) await agent.sendNotificationSignal(high, thread)
    await Promise.all(Array.from({ length: 15 }, () => agent.sendNotificationSignal(high, thread)))
    expect(await list()).toMatchObject([{ coalescedCount: 20, status: 'pending' }])
    await rest()
    await soon(calls).toBe(3)
    await soon(history).toEqual(['user', 'notification-summary', 'notification'])
    await soon(async () => (await list()).map(({ coalescedCount, status }) => [coalescedCount, status])).toEqual([[20, 'delivered']])
  })

  it('[N1.1] an active run gets a repeated notification once; on an idle thread, a repetition is delivered in full', async () => {
    const { agent, work, rest, list, clock, summarised, history } = await openWorld(make)
    await work()
    for (let index = 0; index < 4; index++) {
      await agent.sendNotificationSignal({ ...ci, dedupeKey: 'ci:main' }, thread)
      await clock.advance(10_000)
      await soon(summarised).toBe(1)
    }
    await rest()
    expect(await history()).toEqual(['user', 'notification-summary'])
    await agent.sendNotificationSignal({ ...ci, summary: 'Again.', dedupeKey: 'ci:main' }, thread)
    await soon(history).toEqual(['user', 'notification-summary', 'notification'])
    expect(await list()).toMatchObject([{ coalescedCount: 5, status: 'delivered', summary: ci.summary }])
  })

  it.each(['dedupeKey', 'coalesceKey'] as const)('[N1.1] [N1.2] what is repeated before its time comes at its time: %s', async (key) => {
    const quarter = 15 * 60_000
    const decide = ({ now }: { now: Date }) => ({ action: 'defer' as const, deliverAt: new Date(now.getTime() + quarter) })
    const { agent, list, clock, history } = await openWorld(make, { notifications: { deliveryPolicy: { decide } } })
    for (let index = 0; index < 2; index++) {
      await agent.sendNotificationSignal({ ...ci, [key]: 'k' }, thread)
      await clock.advance(quarter / 2)
    }
    await soon(history).toEqual(['notification'])
    await soon(list).toMatchObject([{ status: 'delivered', coalescedCount: 2 }])
  })

  it('[N1.1] a key belongs to its source and its thread', async () => {
    const { agent, list, inbox } = await openWorld(make)
    const low = { ...ci, priority: 'low', dedupeKey: 'k' } as const
    await agent.sendNotificationSignal([low, { ...low, source: 'email' }, low], thread)
    await agent.sendNotificationSignal(low, { ...thread, threadId: 'thread-2' })
    expect((await list()).map(({ source, coalescedCount }) => [source, coalescedCount])).toEqual([['email', 1], ['github', 2]])
    expect((await inbox.listNotifications({ ...thread, threadId: 'thread-2', limit: 5 })).notifications).toHaveLength(1)
  })

  it('[N1.1] what was delivered is only counted for as long as it is remembered', async () => {
    const { agent, list, clock } = await openWorld(make, {}, { dedupeMemoryMs: 10_000 })
    const send = () => agent.sendNotificationSignal({ ...ci, dedupeKey: 'k' }, thread)
    expect(await send()).toMatchObject({ decision: { action: 'deliver' } })
    expect(await send()).toMatchObject({ decision: { action: 'persist', reason: 'duplicate' }, record: { status: 'delivered', coalescedCount: 2 } })
    await idle(agent, thread)
    await clock.advance(10_001)
    expect(await send()).toMatchObject({ decision: { action: 'deliver' }, record: { coalescedCount: 1 } })
    expect(await list()).toHaveLength(2)
  })

  it('[N1.1] without a memory, only pending records are counted', async () => {
    const { agent, list } = await openWorld(make)
    for (let index = 0; index < 2; index++) await agent.sendNotificationSignal({ ...ci, dedupeKey: 'k' }, thread)
    expect(await list()).toHaveLength(2)
  })

  it('[N1.2] what belongs together has the newest words, and keeps what the newest leaves out', async () => {
    const { agent, list } = await openWorld(make)
    const low = { ...ci, priority: 'low', coalesceKey: 'pr-1' } as const
    await agent.sendNotificationSignal({ ...low, payload: { first: 1 }, attributes: { pr: 1 }, metadata: { a: 1 } }, thread)
    await agent.sendNotificationSignal({ ...low, kind: 'review', summary: 'Two reviews.', attributes: { reviews: 2 }, metadata: { b: 2 } }, thread)
    expect(await list()).toMatchObject([
      { coalescedCount: 2, summary: 'Two reviews.', kind: 'review', payload: { first: 1 }, attributes: { pr: 1, reviews: 2 }, metadata: { a: 1, b: 2 }, priority: 'low' },
    ])
  })

  it('[N1.2] a higher priority is decided about anew', async () => {
    const { agent, list, calls, read } = await openWorld(make)
    await agent.sendNotificationSignal({ ...ci, priority: 'low', coalesceKey: 'k' }, thread)
    await agent.sendNotificationSignal({ ...ci, priority: 'urgent', coalesceKey: 'k', summary: 'Now it burns.' }, thread)
    await soon(calls).toBe(1)
    expect(read().at(-1)).toContain('Now it burns.')
    expect(await list()).toMatchObject([{ status: 'delivered', coalescedCount: 2 }])
  })

  it('[N1.2] words that come while the record is being sent are not lost: they are a record of their own', async () => {
    const world = await openWorld(make)
    const { agent, inbox, storage, list } = world
    const sending = gate()
    const accept = storage.accept.bind(storage)
    const reached = gate()
    Object.defineProperty(storage, 'accept', {
      configurable: true,
      value: async (...given: Parameters<typeof accept>) => {
        reached.open()
        await sending.promise
        return accept(...given)
      },
    })
    const first = agent.sendNotificationSignal({ ...ci, coalesceKey: 'k', summary: 'One.' }, thread)
    await reached.promise
    const second = agent.sendNotificationSignal({ ...ci, coalesceKey: 'k', summary: 'Two.' }, thread)
    await soon(async () => (await inbox.listNotifications({ ...thread, limit: 5 })).notifications.length).toBe(2)
    sending.open()
    await Promise.all([first, second])
    expect((await list()).map(({ summary, status }) => [summary, status])).toEqual([['Two.', 'delivered'], ['One.', 'delivered']])
  })
})
