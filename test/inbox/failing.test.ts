import { describe, expect, it } from 'vitest'
import type { Processor } from '../../src/index.ts'
import { placeKinds } from '../thread/places.ts'
import { idle, soon } from '../thread/said.ts'
import { ci, openWorld, thread, type World } from './world.ts'

/** A guardrail that refuses everything until the test lets it pass. */
function guardrail() {
  const state = { refuses: true }
  const processor: Processor = { id: 'guardrail', processInput: ({ messages, abort }) => (state.refuses ? abort('not in here') : messages) }
  return { state, inputProcessors: [processor] }
}

/** The disk refuses every send until it is mended. */
function breakDisk({ storage }: World): { mend(): void } {
  const accept = storage.accept.bind(storage)
  Object.defineProperty(storage, 'accept', { configurable: true, value: () => Promise.reject(new Error('disk is full')) })
  return { mend: () => void Object.defineProperty(storage, 'accept', { configurable: true, value: accept }) }
}

const statusOf = (world: World) => async () => (await world.list()).map(({ status }) => status)

describe.each(placeKinds())('notifications that fail, $name', ({ make }) => {
  it('[N2.9] one that wakes a run which refuses it is failed when the run is over, and may be tried again', async () => {
    const { state, inputProcessors } = guardrail()
    const world = await openWorld(make, { inputProcessors })
    const { record } = await world.agent.sendNotificationSignal(ci, thread)
    await soon(statusOf(world)).toEqual(['failed'])
    expect((await world.list())[0]).toMatchObject({ lastDeliveryError: expect.stringContaining('not in here') as string })
    await world.inbox.retryNotifications(thread, [record.id], world.clock.now())
    await world.heed.tick()
    await soon(statusOf(world)).toEqual(['failed'])
    state.refuses = false
    expect(await world.inbox.retryNotifications(thread, [record.id], world.clock.now())).toBe(1)
    await world.heed.tick()
    await soon(statusOf(world)).toEqual(['delivered'])
    await soon(world.calls).toBe(1)
    await idle(world.agent, thread)
    expect(world.read().join()).toContain(ci.summary)
    expect((await world.history()).filter((type) => type === 'notification')).toHaveLength(1)
  })

  it('[N1.1] [N2.2] after a retry the event is known: what repeats it is counted, before and after its delivery', async () => {
    const { state, inputProcessors } = guardrail()
    const world = await openWorld(make, { inputProcessors }, { dedupeMemoryMs: 3_600_000 })
    const event = { ...ci, dedupeKey: 'ci:main' }
    const { record } = await world.agent.sendNotificationSignal(event, thread)
    await soon(statusOf(world)).toEqual(['failed'])
    state.refuses = false
    const [retried, again] = await Promise.all([world.inbox.retryNotifications(thread, [record.id], world.clock.now()), world.agent.sendNotificationSignal(event, thread)])
    expect([retried, again.decision.reason]).toEqual([1, 'duplicate'])
    await soon(async () => {
      await world.clock.advance(0)
      return statusOf(world)()
    }).toEqual(['delivered'])
    expect(await world.agent.sendNotificationSignal(event, thread)).toMatchObject({ decision: { reason: 'duplicate' }, record: { id: record.id, coalescedCount: 3 } })
    await idle(world.agent, thread)
    expect((await world.history()).filter((type) => type === 'notification')).toHaveLength(1)
  })

  it('[N1.1] [N2.2] what came again in another record is not told twice by a retry', async () => {
    const { state, inputProcessors } = guardrail()
    const world = await openWorld(make, { inputProcessors }, { dedupeMemoryMs: 3_600_000 })
    const event = { ...ci, dedupeKey: 'ci:main' }
    const { record } = await world.agent.sendNotificationSignal(event, thread)
    await soon(statusOf(world)).toEqual(['failed'])
    state.refuses = false
    const other = await world.agent.sendNotificationSignal(event, thread)
    expect(await world.inbox.retryNotifications(thread, [record.id], world.clock.now())).toBe(0)
    expect(await world.list()).toMatchObject([{ id: other.record.id, coalescedCount: 2, status: 'delivered' }, { id: record.id, status: 'discarded', deliveryReason: 'duplicate' }])
    await idle(world.agent, thread)
    expect((await world.history()).filter((type) => type === 'notification')).toHaveLength(1)
  })

  it('[N2.2] a result is as it is stored, also when the delivery failed at once', async () => {
    const world = await openWorld(make, {}, { maxAttempts: 1 })
    breakDisk(world)
    const { record } = await world.agent.sendNotificationSignal(ci, thread)
    expect(record).toMatchObject({ status: 'failed', lastDeliveryError: expect.stringContaining('disk is full') as string })
    expect(record).toEqual((await world.list())[0])
  })

  it('[N2.2] a retried record is sent at once, before the next due dispatch', async () => {
    const world = await openWorld(make, {}, { maxAttempts: 1 })
    const disk = breakDisk(world)
    const { record } = await world.agent.sendNotificationSignal(ci, thread)
    disk.mend()
    await world.inbox.retryNotifications(thread, [record.id], world.clock.now())
    await soon(async () => {
      await world.clock.advance(0)
      return (await world.list())[0]?.status
    }).toBe('delivered')
  })

  it('[N2.2] a low one whose summary failed is summarized when it is retried, and wakes no agent', async () => {
    const world = await openWorld(make, {}, { maxAttempts: 1 })
    const disk = breakDisk(world)
    const { record } = await world.agent.sendNotificationSignal({ ...ci, priority: 'low' }, thread)
    await soon(async () => {
      await world.clock.advance(10_000)
      return (await world.list())[0]?.status
    }).toBe('failed')
    disk.mend()
    await world.inbox.retryNotifications(thread, [record.id], world.clock.now())
    await soon(async () => {
      await world.clock.advance(10_000)
      return world.summarised()
    }).toBe(1)
    expect(await world.list()).toMatchObject([{ status: 'pending', deliveryAction: 'summarize' }])
    expect(world.calls()).toBe(0)
  })

  it('[N2.2] an undecided one for a thread of another resource fails by name, and keeps nothing else from being done', async () => {
    const world = await openWorld(make)
    await world.agent.sendNotificationSignal(ci, thread)
    await idle(world.agent, thread)
    const now = world.clock.now()
    const left = { source: 'github', kind: 'ci-status', summary: 'Left.', agentId: 'support', now, undecidedUntil: now - 1 }
    await world.inbox.ingest([{ ...left, threadId: thread.threadId, resourceId: 'somebody-else', id: 'theirs' }, { ...left, threadId: 'thread-2', resourceId: 'user-1', id: 'ours' }])
    expect(await world.heed.tick()).toMatchObject({ notifications: 2 })
    expect(await world.inbox.getNotification({ threadId: thread.threadId, id: 'theirs' })).toMatchObject({ status: 'failed', lastDeliveryError: expect.stringContaining('another resource') as string })
    expect(await world.inbox.getNotification({ threadId: 'thread-2', id: 'ours' })).toMatchObject({ status: 'delivered' })
  })
})
