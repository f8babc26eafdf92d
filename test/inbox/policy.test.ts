import { describe, expect, it } from 'vitest'
import { Agent, Heed, InMemoryStore, type HeedError, type NotificationDeliveryPolicyConfig } from '../../src/index.ts'
import { placeKinds } from '../thread/places.ts'
import { soon } from '../thread/said.ts'
import { ci, openWorld, thread } from './world.ts'

const with_ = (deliveryPolicy: NotificationDeliveryPolicyConfig) => ({ notifications: { deliveryPolicy } })
const minute = 60_000

describe.each(placeKinds())('a delivery policy, $name', ({ make }) => {
  it('[N1.5] is asked in order: decide, sources, priorities, default', async () => {
    const { agent } = await openWorld(make, with_({
      decide: ({ record, threadState }) => (record.kind === 'mine' && threadState === 'idle' ? { action: 'discard', reason: 'decided' } : undefined),
      sources: { email: { action: 'persist', reason: 'source' } },
      priorities: { urgent: { action: 'persist', reason: 'priority' } },
      default: { action: 'discard', reason: 'default' },
    }))
    const reason = async (more: object) => (await agent.sendNotificationSignal({ ...ci, ...more }, thread)).record.deliveryReason
    expect(await reason({ kind: 'mine', source: 'email' })).toBe('decided')
    expect(await reason({ source: 'email', priority: 'urgent' })).toBe('source')
    expect(await reason({ priority: 'urgent' })).toBe('priority')
    expect(await reason({})).toBe('default')
    expect(await reason({ source: 'constructor' })).toBe('default')
  })

  it('[N1.5] persists without delivery and discards without a trace in the thread', async () => {
    const { agent, calls, list, clock } = await openWorld(make, with_({ sources: { a: 'persist', b: 'discard' } }))
    const kept = await agent.sendNotificationSignal({ ...ci, source: 'a' }, thread)
    const gone = await agent.sendNotificationSignal({ ...ci, source: 'b' }, thread)
    expect(kept).toMatchObject({ decision: { action: 'persist' }, record: { status: 'pending' } })
    expect(gone).toMatchObject({ decision: { action: 'discard' }, record: { status: 'discarded' } })
    expect([kept.signal, gone.signal]).toEqual([undefined, undefined])
    await clock.advance(60 * minute)
    expect(calls()).toBe(0)
    expect((await list()).map(({ status }) => status)).toEqual(['discarded', 'pending'])
  })

  it('[N1.5] defers to its time, and not before', async () => {
    const { agent, calls, clock, list } = await openWorld(make, with_({ decide: ({ now }) => ({ action: 'defer', deliverAt: new Date(now.getTime() + 10 * minute) }) }))
    expect(await agent.sendNotificationSignal(ci, thread)).toMatchObject({ record: { status: 'pending' }, decision: { action: 'defer' } })
    for (let passed = 1; passed < 10; passed++) await clock.advance(minute)
    expect(calls()).toBe(0)
    await clock.advance(minute)
    await soon(async () => {
      await clock.advance(0)
      return (await list())[0]?.status
    }).toBe('delivered')
    await soon(calls).toBe(1)
  })

  it('[N1.5] summarizes at one time and delivers at another, on a thread that is idle or becomes so before', async () => {
    const later = ({ now }: { now: Date }) => ({ action: 'summarize' as const, summaryAt: new Date(now.getTime() + 1_000), deliverAt: new Date(now.getTime() + 2_000) })
    for (const active of [false, true]) {
      const { agent, clock, list, read, work, rest } = await openWorld(make, with_({ decide: later }))
      if (active) await work()
      await agent.sendNotificationSignal(ci, thread)
      if (active) await rest()
      await clock.advance(1_000)
      await soon(async () => (await list())[0]?.summarySignalId).toBeTypeOf('string')
      expect((await list())[0]?.status).toBe('pending')
      await clock.advance(1_000)
      await soon(async () => {
        await clock.advance(0)
        return (await list())[0]?.status
      }).toBe('delivered')
      await soon(() => read().at(-1)).toContain('CI failed')
    }
  })

  it('[N1.5] defers without a time until the thread is idle', async () => {
    const { agent, calls, read, work, rest } = await openWorld(make, with_({ default: 'defer' }))
    await work()
    await agent.sendNotificationSignal(ci, thread)
    await rest()
    await soon(calls).toBe(2)
    expect(read().at(-1)).toContain('CI failed')
  })

  it('[N1.5] queues as a turn of its own', async () => {
    const { agent, calls, model, work, rest } = await openWorld(make, with_({ default: 'queue' }))
    await work()
    agent.sendMessage('And this.', thread)
    await agent.sendNotificationSignal(ci, thread)
    expect(await agent.listQueued(thread)).toHaveLength(2)
    await rest()
    await soon(calls).toBe(3)
    expect(JSON.stringify(model.calls[1]?.prompt)).not.toContain('CI failed')
    expect(JSON.stringify(model.calls[2]?.prompt)).toContain('CI failed')
  })

  it('[N1.8] summaries at times of their own are never early, and those that are close are one', async () => {
    const { agent, clock, summarised, list } = await openWorld(make, with_({
      decide: ({ now }) => ({ action: 'summarize', summaryAt: new Date(now.getTime() + 30 * minute) }),
    }))
    for (let index = 0; index < 4; index++) {
      await agent.sendNotificationSignal({ ...ci, priority: 'low' }, thread)
      await clock.advance(5_000)
    }
    for (let passed = 0; passed < 29; passed++) await clock.advance(minute)
    expect(await summarised()).toBe(0)
    await clock.advance(minute)
    await soon(summarised).toBe(4)
    expect(new Set((await list()).map(({ summarySignalId }) => summarySignalId)).size).toBe(1)
  })

  it.each([
    ['throws', () => { throw new Error('no idea') }, 'policy-failed: idle-medium'],
    ['answers nonsense', () => 'perhaps' as never, 'policy-failed: idle-medium'],
    ['names no time', () => ({ action: 'defer' as const, deliverAt: new Date(Number.NaN) }), 'policy-failed: idle-medium'],
  ])('[N1.6] that %s loses no record: the rest of it decides, and the record says why', async (_, decide, reason) => {
    const { agent, calls } = await openWorld(make, with_({ decide }))
    expect(await agent.sendNotificationSignal(ci, thread)).toMatchObject({ decision: { action: 'deliver', reason }, record: { status: 'delivered', deliveryReason: reason } })
    await soon(calls).toBe(1)
  })

  it('[N1.6] that never settles is not waited for', async () => {
    const { agent, clock } = await openWorld(make, with_({ decide: () => new Promise(() => {}) }))
    const sent = agent.sendNotificationSignal(ci, thread)
    let settled = false
    void sent.then(() => (settled = true))
    await soon(async () => {
      await clock.advance(5_000)
      return settled
    }).toBe(true)
    expect((await sent).record.deliveryReason).toBe('policy-timeout: idle-medium')
  })
})

describe('invalid notifications', () => {
  const refusedAgent = (deliveryPolicy: unknown) => {
    try {
      return new Agent({ id: 'a', notifications: { deliveryPolicy } } as never)
    } catch (error) {
      return (error as HeedError).details
    }
  }

  it('[N1.3] is refused when an agent or a Heed is made', () => {
    expect(refusedAgent({ default: 'sometimes' })).toEqual({ field: 'deliveryPolicy.default' })
    expect(refusedAgent({ priorities: { huge: 'deliver' } })).toEqual({ field: 'deliveryPolicy.priorities.huge' })
    expect(refusedAgent({ sources: { a: { action: 'defer', deliverAt: 'soon' } } })).toEqual({ field: 'deliveryPolicy.sources.a.deliverAt' })
    expect(refusedAgent({ decide: 'me' })).toEqual({ field: 'deliveryPolicy.decide' })
    expect(refusedAgent({ policies: {} })).toEqual({ field: 'deliveryPolicy.policies' })
    const storage = new InMemoryStore()
    expect(() => new Heed({ storage, notifications: { dispatch: { cron: 'every now and then' } } })).toThrow(expect.objectContaining({ code: 'invalid_argument', details: { field: 'notifications.dispatch.cron' } }))
    expect(() => new Heed({ storage, notifications: { dispatch: { batchSize: 0 } } })).toThrow(expect.objectContaining({ details: { field: 'notifications.dispatch.batchSize' } }))
    expect(() => new Heed({ storage, notifications: { dispatch: { cron: 5 } } as never })).toThrow(expect.objectContaining({ details: { field: 'notifications.dispatch.cron' } }))
    expect(() => new Heed({ storage, notifications: { dedupeMemoryMs: 1e20 } })).toThrow(expect.objectContaining({ details: { field: 'notifications.dedupeMemoryMs' } }))
    expect(() => new Heed({ storage, notifications: { dispatcher: {} } as never })).toThrow(expect.objectContaining({ details: { field: 'notifications.dispatcher' } }))
  })

  it('[N1.3] is refused at the send by name, with nothing written, also for the others of a list', async () => {
    const { agent, list } = await openWorld(placeKinds()[0].make)
    const field = async (notification: unknown, target: unknown = thread) => {
      const error = await agent.sendNotificationSignal([ci, notification] as never, target as never).then(() => undefined, (thrown: unknown) => thrown)
      return (error as HeedError).details?.field
    }
    expect(await field({ ...ci, priority: 'huge' })).toBe('priority')
    expect(await field({ ...ci, source: '' })).toBe('source')
    expect(await field({ ...ci, summary: 3 })).toBe('summary')
    expect(await field({ ...ci, summary: 'x'.repeat(11_000_000) })).toBe('summary')
    expect(await field({ ...ci, payload: { text: 'x'.repeat(11_000_000) } })).toBe('payload')
    expect(await field({ ...ci, payload: { run: () => {} } })).toBe('payload.run')
    expect(await field({ ...ci, attributes: { 'not a name': 1 } })).toMatch(/^attributes/)
    expect(await field({ ...ci, dedupeKey: '' })).toBe('dedupeKey')
    expect(await field({ ...ci, id: 'x'.repeat(201) })).toBe('id')
    expect(await field({ ...ci, dedupKey: 'x' })).toBe('dedupKey')
    expect(await field({ ...ci, payload: { get text() { throw new Error('odd') } } })).toBe('payload')
    expect(await field({ ...ci, metadata: { at: { toJSON() { throw new Error('odd') } } } })).toBe('metadata.at')
    expect(await field(ci, { threadId: 't' })).toBe('resourceId')
    const holes = [ci]
    holes[2] = ci
    await expect(agent.sendNotificationSignal(holes, thread)).rejects.toMatchObject({ code: 'invalid_argument', details: { field: 'notification' } })
    await expect(agent.sendNotificationSignal(Array.from({ length: 1_001 }, () => ci), thread)).rejects.toMatchObject({ code: 'invalid_argument', details: { field: 'notifications' } })
    expect(await field(ci, { ...thread, ifIdle: { behavior: 'persist' } })).toBe('ifIdle.behavior')
    expect(await list()).toEqual([])
  })
})
