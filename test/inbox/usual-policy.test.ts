import { describe, expect, it } from 'vitest'
import { placeKinds } from '../thread/places.ts'
import { collect, soon } from '../thread/said.ts'
import { ci, openWorld, thread } from './world.ts'

const full = (priority: string) => `<notification source="github" type="ci-status" priority="${priority}" status="delivered">CI failed on main: 3 tests failed.</notification>`

describe.each(placeKinds())('without a policy, $name', ({ make }) => {
  it.each(['urgent', 'high', 'medium'] as const)('[N1.4] %s on an idle thread comes in full at once', async (priority) => {
    const { agent, calls, read, list } = await openWorld(make)
    const result = await agent.sendNotificationSignal({ ...ci, priority }, thread)
    expect(result).toMatchObject({ accepted: true, decision: { action: 'deliver' }, record: { status: 'delivered', priority }, signal: { tagName: 'notification' } })
    expect(result.record.deliveredSignalId).toBe(result.signal?.id)
    await soon(calls).toBe(1)
    expect(read()).toEqual([full(priority)])
    expect(await list()).toMatchObject([{ status: 'delivered', deliveredSignalId: result.signal?.id }])
  })

  it('[N1.4] low on an idle thread is summarized for those who watch, and no model is asked', async () => {
    const { agent, calls, clock, list, history } = await openWorld(make)
    const watched = collect(await agent.subscribeToThread(thread))
    for (const source of ['github', 'email', 'github']) await agent.sendNotificationSignal({ ...ci, source, priority: 'low' }, thread)
    expect(await history()).toEqual([])
    await clock.advance(5_000)
    await soon(() => watched.chunks.length).toBe(1)
    expect(watched.chunks).toMatchObject([{ type: 'data-signal', data: { tagName: 'notification-summary', contents: 'github: 2, email: 1', attributes: { pending: 3 } } }])
    expect(calls()).toBe(0)
    await soon(async () => (await list()).every(({ summaryAt, summarySignalId }) => summaryAt === undefined && summarySignalId !== undefined)).toBe(true)
    const records = await list()
    expect(records).toMatchObject([{ status: 'pending' }, { status: 'pending' }, { status: 'pending' }])
    expect(new Set(records.map(({ summarySignalId }) => summarySignalId)).size).toBe(1)
  })

  it('[N1.4] urgent on an active thread enters the run in full', async () => {
    const { agent, calls, read, work, rest } = await openWorld(make)
    await work()
    expect(await agent.sendNotificationSignal({ ...ci, priority: 'urgent' }, thread)).toMatchObject({ record: { status: 'delivered' } })
    await rest()
    expect(calls()).toBe(2)
    expect(read()).toEqual(['Work.', full('urgent')])
  })

  it('[N1.4] [N2.6] high on an active thread is summarized at once, and comes in full when the run ends: no time has to pass', async () => {
    const { agent, calls, read, work, rest, list } = await openWorld(make)
    await work()
    const result = await agent.sendNotificationSignal({ ...ci, priority: 'high' }, thread)
    expect(result).toMatchObject({ decision: { action: 'summarize' }, signal: { tagName: 'notification-summary' }, record: { status: 'pending', summarySignalId: result.signal?.id } })
    expect(result.record.deliverAt).toBeInstanceOf(Date)
    await rest()
    await soon(calls).toBe(3)
    expect(read()).toEqual(['Work.', '<notification-summary pending="1">github: 1</notification-summary>', full('high')])
    await soon(async () => (await list())[0]?.status).toBe('delivered')
  })

  it.each(['medium', 'low'] as const)('[N1.4] [N1.7] five of %s priority on an active thread are one summary of five', async (priority) => {
    const { agent, calls, read, work, rest, clock, list, summarised } = await openWorld(make)
    await work()
    for (let index = 0; index < 5; index++) {
      expect(await agent.sendNotificationSignal({ ...ci, priority }, thread)).toMatchObject({ decision: { action: 'summarize' }, record: { status: 'pending' } })
      await clock.advance(1_000)
    }
    await clock.advance(5_000)
    await soon(summarised).toBe(5)
    await rest()
    expect(calls()).toBe(2)
    expect(read()).toEqual(['Work.', '<notification-summary pending="5">github: 5</notification-summary>'])
    expect((await list()).every(({ status }) => status === 'pending')).toBe(true)
  })

  it('[N1.7] a summary waits for a quiet period, but not for longer than the maximum', async () => {
    const { agent, clock, summarised } = await openWorld(make)
    for (let second = 0; second < 28; second += 4) {
      await agent.sendNotificationSignal({ ...ci, priority: 'low' }, thread)
      await clock.advance(4_000)
      expect(await summarised()).toBe(0)
    }
    await agent.sendNotificationSignal({ ...ci, priority: 'low' }, thread)
    await clock.advance(2_000)
    await soon(summarised).toBe(8)
  })
})
