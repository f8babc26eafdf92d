import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/index.ts'
import { notificationStoreOf } from '../../src/store/contract/storage.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { openHeed, sharedPlaceKinds } from '../thread/places.ts'
import { gate, idle, soon, userTexts } from '../thread/said.ts'
import { ci, thread } from './world.ts'

describe.each(sharedPlaceKinds())('agents of several processes on one thread, $name', ({ make }) => {
  it.each([true, false])('[N2.13] records for an agent of another process are sent soon after the run, by the message of the process that ended it (dispatches itself: %s)', async (enabled) => {
    const clock = virtualClock()
    const place = make({ clock })
    const hold = gate()
    const working = new Agent({ id: 'working', model: scriptedModel(() => ({ text: 'Working.', gate: hold.promise })) })
    const model = scriptedModel(() => 'Noted.')
    const listening = new Agent({ id: 'listening', model, notifications: { deliveryPolicy: { default: 'defer' } } })
    openHeed({ working }, place.store(), { clock, notifications: { dispatch: { enabled } } })
    // So that its inbox is in use: one in memory that was not used is not swept.
    await working.sendNotificationSignal({ ...ci, priority: 'low' }, { ...thread, threadId: 'thread-2' })
    const storage = place.store()
    await openHeed({ listening }, storage, { clock }).start()
    const inbox = await notificationStoreOf(storage)
    await working.sendMessage('Work.', thread).outcome
    await listening.sendNotificationSignal(ci, thread)
    // Until the looks at the thread have become rare.
    const untilNext = async () => ((await inbox?.nextDue(['listening'])) ?? 0) - clock.now()
    await soon(async () => {
      await clock.advance(15_000)
      return untilNext()
    }).toBeGreaterThan(100_000)
    expect(model.callCount).toBe(0)
    hold.open()
    await idle(working, thread)
    await soon(untilNext).toBeLessThanOrEqual(0)
    // One sweep, and no look at the thread, which is minutes away.
    await clock.advance(7_000)
    await soon(async () => {
      await clock.advance(0)
      return userTexts(model.calls.at(-1)).some((text) => text.includes('status="delivered"'))
    }).toBe(true)
  })
})
