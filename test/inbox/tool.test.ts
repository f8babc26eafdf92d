import { describe, expect, it } from 'vitest'
import { Agent, createNotificationInboxTool, type NotificationInboxInput, type NotificationStore } from '../../src/index.ts'
import { notificationStoreOf } from '../../src/store/contract/storage.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { openHeed, placeKinds, type PlaceKind } from '../thread/places.ts'
import { idle, soon, userTexts } from '../thread/said.ts'
import { ci, thread } from './world.ts'

/** An agent that uses its inbox as its script says, then answers with a word. */
async function openInbox(make: PlaceKind['make'], uses: NotificationInboxInput[]) {
  const storage = make().store()
  const inbox = (await notificationStoreOf(storage)) as NotificationStore
  const model = scriptedModel(({ index }) => (uses[index] ? { toolCalls: [{ toolName: 'inbox', input: { ...uses[index] } }] } : 'Done.'))
  const tools = { inbox: createNotificationInboxTool({ storage: inbox }) }
  const agent = new Agent({ id: 'support', model, tools, notifications: { deliveryPolicy: { default: 'persist' } } })
  openHeed({ agent }, storage)
  return {
    agent, inbox, model,
    async use() {
      const { toolResults } = await agent.generate('Look.', { memory: { thread: thread.threadId, resource: thread.resourceId } })
      return toolResults
    },
    notify: (more: object = {}, target = thread) => agent.sendNotificationSignal({ ...ci, ...more }, target),
    result: () => JSON.stringify(model.calls.at(-1)?.prompt),
    list: async () => (await inbox.listNotifications({ ...thread, limit: 100 })).notifications,
  }
}

describe.each(placeKinds())('the inbox tool, $name', ({ make }) => {
  it('[N3.1] lists and searches what is in the conversation, without payloads', async () => {
    const { notify, use, result } = await openInbox(make, [{ action: 'list' }, { action: 'search', query: 'MAIL' }])
    await notify({ payload: { secret: 'do not show' }, priority: 'low' })
    await notify({ source: 'email', kind: 'mail', summary: 'A mail of Ann.' })
    await notify({ summary: 'of another thread' }, { ...thread, threadId: 'other' })
    await use()
    expect(result()).toContain('CI failed on main')
    expect(result().match(/A mail of Ann/g)).toHaveLength(2)
    expect(result().match(/CI failed on main/g)).toHaveLength(1)
    expect(result()).not.toContain('do not show')
    expect(result()).not.toContain('of another thread')
  })

  it('[N3.1] reads: the full text enters the conversation as signals, in order, and the records are seen', async () => {
    const { notify, use, model, list, agent } = await openInbox(make, [{ action: 'read' }])
    await notify({ summary: 'One.' })
    await notify({ summary: 'Two.' })
    await use()
    await idle(agent, thread)
    expect(userTexts(model.calls.at(-1)).slice(1)).toEqual(['One.', 'Two.'].map((summary) => `<notification source="github" type="ci-status" priority="medium" status="delivered">${summary}</notification>`))
    expect(JSON.stringify(model.calls[1]?.prompt)).toContain('2 notification(s) will now be delivered.')
    expect((await list()).map(({ status, deliveredSignalId, id }) => [status, deliveredSignalId === `notification:${id}`])).toEqual([['seen', true], ['seen', true]])
  })

  it('[N3.1] marks, dismisses and archives one record', async () => {
    const { notify, use, list, agent, inbox } = await openInbox(make, [])
    const ids: string[] = []
    for (const _ of [1, 2, 3]) ids.push((await notify()).record.id)
    const uses: NotificationInboxInput[] = [{ action: 'markSeen', id: ids[0]! }, { action: 'dismiss', id: ids[1]! }, { action: 'archive', id: ids[2]! }]
    const tool = createNotificationInboxTool({ storage: inbox })
    for (const input of uses) await tool.execute?.(input, { ...thread, agentId: agent.id } as never)
    expect((await list()).map(({ status }) => status)).toEqual(['archived', 'dismissed', 'seen'])
    expect(await inbox.countNotifications(thread)).toEqual({ archived: 1, dismissed: 1, seen: 1 })
    await use()
  })

  it('[N3.1] goes by the clock of its Heed, also where the store has another', async () => {
    const clock = virtualClock(Date.UTC(2001, 0, 1))
    const storage = make().store()
    const inbox = (await notificationStoreOf(storage)) as NotificationStore
    const agent = new Agent({ id: 'support', model: scriptedModel(() => 'Done.'), notifications: { deliveryPolicy: { default: 'persist', sources: { now: 'deliver' } } } })
    openHeed({ agent }, storage, { clock })
    const ids: string[] = []
    for (const source of ['a', 'b', 'c', 'd', 'now']) ids.push((await agent.sendNotificationSignal({ ...ci, source }, thread)).record.id)
    const tool = createNotificationInboxTool({ storage: inbox })
    for (const [index, action] of (['markSeen', 'dismiss', 'archive', 'read', 'read'] as const).entries()) await tool.execute?.({ action, id: ids[index]! }, { ...thread, agentId: agent.id } as never)
    const { notifications } = await inbox.listNotifications({ ...thread, limit: 10 })
    const times = notifications.map(({ seenAt, dismissedAt, archivedAt, updatedAt }) => [seenAt ?? dismissedAt ?? archivedAt, updatedAt])
    const now = new Date(clock.now())
    expect(times).toEqual(Array.from({ length: 5 }, () => [now, now]))
  })

  it('[N3.1] without a clock of a Heed, a mark is made by the clock of the store', async () => {
    const clock = virtualClock(Date.UTC(2001, 0, 1))
    const inbox = (await notificationStoreOf(make({ clock }).store())) as NotificationStore
    const now = clock.now()
    await inbox.ingest([{ ...thread, id: 'n', agentId: 'support', source: 's', kind: 'k', summary: 'x', now, undecidedUntil: now }])
    expect(await inbox.markNotifications(thread, ['n'], 'seen')).toMatchObject([{ seenAt: new Date(now), updatedAt: new Date(now) }])
  })

  it('[N3.2] what is read and dispatched at once is in the conversation once', async () => {
    const { agent, inbox, list } = await openInbox(make, [])
    const storage = make().store()
    const store = (await notificationStoreOf(storage)) as NotificationStore
    const model = scriptedModel(() => 'Noted.')
    const later = new Agent({ id: 'support', model, notifications: { deliveryPolicy: { default: { action: 'defer', deliverAt: new Date(Date.now() - 1) } } } })
    const heed = openHeed({ later }, storage, { notifications: { dispatch: { enabled: false } } })
    await later.sendNotificationSignal(Array.from({ length: 40 }, (_, index) => ({ ...ci, summary: `Event ${index}.` })), thread)
    const tool = createNotificationInboxTool({ storage: store })
    const read = () => tool.execute?.({ action: 'read', limit: 100 }, { ...thread, agentId: 'support' } as never)
    await Promise.all([heed.tick({ limit: 100 }), read(), heed.tick({ limit: 100 }), read()])
    await idle(later, thread)
    const { messages } = await (await later.getMemory()).recall({ ...thread, perPage: false })
    const signals = messages.filter(({ role }) => role === 'signal').map(({ id }) => id)
    expect(signals).toHaveLength(40)
    const records = (await store.listNotifications({ ...thread, limit: 100 })).notifications
    expect(new Set(records.map(({ deliveredSignalId }) => deliveredSignalId))).toEqual(new Set(signals))
    expect(records.every(({ status }) => status === 'seen' || status === 'delivered')).toBe(true)
    expect([agent.id, await inbox.countNotifications(thread), await list()]).toEqual(['support', {}, []])
  })

  it('[N3.3] is about its own thread and resource, whatever the model passes', async () => {
    const { inbox, notify, agent, use, result, model } = await openInbox(make, [{ action: 'list', threadId: 'other' }])
    const { record } = await notify({ summary: 'not yours' }, { ...thread, threadId: 'other' })
    await use()
    expect(result()).not.toContain('not yours')
    const [offered] = model.calls[0]?.tools ?? []
    expect(Object.keys((offered as { inputSchema: { properties: object } }).inputSchema.properties)).toEqual(['action', 'id', 'status', 'priority', 'source', 'query', 'limit'])
    const tool = createNotificationInboxTool({ storage: inbox })
    const run = async (input: NotificationInboxInput, context: object) => tool.execute?.(input, { agentId: agent.id, ...context } as never)
    await expect(run({ action: 'dismiss', id: record.id }, thread)).rejects.toMatchObject({ code: 'invalid_argument' })
    await expect(run({ action: 'list', threadId: 'other' }, {})).rejects.toMatchObject({ code: 'thread_forbidden' })
    expect(await run({ action: 'list', threadId: 'other' }, { resourceId: 'somebody' })).toMatchObject({ notifications: [] })
    expect(await run({ action: 'list', threadId: 'other' }, { resourceId: 'user-1' })).toMatchObject({ notifications: [{ summary: 'not yours' }] })
    await expect(run({ action: 'search' }, thread)).rejects.toMatchObject({ details: { field: 'query' } })
    await expect(run({ action: 'archive' }, thread)).rejects.toMatchObject({ details: { field: 'id' } })
    await soon(async () => (await inbox.getNotification({ threadId: 'other', id: record.id }))?.status).toBe('pending')
  })
})
