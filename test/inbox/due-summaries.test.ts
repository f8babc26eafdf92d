import { describe, expect, it } from 'vitest'
import { Agent, type NotificationStore } from '../../src/index.ts'
import { notificationStoreOf } from '../../src/store/contract/storage.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { openHeed, sharedPlaceKinds } from '../thread/places.ts'
import { gate, idle, soon } from '../thread/said.ts'
import { ci, openWorld, thread } from './world.ts'

const minute = 60_000
const inHalfAnHour = { notifications: { deliveryPolicy: { decide: ({ now }: { now: Date }) => ({ action: 'summarize' as const, summaryAt: new Date(now.getTime() + 30 * minute) }) } } }
const atOnce = { notifications: { deliveryPolicy: { decide: ({ now }: { now: Date }) => ({ action: 'summarize' as const, summaryAt: now }) } } }
const summary = (...sources: string[]) => `<notification-summary pending="${sources.length}">${sources.map((source) => `${source}: 1`).join(', ')}</notification-summary>`

function told(model: { calls: ReadonlyArray<{ prompt: unknown }> }): string[] {
  return JSON.stringify(model.calls.at(-1)?.prompt).replaceAll(String.raw`\"`, '"').match(/<notification-summary.*?<\/notification-summary>/g) ?? []
}

describe.each(sharedPlaceKinds())('summaries that are due together, $name', ({ make }) => {
  it('[N1.8] five with times a minute apart, looked at an hour later, are one summary and one call of the model', async () => {
    const { agent, model, heed, clock, list } = await openWorld(make, inHalfAnHour, { dispatch: { enabled: false } })
    for (const source of ['a', 'b', 'c', 'd', 'e']) {
      await agent.sendNotificationSignal({ ...ci, source }, thread)
      await clock.advance(minute)
    }
    await clock.advance(60 * minute)
    expect(await heed.tick()).toMatchObject({ notifications: 1 })
    expect(model.callCount).toBe(1)
    expect(told(model)).toEqual([summary('a', 'b', 'c', 'd', 'e')])
    expect(new Set((await list()).map(({ summarySignalId }) => summarySignalId)).size).toBe(1)
    expect(await heed.tick()).toMatchObject({ notifications: 0 })
  })

  it('[N1.8] what fell due while no process ran is one summary when one does', async () => {
    const clock = virtualClock()
    const place = make({ clock })
    const model = scriptedModel(() => 'Noted.')
    const open = () => {
      const agent = new Agent({ id: 'support', model, ...inHalfAnHour })
      return { agent, heed: openHeed({ agent }, place.store(), { clock }) }
    }
    const before = open()
    for (const source of ['a', 'b', 'c']) {
      await before.agent.sendNotificationSignal({ ...ci, source }, thread)
      await clock.advance(minute)
    }
    await before.heed.close()
    await clock.advance(120 * minute)
    const { agent, heed } = open()
    await heed.start()
    // An inbox in memory is not looked at before it is used.
    await agent.sendNotificationSignal({ ...ci, source: 'late' }, { ...thread, threadId: 'thread-2' })
    await soon(async () => {
      await clock.advance(0)
      return model.calls.map((call) => told({ calls: [call] })).filter((each) => each.length > 0)
    }).toEqual([[summary('a', 'b', 'c')]])
    await idle(agent, thread)
    expect((await (await agent.getMemory()).recall({ ...thread, perPage: false })).messages.filter(({ type }) => type === 'notification-summary')).toHaveLength(1)
  })

  it('[N1.10] what a run drains while the next summary is being sent is summarized once', async () => {
    const { agent, model, storage, work, rest } = await openWorld(make, atOnce)
    await work()
    await agent.sendNotificationSignal({ ...ci, source: 'a' }, thread)
    const cancel = storage.cancelSignals.bind(storage)
    Object.defineProperty(storage, 'cancelSignals', {
      configurable: true,
      value: async (...given: Parameters<typeof cancel>) => {
        await rest()
        return cancel(...given)
      },
    })
    await agent.sendNotificationSignal({ ...ci, source: 'b' }, thread)
    await soon(() => model.callCount).toBe(3)
    expect(told(model)).toEqual([summary('a'), summary('b')])
  })

  it('[N1.10] a process that withdraws a summary and dies before it is counted elsewhere leaves it to be sent', async () => {
    const { agent, inbox, storage, model, work, rest, clock, list } = await openWorld(make, atOnce)
    await work()
    const { record } = await agent.sendNotificationSignal({ ...ci, source: 'a' }, thread)
    const id = String(record.summarySignalId)
    await inbox.holdBatches([id.replace('notification-summary:', '')], clock.now() + 1_000)
    expect(await storage.cancelSignals(thread, [id])).toEqual([id])
    await agent.sendNotificationSignal({ ...ci, source: 'other' }, { ...thread, threadId: 'thread-2' })
    await soon(async () => {
      await clock.advance(1_000)
      return (await list())[0]?.summarySignalId
    }).toBe(`${id}:1`)
    await rest()
    expect(model.calls.flatMap((call) => told({ calls: [call] }))).toContain(summary('a'))
  })

  it('[N2.3] a summary that was sent and not written down takes nothing along that waits', async () => {
    const clock = virtualClock()
    const storage = make({ clock }).store()
    const hold = gate()
    const model = scriptedModel(({ index }) => (index === 0 ? { text: 'Working.', gate: hold.promise } : 'Noted.'))
    const agent = new Agent({ id: 'support', model, ...atOnce })
    openHeed({ agent }, storage, { clock })
    const inbox = (await notificationStoreOf(storage)) as NotificationStore
    const summarised = inbox.summarised.bind(inbox)
    inbox.summarised = () => {
      inbox.summarised = summarised
      return Promise.reject(new Error('disk is full'))
    }
    await agent.sendNotificationSignal({ ...ci, source: 'a', id: 'a' }, thread)
    await soon(() => model.callCount).toBe(1)
    await agent.sendNotificationSignal({ ...ci, source: 'b' }, thread)
    await soon(async () => {
      await clock.advance(1_000)
      return (await inbox.getNotification({ ...thread, id: 'a' }))?.summarySignalId
    }).toBeTypeOf('string')
    hold.open()
    await soon(() => model.callCount).toBe(2)
    expect(told(model)).toEqual([summary('a'), summary('b')])
  })
})
