import { describe, expect, it } from 'vitest'
import { Agent, CompositeStore, createNotificationInboxTool, Heed, InMemoryStore, silentLogger, type Storage } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, placeKinds } from '../thread/places.ts'
import { collect, gate, idle, soon, userTexts } from '../thread/said.ts'

const target = { resourceId: 'user_123', threadId: 'thread_456' }
const failure = {
  source: 'github',
  kind: 'ci-status',
  priority: 'high',
  summary: 'CI failed on main: 3 tests failed.',
  payload: { repository: 'acme/app', branch: 'main' },
  dedupeKey: 'github:acme/app:main:ci',
} as const

/** An agent as a user writes it, whose answers can be held. */
async function support(storage: InMemoryStore, hold?: Promise<void>) {
  const model = scriptedModel(({ index }) => (index === 0 && hold ? { text: 'Working.', gate: hold } : 'Noted.'))
  const supportAgent = new Agent({
    id: 'support-agent',
    name: 'Support Agent',
    instructions: 'Help the user triage updates.',
    model,
    tools: { notificationInbox: createNotificationInboxTool({ storage: await storage.getStore('notifications') }) },
    notifications: {
      deliveryPolicy: {
        priorities: { urgent: 'deliver' },
        decide: ({ record }) => {
          if (record.source === 'newsletter') return { action: 'summarize', summaryAt: new Date(Date.now() + 30 * 60 * 1000) }
        },
      },
    },
  })
  const heed = new Heed({
    agents: { supportAgent },
    storage,
    logger: silentLogger,
    notifications: { dispatch: { enabled: true, cron: '*/1 * * * *', batchSize: 100 }, batching: { quietMs: 40, maxWaitMs: 200 } },
  })
  return { heed, supportAgent, model, inbox: await storage.getStore('notifications') }
}

describe('notifications as a user writes them', () => {
  it('[N1.4] one that is sent to an idle thread is delivered, word for word, with the record and the decision of its result', async () => {
    const { heed, supportAgent, model } = await support(new InMemoryStore())
    const result = await supportAgent.sendNotificationSignal(failure, target)
    expect(result).toMatchObject({ accepted: true, decision: { action: 'deliver' }, runId: expect.any(String) as string, signal: { tagName: 'notification' } })
    expect(result.record).toMatchObject({ ...failure, ...target, agentId: 'support-agent', status: 'delivered', deliveredSignalId: result.signal?.id, coalescedCount: 1 })
    await soon(() => model.callCount).toBe(1)
    expect(userTexts(model.calls[0])).toEqual(['<notification source="github" type="ci-status" priority="high" status="delivered">CI failed on main: 3 tests failed.</notification>'])
    await heed.close()
  })

  it('[N1.5] a policy puts off a summary by half an hour; the record keeps its time and stays readable', async () => {
    const { heed, supportAgent, inbox } = await support(new InMemoryStore())
    const { record, signal } = await supportAgent.sendNotificationSignal({ ...failure, source: 'newsletter', priority: 'low' }, target)
    expect(signal).toBeUndefined()
    expect(Number(record.summaryAt) - Date.now()).toBeGreaterThan(29 * 60_000)
    expect((await inbox?.listNotifications({ ...target, search: 'tests failed', limit: 5 }))?.notifications).toMatchObject([{ id: record.id, status: 'pending' }])
    await heed.close()
  })

  it('[N1.3] a storage without an inbox is named', async () => {
    const agent = new Agent({ id: 'a', model: scriptedModel(() => 'x') })
    const memory = await new InMemoryStore().getStore('memory')
    const storage: Storage = new CompositeStore({ domains: { memory, notifications: false } })
    const heed = new Heed({ agents: { agent }, storage, logger: silentLogger })
    await expect(agent.sendNotificationSignal(failure, target)).rejects.toMatchObject({ code: 'unsupported_option', details: { domain: 'notifications' } })
    expect(() => createNotificationInboxTool({ storage: undefined })).toThrow(expect.objectContaining({ details: { field: 'storage' } }))
    await heed.close()
  })
})

describe.each(placeKinds())('the table of priorities by the time of the day, $name', ({ make }) => {
  const open = (held: boolean) => {
    const hold = gate()
    const model = scriptedModel(({ index }) => (index === 0 && held ? { text: 'Working.', gate: hold.promise } : 'Noted.'))
    const agent = new Agent({ id: 'support', model })
    openHeed({ agent }, make().store(), { notifications: { batching: { quietMs: 300, maxWaitMs: 3_000 } } })
    return { agent, model, hold }
  }

  it.each(['urgent', 'high', 'medium', 'low'] as const)('[N1.4] %s on an idle thread', async (priority) => {
    const { agent, model } = open(false)
    const watched = collect(await agent.subscribeToThread(target))
    await agent.sendNotificationSignal({ ...failure, priority }, target)
    await soon(() => watched.chunks.some(({ type }) => type === 'data-signal')).toBe(true)
    await idle(agent, target)
    expect(watched.chunks.find(({ type }) => type === 'data-signal')).toMatchObject({ data: { tagName: priority === 'low' ? 'notification-summary' : 'notification' } })
    expect(model.callCount).toBe(priority === 'low' ? 0 : 1)
  })

  it.each(['urgent', 'high', 'medium', 'low'] as const)('[N1.4] [N1.7] [N1.10] five of %s on an active thread', async (priority) => {
    const { agent, model, hold } = open(true)
    agent.sendMessage('Work.', target)
    await soon(() => model.callCount).toBe(1)
    const { dedupeKey: _, ...event } = failure
    await agent.sendNotificationSignal(Array.from({ length: 5 }, () => ({ ...event, priority })), target)
    const waiting = async () => (await agent.listQueued(target)).length
    // The summaries of medium and low come by the clock.
    await soon(waiting).toBe(priority === 'urgent' ? 5 : 1)
    hold.open()
    await idle(agent, target)
    const full = () => userTexts(model.calls.at(-1)).filter((text) => text.startsWith('<notification source')).length
    await soon(full).toBe(priority === 'urgent' || priority === 'high' ? 5 : 0)
    const summaries = userTexts(model.calls.at(-1)).filter((text) => text.startsWith('<notification-summary'))
    expect(summaries).toEqual(priority === 'urgent' ? [] : ['<notification-summary pending="5">github: 5</notification-summary>'])
  })
})
