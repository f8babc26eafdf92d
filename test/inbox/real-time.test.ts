import { describe, expect, it } from 'vitest'
import { Agent, type AgentConfig, type NotificationPriority, type NotificationStore } from '../../src/index.ts'
import { notificationStoreOf } from '../../src/store/contract/storage.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { fileKind, openHeed } from '../thread/places.ts'
import { collect, gate, idle, soon, userTexts } from '../thread/said.ts'
import { ci, thread } from './world.ts'

const full = (priority: string) => `<notification source="github" type="ci-status" priority="${priority}" status="delivered">CI failed on main: 3 tests failed.</notification>`
const summary = (pending: number) => `<notification-summary pending="${pending}">github: ${pending}</notification-summary>`

/** As for users: the clock of the system, and short times. */
async function openReal(notifications?: AgentConfig['notifications']) {
  const hold = gate()
  const calledAt: number[] = []
  const model = scriptedModel(({ prompt }) => {
    calledAt.push(Date.now())
    return JSON.stringify(prompt.at(-1)).includes('Work.') ? { text: 'Working.', gate: hold.promise } : 'Noted.'
  })
  const agent = new Agent({ id: 'support', model, ...(notifications ? { notifications } : {}) })
  const storage = fileKind().make().store()
  openHeed({ agent }, storage, { notifications: { batching: { quietMs: 100, maxWaitMs: 2_000 } } })
  const inbox = (await notificationStoreOf(storage)) as NotificationStore
  return {
    agent, model, hold, calledAt,
    send: (more: Partial<typeof ci> = {}) => agent.sendNotificationSignal({ ...ci, ...more }, thread),
    /** All at once: between sends that wait for each other, a busy machine may be quiet for longer than the batch waits. */
    sendMany: (count: number, priority: NotificationPriority) => Promise.all(Array.from({ length: count }, () => agent.sendNotificationSignal({ ...ci, priority }, thread))),
    record: async () => (await inbox.listNotifications(thread)).notifications[0],
    heard: () => userTexts(model.calls.at(-1)),
    async work() {
      agent.sendMessage('Work.', thread)
      await soon(() => model.callCount).toBe(1)
    },
  }
}

describe('by the clock of the system', () => {
  /** What is sent, and what the model has read in the end. */
  const cells: Array<[NotificationPriority, 'active' | 'idle', number, string[]]> = [
    ['urgent', 'active', 1, ['Work.', full('urgent')]],
    ['urgent', 'idle', 1, [full('urgent')]],
    ['high', 'active', 1, ['Work.', summary(1), full('high')]],
    ['high', 'idle', 1, [full('high')]],
    ['medium', 'active', 5, ['Work.', summary(5)]],
    ['medium', 'idle', 1, [full('medium')]],
    ['low', 'active', 5, ['Work.', summary(5)]],
  ]
  it.each(cells)('[N1.4] %s on a thread that is %s', async (priority, state, count, heard) => {
    const world = await openReal()
    if (state === 'active') await world.work()
    await world.sendMany(count, priority)
    // A batch is emitted into the run that is there.
    if (count > 1) await soon(async () => (await world.record())?.summarySignalId).toBeTypeOf('string')
    world.hold.open()
    await soon(world.heard).toEqual(heard)
    await idle(world.agent, thread)
    await soon(async () => (await world.record())?.status).toBe(count > 1 ? 'pending' : 'delivered')
  })

  it('[N1.4] low on a thread that is idle: for those who watch, and no model', async () => {
    const { agent, model, sendMany, record } = await openReal()
    const watched = collect(await agent.subscribeToThread(thread))
    await sendMany(3, 'low')
    await soon(() => watched.chunks.map((chunk) => ('data' in chunk ? chunk.data : undefined))).toMatchObject([{ tagName: 'notification-summary', attributes: { pending: 3 } }])
    await soon(async () => (await record())?.summarySignalId).toBeTypeOf('string')
    expect(model.callCount).toBe(0)
  })

  it('[N1.5] a policy by source, by what it decides, and put off to a time', async () => {
    const { send, heard, record, calledAt } = await openReal({
      deliveryPolicy: {
        sources: { newsletter: 'discard' },
        decide: async ({ record: { source }, now }) => (source === 'calendar' ? { action: 'defer', deliverAt: new Date(now.getTime() + 150) } : undefined),
      },
    })
    expect(await send({ source: 'newsletter' })).toMatchObject({ decision: { action: 'discard' }, record: { status: 'discarded' } })
    const before = Date.now()
    expect(await send({ source: 'calendar' })).toMatchObject({ decision: { action: 'defer' }, record: { status: 'pending' } })
    await soon(async () => (await record())?.status).toBe('delivered')
    expect((await record())?.deliveredAt?.getTime()).toBeGreaterThanOrEqual(before + 150)
    await soon(heard).toHaveLength(1)
    expect(Math.min(...calledAt)).toBeGreaterThanOrEqual(before + 150)
  })
})
