import { describe, expect, it } from 'vitest'
import { Agent, type NotificationInput } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, sharedPlaceKinds } from '../thread/places.ts'
import { gate, idle, soon } from '../thread/said.ts'
import { ci, openWorld, thread } from './world.ts'

const urgent: NotificationInput = { ...ci, priority: 'urgent' }

describe.each(sharedPlaceKinds())('the run of a result, $name', ({ make }) => {
  it('[N1.13] is the one that took its signal in, for each of a list that wakes a thread', async () => {
    const { agent, storage } = await openWorld(make)
    const results = await agent.sendNotificationSignal([urgent, urgent, urgent], thread)
    await idle(agent, thread)
    for (const { runId, signal } of results) expect((await storage.getSignal(thread, signal?.id ?? ''))?.runId).toBe(runId)
    expect(await storage.findRun(results[2]?.runId ?? '')).toMatchObject({ status: 'finished' })
  })

  it('[N1.13] is the one that is active, also in another process, and that of the turn where it is queued', async () => {
    const place = make()
    const hold = gate()
    const model = scriptedModel(({ index }) => (index === 0 ? { text: 'Working.', gate: hold.promise } : 'Noted.'))
    const working = new Agent({ id: 'support', model })
    const telling = new Agent({ id: 'support', model, notifications: { deliveryPolicy: { sources: { queued: 'queue' } } } })
    openHeed({ working }, place.store())
    const storage = place.store()
    openHeed({ telling }, storage)
    await working.sendMessage('Work.', thread).outcome
    await soon(() => model.callCount).toBe(1)
    const active = (await working.activeRun(thread))?.runId
    const [entered, queued] = await telling.sendNotificationSignal([urgent, { ...urgent, source: 'queued' }], thread)
    expect(entered?.runId).toBe(active)
    hold.open()
    await soon(async () => (await storage.findRun(queued?.runId ?? ''))?.status).toBe('finished')
    expect(queued?.runId).not.toBe(active)
  })

  it('[N1.13] is the id of its signal where that wakes no agent', async () => {
    const { agent } = await openWorld(make, { notifications: { deliveryPolicy: { decide: ({ now }) => ({ action: 'summarize', summaryAt: now }) } } })
    const { runId, signal, persisted } = await agent.sendNotificationSignal({ ...ci, priority: 'low' }, thread)
    await persisted
    expect(signal?.id).toBeTypeOf('string')
    expect(runId).toBe(signal?.id)
  })
})
