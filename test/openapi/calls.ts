import createClient from 'openapi-fetch'
import { soundOf } from '../voice/voices.ts'
import type { paths } from './paths.ts'

type TypedClient = ReturnType<typeof typedClient>

/** A client with the generated types, as a user makes it. */
export function typedClient(baseUrl: string, fetch: typeof globalThis.fetch) {
  return createClient<paths>({ baseUrl, fetch })
}

/** What the calls of one route are about. */
export interface World {
  client: TypedClient
  /** Of the run that waits for a decision. */
  runId: string
  toolCallId: string
  notificationId: string
  replyId: string
  /** Signed, for the source `shop`. */
  webhook: { body: string; headers: Record<string, string> }
}

type Answer = Promise<{ response: Response }>

/** The call that is suspended when it is called: a call that needs approval, or one that suspended itself. */
export type Waiting = 'Pay' | 'Ask' | 'parked'

type Call = ((world: World) => Answer) | { waiting: Waiting; ask: (world: World) => Answer }

/** One call for each method of each path of the generated types: a new route without a call does not compile. */
type Calls = { [Path in keyof paths]: { [Method in keyof paths[Path]]: Call } }

const agentId = 'guide'
const threadId = 'thread-1'
const resourceId = 'user-1'
const scope = { threadId, resourceId }
const inAgent = { path: { agentId } }
const blockId = 'tone'
const inBlock = { path: { blockId } }
const inThread = { path: { agentId, threadId }, query: { resourceId } }
const ofMemory = { path: { threadId }, query: { agentId, resourceId } }
const memory = { thread: threadId, resource: resourceId }
const message = { id: 'm-saved', role: 'user', createdAt: '2020-01-01T00:00:00Z', ...scope, content: { format: 2, parts: [{ type: 'text', text: 'One' }] } }
const parseAs = 'stream' as const
const workflowId = 'asking'
const atRun = { path: { workflowId }, query: { runId: 'order-1', resourceId } }
const ofWorkflow = { path: { workflowId, runId: 'order-1' }, query: { resourceId } }

/** A form with a sound, as pages send it. */
function sound(): FormData {
  const form = new FormData()
  form.set('audio', new Blob([soundOf('Hi')], { type: 'audio/pcm;rate=24000' }))
  return form
}

const decision = ({ runId, toolCallId }: World) => ({ runId, toolCallId })

export const calls: Calls = {
  '/api/me': { get: ({ client }) => client.GET('/api/me', {}) },
  '/api/events': { get: ({ client }) => client.GET('/api/events', { params: { query: { agentId, resourceId } }, parseAs }) },
  '/api/processes': { get: ({ client }) => client.GET('/api/processes', { params: { query: { agentId } } }) },
  '/api/notifications': { get: ({ client }) => client.GET('/api/notifications', { params: { query: { agentId, resourceId, status: ['pending'], limit: 5 } } }) },
  '/api/agents/{agentId}/voice/speakers': { get: ({ client }) => client.GET('/api/agents/{agentId}/voice/speakers', { params: inAgent }) },
  '/api/agents/{agentId}/speakers': { get: ({ client }) => client.GET('/api/agents/{agentId}/speakers', { params: inAgent }) },
  '/api/agents/{agentId}/voice/listener': { get: ({ client }) => client.GET('/api/agents/{agentId}/voice/listener', { params: inAgent }) },
  '/api/agents/{agentId}/voice/speak': { post: ({ client }) => client.POST('/api/agents/{agentId}/voice/speak', { params: inAgent, body: { text: 'Hi', speaker: 'ann' }, parseAs }) },
  '/api/agents/{agentId}/speak': { post: ({ client }) => client.POST('/api/agents/{agentId}/speak', { params: inAgent, body: { input: 'Hi', options: { speaker: 'ann' } }, parseAs }) },
  '/api/agents/{agentId}/voice/listen': { post: ({ client }) => client.POST('/api/agents/{agentId}/voice/listen', { params: inAgent, body: { audio: '' }, bodySerializer: () => sound() }) },
  '/api/agents/{agentId}/listen': { post: ({ client }) => client.POST('/api/agents/{agentId}/listen', { params: inAgent, body: { audio: '' }, bodySerializer: () => sound() }) },
  '/api/agents/{agentId}/threads/{threadId}/voice/ticket': {
    post: ({ client }) => client.POST('/api/agents/{agentId}/threads/{threadId}/voice/ticket', { params: { path: { agentId, threadId } }, body: { resourceId } }),
  },
  '/api/agents/{agentId}/threads/{threadId}/voice': { get: ({ client }) => client.GET('/api/agents/{agentId}/threads/{threadId}/voice', { params: inThread }) },
  '/api/agents/{agentId}/threads/{threadId}/runs': {
    get: ({ client }) => client.GET('/api/agents/{agentId}/threads/{threadId}/runs', { params: { ...inThread, query: { resourceId, page: 0, perPage: 5 } } }),
  },
  '/api/agents/{agentId}/threads/{threadId}/runs/{runId}/steps/{step}/prompt': {
    get: {
      waiting: 'Pay',
      ask: ({ client, runId }) =>
        client.GET('/api/agents/{agentId}/threads/{threadId}/runs/{runId}/steps/{step}/prompt', { params: { path: { agentId, threadId, runId, step: '0' }, query: { resourceId } } }),
    },
  },
  '/api/agents/{agentId}/threads/{threadId}/signals': {
    get: ({ client }) => client.GET('/api/agents/{agentId}/threads/{threadId}/signals', { params: { ...inThread, query: { resourceId, state: ['consumed'], limit: 5 } } }),
  },
  '/api/agents': { get: ({ client }) => client.GET('/api/agents', {}) },
  '/api/agents/{agentId}': { get: ({ client }) => client.GET('/api/agents/{agentId}', { params: inAgent }) },
  '/api/agents/{agentId}/editor': { get: ({ client }) => client.GET('/api/agents/{agentId}/editor', { params: inAgent }) },
  '/api/agents/{agentId}/versions': {
    get: ({ client }) => client.GET('/api/agents/{agentId}/versions', { params: { ...inAgent, query: { before: 9, limit: 5 } } }),
    post: ({ client }) => client.POST('/api/agents/{agentId}/versions', { params: inAgent, body: { base: 2, overrides: { tools: { pay: false } }, why: 'Safer.' } }),
  },
  '/api/agents/{agentId}/versions/compare': {
    get: ({ client }) => client.GET('/api/agents/{agentId}/versions/compare', { params: { ...inAgent, query: { from: 0, to: 1 } } }),
  },
  '/api/agents/{agentId}/versions/{version}': {
    get: ({ client }) => client.GET('/api/agents/{agentId}/versions/{version}', { params: { path: { agentId, version: '1' } } }),
    delete: ({ client }) => client.DELETE('/api/agents/{agentId}/versions/{version}', { params: { path: { agentId, version: '2' }, query: { why: 'Unused.' } } }),
  },
  '/api/agents/{agentId}/versions/preview': {
    post: ({ client }) => client.POST('/api/agents/{agentId}/versions/preview', { params: inAgent, body: { version: 'draft', requestContext: { plan: 'pro' } } }),
  },
  '/api/editor/agents': { get: ({ client }) => client.GET('/api/editor/agents', {}) },
  '/api/prompt-blocks': { get: ({ client }) => client.GET('/api/prompt-blocks', { params: { query: { limit: 5 } } }) },
  '/api/prompt-blocks/{blockId}': {
    get: ({ client }) => client.GET('/api/prompt-blocks/{blockId}', { params: inBlock }),
    delete: ({ client }) => client.DELETE('/api/prompt-blocks/{blockId}', { params: { path: { blockId: 'unused' }, query: { why: 'Unused.' } } }),
  },
  '/api/prompt-blocks/{blockId}/clone': {
    post: ({ client }) => client.POST('/api/prompt-blocks/{blockId}/clone', { params: inBlock, body: { as: 'mood', version: 1, why: 'A copy.' } }),
  },
  '/api/prompt-blocks/{blockId}/versions': {
    get: ({ client }) => client.GET('/api/prompt-blocks/{blockId}/versions', { params: { ...inBlock, query: { before: 9, limit: 5 } } }),
    post: ({ client }) => client.POST('/api/prompt-blocks/{blockId}/versions', { params: inBlock, body: { base: 2, content: 'Be short.', why: 'Shorter.' } }),
  },
  '/api/prompt-blocks/{blockId}/versions/compare': {
    get: ({ client }) => client.GET('/api/prompt-blocks/{blockId}/versions/compare', { params: { ...inBlock, query: { from: 1, to: 2 } } }),
  },
  '/api/prompt-blocks/{blockId}/versions/{version}': {
    get: ({ client }) => client.GET('/api/prompt-blocks/{blockId}/versions/{version}', { params: { path: { blockId, version: '1' } } }),
    delete: ({ client }) => client.DELETE('/api/prompt-blocks/{blockId}/versions/{version}', { params: { path: { blockId, version: '2' } } }),
  },
  '/api/prompt-blocks/{blockId}/releases': {
    get: ({ client }) => client.GET('/api/prompt-blocks/{blockId}/releases', { params: { ...inBlock, query: { limit: 5 } } }),
    post: ({ client }) => client.POST('/api/prompt-blocks/{blockId}/releases', { params: inBlock, body: { version: 1, expected: 2, why: 'Again.' } }),
  },
  '/api/prompt-blocks/{blockId}/releases/rollback': {
    post: ({ client }) => client.POST('/api/prompt-blocks/{blockId}/releases/rollback', { params: inBlock, body: { expected: 2, to: 1 } }),
  },
  '/api/agents/{agentId}/releases': {
    get: ({ client }) => client.GET('/api/agents/{agentId}/releases', { params: { ...inAgent, query: { limit: 5 } } }),
    post: ({ client }) =>
      client.POST('/api/agents/{agentId}/releases', { params: inAgent, body: { version: 0, expected: 1, rules: [{ version: 1, percent: 20, context: { plan: ['pro'] } }], why: 'A test.' } }),
  },
  '/api/agents/{agentId}/releases/rollback': {
    post: ({ client }) => client.POST('/api/agents/{agentId}/releases/rollback', { params: inAgent, body: { expected: 1, to: 0, why: 'Worse.' } }),
  },
  '/api/agents/{agentId}/tools/{toolId}': {
    get: ({ client }) => client.GET('/api/agents/{agentId}/tools/{toolId}', { params: { path: { agentId, toolId: 'pay' } } }),
  },
  '/api/agents/{agentId}/send-message': {
    post: ({ client }) =>
      client.POST('/api/agents/{agentId}/send-message', {
        params: { ...inAgent, query: { wait: 'outcome' }, header: { 'Idempotency-Key': 'key-1' } },
        body: { message: { contents: 'Hi', metadata: { kind: 'trip', days: 5 } }, ...scope, ifIdle: { behavior: 'wake', attributes: { from: 'Ada' } } },
      }),
  },
  '/api/agents/{agentId}/queue-message': {
    post: ({ client }) => client.POST('/api/agents/{agentId}/queue-message', { params: inAgent, body: { message: [{ type: 'text', text: 'Hi' }], ...scope } }),
  },
  '/api/agents/{agentId}/signals': {
    post: ({ client }) => client.POST('/api/agents/{agentId}/signals', { params: inAgent, body: { signal: { type: 'user-message', contents: 'Hi' }, ...scope } }),
  },
  '/api/agents/{agentId}/state-signals': {
    post: ({ client }) => client.POST('/api/agents/{agentId}/state-signals', { params: inAgent, body: { state: { stateId: 'lane-2', cacheKey: 'k', contents: 'x' }, ...scope } }),
  },
  '/api/agents/{agentId}/threads/subscribe': {
    post: ({ client }) => client.POST('/api/agents/{agentId}/threads/subscribe', { params: inAgent, body: scope, parseAs }),
  },
  '/api/agents/{agentId}/threads/{threadId}/subscribe': {
    get: ({ client }) => client.GET('/api/agents/{agentId}/threads/{threadId}/subscribe', { params: { ...inThread, query: { resourceId, snapshot: true } }, parseAs }),
  },
  '/api/agents/{agentId}/threads/{threadId}/ticket': {
    post: ({ client }) => client.POST('/api/agents/{agentId}/threads/{threadId}/ticket', { params: { path: { agentId, threadId } }, body: { resourceId } }),
  },
  '/api/agents/{agentId}/threads/abort': {
    post: ({ client }) => client.POST('/api/agents/{agentId}/threads/abort', { params: inAgent, body: scope }),
  },
  '/api/agents/{agentId}/threads/{threadId}/queue': {
    get: { waiting: 'Pay', ask: ({ client }) => client.GET('/api/agents/{agentId}/threads/{threadId}/queue', { params: inThread }) },
  },
  '/api/agents/{agentId}/threads/{threadId}/queue/cancel': {
    post: ({ client }) => client.POST('/api/agents/{agentId}/threads/{threadId}/queue/cancel', { params: { path: { agentId, threadId } }, body: { resourceId, signalIds: ['queued-1'] } }),
  },
  '/api/agents/{agentId}/threads/{threadId}/queue/reorder': {
    post: ({ client }) => client.POST('/api/agents/{agentId}/threads/{threadId}/queue/reorder', { params: { path: { agentId, threadId } }, body: { resourceId, signalIds: ['queued-1'] } }),
  },
  '/api/agents/{agentId}/threads/{threadId}/signals/{signalId}': {
    get: ({ client }) => client.GET('/api/agents/{agentId}/threads/{threadId}/signals/{signalId}', { params: { path: { agentId, threadId, signalId: 'sent-1' }, query: { resourceId } } }),
  },
  '/api/agents/{agentId}/threads/{threadId}/active-run': {
    get: { waiting: 'Pay', ask: ({ client }) => client.GET('/api/agents/{agentId}/threads/{threadId}/active-run', { params: inThread }) },
  },
  '/api/agents/{agentId}/threads/{threadId}/lanes': {
    get: ({ client }) => client.GET('/api/agents/{agentId}/threads/{threadId}/lanes', { params: inThread }),
  },
  '/api/agents/{agentId}/threads/{threadId}/lanes/{laneId}': {
    get: ({ client }) => client.GET('/api/agents/{agentId}/threads/{threadId}/lanes/{laneId}', { params: { path: { agentId, threadId, laneId: 'lane-1' }, query: { resourceId } } }),
  },
  '/api/agents/{agentId}/threads/{threadId}/lanes/{laneId}/history': {
    get: ({ client }) => client.GET('/api/agents/{agentId}/threads/{threadId}/lanes/{laneId}/history', { params: { path: { agentId, threadId, laneId: 'lane-1' }, query: { resourceId } } }),
  },
  '/api/agents/{agentId}/notifications': {
    post: ({ client }) => client.POST('/api/agents/{agentId}/notifications', { params: inAgent, body: { ...scope, notification: { source: 'mail', kind: 'new', summary: 'x', metadata: { a: [1] } } } }),
  },
  '/api/agents/{agentId}/threads/{threadId}/notifications': {
    get: ({ client }) => client.GET('/api/agents/{agentId}/threads/{threadId}/notifications', { params: { ...inThread, query: { resourceId, status: ['pending', 'delivered'] } } }),
  },
  '/api/agents/{agentId}/threads/{threadId}/notifications/{notificationId}': {
    get: ({ client, notificationId }) => client.GET('/api/agents/{agentId}/threads/{threadId}/notifications/{notificationId}', { params: { path: { agentId, threadId, notificationId }, query: { resourceId } } }),
  },
  '/api/agents/{agentId}/threads/{threadId}/notifications/mark': {
    post: ({ client, notificationId }) => client.POST('/api/agents/{agentId}/threads/{threadId}/notifications/mark', { params: { path: { agentId, threadId } }, body: { resourceId, ids: [notificationId], status: 'seen' } }),
  },
  '/api/agents/{agentId}/threads/{threadId}/notifications/retry': {
    post: ({ client, notificationId }) => client.POST('/api/agents/{agentId}/threads/{threadId}/notifications/retry', { params: { path: { agentId, threadId } }, body: { resourceId, ids: [notificationId] } }),
  },
  '/api/agents/{agentId}/schedules': {
    post: ({ client }) => client.POST('/api/agents/{agentId}/schedules', { params: inAgent, body: { ...scope, cron: '0 0 * * *', message: 'Look.' } }),
    get: ({ client }) => client.GET('/api/agents/{agentId}/schedules', { params: { ...inAgent, query: scope } }),
  },
  '/api/agents/{agentId}/schedules/{scheduleId}': {
    get: ({ client }) => client.GET('/api/agents/{agentId}/schedules/{scheduleId}', { params: { path: { agentId, scheduleId: 's-1' }, query: { resourceId } } }),
    delete: ({ client }) => client.DELETE('/api/agents/{agentId}/schedules/{scheduleId}', { params: { path: { agentId, scheduleId: 's-1' }, query: { resourceId } } }),
  },
  '/api/agents/{agentId}/schedules/{scheduleId}/pause': {
    post: ({ client }) => client.POST('/api/agents/{agentId}/schedules/{scheduleId}/pause', { params: { path: { agentId, scheduleId: 's-1' } }, body: { resourceId } }),
  },
  '/api/agents/{agentId}/schedules/{scheduleId}/resume': {
    post: ({ client }) => client.POST('/api/agents/{agentId}/schedules/{scheduleId}/resume', { params: { path: { agentId, scheduleId: 's-1' } }, body: { resourceId } }),
  },
  '/api/agents/{agentId}/watches': {
    post: ({ client }) => client.POST('/api/agents/{agentId}/watches', { params: inAgent, body: { ...scope, watch: { description: 'A letter.', expected_channels: ['sms'] } } }),
    get: ({ client }) => client.GET('/api/agents/{agentId}/watches', { params: { ...inAgent, query: { ...scope, state: 'open' } } }),
  },
  '/api/agents/{agentId}/watches/{watchId}': {
    get: ({ client }) => client.GET('/api/agents/{agentId}/watches/{watchId}', { params: { path: { agentId, watchId: 'w-1' }, query: { resourceId } } }),
    delete: ({ client }) => client.DELETE('/api/agents/{agentId}/watches/{watchId}', { params: { path: { agentId, watchId: 'w-1' }, query: { resourceId } } }),
  },
  '/api/agents/{agentId}/watches/{watchId}/explanation': {
    get: ({ client }) => client.GET('/api/agents/{agentId}/watches/{watchId}/explanation', { params: { path: { agentId, watchId: 'w-1' }, query: { resourceId, limit: 10 } } }),
  },
  '/api/replies': { get: ({ client }) => client.GET('/api/replies', { params: { query: { channelId: 'phone' } } }) },
  '/api/replies/{replyId}/retry': { post: ({ client, replyId }) => client.POST('/api/replies/{replyId}/retry', { params: { path: { replyId } } }) },
  '/api/agents/{agentId}/send-tool-approval': {
    post: { waiting: 'Pay', ask: ({ client, toolCallId }) => client.POST('/api/agents/{agentId}/send-tool-approval', { params: inAgent, body: { ...scope, toolCallId, approved: true } }) },
  },
  '/api/agents/{agentId}/send-stream-resume': {
    post: { waiting: 'Ask', ask: ({ client, toolCallId }) => client.POST('/api/agents/{agentId}/send-stream-resume', { params: inAgent, body: { ...scope, toolCallId, resumeData: { yes: true } } }) },
  },
  '/api/agents/{agentId}/approve-tool-call': {
    post: { waiting: 'Pay', ask: (world) => world.client.POST('/api/agents/{agentId}/approve-tool-call', { params: inAgent, body: decision(world), parseAs }) },
  },
  '/api/agents/{agentId}/approve-tool-call-generate': {
    post: { waiting: 'Pay', ask: (world) => world.client.POST('/api/agents/{agentId}/approve-tool-call-generate', { params: inAgent, body: decision(world) }) },
  },
  '/api/agents/{agentId}/decline-tool-call': {
    post: { waiting: 'Pay', ask: (world) => world.client.POST('/api/agents/{agentId}/decline-tool-call', { params: inAgent, body: { ...decision(world), reason: 'No.' }, parseAs }) },
  },
  '/api/agents/{agentId}/decline-tool-call-generate': {
    post: { waiting: 'Pay', ask: (world) => world.client.POST('/api/agents/{agentId}/decline-tool-call-generate', { params: inAgent, body: decision(world) }) },
  },
  '/api/agents/{agentId}/resume-stream': {
    post: { waiting: 'Ask', ask: (world) => world.client.POST('/api/agents/{agentId}/resume-stream', { params: inAgent, body: { ...decision(world), resumeData: { yes: true } }, parseAs }) },
  },
  '/api/agents/{agentId}/resume-stream-until-idle': {
    post: { waiting: 'Ask', ask: (world) => world.client.POST('/api/agents/{agentId}/resume-stream-until-idle', { params: inAgent, body: { ...decision(world), resumeData: { yes: true } }, parseAs }) },
  },
  '/api/agents/{agentId}/suspended-runs': {
    get: { waiting: 'Pay', ask: ({ client }) => client.GET('/api/agents/{agentId}/suspended-runs', { params: { ...inAgent, query: scope } }) },
  },
  '/api/agents/{agentId}/observe': {
    post: { waiting: 'Pay', ask: ({ client, runId }) => client.POST('/api/agents/{agentId}/observe', { params: inAgent, body: { runId }, parseAs }) },
  },
  '/api/agents/{agentId}/recover': {
    post: { waiting: 'Pay', ask: ({ client, runId }) => client.POST('/api/agents/{agentId}/recover', { params: inAgent, body: { runId }, parseAs }) },
  },
  '/api/agents/{agentId}/parked-runs': {
    get: { waiting: 'parked', ask: ({ client }) => client.GET('/api/agents/{agentId}/parked-runs', { params: { ...inAgent, query: scope } }) },
  },
  '/api/agents/{agentId}/threads/{threadId}/retry': {
    post: { waiting: 'parked', ask: ({ client }) => client.POST('/api/agents/{agentId}/threads/{threadId}/retry', { params: { path: { agentId, threadId } }, body: { resourceId } }) },
  },
  '/api/agents/{agentId}/active-threads': {
    get: { waiting: 'Pay', ask: ({ client }) => client.GET('/api/agents/{agentId}/active-threads', { params: { ...inAgent, query: { resourceId } } }) },
  },
  '/api/agents/{agentId}/generate': {
    post: ({ client }) => client.POST('/api/agents/{agentId}/generate', { params: inAgent, body: { messages: 'Hi', memory, requestContext: { tier: 'gold' }, clientTools: {} } }),
  },
  '/api/agents/{agentId}/stream': {
    post: ({ client }) => client.POST('/api/agents/{agentId}/stream', { params: inAgent, body: { messages: [{ role: 'user', content: 'Hi' }], memory }, parseAs }),
  },
  '/api/agents/{agentId}/stream-until-idle': {
    post: ({ client }) => client.POST('/api/agents/{agentId}/stream-until-idle', { params: inAgent, body: { messages: 'Hi', memory }, parseAs }),
  },
  '/api/agents/{agentId}/explain-prompt': {
    post: ({ client }) => client.POST('/api/agents/{agentId}/explain-prompt', { params: inAgent, body: { messages: 'Hi', memory } }),
  },
  '/api/agents/{agentId}/chat': {
    post: ({ client }) => client.POST('/api/agents/{agentId}/chat', { params: inAgent, body: { id: threadId, resourceId, messages: [{ id: 'm-1', role: 'user', parts: [{ type: 'text', text: 'Hi' }] }] }, parseAs }),
  },
  '/api/agents/{agentId}/chat/{threadId}/stream': {
    get: { waiting: 'Pay', ask: ({ client }) => client.GET('/api/agents/{agentId}/chat/{threadId}/stream', { params: inThread, parseAs }) },
  },
  '/api/memory/threads': {
    get: ({ client }) => client.GET('/api/memory/threads', { params: { query: { agentId, resourceId, metadata: { kind: 'trip' }, orderBy: { field: 'createdAt', direction: 'DESC' }, page: 0, perPage: 10 } } }),
    post: ({ client }) => client.POST('/api/memory/threads', { params: { query: { agentId } }, body: { resourceId, title: 'New', metadata: { kind: 'trip', days: 5, open: true } } }),
  },
  '/api/memory/threads/{threadId}': {
    get: ({ client }) => client.GET('/api/memory/threads/{threadId}', { params: ofMemory }),
    patch: ({ client }) => client.PATCH('/api/memory/threads/{threadId}', { params: ofMemory, body: { title: 'Other', metadata: { far: true } } }),
    delete: ({ client }) => client.DELETE('/api/memory/threads/{threadId}', { params: ofMemory }),
  },
  '/api/memory/threads/{threadId}/clone': {
    post: ({ client }) => client.POST('/api/memory/threads/{threadId}/clone', { params: ofMemory, body: { newThreadId: 'copy-2', options: { messageLimit: 1 } } }),
  },
  '/api/memory/threads/{threadId}/transfer': {
    post: ({ client }) => client.POST('/api/memory/threads/{threadId}/transfer', { params: ofMemory, body: { resourceId: 'user-2' } }),
  },
  '/api/memory/threads/{threadId}/clones': { get: ({ client }) => client.GET('/api/memory/threads/{threadId}/clones', { params: ofMemory }) },
  '/api/memory/threads/{threadId}/source': {
    get: ({ client }) => client.GET('/api/memory/threads/{threadId}/source', { params: { ...ofMemory, path: { threadId: 'copy-1' } } }),
  },
  '/api/memory/threads/{threadId}/clone-history': { get: ({ client }) => client.GET('/api/memory/threads/{threadId}/clone-history', { params: ofMemory }) },
  '/api/memory/threads/{threadId}/messages': {
    get: ({ client }) => client.GET('/api/memory/threads/{threadId}/messages', { params: { ...ofMemory, query: { agentId, resourceId, perPage: 5, orderBy: { direction: 'ASC' } } } }),
  },
  '/api/memory/save-messages': { post: ({ client }) => client.POST('/api/memory/save-messages', { params: { query: { agentId } }, body: { messages: [message] } }) },
  '/api/memory/messages/delete': { post: ({ client }) => client.POST('/api/memory/messages/delete', { params: { query: { agentId, resourceId } }, body: { messageIds: ['sent-1'] } }) },
  '/api/memory/messages/update': {
    post: ({ client }) => client.POST('/api/memory/messages/update', { params: { query: { agentId, resourceId } }, body: { messages: [{ id: 'sent-1', content: { metadata: { read: true } } }] } }),
  },
  '/api/memory/search': { get: ({ client }) => client.GET('/api/memory/search', { params: { query: { agentId, resourceId, searchQuery: 'Hi', limit: 5 } } }) },
  '/api/memory/search/explanation': { get: ({ client }) => client.GET('/api/memory/search/explanation', { params: { query: { agentId, resourceId, searchQuery: 'Hi', limit: 5 } } }) },
  '/api/memory/threads/{threadId}/working-memory': {
    get: ({ client }) => client.GET('/api/memory/threads/{threadId}/working-memory', { params: ofMemory }),
    post: ({ client }) => client.POST('/api/memory/threads/{threadId}/working-memory', { params: ofMemory, body: { workingMemory: '# Ada' } }),
  },
  '/api/memory/threads/{threadId}/working-memory/versions': {
    get: ({ client }) => client.GET('/api/memory/threads/{threadId}/working-memory/versions', { params: { ...ofMemory, query: { ...ofMemory.query, limit: 5 } } }),
  },
  '/api/memory/threads/{threadId}/working-memory/undo': {
    post: ({ client }) => client.POST('/api/memory/threads/{threadId}/working-memory/undo', { params: ofMemory, body: {} }),
  },
  '/api/memory/status': { get: ({ client }) => client.GET('/api/memory/status', { params: { query: { agentId } } }) },
  '/api/memory/config': { get: ({ client }) => client.GET('/api/memory/config', { params: { query: { agentId } } }) },
  '/api/memory/observational-memory': { get: ({ client }) => client.GET('/api/memory/observational-memory', {}) },
  '/api/workflows': { get: ({ client }) => client.GET('/api/workflows', {}) },
  '/api/workflows/{workflowId}': { get: ({ client }) => client.GET('/api/workflows/{workflowId}', { params: { path: { workflowId } } }) },
  '/api/workflows/{workflowId}/start': {
    post: ({ client }) => client.POST('/api/workflows/{workflowId}/start', { params: { path: { workflowId }, query: { runId: 'new' } }, body: { resourceId, inputData: { n: 1 }, initialState: { seen: 1 } } }),
  },
  '/api/workflows/{workflowId}/stream': { post: ({ client }) => client.POST('/api/workflows/{workflowId}/stream', { params: { path: { workflowId } }, body: { resourceId }, parseAs }) },
  '/api/workflows/{workflowId}/runs': {
    get: ({ client }) => client.GET('/api/workflows/{workflowId}/runs', { params: { path: { workflowId }, query: { resourceId, status: ['suspended'], page: 0, perPage: 5, fromDate: '2020-01-01T00:00:00Z' } } }),
  },
  '/api/workflows/{workflowId}/runs/{runId}': {
    get: ({ client }) => client.GET('/api/workflows/{workflowId}/runs/{runId}', { params: ofWorkflow }),
    delete: ({ client }) => client.DELETE('/api/workflows/{workflowId}/runs/{runId}', { params: ofWorkflow }),
  },
  '/api/workflows/{workflowId}/runs/{runId}/stream': { get: ({ client }) => client.GET('/api/workflows/{workflowId}/runs/{runId}/stream', { params: ofWorkflow, parseAs }) },
  '/api/workflows/{workflowId}/runs/{runId}/resume': {
    post: ({ client }) => client.POST('/api/workflows/{workflowId}/runs/{runId}/resume', { params: { path: ofWorkflow.path }, body: { resourceId, step: 'ask', resumeData: 'yes' } }),
  },
  '/api/workflows/{workflowId}/runs/{runId}/events': {
    post: ({ client }) => client.POST('/api/workflows/{workflowId}/runs/{runId}/events', { params: { path: ofWorkflow.path }, body: { resourceId, name: 'paid', data: { n: 1 }, id: 'e-1' } }),
  },
  '/api/workflows/{workflowId}/runs/{runId}/cancel': { post: ({ client }) => client.POST('/api/workflows/{workflowId}/runs/{runId}/cancel', { params: { path: ofWorkflow.path }, body: { resourceId } }) },
  // The run is not parked.
  '/api/workflows/{workflowId}/runs/{runId}/restart': { post: ({ client }) => client.POST('/api/workflows/{workflowId}/runs/{runId}/restart', { params: { path: ofWorkflow.path }, body: { resourceId } }) },
  '/api/workflows/{workflowId}/runs/{runId}/time-travel': {
    post: ({ client }) => client.POST('/api/workflows/{workflowId}/runs/{runId}/time-travel', { params: { path: ofWorkflow.path }, body: { resourceId, step: 'ask', inputData: { n: 2 }, newRunId: 'again' } }),
  },
  '/api/workflows/run-counts': { get: ({ client }) => client.GET('/api/workflows/run-counts', { params: { query: { resourceId } } }) },
  '/api/workflows/{workflowId}/create-run': { post: ({ client }) => client.POST('/api/workflows/{workflowId}/create-run', { params: { path: { workflowId }, query: { runId: 'later' } }, body: { resourceId } }) },
  '/api/workflows/{workflowId}/start-async': {
    post: ({ client }) => client.POST('/api/workflows/{workflowId}/start-async', { params: { path: { workflowId }, query: { runId: 'new' } }, body: { resourceId, inputData: { n: 1 }, initialState: { seen: 1 } } }),
  },
  '/api/workflows/{workflowId}/resume': { post: ({ client }) => client.POST('/api/workflows/{workflowId}/resume', { params: atRun, body: { step: 'ask', resumeData: 'yes' } }) },
  '/api/workflows/{workflowId}/resume-no-wait': { post: ({ client }) => client.POST('/api/workflows/{workflowId}/resume-no-wait', { params: atRun, body: { step: ['ask'], resumeData: 'yes' } }) },
  '/api/workflows/{workflowId}/resume-async': { post: ({ client }) => client.POST('/api/workflows/{workflowId}/resume-async', { params: atRun, body: { step: 'ask', resumeData: 'yes' } }) },
  '/api/workflows/{workflowId}/resume-stream': { post: ({ client }) => client.POST('/api/workflows/{workflowId}/resume-stream', { params: atRun, body: { resumeData: 'yes' }, parseAs }) },
  // The run is not parked.
  '/api/workflows/{workflowId}/restart': { post: ({ client }) => client.POST('/api/workflows/{workflowId}/restart', { params: atRun, body: {} }) },
  '/api/workflows/{workflowId}/restart-async': { post: ({ client }) => client.POST('/api/workflows/{workflowId}/restart-async', { params: atRun, body: {} }) },
  '/api/workflows/{workflowId}/time-travel': { post: ({ client }) => client.POST('/api/workflows/{workflowId}/time-travel', { params: atRun, body: { step: 'ask', inputData: { n: 2 } } }) },
  '/api/workflows/{workflowId}/time-travel-async': { post: ({ client }) => client.POST('/api/workflows/{workflowId}/time-travel-async', { params: atRun, body: { step: ['ask'], initialState: { seen: 2 } } }) },
  '/api/workflows/{workflowId}/time-travel-stream': { post: ({ client }) => client.POST('/api/workflows/{workflowId}/time-travel-stream', { params: atRun, body: { step: 'ask' }, parseAs }) },
  '/api/workflows/{workflowId}/observe': { post: ({ client }) => client.POST('/api/workflows/{workflowId}/observe', { params: { ...atRun, query: { ...atRun.query, offset: 1 } }, parseAs }) },
  '/api/stored/agents': {
    get: ({ client }) => client.GET('/api/stored/agents', { params: { query: { page: 0, perPage: 5 } } }),
    // The agent has versions.
    post: ({ client }) => client.POST('/api/stored/agents', { body: { id: agentId, instructions: 'Edited.' } }),
  },
  '/api/stored/agents/{agentId}': {
    get: ({ client }) => client.GET('/api/stored/agents/{agentId}', { params: { ...inAgent, query: { status: 'draft' } } }),
    patch: ({ client }) => client.PATCH('/api/stored/agents/{agentId}', { params: inAgent, body: { instructions: 'Again.', changeMessage: 'Better.', autoPublish: true } }),
    // Runs get its version.
    delete: ({ client }) => client.DELETE('/api/stored/agents/{agentId}', { params: inAgent }),
  },
  '/api/stored/agents/{agentId}/versions': {
    get: ({ client }) => client.GET('/api/stored/agents/{agentId}/versions', { params: { ...inAgent, query: { page: 0, perPage: 5, orderBy: { direction: 'ASC' } } } }),
    post: ({ client }) => client.POST('/api/stored/agents/{agentId}/versions', { params: inAgent, body: { tools: { pay: false } } }),
  },
  '/api/stored/agents/{agentId}/versions/compare': { get: ({ client }) => client.GET('/api/stored/agents/{agentId}/versions/compare', { params: { ...inAgent, query: { from: 0, to: 1 } } }) },
  '/api/stored/agents/{agentId}/versions/{version}': {
    get: ({ client }) => client.GET('/api/stored/agents/{agentId}/versions/{version}', { params: { path: { agentId, version: '1' } } }),
    delete: ({ client }) => client.DELETE('/api/stored/agents/{agentId}/versions/{version}', { params: { path: { agentId, version: '1' } } }),
  },
  '/api/stored/agents/{agentId}/versions/{version}/activate': { post: ({ client }) => client.POST('/api/stored/agents/{agentId}/versions/{version}/activate', { params: { path: { agentId, version: '1' } } }) },
  '/api/stored/agents/{agentId}/versions/{version}/restore': { post: ({ client }) => client.POST('/api/stored/agents/{agentId}/versions/{version}/restore', { params: { path: { agentId, version: '1' } } }) },
  '/api/scores': {
    get: ({ client }) => client.GET('/api/scores', { params: { query: { agentId, ...scope, state: 'scored', limit: 5 } } }),
    // There is no such run.
    post: ({ client }) => client.POST('/api/scores', { body: { score: { runId: 'none', scorerId: 'thumbs', score: 1 } } }),
  },
  '/api/scores/retry': { post: ({ client }) => client.POST('/api/scores/retry', { body: { agentId, scorerId: 'judge', limit: 5 } }) },
  '/api/scores/scorers': { get: ({ client }) => client.GET('/api/scores/scorers', {}) },
  '/api/scores/scorers/{scorerId}': { get: ({ client }) => client.GET('/api/scores/scorers/{scorerId}', { params: { path: { scorerId: 'short' } } }) },
  '/api/scores/run/{runId}': { get: ({ client }) => client.GET('/api/scores/run/{runId}', { params: { path: { runId: 'run-1' }, query: { page: 0, perPage: 5 } } }) },
  '/api/scores/scorer/{scorerId}': { get: ({ client }) => client.GET('/api/scores/scorer/{scorerId}', { params: { path: { scorerId: 'short' }, query: { entityId: agentId, entityType: 'AGENT' } } }) },
  '/api/scores/entity/{entityType}/{entityId}': { get: ({ client }) => client.GET('/api/scores/entity/{entityType}/{entityId}', { params: { path: { entityType: 'AGENT', entityId: agentId } } }) },
  '/api/webhooks/{sourceId}': {
    post: ({ client, webhook }) => client.POST('/api/webhooks/{sourceId}', { params: { path: { sourceId: 'shop' } }, headers: webhook.headers, bodySerializer: () => webhook.body, body: {} as never }),
  },
  '/api/channels/{channelId}': { post: ({ client }) => client.POST('/api/channels/{channelId}', { params: { path: { channelId: 'phone' } } }) },
  '/api/health': { get: ({ client }) => client.GET('/api/health', {}) },
  '/api/ready': { get: ({ client }) => client.GET('/api/ready', {}) },
  '/api/tick': { post: ({ client }) => client.POST('/api/tick', { body: { limit: 10 } }) },
  '/api/metrics': { get: ({ client }) => client.GET('/api/metrics', { parseAs: 'text' }) },
  '/api/openapi.json': { get: ({ client }) => client.GET('/api/openapi.json', {}) },
}
