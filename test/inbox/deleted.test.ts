import { describe, expect, it } from 'vitest'
import { placeKinds } from '../thread/places.ts'
import { ci, openWorld, thread, type World } from './world.ts'

/** What is due is taken, and then the thread is deleted, or what `act` does. */
function afterClaim({ inbox }: World, act: () => Promise<unknown>): { count: number } {
  const claim = inbox.claimDue.bind(inbox)
  const taken = { count: 0 }
  inbox.claimDue = async (given) => {
    const due = await claim(given)
    if (due.records.length + due.batches.length === 0) return due
    await act()
    taken.count++
    return due
  }
  return taken
}

describe.each(placeKinds())('a thread that is deleted while something is due on it, $name', ({ make }) => {
  it.each(['defer', 'summarize'] as const)('[N5.1] does not come back by what was taken: %s', async (action) => {
    const world: World = await openWorld(make, {
      notifications: { deliveryPolicy: { decide: () => ({ action, [action === 'defer' ? 'deliverAt' : 'summaryAt']: new Date(world.clock.now() + 5_000) }) } },
    }, { dispatch: { enabled: false } })
    const { agent, clock, calls, heed } = world
    await agent.sendMessage('Hello.', thread).outcome
    await world.rest()
    await agent.sendNotificationSignal(ci, thread)
    const memory = await agent.getMemory()
    const taken = afterClaim(world, () => memory.deleteThread(thread.threadId))
    await clock.advance(5_000)
    await heed.tick()
    expect(taken.count).toBe(1)
    expect(await memory.getThreadById({ threadId: thread.threadId })).toBeNull()
    expect(calls()).toBe(1)
    expect(await world.list()).toEqual([])
  })

  it('[N5.1] what was put away after it was taken is not delivered', async () => {
    const world: World = await openWorld(make, { notifications: { deliveryPolicy: { decide: () => ({ action: 'defer', deliverAt: new Date(world.clock.now() + 5_000) }) } } }, { dispatch: { enabled: false } })
    const { agent, clock, calls, heed, inbox } = world
    const { record } = await agent.sendNotificationSignal(ci, thread)
    afterClaim(world, () => inbox.markNotifications(thread, [record.id], 'dismissed'))
    await clock.advance(5_000)
    await heed.tick()
    expect(calls()).toBe(0)
    expect(await world.list()).toMatchObject([{ status: 'dismissed' }])
  })
})
