import { describe, expect, it } from 'vitest'
import { Agent, createNotificationInboxTool, Heed, InMemoryStore, type HeedError, type NotificationDeliveryPolicyConfig, type NotificationStore } from '../../src/index.ts'
import { notificationStoreOf } from '../../src/store/contract/storage.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, placeKinds } from '../thread/places.ts'
import { ci, openWorld, thread } from './world.ts'

const model = scriptedModel(() => 'Ok.')
const soon = new Date(Date.UTC(2030, 0, 1))

/** The field that an error names. */
async function named(act: () => unknown): Promise<unknown> {
  try {
    await act()
    return 'taken'
  } catch (error) {
    const { details, message } = error as HeedError
    return details?.field ?? message
  }
}

describe('what a policy can\'t be', () => {
  const policy = (deliveryPolicy: object) => named(() => new Agent({ id: 'a', model, notifications: { deliveryPolicy: deliveryPolicy as NotificationDeliveryPolicyConfig } }))

  it('[N1.3] is refused by name when the agent is made', async () => {
    expect(await policy({ default: { action: 'deliver', when: 'now' } })).toBe('deliveryPolicy.default.when')
    expect(await policy({ default: { action: ['deliver'] } })).toBe('deliveryPolicy.default')
    expect(await policy({ default: { action: 'deliver', deliverAt: soon } })).toBe('deliveryPolicy.default.deliverAt')
    expect(await policy({ sources: { a: { action: 'persist', summaryAt: soon } } })).toBe('deliveryPolicy.sources.a.summaryAt')
    expect(await policy({ priorities: { low: { action: 'defer', summaryAt: soon } } })).toBe('deliveryPolicy.priorities.low.summaryAt')
    expect(await policy({ sources: [] })).toBe('deliveryPolicy.sources')
    expect(await policy({ priorities: [] })).toBe('deliveryPolicy.priorities')
    expect(await policy([])).toBe('deliveryPolicy')
    for (const fine of [{ action: 'defer', deliverAt: soon }, { action: 'summarize', summaryAt: soon, deliverAt: soon, reason: 'x' }, { action: 'deliver', deliverAt: undefined }]) expect(await policy({ default: fine })).toBe('taken')
  })

  it('[N1.3] a cron that is none is named like its siblings', async () => {
    const cron = (expression: unknown) => named(() => new Heed({ agents: {}, storage: new InMemoryStore(), notifications: { dispatch: { enabled: true, cron: expression as string } } }))
    for (const expression of ['every now and then', '2030-01-01T00:00:00', '0 0 31 2 *', 5]) expect(await cron(expression), String(expression)).toBe('notifications.dispatch.cron')
  })
})

describe.each(placeKinds())('what a notification can\'t be sent with, $name', ({ make }) => {
  it('[N1.3] is refused by name, with nothing written', async () => {
    const { agent, list } = await openWorld(make)
    for (const ifIdle of [5, [], 'x', null, true]) expect(await named(() => agent.sendNotificationSignal(ci, { ...thread, ifIdle: ifIdle as never })), String(ifIdle)).toBe('ifIdle')
    for (const streamOptions of [5, [], 'x', null]) expect(await named(() => agent.sendNotificationSignal(ci, { ...thread, ifIdle: { streamOptions: streamOptions as never } })), String(streamOptions)).toMatch(/streamOptions/)
    expect(await list()).toEqual([])
  })

  it('[N1.6] a decide() that answers such a thing is followed by the rest of the policy', async () => {
    const answers: object[] = [{ action: 'deliver', deliverAt: soon }, { action: ['deliver'] }, { action: 'deliver', when: 'now' }]
    const { agent } = await openWorld(make, { notifications: { deliveryPolicy: { decide: () => answers.shift() as never, default: 'persist' } } })
    while (answers.length > 0) expect((await agent.sendNotificationSignal(ci, thread)).record).toMatchObject({ deliveryReason: 'policy-failed', deliveryAction: 'persist' })
  })
})

describe.each(placeKinds())('the inbox tool and what can\'t be searched for, $name', ({ make }) => {
  it('[N4.4] is refused by name', async () => {
    const storage = make().store()
    const inbox = (await notificationStoreOf(storage)) as NotificationStore
    const searching = scriptedModel([{ toolCalls: [{ toolName: 'inbox', input: { action: 'search', query: 'x'.repeat(60_000) } }] }, 'Done.'])
    const agent = new Agent({ id: 'support', model: searching, tools: { inbox: createNotificationInboxTool({ storage: inbox }) } })
    openHeed({ agent }, storage)
    await agent.generate('Look.', { memory: { thread: thread.threadId, resource: thread.resourceId } })
    const told = JSON.stringify(searching.calls[1]?.prompt.at(-1))
    expect(told).toContain('query')
    expect(told).toContain('1000')
  })
})

describe.each(placeKinds())('the inbox tool and what was never read, $name', ({ make }) => {
  it('[N3.4] says what it is', async () => {
    const { agent, inbox } = await openWorld(make, { notifications: { deliveryPolicy: { sources: { gone: { action: 'discard', reason: 'noise' } }, default: 'persist' } } })
    const tool = createNotificationInboxTool({ storage: inbox })
    const read = (id: string) => tool.execute?.({ action: 'read', id }, { ...thread, agentId: agent.id } as never)
    for (const [id, source] of [['f', 'ci'], ['d', 'gone'], ['away', 'ci'], ['seen', 'ci']] as const) await agent.sendNotificationSignal({ ...ci, id, source }, thread)
    await inbox.failed({ threadId: thread.threadId, id: 'f', error: 'disk is full', now: Date.now() })
    await inbox.markNotifications(thread, ['away'], 'archived')
    await inbox.markNotifications(thread, ['seen'], 'seen')
    const none = { delivered: 0, markedSeen: 0, alreadyRead: 0, unavailable: 1 }
    expect(await read('f')).toEqual({ ...none, message: "Not delivered, and not read: 'f' is failed (disk is full).", unread: [{ id: 'f', status: 'failed', reason: 'disk is full' }] })
    expect(await read('d')).toEqual({ ...none, message: "Not delivered, and not read: 'd' is discarded (noise).", unread: [{ id: 'd', status: 'discarded', reason: 'noise' }] })
    expect(await read('away')).toEqual({ ...none, message: "Not delivered, and not read: 'away' is archived.", unread: [{ id: 'away', status: 'archived' }] })
    expect(await read('seen')).toEqual({ ...none, message: 'No unread notifications needed delivery.', alreadyRead: 1, unavailable: 0 })
  })
})
