import { describe, expect, it } from 'vitest'
import { Agent, createTool, HeedError, type NotificationStore, type Processor } from '../../src/index.ts'
import { notificationStoreOf } from '../../src/store/contract/storage.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { fileKind, openHeed, placeKinds } from '../thread/places.ts'
import { gate, idle, soon, userTexts } from '../thread/said.ts'
import { ci, openWorld, thread } from './world.ts'

const hour = 3_600_000
const deferred = { notifications: { deliveryPolicy: { decide: ({ now }: { now: Date }) => ({ action: 'defer' as const, deliverAt: new Date(now.getTime() + 1_000) }) } } }

describe.each(placeKinds())('dispatch, $name', ({ make }) => {
  it('[N2.1] gives what is due to one of those who ask at once', async () => {
    const { agent, inbox, clock } = await openWorld(make, deferred, { dispatch: { enabled: false } })
    await agent.sendNotificationSignal(Array.from({ length: 300 }, (_, index) => ({ ...ci, source: `s${index}` })), thread)
    await clock.advance(2_000)
    const claim = { now: clock.now(), until: clock.now() + 1_000, limit: 50, agentIds: ['support'] }
    const rounds = await Promise.all(Array.from({ length: 10 }, () => inbox.claimDue(claim)))
    const ids = rounds.flatMap(({ records }) => records.map(({ id }) => id))
    expect(ids).toHaveLength(300)
    expect(new Set(ids).size).toBe(300)
    expect((await inbox.claimDue({ ...claim, agentIds: ['another'] })).records).toEqual([])
    // The process that took it is gone: it is due again.
    expect((await inbox.claimDue({ ...claim, now: claim.until, until: claim.until + 1_000 })).records).toHaveLength(50)
  })

  it('[N2.1] that was done and not written down is done again, and the thread has it once', async () => {
    const { agent, inbox, clock, list, history, heed } = await openWorld(make, deferred)
    const { record } = await agent.sendNotificationSignal(ci, thread)
    let lost = true
    const write = inbox.delivered.bind(inbox)
    inbox.delivered = (...given) => {
      if (!lost) return write(...given)
      lost = false
      return Promise.reject(new HeedError('store_failed', 'The answer was lost.'))
    }
    await soon(async () => {
      await clock.advance(1_000)
      return (await list())[0]?.status
    }).toBe('delivered')
    expect(lost).toBe(false)
    expect(await history()).toEqual(['notification'])
    expect((await list())[0]).toMatchObject({ deliveredSignalId: `notification:${record.id}`, deliveryAttempts: 2 })
    await heed.close()
  })

  it('[N2.2] is tried a limited number of times, ever later, then failed with its error; and may be tried again', async () => {
    const { agent, inbox, clock, list, storage, calls } = await openWorld(make, deferred, { maxAttempts: 3 })
    await agent.sendNotificationSignal(ci, thread)
    const accept = storage.accept.bind(storage)
    const tried: number[] = []
    Object.defineProperty(storage, 'accept', {
      configurable: true,
      value: () => {
        tried.push(clock.now())
        return Promise.reject(new HeedError('store_failed', 'The disk is full.'))
      },
    })
    await soon(async () => {
      await clock.advance(1_000)
      return (await list())[0]?.status
    }).toBe('failed')
    expect((await list())[0]).toMatchObject({ lastDeliveryError: expect.stringContaining('disk is full') as string, deliveryAttempts: 3 })
    expect(tried).toHaveLength(3)
    expect((tried[2] ?? 0) - (tried[1] ?? 0)).toBeGreaterThan((tried[1] ?? 0) - (tried[0] ?? 0))
    const [record] = await list()
    Object.defineProperty(storage, 'accept', { configurable: true, value: accept })
    expect(await inbox.retryNotifications(thread, [record?.id ?? ''], clock.now())).toBe(1)
    await soon(async () => {
      await clock.advance(15_000)
      return (await list())[0]?.status
    }).toBe('delivered')
    await soon(calls).toBe(1)
  })

  it('[N2.4] tick does what is due and says how much, and without it nothing happens where dispatch is off', async () => {
    const { agent, heed, clock, calls } = await openWorld(make, deferred, { dispatch: { enabled: false } })
    await agent.sendNotificationSignal([ci, ci, ci], thread)
    await clock.advance(hour)
    expect(calls()).toBe(0)
    for (const limit of [0, -1, 1.5, Number.NaN]) await expect(heed.tick({ limit })).rejects.toMatchObject({ code: 'invalid_argument', details: { field: 'limit' } })
    expect(await heed.tick({ limit: 2 })).toEqual({ threads: 0, notifications: 2, schedules: 0, watches: 0, scores: 0, pruned: 0 })
    expect(await heed.tick()).toMatchObject({ notifications: 1 })
    expect(await heed.tick()).toMatchObject({ notifications: 0 })
    await soon(calls).toBeGreaterThan(0)
  })

  it('[N2.5] no timer is set while nothing is due', async () => {
    const { agent, clock, heed } = await openWorld(make)
    await agent.getMemory()
    await heed.start()
    // The heartbeat and the sweep; the timer of the bus handshake ends with the handshake.
    const idleTimers = 2
    await soon(() => clock.pending).toBe(idleTimers)
    await agent.sendNotificationSignal({ ...ci, priority: 'low' }, thread)
    await soon(() => clock.pending).toBe(idleTimers + 1)
    await soon(async () => {
      await clock.advance(6_000)
      return clock.pending
    }).toBe(idleTimers)
    await heed.close()
    expect(clock.pending).toBe(0)
  })

  it('[N2.5] what falls due while a look is under way is taken by it', async () => {
    const { agent, inbox, clock, list } = await openWorld(make, deferred)
    await agent.sendNotificationSignal(ci, thread)
    const asked = gate()
    const answer = gate()
    const nextDue = inbox.nextDue.bind(inbox)
    inbox.nextDue = async (...given) => {
      const at = await nextDue(...given)
      asked.open()
      await answer.promise
      return at
    }
    await clock.advance(1_000)
    await asked.promise
    await agent.sendNotificationSignal(ci, thread)
    await clock.advance(1_000)
    answer.open()
    await soon(async () => (await list()).map(({ status }) => status)).toEqual(['delivered', 'delivered'])
  })

  it('[N2.2] every attempt is counted, the one that came through too; a refusal by its run is none', async () => {
    const state = { refuses: false }
    const inputProcessors: Processor[] = [{ id: 'guardrail', processInput: ({ messages, abort }) => (state.refuses ? abort('no') : messages) }]
    const { agent, list } = await openWorld(make, { inputProcessors })
    expect((await agent.sendNotificationSignal(ci, thread)).record).toMatchObject({ status: 'delivered', deliveryAttempts: 1 })
    await idle(agent, thread)
    state.refuses = true
    await agent.sendNotificationSignal(ci, thread)
    await soon(async () => (await list()).map(({ status, deliveryAttempts }) => [status, deliveryAttempts])).toEqual([['failed', 1], ['delivered', 1]])
  })

  it('[N2.7] a suspended thread is active: records that wait for an idle thread wait for the decision too', async () => {
    const model = scriptedModel(({ index }) => (index === 0 ? { toolCalls: [{ toolName: 'pay', input: {} }] } : 'Done.'))
    const pay = createTool({ id: 'pay', requireApproval: true, execute: () => 'paid' })
    const agent = new Agent({ id: 'support', model, tools: { pay } })
    openHeed({ agent }, make().store())
    await agent.sendMessage('Pay.', thread).outcome
    await soon(async () => (await agent.activeRun(thread))?.status).toBe('suspended')
    const { record } = await agent.sendNotificationSignal({ ...ci, priority: 'high' }, thread)
    expect(record.status).toBe('pending')
    expect(model.callCount).toBe(1)
    await agent.sendToolApproval({ ...thread, approved: true })
    await soon(() => userTexts(model.calls.at(-1)).at(-1)).toContain('status="delivered"')
  })
})

describe('dispatch by the next process', () => {
  const libsql = fileKind()

  it('[N2.3] continues with deferred records, and decides undecided ones', async () => {
    const clock = virtualClock()
    const place = libsql.make({ clock })
    const first = new Agent({ id: 'support', model: scriptedModel(() => 'Noted.'), ...deferred })
    const storage = place.store()
    const heed = openHeed({ first }, storage, { clock })
    await first.sendNotificationSignal({ ...ci, summary: 'Put off.' }, thread)
    // A process that dies between storing and deciding leaves this.
    const inbox = (await notificationStoreOf(storage)) as NotificationStore
    const now = clock.now()
    await inbox.ingest([{ source: 'github', kind: 'ci-status', summary: 'Undecided.', id: 'n', ...thread, agentId: 'support', now, undecidedUntil: now + 30_000 }])
    await heed.close()
    const model = scriptedModel(() => 'Noted.')
    const next = openHeed({ second: new Agent({ id: 'support', model }) }, place.store(), { clock })
    await next.start()
    await soon(async () => {
      await clock.advance(10_000)
      return userTexts(model.calls.at(-1)).map((text) => text.replaceAll(/<[^>]*>/g, ''))
    }).toEqual(['Put off.', 'Undecided.'])
  })
})
