import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { openHeed, sharedPlaceKinds } from '../thread/places.ts'
import { gate, idle, soon } from '../thread/said.ts'
import { ci, openWorld, thread } from './world.ts'

const off = { dispatch: { enabled: false } }

/** An agent whose answers take until they are let go, and whose notifications are due at once but sent by a tick only. */
function slowAgent(clock: { now(): number }) {
  const held = gate()
  let finished = 0
  const model = scriptedModel(() => ({ text: 'Done.', gate: held.promise.then(() => void finished++) }))
  const agent = new Agent({ id: 'support', model, notifications: { deliveryPolicy: { decide: () => ({ action: 'defer', deliverAt: new Date(clock.now()) }) } } })
  return { agent, model, held, finished: () => finished }
}

describe.each(sharedPlaceKinds())('tick, $name', ({ make }) => {
  it('[N2.4] resolves when the runs that it woke have ended', async () => {
    const clock = virtualClock()
    const { agent, model, held, finished } = slowAgent(clock)
    const heed = openHeed({ agent }, make({ clock }).store(), { clock, notifications: off })
    await agent.sendNotificationSignal(ci, thread)
    let over = false
    const tick = heed.tick().finally(() => (over = true))
    await soon(() => model.callCount).toBe(1)
    expect(over).toBe(false)
    held.open()
    expect(await tick).toMatchObject({ notifications: 1 })
    expect(finished()).toBe(1)
    expect(await agent.activeRun(thread)).toBeNull()
  })

  it('[N2.4] with a `timeoutMs` it waits no longer, and the next takes up what is not over', async () => {
    const clock = virtualClock()
    const place = make({ clock })
    const first = slowAgent(clock)
    const one = openHeed({ agent: first.agent }, place.store(), { clock, notifications: off })
    await first.agent.sendNotificationSignal(ci, thread)
    let over = false
    const tick = one.tick({ timeoutMs: 1_000 }).finally(() => (over = true))
    await soon(() => first.model.callCount).toBe(1)
    await soon(async () => {
      await clock.advance(1_000)
      return over
    }).toBe(true)
    expect(await tick).toMatchObject({ notifications: 1 })
    expect(first.finished()).toBe(0)
    await one.close()
    const second = slowAgent(clock)
    const other = openHeed({ agent: second.agent }, place.store(), { clock, notifications: off })
    second.held.open()
    await other.tick()
    expect(second.finished()).toBe(1)
    expect(await second.agent.activeRun(thread)).toBeNull()
    await expect(other.tick({ timeoutMs: -1 })).rejects.toMatchObject({ code: 'invalid_argument', details: { field: 'timeoutMs' } })
  })

  it('[N2.4] a run that was at work before is not waited for', async () => {
    const { heed, work, rest } = await openWorld(make, {}, off)
    await work()
    expect(await heed.tick()).toMatchObject({ threads: 0 })
    await rest()
  })

  it('[N2.4] [N2.13] a tick that finds its thread active counts nothing and hides nothing: the first after the run sends the pending records', async () => {
    const { agent, heed, work, rest, list } = await openWorld(make, {}, off)
    await work()
    await agent.sendNotificationSignal([{ ...ci, priority: 'high' }, { ...ci, priority: 'high' }], thread)
    for (let index = 0; index < 3; index++) expect(await heed.tick({ timeoutMs: 0 })).toMatchObject({ notifications: 0 })
    await rest()
    expect((await list()).map(({ status }) => status)).toEqual(['pending', 'pending'])
    expect(await heed.tick()).toMatchObject({ notifications: 2 })
    expect((await list()).map(({ status }) => status)).toEqual(['delivered', 'delivered'])
  })

  it('[N2.12] with `enabled: false` the end of a run sends nothing: the next tick does', async () => {
    const { agent, heed, work, rest, list, calls, clock } = await openWorld(make, {}, off)
    await work()
    await agent.sendNotificationSignal({ ...ci, priority: 'high' }, thread)
    await rest()
    const before = calls()
    await clock.advance(60_000)
    await idle(agent, thread)
    expect((await list()).map(({ status }) => status)).toEqual(['pending'])
    expect(await heed.tick()).toMatchObject({ notifications: 1 })
    expect((await list()).map(({ status }) => status)).toEqual(['delivered'])
    expect(calls()).toBe(before + 1)
  })
})
