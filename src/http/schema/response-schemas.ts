import type { JSONSchema } from '../route.ts'
import { anything, flag, object, record, text } from './schemas.ts'

/** The fields of responses that clients may rely on. A response may have more. */

const count: JSONSchema = { type: 'integer', minimum: 0 }
const listOf = (items: JSONSchema): JSONSchema => ({ type: 'array', items })

/** Of a send, after its signal is stored. */
export const accepted = object(
  { accepted: { const: true }, runId: text, signal: record, duplicate: flag, outcome: record },
  ['accepted', 'runId', 'signal'],
)

export const stateAccepted = object(
  { accepted: { const: true }, skipped: flag, runId: text, signal: record, duplicate: flag, reason: text },
  ['accepted', 'skipped'],
)

export const ticketIssued = object({ ticket: text, expiresAt: text }, ['ticket', 'expiresAt'])

export const aborted = object({ aborted: flag }, ['aborted'])

/** Of a decision. Subscribers get the rest of the run. */
const decision = object({ approvalId: text, approved: flag, reason: text, by: text, at: text }, ['at'])
export const decided = object({ accepted: { const: true }, runId: text, toolCallId: text, decided: decision }, ['accepted', 'runId'])

const approvalRequest = object(
  { id: text, path: listOf(text), toolName: text, args: anything, digest: text },
  ['id', 'path', 'toolName', 'args', 'digest'],
)

const suspendedCall = object(
  { toolCallId: text, toolName: text, args: anything, requiresApproval: flag, request: approvalRequest },
  ['toolCallId', 'toolName', 'args', 'requiresApproval'],
)
const suspendedRun = object(
  {
    runId: text, status: { const: 'suspended' }, threadId: text, resourceId: text, suspendedAt: text, toolCalls: listOf(suspendedCall),
  },
  ['runId', 'status', 'threadId', 'resourceId', 'suspendedAt', 'toolCalls'],
)
export const suspendedRuns = object({ runs: listOf(suspendedRun), total: count }, ['runs', 'total'])

const toolCall = object({ toolCallId: text, toolName: text, args: anything }, ['toolCallId', 'toolName'])
/** The whole result of a run. */
export const fullOutput = object(
  {
    text, finishReason: text, usage: record, totalUsage: record, steps: listOf(record), runId: text, messages: listOf(record),
    suspendPayload: record,
    toolCalls: listOf(object({ type: { const: 'tool-call' }, payload: toolCall }, ['type', 'payload'])),
    toolResults: listOf(object({ type: { const: 'tool-result' }, payload: record }, ['type', 'payload'])),
    response: object({ messages: listOf(record) }, ['messages']),
  },
  ['text', 'finishReason', 'usage', 'steps', 'runId', 'messages', 'toolCalls', 'toolResults', 'response'],
)

export const tool = object({ id: text, description: text, inputSchema: text, requireApproval: flag }, ['id'])

export const agent = object(
  {
    id: text, name: text, description: text, metadata: record, instructions: text, tools: record, agents: record, workflows: record,
    provider: text, modelId: text, modelVersion: text, supportsMemory: flag, defaultOptions: record,
  },
  ['id', 'name', 'description', 'metadata', 'instructions', 'tools', 'agents', 'workflows', 'provider', 'modelId', 'defaultOptions'],
)

export const agentsById: JSONSchema = { type: 'object', additionalProperties: agent }

export const thread = object(
  { id: text, resourceId: text, title: text, metadata: record, createdAt: text, updatedAt: text },
  ['id', 'resourceId', 'title', 'metadata', 'createdAt', 'updatedAt'],
)

export const threadPage = object(
  { threads: listOf(thread), total: count, page: count, perPage: count, hasMore: flag },
  ['threads', 'page', 'perPage', 'hasMore'],
)

export const message = object(
  {
    id: text, role: { enum: ['user', 'assistant', 'tool', 'signal', 'system'] }, createdAt: text, threadId: text, resourceId: text,
    content: object({ format: count, parts: listOf(record) }, ['format', 'parts']),
  },
  ['id', 'role', 'createdAt', 'content'],
)

const uiMessage = object({ id: text, role: text, parts: listOf(record) }, ['id', 'role', 'parts'])
export const messagePage = object(
  { messages: listOf(message), uiMessages: listOf(uiMessage), total: count, page: count, perPage: count, hasMore: flag },
  ['messages', 'uiMessages', 'page', 'perPage', 'hasMore'],
)

export const messageList = object({ messages: listOf(message) }, ['messages'])
export const deletedMessages = object({ success: { const: true }, message: text, deleted: count }, ['success', 'message'])
export const deletedThread = object({ result: text }, ['result'])
export const clonedThread = object({ thread, clonedMessages: listOf(message) }, ['thread'])

export const workingMemory = object(
  {
    workingMemory: { anyOf: [text, record, { type: 'null' }] }, source: { enum: ['thread', 'resource'] },
    workingMemoryTemplate: { anyOf: [record, { type: 'null' }] }, threadExists: flag,
  },
  ['workingMemory', 'source', 'workingMemoryTemplate', 'threadExists'],
)
export const changedWorkingMemory = object({ success: { const: true }, version: count }, ['success'])

const excerpt = object({ id: text, role: text, content: text, createdAt: text }, ['id', 'role', 'content', 'createdAt'])
const context = object({ before: listOf(excerpt), after: listOf(excerpt) }, ['before', 'after'])
const hit = { ...excerpt, properties: { ...excerpt.properties, threadId: text, threadTitle: text, context } }
export const searchResults = object(
  {
    results: listOf(hit), count, query: text, searchScope: { enum: ['thread', 'resource'] }, searchType: text,
    incomplete: { const: true }, incompleteReason: { enum: ['indexing', 'vectors'] },
  },
  ['results', 'count', 'query', 'searchScope', 'searchType'],
)

export const memoryStatus = object({ result: flag }, ['result'])
export const memoryConfig = object({ config: record }, ['config'])

/** What became of a signal. */
const signalState = { enum: ['pending', 'taken', 'consumed', 'rejected', 'cancelled'] }
const queuedSignal = object(
  { id: text, kind: { enum: ['enter', 'turn'] }, agentId: text, runId: text, acceptedAt: text, signal: record },
  ['id', 'kind', 'agentId', 'acceptedAt'],
)
export const queue = object({ queued: listOf(queuedSignal) }, ['queued'])
export const cancelledSignals = object({ cancelledSignalIds: listOf(text) }, ['cancelledSignalIds'])
export const reorderedSignals = object({ signalIds: listOf(text) }, ['signalIds'])
export const explainedSignal = object(
  {
    id: text, state: signalState, route: text, agentId: text, acceptedAt: text, ahead: count, runId: text, step: count, run: record,
    reason: text, processorId: text,
  },
  ['id', 'state', 'route', 'agentId', 'acceptedAt'],
)
const activeRunFields = object({ runId: text, status: { enum: ['running', 'suspended'] } }, ['runId', 'status'])
export const activeRun = object({ run: { anyOf: [activeRunFields, { type: 'null' }] } }, ['run'])
export const activeThreads = object(
  { threads: listOf(object({ id: text, resourceId: text, status: text }, ['id', 'resourceId', 'status'])) }, ['threads'],
)
const parkedRun = object(
  {
    runId: text, threadId: text, resourceId: text, agentId: text, status: { const: 'parked' }, step: count, attempts: count,
    startedAt: text, endedAt: text, error: anything,
  },
  ['runId', 'threadId', 'resourceId', 'agentId', 'status', 'step', 'attempts', 'startedAt'],
)
export const parkedRuns = object({ runs: listOf(parkedRun), total: count }, ['runs', 'total'])
export const retried = object({ accepted: { const: true }, runId: text }, ['accepted', 'runId'])
export const explainedPrompt = object(
  { parts: listOf(record), tokens: count, bytes: count, prefix: anything, fingerprints: listOf(anything) },
  ['parts', 'tokens', 'bytes', 'fingerprints'],
)

const laneMode = { enum: ['snapshot', 'delta'] }
const laneFields = { threadId: text, id: text, version: count, cacheKey: text, mode: laneMode, lastSignalId: text, lastSnapshotId: text }
export const lanes = object({ lanes: listOf(object(laneFields, ['id', 'version', 'cacheKey', 'mode'])) }, ['lanes'])
export const lane = object(
  { ...laneFields, value: anything, snapshot: record, deltas: listOf(record) }, ['id', 'version', 'cacheKey', 'mode', 'deltas'],
)
export const laneHistory = object({ signals: listOf(record), more: flag }, ['signals', 'more'])

export const notification = object(
  {
    id: text, threadId: text, resourceId: text, agentId: text, source: text, kind: text, status: text, summary: text,
    priority: { enum: ['low', 'medium', 'high', 'urgent'] }, payload: anything, dedupeKey: text, coalesceKey: text, coalescedCount: count,
    attributes: record, metadata: record, createdAt: text, updatedAt: text, deliverAt: text, summaryAt: text, deliveryAction: text,
    deliveryReason: text, deliveryAttempts: count, lastDeliveryAttemptAt: text, lastDeliveryError: text, deliveredSignalId: text,
    summarySignalId: text, deliveredAt: text, seenAt: text, dismissedAt: text, archivedAt: text, discardedAt: text,
  },
  [
    'id', 'threadId', 'resourceId', 'agentId', 'source', 'kind', 'priority', 'status', 'summary', 'coalescedCount', 'createdAt',
    'updatedAt',
  ],
)
const sentFields = { accepted: { const: true }, record: notification, decision: record, runId: text, signal: record, duplicate: flag }
const sentNotification = object(sentFields, ['accepted', 'record', 'decision'])
/** Of one notification: its result. Of a list: `results`. */
export const sentNotifications = object({ ...sentFields, results: listOf(sentNotification) }, ['accepted'])
const countsByStatus: JSONSchema = { type: 'object', additionalProperties: count }
export const notificationPage = object(
  { notifications: listOf(notification), more: flag, counts: countsByStatus }, ['notifications', 'more', 'counts'],
)
export const markedNotifications = object({ notifications: listOf(notification) }, ['notifications'])
export const retriedNotifications = object({ retried: { anyOf: [count, listOf(text)] } }, ['retried'])

const scheduleFields = {
  id: text, agentId: text, threadId: text, resourceId: text, timing: record, overlap: { enum: ['allow', 'skip', 'replace'] },
  missed: { enum: ['once', 'skip', 'all'] }, signal: record, status: { enum: ['active', 'paused', 'done'] }, nextAt: text, lastAt: text,
  lastSignalId: text, lastError: text, createdAt: text, updatedAt: text, duplicate: flag,
}
export const schedule = object(
  scheduleFields,
  ['id', 'agentId', 'threadId', 'resourceId', 'timing', 'overlap', 'missed', 'signal', 'status', 'createdAt', 'updatedAt'],
)
export const schedulePage = object({ schedules: listOf(schedule), more: flag }, ['schedules', 'more'])
export const removedSchedule = object({ removed: flag }, ['removed'])

const watchFields = {
  id: text, resourceId: text, threadId: text, agentId: text, description: text, criteria: record, mode: { enum: ['once', 'continuous'] },
  exclusive: flag, mayEnd: flag, resultSchema: anything, state: { enum: ['open', 'ended'] }, reason: text, expiresAt: text,
  maxEvaluations: count, evaluations: count, hits: count, skipped: count, createdAt: text, since: text, endedAt: text,
}
const requiredOfWatch = [
  'id', 'resourceId', 'threadId', 'agentId', 'description', 'criteria', 'mode', 'state', 'expiresAt', 'maxEvaluations', 'evaluations',
  'hits',
]
export const watch = object(watchFields, requiredOfWatch)
export const watchPage = object({ watches: listOf(watch), more: flag }, ['watches', 'more'])
export const watchDetails = object(
  { ...watchFields, remainingEvaluations: count, remainingMs: count, candidates: listOf(record), moreCandidates: flag },
  [...requiredOfWatch, 'remainingEvaluations', 'remainingMs', 'candidates', 'moreCandidates'],
)
export const explainedWatch = object({ ...watchFields, messages: listOf(record), more: flag }, [...requiredOfWatch, 'messages', 'more'])

export const reply = object(
  {
    id: text, inboundId: text, signalId: text, seq: count, resourceId: text, channelId: text, agentId: text, threadId: text, state: text,
    reason: text, policies: text,
    text, truncated: flag, providerId: text, attempts: count, error: record, createdAt: text, dueAt: text, settledAt: text,
  },
  ['id', 'inboundId', 'signalId', 'seq', 'resourceId', 'channelId', 'agentId', 'threadId', 'state', 'attempts', 'createdAt'],
)
export const replyPage = object({ replies: listOf(reply), more: flag }, ['replies', 'more'])

export const threadList = object({ threads: listOf(thread) }, ['threads'])
const workingMemoryVersion = object(
  { version: count, workingMemory: { anyOf: [text, record] }, updatedAt: text }, ['version', 'workingMemory', 'updatedAt'],
)
export const workingMemoryVersions = object({ versions: listOf(workingMemoryVersion) }, ['versions'])
export const undoneWorkingMemory = object({ version: count }, ['version'])

/** Of a route that rejects every request. */
export const neverAnswered: JSONSchema = { not: {} }

/** Of a webhook: what its source answers. */
export const webhookAnswer = record
export const alive = object({ status: { const: 'ok' } }, ['status'])
export const ready = object({ status: { const: 'ready' } }, ['status'])
export const ticked = object(
  { threads: count, notifications: count, schedules: count, watches: count, pruned: count },
  ['threads', 'notifications', 'schedules', 'watches', 'pruned'],
)
export const openApiDocument = object(
  { openapi: text, info: record, servers: listOf(record), paths: record, components: record }, ['openapi', 'info', 'paths'],
)
