import { describe, expect, it } from 'vitest'
import { Agent, type NotificationInput } from '../../src/index.ts'
import { summarySignal } from '../../src/inbox/signals.ts'
import type { SummaryBatch } from '../../src/store/contract/notifications.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, sharedPlaceKinds } from '../thread/places.ts'
import { gate, soon } from '../thread/said.ts'
import { ci, openWorld, thread, type World } from './world.ts'

const high: NotificationInput = { ...ci, priority: 'high' }
const summary = (pending: number, words = `github: ${pending}`) => `<notification-summary pending="${pending}">${words}</notification-summary>`
const ways: Array<[string, (world: World) => Promise<unknown>]> = [
  ['one after the other', async ({ agent }) => { for (let index = 0; index < 3; index++) await agent.sendNotificationSignal(high, thread) }],
  ['at once', ({ agent }) => Promise.all(Array.from({ length: 3 }, () => agent.sendNotificationSignal(high, thread)))],
  ['as a list', ({ agent }) => agent.sendNotificationSignal([high, high, high], thread)],
]

describe.each(sharedPlaceKinds())('what no run has taken in yet is one summary, $name', ({ make }) => {
  it.each(ways)('[N1.10] three of high priority that come in one step, %s, are one summary, and come in full when the run ends', async (_, send) => {
    const world = await openWorld(make)
    const { calls, model, work, rest, list, history } = world
    await work()
    await send(world)
    await rest()
    await soon(async () => (await list()).map(({ status }) => status)).toEqual(['delivered', 'delivered', 'delivered'])
    expect(calls()).toBeGreaterThanOrEqual(3)
    expect(JSON.stringify(model.calls[1]?.prompt).match(/<notification-summary/g)).toHaveLength(1)
    expect(JSON.stringify(model.calls[1]?.prompt)).toContain(JSON.stringify(summary(3)).slice(1, -1))
    await soon(history).toEqual(['user', 'notification-summary', 'notification', 'notification', 'notification'])
    const told = new Set((await list()).map(({ summarySignalId }) => summarySignalId))
    expect([...told]).toEqual([expect.stringMatching(/^notification-summary:/)])
  })

  it('[N1.10] each of a list has the one summary as its signal', async () => {
    const { agent, work, rest } = await openWorld(make)
    await work()
    const results = await agent.sendNotificationSignal([high, { ...high, source: 'email' }], thread)
    expect(new Set(results.map(({ signal }) => signal?.id)).size).toBe(1)
    expect(results.map(({ record }) => record.summarySignalId)).toEqual(results.map(({ signal }) => signal?.id))
    expect(results[0]?.signal).toMatchObject({ contents: 'github: 1, email: 1', attributes: { pending: 2 } })
    await rest()
  })

  it('[N1.10] records after their quiet period join a summary that no run has read', async () => {
    const { agent, read, work, rest, clock, summarised, list } = await openWorld(make)
    await work()
    await agent.sendNotificationSignal(high, thread)
    for (const source of ['email', 'slack']) await agent.sendNotificationSignal({ ...ci, source }, thread)
    await clock.advance(5_000)
    await soon(summarised).toBe(3)
    await soon(async () => new Set((await list()).map(({ summarySignalId }) => summarySignalId)).size).toBe(1)
    expect(await agent.listQueued(thread)).toMatchObject([{ signal: { attributes: { pending: 3 } } }])
    await rest()
    expect(read()).toContain(summary(3, 'github: 1, email: 1, slack: 1'))
  })

  it('[N1.10] what a run took in before is not counted again', async () => {
    const { agent, model, work, rest, calls, list } = await openWorld(make, {
      notifications: { deliveryPolicy: { decide: ({ now }) => ({ action: 'summarize', summaryAt: now }) } },
    })
    await work()
    await agent.sendNotificationSignal(high, thread)
    await rest()
    expect(calls()).toBe(2)
    await agent.sendNotificationSignal({ ...high, source: 'email' }, thread)
    await soon(calls).toBe(3)
    expect(JSON.stringify(model.calls[2]?.prompt)).toContain(JSON.stringify(summary(1, 'email: 1')).slice(1, -1))
    expect(new Set((await list()).map(({ summarySignalId }) => summarySignalId)).size).toBe(2)
  })

  it('[N1.10] what several processes tell of at the same moment is one summary too', async () => {
    const place = make()
    const hold = gate()
    const model = scriptedModel(({ index }) => (index === 0 ? { text: 'Working.', gate: hold.promise } : 'Noted.'))
    const agents = Array.from({ length: 3 }, () => new Agent({ id: 'support', model }))
    for (const agent of agents) await openHeed({ agent }, place.store()).start()
    const [agent] = agents
    await agent?.sendMessage('Work.', thread).outcome
    await soon(() => model.callCount).toBe(1)
    const results = await Promise.all(agents.map((each, index) => each.sendNotificationSignal({ ...high, source: `source-${index}` }, thread)))
    expect(results.map(({ decision }) => decision.action)).toEqual(['summarize', 'summarize', 'summarize'])
    await soon(async () => (await agent?.listQueued(thread))?.map(({ signal }) => signal?.attributes)).toEqual([{ pending: 3 }])
    hold.open()
    await soon(() => model.callCount).toBeGreaterThan(1)
    expect(JSON.stringify(model.calls[1]?.prompt).match(/<notification-summary/g)).toHaveLength(1)
  })

  it('[N1.10] a process that withdrew its summary because another came first, and died before it sent it again, loses none', async () => {
    const { agent, inbox, read, work, rest, clock, storage } = await openWorld(make)
    await work()
    // So that it is swept: an inbox in memory that was not used is not.
    await agent.sendNotificationSignal({ ...ci, priority: 'low' }, { ...thread, threadId: 'thread-2' })
    const now = clock.now()
    const settlement = { action: 'summarize', summary: { form: 'now' }, now, claimUntil: now + 1_000 } as const
    const [ingested] = await inbox.ingest([{ ...thread, id: 'one', source: 'github', kind: 'ci-status', summary: 'One.', agentId: 'support', now, undecidedUntil: now, settlement }])
    const signal = summarySignal(ingested?.settled?.batch as SummaryBatch, now)
    const { id } = signal
    await agent.threads().sends.sendAccepted(agent, 'now', signal, thread)
    expect(await storage.cancelSignals(thread, [id])).toEqual([id])
    await soon(async () => {
      await clock.advance(1_000)
      return (await inbox.getNotification({ ...thread, id: 'one' }))?.summarySignalId
    }).toBe(`${id}:1`)
    await rest()
    expect(read().filter((text) => text.startsWith('<notification-summary'))).toEqual([summary(1)])
  })

  it('[N1.10] a process that joined another\'s summary and died before it sent it loses none', async () => {
    const { agent, inbox, read, work, rest, clock, list } = await openWorld(make)
    await work()
    const { record } = await agent.sendNotificationSignal({ ...high, id: 'first' }, thread)
    const now = clock.now()
    const claim = { now, claimUntil: now + 1_000 }
    const [settled] = await inbox.ingest([{ ...thread, id: 'second', source: 'github', kind: 'ci-status', summary: 'Again.', agentId: 'support', now, undecidedUntil: now, settlement: { action: 'summarize', summary: { form: 'now' }, ...claim } }])
    const batchId = settled?.settled?.batch?.id ?? ''
    expect(await inbox.joinBatches(batchId, [String(record.summarySignalId).replace('notification-summary:', '')])).toMatchObject({ sources: [{ source: 'github', count: 2 }] })
    await soon(async () => {
      await clock.advance(1_000)
      return (await list()).every(({ summarySignalId }) => summarySignalId === `notification-summary:${batchId}`)
    }).toBe(true)
    await rest()
    expect(read().filter((text) => text.startsWith('<notification-summary'))).toEqual([summary(2)])
  })
})
