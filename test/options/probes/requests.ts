import { expect } from 'vitest'
import type { AgentClient, HeedClient } from '../../../src/client/index.ts'
import type { Probe } from '../probe.ts'
import { client, heed, server, testing } from '../walked.ts'

const { createHandler } = server
const { Agent, Heed, InMemoryStore, silentLogger } = heed
const { scriptedModel } = testing

type AgentCall = (agent: AgentClient, options: never, client: HeedClient) => unknown

/** A call of the client with all its options. Each has to be in the request, in a field that its route declares. */
interface Request {
  call: AgentCall
  options: Record<string, unknown>
  /** Where the route has an option under another name; undefined: it is only shown to be in the request. */
  names?: Record<string, string | undefined>
}

const scope = { threadId: 'thread-7', resourceId: 'resource-7' }
const branches = {
  ifActive: { behavior: 'persist', attributes: { a: 'active-7' } },
  ifIdle: { behavior: 'discard', attributes: { b: 'idle-7' }, streamOptions: { maxSteps: 77 } },
}
const decided = { toolCallId: 'call-7', approvalId: 'approval-7', digest: 'digest-7' }
const about = { attributes: { a: 'attribute-7' }, metadata: { m: 'metadata-7' }, providerOptions: { p: { o: 'option-7' } } }
const message = { id: 'id-7', contents: 'contents-7', ...about }
const signal = { type: 'reactive', id: 'id-7', tagName: 'tag-7', contents: 'signal-7', transient: true, ...about }
const state = { id: 'lane-7', cacheKey: 'key-7', contents: 'state-7', mode: 'snapshot', value: { v: 'value-7' }, delta: { d: 'delta-7' }, tagName: 'tag-7', signalId: 'signal-7', ...about }
const notification = {
  id: 'notification-7', source: 'sender-7', kind: 'kind-7', summary: 'summary-7', priority: 'urgent', payload: { p: 'payload-7' }, dedupeKey: 'dedupe-7', coalesceKey: 'coalesce-7',
  attributes: { a: 'attribute-7' }, metadata: { m: 'metadata-7' },
}
const query = { source: 'sender-7', kind: 'kind-7', search: 'search-7', limit: 77, after: 'after-7', status: ['seen'], priority: ['urgent'] }
const woken = { ifIdle: { streamOptions: { maxSteps: 77 } } }
const order = { field: 'createdAt', direction: 'ASC' }
const range = { start: '2026-01-07T00:00:00.000Z', end: '2026-01-08T00:00:00.000Z', startExclusive: true, endExclusive: true }
const clone = {
  sourceThreadId: 'thread-7', newThreadId: 'clone-7', title: 'title-7', metadata: { m: 'metadata-7' },
  options: { messageLimit: 77, messageFilter: { startDate: '2026-01-07', endDate: '2026-01-08', messageIds: ['message-7'] } },
}

const requests: Record<string, Request> = {
  'AgentClient.sendMessage': { call: (agent, options) => agent.sendMessage(options), options: { message, runId: 'run-7', ...scope, ...branches, wait: 'outcome' } },
  'AgentClient.queueMessage': { call: (agent, options) => agent.queueMessage(options), options: { message, runId: 'run-7', ...scope, ...branches, wait: 'outcome' } },
  'AgentClient.sendSignal': { call: (agent, options) => agent.sendSignal(options), options: { signal, runId: 'run-7', ...scope, ...branches, wait: 'outcome' } },
  'AgentClient.sendStateSignal': { call: (agent, options) => agent.sendStateSignal(options), options: { state, runId: 'run-7', ...scope, ...branches } },
  'AgentClient.subscribeToThread': { call: (agent, options) => agent.subscribeToThread(options), options: { ...scope, after: 'cursor-7', snapshot: true, inbox: true, watches: true } },
  'AgentClient.abortThread': { call: (agent, options) => agent.abortThread(options), options: { ...scope, expectedRunId: 'run-7', clearPendingSignals: true } },
  'AgentClient.activeRun': { call: (agent, options) => agent.activeRun(options), options: scope },
  'AgentClient.listActiveThreads': { call: (agent, options) => agent.listActiveThreads(options), options: { resourceId: 'resource-7', limit: 77 } },
  'AgentClient.observe': { call: (agent, options) => agent.observe(options), options: { runId: 'run-7', offset: 77 } },
  'AgentClient.recover': { call: (agent, options) => agent.recover(options), options: { runId: 'run-7' } },
  'AgentClient.listParkedRuns': { call: (agent, options) => agent.listParkedRuns(options), options: { ...scope, page: 77, perPage: 78 } },
  'AgentClient.retryParked': { call: (agent, options) => agent.retryParked(options), options: { ...scope, runId: 'run-7' } },
  'AgentClient.listLanes': { call: (agent, options) => agent.listLanes(options), options: { ...scope, after: 'after-7', limit: 77 } },
  'AgentClient.getLane': { call: (agent, options) => agent.getLane(options), options: { ...scope, id: 'lane-7' }, names: { id: 'laneId' } },
  'AgentClient.listLaneHistory': { call: (agent, options) => agent.listLaneHistory(options), options: { ...scope, id: 'lane-7', before: 77, limit: 78 }, names: { id: 'laneId' } },
  'AgentClient.sendToolApproval': { call: (agent, options) => agent.sendToolApproval(options), options: { ...scope, approved: true, resumeData: 'data-7', declineContext: { reason: 'reason-7', message: 'message-7' }, ...decided } },
  'AgentClient.sendStreamResume': { call: (agent, options) => agent.sendStreamResume(options), options: { ...scope, runId: 'run-7', resumeData: 'data-7', ...decided } },
  'AgentClient.approveToolCall': { call: (agent, options) => agent.approveToolCall(options), options: { runId: 'run-7', ...decided } },
  'AgentClient.resumeStream': { call: (agent, options) => agent.resumeStream('data-7', options), options: { runId: 'run-7', ...decided } },
  'AgentClient.declineToolCall': { call: (agent, options) => agent.declineToolCall(options), options: { runId: 'run-7', reason: 'reason-7', ...decided } },
  'AgentClient.approveToolCallGenerate': { call: (agent, options) => agent.approveToolCallGenerate(options), options: { runId: 'run-7', ...decided } },
  'AgentClient.declineToolCallGenerate': { call: (agent, options) => agent.declineToolCallGenerate(options), options: { runId: 'run-7', reason: 'reason-7', ...decided } },
  'AgentClient.listSuspendedRuns': { call: (agent, options) => agent.listSuspendedRuns(options), options: { ...scope, fromDate: new Date('2026-01-07'), toDate: new Date('2026-01-08'), page: 77, perPage: 78 } },
  'AgentClient.cancelQueued': { call: (agent, options) => agent.cancelQueued(options), options: { ...scope, signalIds: ['signal-7'] } },
  'AgentClient.reorderQueued': { call: (agent, options) => agent.reorderQueued(options), options: { ...scope, signalIds: ['signal-7'] } },
  'AgentClient.explain': { call: (agent, options) => agent.explain(options), options: { ...scope, signalId: 'signal-7' } },
  'AgentClient.memory': { call: (agent, options) => agent.memory(options).status(), options: { resourceId: 'resource-7' } },
  'ThreadSubscription.abort': { call: (agent, options) => agent.watchThread(scope).abort(options), options: { clearPendingSignals: true } },
  'HeedClient.memory': { call: (_, options, client) => client.memory(options).status(), options: { agentId: 'agent-7', resourceId: 'resource-7' } },
  'HeedClient.tick': { call: (_, options, client) => client.tick(options), options: { limit: 77, timeoutMs: 78 } },
  'MemoryClient.createThread': { call: (_, options, client) => client.memory().createThread(options), options: { threadId: 'thread-7', title: 'title-7', metadata: { m: 'metadata-7' } } },
  'MemoryClient.getThreadById': { call: (_, options, client) => client.memory().getThreadById(options), options: { threadId: 'thread-7' } },
  'MemoryClient.updateThread': { call: (_, options, client) => client.memory().updateThread(options), options: { id: 'thread-7', title: 'title-7', metadata: { m: 'metadata-7' } }, names: { id: 'threadId' } },
  'MemoryClient.cloneThread': { call: (_, options, client) => client.memory().cloneThread(options), options: clone, names: { sourceThreadId: 'threadId' } },
  'MemoryClient.transferThread': { call: (_, options, client) => client.memory().transferThread(options), options: scope },
  'MemoryClient.listMessages': {
    call: (_, options, client) => client.memory().listMessages(options),
    options: { threadId: 'thread-7', page: 77, perPage: 78, cursor: 'cursor-7', orderBy: order, filter: { dateRange: range }, include: [{ id: 'message-7', threadId: 'thread-8', withPreviousMessages: 79, withNextMessages: 80 }] },
  },
  'MemoryClient.search': { call: (_, options, client) => client.memory().search(options), options: { searchQuery: 'query-7', threadId: 'thread-7', limit: 77 } },
  'MemoryClient.explainRecall': {
    call: (_, options, client) => client.memory().explainRecall(options),
    options: { searchQuery: 'query-7', threadId: 'thread-7', limit: 77, message: { id: 'message-7', threadId: 'thread-8' } },
    names: { message: 'messageId', id: 'messageId' },
  },
  'MemoryClient.saveMessages': { call: (_, options, client) => client.memory().saveMessages(options), options: { messages: [{ role: 'user', content: 'message-7' }] } },
  'MemoryClient.updateMessages': { call: (_, options, client) => client.memory().updateMessages(options), options: { messages: [{ id: 'message-7' }] } },
  'MemoryClient.deleteMessages': { call: (_, options, client) => client.memory().deleteMessages(options), options: { threadId: 'thread-7', messageIds: ['message-7'] } },
  'MemoryClient.getWorkingMemory': { call: (_, options, client) => client.memory().getWorkingMemory(options), options: { threadId: 'thread-7' } },
  'MemoryClient.updateWorkingMemory': { call: (_, options, client) => client.memory().updateWorkingMemory(options), options: { threadId: 'thread-7', workingMemory: { w: 'working-7' }, replace: true, delete: ['field-7'], expectedVersion: 77 } },
  'MemoryClient.listWorkingMemoryVersions': { call: (_, options, client) => client.memory().listWorkingMemoryVersions(options), options: { threadId: 'thread-7', limit: 77, before: 78 } },
  'MemoryClient.undoWorkingMemory': { call: (_, options, client) => client.memory().undoWorkingMemory(options), options: { threadId: 'thread-7', version: 77, expectedVersion: 78 } },
  'NotificationsClient.send': { call: (agent, options) => agent.notifications.send(options), options: { ...scope, notification, ...woken } },
  'NotificationsClient.sendAll': { call: (agent, options) => agent.notifications.sendAll(options), options: { ...scope, notifications: [notification], ...woken } },
  'NotificationsClient.list': { call: (agent, options) => agent.notifications.list(options), options: { ...scope, ...query } },
  'NotificationsClient.get': { call: (agent, options) => agent.notifications.get(options), options: { ...scope, id: 'notification-7' }, names: { id: 'notificationId' } },
  'NotificationsClient.mark': { call: (agent, options) => agent.notifications.mark(options), options: { ...scope, ids: ['notification-7'], status: 'dismissed' } },
  'NotificationsClient.retry': { call: (agent, options) => agent.notifications.retry(options), options: { ...scope, ids: ['notification-7'] } },
  'SchedulesClient.create': {
    call: (agent, options) => agent.schedules.create(options),
    options: { id: 'schedule-7', ...scope, cron: 'cron-7', every: 77, at: '2026-01-07T00:00:00.000Z', timeZone: 'zone-7', overlap: 'replace', missed: 'once', message: { id: 'message-8', contents: 'contents-7', attributes: { a: 'attribute-8' }, metadata: { m: 'metadata-8' }, providerOptions: { p: { o: 'option-8' } } }, signal: { id: 'signal-9', type: 'reactive', contents: 'signal-7', tagName: 'tag-7', transient: true, ...about } },
  },
  'SchedulesClient.list': { call: (agent, options) => agent.schedules.list(options), options: { ...scope, status: 'paused', limit: 77, after: 'after-7' } },
  'AgentClient.listQueued': { call: (agent, options) => agent.listQueued(options), options: scope },
  'AgentClient.streamTicket': { call: (agent, options) => agent.streamTicket(options), options: scope },
  'AgentClient.listRuns': { call: (agent, options) => agent.listRuns(options), options: { ...scope, page: 77, perPage: 78 } },
  'AgentClient.listSignals': { call: (agent, options) => agent.listSignals(options), options: { ...scope, state: ['taken'], limit: 77, before: 78 } },
  'AgentClient.getStepPrompt': { call: (agent, options) => agent.getStepPrompt(options), options: { ...scope, runId: 'run-7', step: 77 } },
  'AgentClient.listWatches': { call: (agent, options) => agent.listWatches(options), options: { ...scope, state: 'active', limit: 77, after: 'after-7' } },
  'AgentClient.cancelWatch': { call: (agent, options) => agent.cancelWatch(options), options: { id: 'watch-7', resourceId: 'resource-7' }, names: { id: 'watchId' } },
  'HeedClient.listNotifications': { call: (_, options, client) => client.listNotifications(options), options: { ...scope, ...query, agentId: 'agent-7' } },
  'HeedClient.listProcesses': { call: (_, options, client) => client.listProcesses(options), options: { agentId: 'agent-7' } },
  'HeedClient.listReplies': { call: (_, options, client) => client.listReplies(options), options: { ...scope, channelId: 'channel-7', state: 'dead', limit: 77, after: 'after-7' } },
  'HeedClient.saveScore': {
    call: (_, options, client) => client.saveScore(options),
    options: { agentId: 'agent-7', ...scope, runId: 'run-7', scorerId: 'scorer-7', version: 'version-7', score: 77, reason: 'reason-7', metadata: { m: 'metadata-7' }, source: 'test' },
    names: Object.fromEntries(['agentId', 'threadId', 'resourceId', 'runId', 'scorerId', 'version', 'reason', 'metadata', 'source'].map((name) => [name, 'score'])),
  },
  'HeedClient.retryScores': { call: (_, options, client) => client.retryScores(options), options: { ...scope, runId: 'run-7', agentId: 'agent-7', workflowId: 'workflow-7', scorerId: 'scorer-7', stepId: 'step-7', source: 'test', limit: 77 } },
  'HeedClient.retryReply': { call: (_, options, client) => client.retryReply(options), options: { id: 'reply-7', resourceId: 'resource-7' }, names: { id: 'replyId' } },
  'MemoryClient.listThreads': {
    call: (_, options, client) => client.memory().listThreads(options),
    options: { filter: { resourceId: 'resource-7', metadata: { m: 'metadata-7' }, parentId: 'parent-7' }, children: true, orderBy: order, page: 77, perPage: 78, cursor: 'cursor-7', total: true },
    names: { filter: undefined },
  },
  'MemoryClient.seekMessages around': { call: (_, options, client) => client.memory().seekMessages(options), options: { threadId: 'thread-7', around: 'message-7', perPage: 77 } },
  'MemoryClient.seekMessages before': { call: (_, options, client) => client.memory().seekMessages(options), options: { threadId: 'thread-7', before: 'message-7' } },
  'MemoryClient.seekMessages after': { call: (_, options, client) => client.memory().seekMessages(options), options: { threadId: 'thread-7', after: 'message-7' } },
  'MemoryClient.seekMessages at': { call: (_, options, client) => client.memory().seekMessages(options), options: { threadId: 'thread-7', at: 77 } },
  'MemoryClient.listThreads of a resource': { call: (_, options, client) => client.memory().listThreads(options), options: { resourceId: 'resource-7' } },
  'HeedClient.subscribeToThreads': { call: (_, options, client) => client.subscribeToThreads(options), options: { agentId: 'agent-7', resourceId: 'resource-7' } },
  'AgentClient.watchThread': {
    call: (agent, options) => agent.watchThread(options).chunks({ maxRetries: 0 }).next().catch(() => {}),
    options: { ...scope, after: 'cursor-7', inbox: true, watches: true },
  },
  'AgentClient.watchThread from a snapshot': { call: (agent, options) => agent.watchThread(options).chunks({ maxRetries: 0 }).next().catch(() => {}), options: { ...scope, snapshot: true } },
  'AgentClient.awaitSignal': {
    call: (agent, options) => agent.awaitSignal(options),
    options: {
      ...scope, id: 'watch-7',
      watch: {
        description: 'description-7', mode: 'continuous', expected_categories: ['category-7'], expected_channels: ['channel-7'], expected_contacts: ['contact-7'],
        expires_at: '2026-01-07T00:00:00.000Z', expires_in_minutes: 76, max_evaluations: 77, look_back_seconds: 78, result_schema: { type: 'schema-7' }, exclusive: true, judge_may_end: true,
      },
    },
  },
  'SchedulesClient.get': { call: (agent, options) => agent.schedules.get(options), options: { id: 'schedule-7', resourceId: 'resource-7' }, names: { id: 'scheduleId' } },
  'SchedulesClient.resume': { call: (agent, options) => agent.schedules.resume(options), options: { id: 'schedule-7', resourceId: 'resource-7' }, names: { id: 'scheduleId' } },
  'SchedulesClient.remove': { call: (agent, options) => agent.schedules.remove(options), options: { id: 'schedule-7', resourceId: 'resource-7' }, names: { id: 'scheduleId' } },
  'SchedulesClient.pause': { call: (agent, options) => agent.schedules.pause(options), options: { id: 'schedule-7', resourceId: 'resource-7' }, names: { id: 'scheduleId' } },
}

/** What the request has to contain of each option: its value, or its name if it is true or false. */
const values = (value: unknown, name = ''): string[] => {
  if (typeof value === 'boolean') return [name]
  if (value instanceof Date) return [value.toISOString()]
  return typeof value === 'object' && value !== null ? Object.entries(value).flatMap(([key, one]) => values(one, key)) : [String(value)]
}

type Operation = { parameters: Array<{ name: string }>; requestBody?: { content: Record<string, { schema: { properties: object } }> } }

let known: ReturnType<typeof routes> | undefined
async function routes(): Promise<Array<{ method: string; pattern: RegExp; fields: string[] }>> {
  const heed = new Heed({ agents: { guide: new Agent({ id: 'guide', model: scriptedModel([]) }) }, storage: new InMemoryStore(), logger: silentLogger })
  const handler = createHandler(heed, { auth: 'local' })
  const { paths } = (await (await handler(new Request('http://localhost/api/openapi.json'))).json()) as { paths: Record<string, Record<string, Operation>> }
  handler.close()
  await heed.close()
  return Object.entries(paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, { parameters, requestBody }]) => ({
    method: method.toUpperCase(),
    pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
    fields: [...parameters.map(({ name }) => name), ...Object.keys(requestBody?.content['application/json']?.schema.properties ?? {})],
  })))
}

/** What the requests of the client contain. */
export const clientRequests: Probe[] = Object.entries(requests).map(([owner, { call, options, names = {} }]) => ({
  title: `${owner}: its options are in its request, in fields that the route of the server declares`,
  async run() {
    let request = { method: '', path: '', text: '' }
    const asked = new client.HeedClient({
      baseUrl: 'http://localhost',
      fetch: async (input, init) => {
        const { pathname, search } = new URL(String(input))
        request = { method: init?.method ?? '', path: pathname, text: `${pathname} ${decodeURIComponent(search.replaceAll('+', ' '))} ${String(init?.body)}` }
        return new Response('{}')
      },
    })
    await (async () => call(asked.getAgent('guide'), options as never, asked))()
    for (const value of values(options)) expect(request.text).toContain(value)
    const route = (await (known ??= routes())).find(({ method, pattern }) => method === request.method && pattern.test(request.path))
    expect(route, `${request.method} ${request.path}`).toBeDefined()
    for (const name of Object.keys(options)) if (!(name in names && names[name] === undefined)) expect(route?.fields).toContain(names[name] ?? name)
  },
}))
