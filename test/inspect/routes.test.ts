import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Agent, createTool, InMemoryStore } from '../../src/index.ts'
import { HeedClient } from '../../src/client/index.ts'
import { apiKeys } from '../../src/http/server.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { serving, thread } from '../http/serving.ts'

const keys = { operator: 'a-long-random-key-of-op', user: 'a-long-random-key-of-user', other: 'a-long-random-key-of-other' }
const auth = apiKeys({
  [keys.operator]: { id: 'ops', resources: '*' },
  [keys.user]: { id: 'ada', resources: ['user-1'], scopes: ['read', 'send', 'run', 'approve'] },
  [keys.other]: { id: 'eve', resources: ['user-2'] },
})

const model = scriptedModel(({ options: { prompt } }: { options: { prompt: unknown } }) =>
  JSON.stringify(prompt).includes('Pay now') && !JSON.stringify(prompt).includes('tool-result') ? { toolCalls: [{ toolName: 'pay', input: {} }] } : 'Done.')
const agent = new Agent({
  id: 'guide', model,
  tools: { pay: createTool({ id: 'pay', requireApproval: true, execute: async () => 'paid' }) },
  notifications: { deliveryPolicy: { sources: { mail: 'persist' }, priorities: { low: { action: 'persist', reason: 'later' } } } },
})
let world: Awaited<ReturnType<typeof serving>>
beforeAll(async () => {
  world = await serving({ guide: agent }, { auth, storage: new InMemoryStore() })
})
afterAll(() => world.server.close())

const as = (who: keyof typeof keys) => new HeedClient({ baseUrl: world.server.url, headers: { authorization: `Bearer ${keys[who]}` } })

describe('what a page may ask', () => {
  it('[I2.1] GET /me has the principal, its effective scopes and the version', async () => {
    expect(await as('user').me()).toEqual({ id: 'ada', resources: ['user-1'], operator: false, scopes: ['read', 'send', 'run', 'approve'], version: expect.stringMatching(/^\d+\.\d+\.\d+/) })
    expect(await as('operator').me()).toMatchObject({ resources: '*', operator: true, scopes: expect.arrayContaining(['operate']) })
  })

  it('[I2.2] the runs of a thread have their steps with model, usage and process, and who decided about a call, and why', async () => {
    const guide = as('user').getAgent('guide')
    await guide.sendMessage({ message: 'Pay now', ...thread, wait: 'outcome' })
    await expect.poll(async () => (await guide.listSuspendedRuns({ threadId: thread.threadId })).total).toBe(1)
    await guide.sendToolApproval({ ...thread, approved: false, declineContext: { reason: 'Too much.' } })
    await expect.poll(async () => (await guide.listRuns({ threadId: thread.threadId })).runs[0]?.status).toBe('finished')
    const { runs, total } = await guide.listRuns({ threadId: thread.threadId, page: 0, perPage: 5 })
    expect(total).toBe(1)
    expect(runs[0]).toMatchObject({ status: 'finished', agentId: 'guide', threadId: 'thread-1', resourceId: 'user-1', takeovers: [] })
    expect(runs[0]?.decisions).toEqual([expect.objectContaining({ toolName: 'pay', kind: 'approval', approved: false, reason: expect.stringContaining('Too much.'), by: 'ada', at: expect.stringMatching(/Z$/) })])
    expect(runs[0]?.steps.map(({ step, finishReason }) => [step, finishReason])).toEqual([[0, 'tool-calls'], [1, 'stop']])
    expect(runs[0]?.steps[0]).toMatchObject({ provider: model.provider, modelId: model.modelId, messages: 1, usage: { inputTokens: expect.any(Number) }, owner: expect.any(String) })
    expect((runs[0]?.steps[0]?.startedAt ?? '') <= (runs[0]?.steps[0]?.finishedAt ?? '')).toBe(true)
    expect(runs[0]).not.toHaveProperty('options')
  })

  it('[I2.3] the signals of a thread are listed newest first, each with what explain() says, and pages continue below a place', async () => {
    const guide = as('user').getAgent('guide')
    const scope = { threadId: 'signals', resourceId: 'user-1' }
    for (const message of ['One', 'Two', 'Three']) await guide.sendMessage({ message, ...scope, wait: 'outcome' })
    await expect.poll(async () => (await guide.activeRun(scope)) === null).toBe(true)
    const { signals, more } = await guide.listSignals({ ...scope, limit: 2 })
    expect([signals.length, more]).toEqual([2, true])
    const rest = await guide.listSignals({ ...scope, before: signals.at(-1)?.ord as number, state: ['consumed'] })
    const all = [...signals, ...rest.signals]
    expect(all.map(({ signal }) => signal?.contents)).toEqual(['Three', 'Two', 'One'])
    for (const listed of all) {
      const { ord: _, kind: __, signal: ___, ...same } = listed
      const { run: ____, ...explained } = await guide.explain({ ...scope, signalId: listed.id })
      expect(same).toEqual(explained)
      const times = [listed.acceptedAt, listed.drainedAt ?? '', listed.settledAt ?? '']
      expect(times).toEqual(times.toSorted())
    }
    const { runs } = await guide.listRuns({ ...scope })
    for (const { runId, step, owner, epoch } of all) expect(runs.find((run) => run.runId === runId)?.steps.find((one) => one.step === step)).toMatchObject({ owner, epoch })
    expect((await guide.listSignals({ threadId: thread.threadId })).signals).toHaveLength(1)
  })

  it('[I1.1] the prompt of a step is served to operators as the model received it, and to no other principal', async () => {
    const calls = model.calls.length
    const scope = { threadId: 'prompts', resourceId: 'user-1' }
    await agent.generate('What is sent?', { memory: { thread: scope.threadId, resource: scope.resourceId } })
    const guide = as('operator').getAgent('guide')
    const [run] = (await guide.listRuns(scope)).runs
    const made = await guide.getStepPrompt({ ...scope, runId: run?.runId ?? '', step: 0 })
    expect(made).toMatchObject({ exact: true, agentId: 'guide', prefix: { messages: 0, ratio: 1 } })
    expect(JSON.stringify(made.prompt)).toBe(JSON.stringify(model.calls[calls]?.prompt))
    expect(JSON.stringify(made.tools)).toBe(JSON.stringify(model.calls[calls]?.tools))
    await expect(guide.getStepPrompt({ ...scope, runId: run?.runId ?? '', step: 7 })).rejects.toMatchObject({ code: 'not_found' })
    await expect(as('user').getAgent('guide').getStepPrompt({ ...scope, runId: run?.runId ?? '', step: 0 })).rejects.toMatchObject({ code: 'forbidden' })
  })

  it('[I2.4] notifications are listed over all threads of the resource, with the rule that decided and its reason', async () => {
    const send = (threadId: string, source: string, priority: 'low' | 'medium') =>
      agent.sendNotificationSignal({ source, kind: 'k', summary: `${source} ${threadId}`, priority }, { threadId, resourceId: 'user-1' })
    await send('n1', 'mail', 'medium')
    await send('n2', 'ci', 'low')
    await agent.sendNotificationSignal({ source: 'mail', kind: 'k', summary: 'of another' }, { threadId: 'n3', resourceId: 'user-2' })
    const client = as('user')
    const { notifications, more, next } = await client.listNotifications({ agentId: 'guide', resourceId: 'user-1', limit: 1 })
    expect([more, notifications.map(({ threadId, deliveryRule, deliveryReason }) => [threadId, deliveryRule, deliveryReason])]).toEqual([true, [['n2', 'priorities.low', 'later']]])
    const rest = await client.listNotifications({ after: next as string })
    expect(rest.notifications.map(({ threadId, deliveryRule }) => [threadId, deliveryRule])).toEqual([['n1', 'sources.mail']])
    const find = (query: object) => client.listNotifications(query).then((page) => page.notifications.map(({ threadId }) => threadId))
    for (const query of [{ source: 'mail' }, { priority: ['medium'] }, { search: 'mail' }, { threadId: 'n1' }]) expect(await find(query)).toEqual(['n1'])
    for (const query of [{ kind: 'k' }, { status: ['pending'] }]) expect(await find(query)).toEqual(['n2', 'n1'])
    expect((await as('operator').listNotifications({ limit: 10 })).notifications.map(({ threadId }) => threadId)).toEqual(['n3', 'n2', 'n1'])
    await expect(as('other').listNotifications({ resourceId: 'user-1' })).rejects.toMatchObject({ code: 'forbidden' })
  })

  it('[I2.5] a page of messages begins at a place, or stands around, before or after a message, with the number before it', async () => {
    const memory = as('user').memory({ agentId: 'guide' })
    const scope = { threadId: 'long', resourceId: 'user-1' }
    const stored = await agent.getMemory()
    await stored.createThread(scope)
    const messages = Array.from({ length: 25 }, (_, index) => ({ id: `m${index}`, role: 'user' as const, ...scope, content: `Message ${index}` }))
    await stored.saveMessages({ messages })
    const ids = async (query: object) => {
      const { messages: page, first, total, hasBefore, hasAfter } = await memory.seekMessages({ threadId: 'long', perPage: 5, ...query })
      return [page.map(({ id }) => id).join(' '), first, total, hasBefore, hasAfter]
    }
    expect(await ids({ around: 'm12' })).toEqual(['m10 m11 m12 m13 m14', 10, 25, true, true])
    expect(await ids({ around: 'm0' })).toEqual(['m0 m1 m2 m3 m4', 0, 25, false, true])
    expect(await ids({ around: 'm24' })).toEqual(['m20 m21 m22 m23 m24', 20, 25, true, false])
    expect(await ids({ before: 'm3' })).toEqual(['m0 m1 m2', 0, 25, false, true])
    expect(await ids({ after: 'm22' })).toEqual(['m23 m24', 23, 25, true, false])
    expect(await ids({ at: 7 })).toEqual(['m7 m8 m9 m10 m11', 7, 25, true, true])
    await expect(stored.seekMessages({ threadId: 'long', resourceId: 'user-2', at: 0 })).rejects.toMatchObject({ code: 'thread_forbidden' })
    await expect(ids({ around: 'none' })).rejects.toMatchObject({ code: 'message_not_found' })
    await expect(ids({ around: 'm1', at: 3 })).rejects.toMatchObject({ code: 'invalid_argument' })
    await expect(as('other').memory().seekMessages({ threadId: 'long', around: 'm1' })).resolves.toMatchObject({ messages: [], total: 0 })
  })

  it('[I2.6] operators see the processes on the storage', async () => {
    const { processes } = await as('operator').listProcesses({ agentId: 'guide' })
    expect(processes).toEqual([expect.objectContaining({ pid: process.pid, version: expect.any(String), host: expect.any(String), threads: 0 })])
    expect(processes[0]).not.toHaveProperty('end')
    await expect(as('user').listProcesses()).rejects.toMatchObject({ code: 'forbidden' })
  })
})
