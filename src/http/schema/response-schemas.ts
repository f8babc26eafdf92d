import type { JSONSchema } from '../route.ts'
import { anything, flag, having, record, text } from './schemas.ts'

/** The fields of responses that clients may rely on. A response may have more. */

export const count: JSONSchema = { type: 'integer', minimum: 0 }
export const listOf = (items: JSONSchema): JSONSchema => ({ type: 'array', items })

/** Of a send, after its signal is stored. */
export const accepted = having(
  { accepted: { const: true }, runId: text, signal: record, duplicate: flag, outcome: record },
  ['accepted', 'runId', 'signal'],
)

export const stateAccepted = having(
  { accepted: { const: true }, skipped: flag, runId: text, signal: record, duplicate: flag, reason: text },
  ['accepted', 'skipped'],
)

export const ticketIssued = having({ ticket: text, expiresAt: text }, ['ticket', 'expiresAt'])

export const speakers = listOf(having({ voiceId: text }, ['voiceId']))
export const listener = having({ enabled: flag }, ['enabled'])
export const heardText = having({ text }, ['text'])

export const aborted = having({ aborted: flag }, ['aborted'])

/** Of a decision. Subscribers get the rest of the run. */
const decision = having({ approvalId: text, approved: flag, reason: text, by: text, at: text }, ['at'])
export const decided = having({ accepted: { const: true }, runId: text, toolCallId: text, decided: decision }, ['accepted', 'runId'])

const approvalRequest = having(
  { id: text, path: listOf(text), toolName: text, args: anything, digest: text },
  ['id', 'path', 'toolName', 'args', 'digest'],
)

const suspendedCall = having(
  { toolCallId: text, toolName: text, args: anything, requiresApproval: flag, request: approvalRequest },
  ['toolCallId', 'toolName', 'args', 'requiresApproval'],
)
const suspendedRun = having(
  {
    runId: text, status: { const: 'suspended' }, threadId: text, resourceId: text, suspendedAt: text, toolCalls: listOf(suspendedCall),
  },
  ['runId', 'status', 'threadId', 'resourceId', 'suspendedAt', 'toolCalls'],
)
export const suspendedRuns = having({ runs: listOf(suspendedRun), total: count }, ['runs', 'total'])

const toolCall = having({ toolCallId: text, toolName: text, args: anything }, ['toolCallId', 'toolName'])
/** The whole result of a run. */
export const fullOutput = having(
  {
    text, finishReason: text, usage: record, totalUsage: record, steps: listOf(record), runId: text, messages: listOf(record),
    suspendPayload: record,
    toolCalls: listOf(having({ type: { const: 'tool-call' }, payload: toolCall }, ['type', 'payload'])),
    toolResults: listOf(having({ type: { const: 'tool-result' }, payload: record }, ['type', 'payload'])),
    response: having({ messages: listOf(record) }, ['messages']),
  },
  ['text', 'finishReason', 'usage', 'steps', 'runId', 'messages', 'toolCalls', 'toolResults', 'response'],
)

export const tool = having({ id: text, description: text, inputSchema: text, requireApproval: flag }, ['id'])

export const agent = having(
  {
    id: text, name: text, description: text, metadata: record, instructions: text, tools: record, agents: record, workflows: record,
    provider: text, modelId: text, modelVersion: text, supportsMemory: flag, defaultOptions: record,
  },
  ['id', 'name', 'description', 'metadata', 'instructions', 'tools', 'agents', 'workflows', 'provider', 'modelId', 'defaultOptions'],
)

export const agentsById: JSONSchema = { type: 'object', additionalProperties: agent }

export const thread = having(
  { id: text, resourceId: text, title: text, metadata: record, createdAt: text, updatedAt: text },
  ['id', 'resourceId', 'title', 'metadata', 'createdAt', 'updatedAt'],
)

export const threadPage = having(
  { threads: listOf(thread), total: count, page: count, perPage: count, hasMore: flag },
  ['threads', 'page', 'perPage', 'hasMore'],
)

export const message = having(
  {
    id: text, role: { enum: ['user', 'assistant', 'tool', 'signal', 'system'] }, createdAt: text, threadId: text, resourceId: text,
    content: having({ format: count, parts: listOf(record) }, ['format', 'parts']),
  },
  ['id', 'role', 'createdAt', 'content'],
)

const uiMessage = having({ id: text, role: text, parts: listOf(record) }, ['id', 'role', 'parts'])
export const messagePage = having(
  {
    messages: listOf(message), uiMessages: listOf(uiMessage), total: count, page: count, perPage: count, hasMore: flag,
    // Of a page by a place in the thread.
    first: count, hasBefore: flag, hasAfter: flag,
  },
  ['messages', 'uiMessages', 'page', 'perPage', 'hasMore'],
)

export const messageList = having({ messages: listOf(message) }, ['messages'])
export const deletedMessages = having({ success: { const: true }, message: text, deleted: count }, ['success', 'message'])
export const deletedThread = having({ result: text }, ['result'])
export const clonedThread = having({ thread, clonedMessages: listOf(message) }, ['thread'])

export const workingMemory = having(
  {
    workingMemory: { anyOf: [text, record, { type: 'null' }] }, source: { enum: ['thread', 'resource'] },
    workingMemoryTemplate: { anyOf: [record, { type: 'null' }] }, threadExists: flag,
  },
  ['workingMemory', 'source', 'workingMemoryTemplate', 'threadExists'],
)
export const changedWorkingMemory = having({ success: { const: true }, version: count }, ['success'])

const excerpt = having({ id: text, role: text, content: text, createdAt: text }, ['id', 'role', 'content', 'createdAt'])
const context = having({ before: listOf(excerpt), after: listOf(excerpt) }, ['before', 'after'])
const share = { type: 'number', minimum: 0, maximum: 1 }
/** What contributed to a score, by the names of `Reasons`. */
const reasons = having({
  words: share, wordsOfPair: share, meaning: share, meaningOfPair: share, previous: share, next: share, thread: share, wordsOfThread: share,
  length: share, time: share, question: share,
}, [])
const hit = { ...excerpt, properties: { ...excerpt.properties, threadId: text, threadTitle: text, context, score: share, reasons } }
export const searchResults = having(
  {
    results: listOf(hit), count, query: text, searchScope: { enum: ['thread', 'resource'] }, searchType: text,
    incomplete: { const: true }, incompleteReason: { enum: ['indexing', 'vectors'] },
  },
  ['results', 'count', 'query', 'searchScope', 'searchType'],
)

const explainedReason = having(
  {
    reason: { enum: Object.keys(reasons.properties) }, value: share, points: { type: 'number' }, text,
    words: listOf(having({ word: text, weight: share }, ['word', 'weight'])), cosine: { type: 'number' },
  },
  ['reason', 'value', 'points', 'text'],
)
const explainedMessage = having(
  {
    threadId: text, messageId: text, text, found: flag, summary: text, rank: count, score: share, reasons: listOf(explainedReason),
    missing: { enum: ['rank', 'threshold', 'filter', 'unrelated', 'running', 'not_indexed', 'no_text'] },
  },
  ['threadId', 'messageId', 'text', 'found', 'summary', 'score', 'reasons'],
)
export const explainedRecall = having(
  { messages: listOf(explainedMessage), incomplete: { const: true }, incompleteReason: { enum: ['indexing', 'vectors'] } }, ['messages'],
)

export const memoryStatus = having({ result: flag }, ['result'])
export const memoryConfig = having({ config: record }, ['config'])

/** What became of a signal. */
const signalState = { enum: ['pending', 'taken', 'consumed', 'rejected', 'cancelled'] }
const queuedSignal = having(
  { id: text, kind: { enum: ['enter', 'turn'] }, agentId: text, runId: text, acceptedAt: text, signal: record },
  ['id', 'kind', 'agentId', 'acceptedAt'],
)
export const queue = having({ queued: listOf(queuedSignal) }, ['queued'])
export const cancelledSignals = having({ cancelledSignalIds: listOf(text) }, ['cancelledSignalIds'])
export const reorderedSignals = having({ signalIds: listOf(text) }, ['signalIds'])
export const explainedSignal = having(
  {
    id: text, state: signalState, route: text, agentId: text, acceptedAt: text, ahead: count, runId: text, step: count, run: record,
    reason: text, processorId: text, drainedAt: text, settledAt: text, owner: text, epoch: count,
  },
  ['id', 'state', 'route', 'agentId', 'acceptedAt'],
)
const listedSignal = having(
  {
    id: text, ord: count, kind: { enum: ['enter', 'turn'] }, state: signalState, route: text, agentId: text, acceptedAt: text,
    drainedAt: text, settledAt: text, owner: text, epoch: count, runId: text, step: count, reason: text, signal: record,
  },
  ['id', 'ord', 'kind', 'state', 'route', 'agentId', 'acceptedAt'],
)
export const signalPage = having({ signals: listOf(listedSignal), more: flag }, ['signals', 'more'])
const activeRunFields = having({ runId: text, status: { enum: ['running', 'suspended'] } }, ['runId', 'status'])
export const activeRun = having({ run: { anyOf: [activeRunFields, { type: 'null' }] } }, ['run'])
export const activeThreads = having(
  { threads: listOf(having({ id: text, resourceId: text, status: text }, ['id', 'resourceId', 'status'])) }, ['threads'],
)
const parkedRun = having(
  {
    runId: text, threadId: text, resourceId: text, agentId: text, status: { const: 'parked' }, step: count, attempts: count,
    startedAt: text, endedAt: text, error: anything,
  },
  ['runId', 'threadId', 'resourceId', 'agentId', 'status', 'step', 'attempts', 'startedAt'],
)
export const parkedRuns = having({ runs: listOf(parkedRun), total: count }, ['runs', 'total'])
const runStatus = { enum: ['running', 'suspended', 'finished', 'failed', 'aborted', 'rejected', 'parked'] }
const step = having(
  {
    runId: text, step: count, epoch: count, owner: text, startedAt: text, finishedAt: text, provider: text, modelId: text,
    finishReason: text, usage: record, messages: count, head: text, altered: { const: true },
  },
  ['runId', 'step', 'epoch', 'owner', 'startedAt', 'finishedAt', 'messages', 'head'],
)
const takeover = having(
  { epoch: count, runId: text, step: count, from: text, to: text, at: text }, ['epoch', 'runId', 'step', 'to', 'at'],
)
const runDecision = having(
  {
    toolCallId: text, toolName: text, kind: { enum: ['approval', 'suspend'] }, approvalId: text, approved: flag, reason: text, by: text,
    at: text,
  },
  ['toolCallId', 'toolName', 'kind', 'at'],
)
const edit = having({ version: count, release: count, blocks: { type: 'object', additionalProperties: count } }, ['version'])
const threadRun = having(
  {
    edit, runId: text, threadId: text, resourceId: text, agentId: text, status: runStatus, epoch: count, step: count, attempts: count,
    startedAt: text, endedAt: text, suspendedAt: text, usage: record, error: anything, lost: listOf(text), steps: listOf(step),
    takeovers: listOf(takeover), decisions: listOf(runDecision),
  },
  ['runId', 'threadId', 'resourceId', 'agentId', 'status', 'epoch', 'step', 'attempts', 'startedAt', 'steps', 'takeovers', 'decisions'],
)
export const runPage = having({ runs: listOf(threadRun), total: count }, ['runs', 'total'])
export const stepPrompt = having(
  {
    runId: text, step: count, epoch: count, agentId: text, provider: text, modelId: text, startedAt: text, exact: flag, why: text,
    altered: { const: true }, prompt: listOf(record), tools: listOf(record), parts: listOf(record), tokens: count, bytes: count,
    previous: having({ runId: text, step: count }, ['runId', 'step']), prefix: record, brokenAt: count,
  },
  ['runId', 'step', 'epoch', 'agentId', 'startedAt', 'exact', 'prompt', 'tools', 'parts', 'tokens', 'bytes', 'prefix'],
)
export const retried = having({ accepted: { const: true }, runId: text }, ['accepted', 'runId'])
export const explainedPrompt = having(
  { edit, parts: listOf(record), tokens: count, bytes: count, prefix: anything, fingerprints: listOf(anything) },
  ['parts', 'tokens', 'bytes', 'fingerprints'],
)

const authored = { by: text, why: text, createdAt: text }
const deleted = having({ by: text, why: text, at: count }, ['by', 'at'])
const versionFields = { agentId: text, version: count, base: count, overrides: record, deleted, ...authored }
const versionNames = ['agentId', 'version', 'base', 'overrides', 'by', 'createdAt']
export const agentVersion = having(versionFields, versionNames)
export const savedVersion = having({ ...versionFields, created: flag, stripped: listOf(text) }, [...versionNames, 'created', 'stripped'])
export const versionPage = having({ versions: listOf(agentVersion), next: count }, ['versions'])
export const release = having(
  { agentId: text, release: count, version: count, rules: listOf(record), restores: count, ...authored },
  ['agentId', 'release', 'version', 'by', 'createdAt'],
)
export const releasePage = having({ releases: listOf(release), next: count }, ['releases'])
export const editDifferences = having(
  { differences: listOf(having({ field: text, from: anything, to: anything }, ['field', 'from', 'to'])) }, ['differences'],
)
export const editableAgent = having(
  {
    id: text, name: text, editable: having({ instructions: flag, tools: anything }, ['instructions', 'tools']),
    code: having({ instructions: listOf(text), tools: listOf(having({ name: text, description: text }, ['name', 'description'])) }),
    latest: { anyOf: [agentVersion, { type: 'null' }] }, isDraft: flag, release: { anyOf: [release, { type: 'null' }] },
  },
  ['id', 'name', 'editable', 'code', 'latest', 'isDraft', 'release'],
)

const orNull = (schema: JSONSchema) => ({ anyOf: [schema, { type: 'null' }] })
export const editedAgents = having({
  agents: listOf(having(
    {
      id: text, name: text, editable: having({ instructions: flag, tools: anything }, ['instructions', 'tools']), latest: count,
      isDraft: flag, release: orNull(release),
    },
    ['id', 'name', 'editable', 'latest', 'isDraft', 'release'],
  )),
}, ['agents'])
export const previewedInstructions = having(
  {
    text, isCode: flag, unset: listOf(text),
    blocks: listOf(having({ type: text, id: text, version: count, text: orNull(text) }, ['type', 'text'])),
  },
  ['text', 'isCode', 'blocks', 'unset'],
)
const pageAbout = { total: count, page: count, perPage: count, hasMore: flag }
const pageNames = ['total', 'page', 'perPage', 'hasMore']
export const storedAgent = having(
  {
    id: text, name: text, instructions: anything, tools: record, status: text, activeVersionId: text, resolvedVersionId: text,
    updatedAt: text, stripped: listOf(text),
  },
  ['id', 'name', 'instructions', 'tools', 'status', 'updatedAt'],
)
export const storedAgentPage = having({ agents: listOf(storedAgent), ...pageAbout }, ['agents', ...pageNames])
export const storedVersion = having(
  {
    id: text, agentId: text, versionNumber: count, name: text, base: count, by: text, instructions: anything, tools: record,
    changeMessage: text, createdAt: text,
  },
  ['id', 'agentId', 'versionNumber', 'name', 'createdAt'],
)
export const storedVersionPage = having({ versions: listOf(storedVersion), ...pageAbout }, ['versions', ...pageNames])
export const storedDifferences = having(
  {
    diffs: listOf(having({ field: text, previousValue: anything, currentValue: anything }, ['field', 'previousValue', 'currentValue'])),
    fromVersion: { anyOf: [storedVersion, { type: 'null' }] }, toVersion: { anyOf: [storedVersion, { type: 'null' }] },
  },
  ['diffs', 'fromVersion', 'toVersion'],
)
export const editDone = having({ success: flag, message: text, activeVersionId: text }, ['success', 'message'])
export const deletedVersions = having({ deleted: listOf(count) }, ['deleted'])
const blockFields = {
  blockId: text, version: count, base: count, deleted, ...authored,
  block: having({ content: text, rules: record, description: text }),
}
const blockNames = ['blockId', 'version', 'base', 'block', 'by', 'createdAt']
export const promptBlockVersion = having(blockFields, blockNames)
export const savedPromptBlock = having({ ...blockFields, created: flag }, [...blockNames, 'created'])
export const promptBlockVersions = having({ versions: listOf(promptBlockVersion), next: count }, ['versions'])
export const promptBlockRelease = having(
  { blockId: text, release: count, version: count, restores: count, ...authored }, ['blockId', 'release', 'version', 'by', 'createdAt'],
)
export const promptBlockReleases = having({ releases: listOf(promptBlockRelease), next: count }, ['releases'])
export const promptBlock = having(
  { id: text, latest: promptBlockVersion, isDraft: flag, release: orNull(promptBlockRelease), agents: listOf(text) },
  ['id', 'latest', 'isDraft', 'release', 'agents'],
)
export const promptBlocks = having({ blocks: listOf(promptBlock), next: text }, ['blocks'])

const laneMode = { enum: ['snapshot', 'delta'] }
const laneFields = { threadId: text, id: text, version: count, cacheKey: text, mode: laneMode, lastSignalId: text, lastSnapshotId: text }
export const lanes = having({ lanes: listOf(having(laneFields, ['id', 'version', 'cacheKey', 'mode'])) }, ['lanes'])
export const lane = having(
  { ...laneFields, value: anything, snapshot: record, deltas: listOf(record) }, ['id', 'version', 'cacheKey', 'mode', 'deltas'],
)
export const laneHistory = having({ signals: listOf(record), more: flag }, ['signals', 'more'])

export const notification = having(
  {
    id: text, threadId: text, resourceId: text, agentId: text, source: text, kind: text, status: text, summary: text,
    priority: { enum: ['low', 'medium', 'high', 'urgent'] }, payload: anything, dedupeKey: text, coalesceKey: text, coalescedCount: count,
    attributes: record, metadata: record, createdAt: text, updatedAt: text, deliverAt: text, summaryAt: text, deliveryAction: text,
    deliveryReason: text, deliveryRule: text,
    deliveryAttempts: count, lastDeliveryAttemptAt: text, lastDeliveryError: text, deliveredSignalId: text,
    summarySignalId: text, deliveredAt: text, seenAt: text, dismissedAt: text, archivedAt: text, discardedAt: text,
  },
  [
    'id', 'threadId', 'resourceId', 'agentId', 'source', 'kind', 'priority', 'status', 'summary', 'coalescedCount', 'createdAt',
    'updatedAt',
  ],
)
const sentFields = { accepted: { const: true }, record: notification, decision: record, runId: text, signal: record, duplicate: flag }
const sentNotification = having(sentFields, ['accepted', 'record', 'decision'])
/** Of one notification: its result. Of a list: `results`. */
export const sentNotifications = having({ ...sentFields, results: listOf(sentNotification) }, ['accepted'])
const countsByStatus: JSONSchema = { type: 'object', additionalProperties: count }
export const notificationPage = having(
  { notifications: listOf(notification), more: flag, counts: countsByStatus }, ['notifications', 'more', 'counts'],
)
export const inboxPage = having({ notifications: listOf(notification), more: flag, next: text }, ['notifications', 'more'])
export const markedNotifications = having({ notifications: listOf(notification) }, ['notifications'])
export const retriedNotifications = having({ retried: { anyOf: [count, listOf(text)] } }, ['retried'])

const scheduleFields = {
  id: text, agentId: text, threadId: text, resourceId: text, timing: record, overlap: { enum: ['allow', 'skip', 'replace'] },
  missed: { enum: ['once', 'skip', 'all'] }, signal: record, status: { enum: ['active', 'paused', 'done'] }, nextAt: text, lastAt: text,
  lastSignalId: text, lastError: text, createdAt: text, updatedAt: text, duplicate: flag,
}
export const schedule = having(
  scheduleFields,
  ['id', 'agentId', 'threadId', 'resourceId', 'timing', 'overlap', 'missed', 'signal', 'status', 'createdAt', 'updatedAt'],
)
export const schedulePage = having({ schedules: listOf(schedule), more: flag }, ['schedules', 'more'])
export const removedSchedule = having({ removed: flag }, ['removed'])

const watchFields = {
  id: text, resourceId: text, threadId: text, agentId: text, description: text, criteria: record, mode: { enum: ['once', 'continuous'] },
  exclusive: flag, mayEnd: flag, resultSchema: anything, state: { enum: ['open', 'ended'] }, reason: text, expiresAt: text,
  maxEvaluations: count, evaluations: count, hits: count, skipped: count, createdAt: text, since: text, endedAt: text,
}
const requiredOfWatch = [
  'id', 'resourceId', 'threadId', 'agentId', 'description', 'criteria', 'mode', 'state', 'expiresAt', 'maxEvaluations', 'evaluations',
  'hits',
]
export const watch = having(watchFields, requiredOfWatch)
export const watchPage = having({ watches: listOf(watch), more: flag }, ['watches', 'more'])
export const watchDetails = having(
  {
    ...watchFields, remainingEvaluations: count, remainingMs: count, candidates: listOf(record), moreCandidates: flag,
    undelivered: listOf(record),
  },
  [...requiredOfWatch, 'remainingEvaluations', 'remainingMs', 'candidates', 'moreCandidates', 'undelivered'],
)
export const explainedWatch = having({ ...watchFields, messages: listOf(record), more: flag }, [...requiredOfWatch, 'messages', 'more'])

export const reply = having(
  {
    id: text, inboundId: text, signalId: text, seq: count, resourceId: text, channelId: text, agentId: text, threadId: text, state: text,
    reason: text, policies: text,
    text, truncated: flag, providerId: text, attempts: count, error: record, createdAt: text, dueAt: text, settledAt: text,
  },
  ['id', 'inboundId', 'signalId', 'seq', 'resourceId', 'channelId', 'agentId', 'threadId', 'state', 'attempts', 'createdAt'],
)
export const replyPage = having({ replies: listOf(reply), more: flag }, ['replies', 'more'])

export const threadList = having({ threads: listOf(thread) }, ['threads'])
const workingMemoryVersion = having(
  { version: count, workingMemory: { anyOf: [text, record] }, updatedAt: text }, ['version', 'workingMemory', 'updatedAt'],
)
export const workingMemoryVersions = having({ versions: listOf(workingMemoryVersion) }, ['versions'])
export const undoneWorkingMemory = having({ version: count }, ['version'])

const workflowStepInfo = having(
  {
    id: text, description: text, metadata: record, isWorkflow: flag, inputSchema: text, outputSchema: text, resumeSchema: text,
    suspendSchema: text, stateSchema: text,
  },
  ['id'],
)
const stepInfos = { type: 'object', additionalProperties: workflowStepInfo }
export const workflow = having(
  {
    id: text, name: text, description: text, metadata: record, inputSchema: text, outputSchema: text, stateSchema: text, stepCount: count,
    stepGraph: listOf(having({ type: text, id: text, description: text, metadata: record, steps: listOf(record) }, ['type', 'id'])),
    steps: stepInfos, allSteps: stepInfos,
    schedules: listOf(having({ id: text, cron: text, timezone: text }, ['id', 'cron'])),
  },
  ['id', 'name'],
)
export const workflowsById: JSONSchema = { type: 'object', additionalProperties: workflow }
export const startedRun = having({ runId: text, message: text }, ['runId'])
export const deletedRun = having({ deleted: flag, message: text }, ['deleted', 'message'])
const workflowStep = having({ path: text, stepId: text, status: text, attempts: count, startedAt: count }, ['path', 'stepId', 'status'])
const settledRun = {
  runId: text, status: text, input: anything, result: anything, error: record, state: record, steps: record, tripwire: record,
  stepExecutionPath: listOf(text), usage: record,
}
export const workflowRun = having(
  {
    ...settledRun, path: listOf(workflowStep), suspended: listOf(text), suspendPayload: record, resumeLabels: record,
    workflowName: text, resourceId: text, createdAt: text, updatedAt: text, payload: anything, activeStepsPath: record,
    serializedStepGraph: listOf(record),
  },
  ['runId', 'status', 'workflowName', 'createdAt', 'updatedAt'],
)
/** Of a call that has waited for the run. */
export const workflowResult = having(
  { ...settledRun, suspended: listOf(listOf(text)), suspendPayload: record, resumeLabels: record }, ['runId', 'status', 'state', 'steps'],
)
export const workflowRunCounts: JSONSchema = {
  type: 'object', additionalProperties: having({ running: count, suspended: count }, ['running', 'suspended']),
}
const workflowRunInfo = having(
  {
    runId: text, workflowId: text, workflowName: text, status: text, resourceId: text, createdAt: text, updatedAt: text,
    snapshot: having({ runId: text, status: text, timestamp: count }, ['runId', 'status', 'timestamp']),
  },
  ['runId', 'workflowId', 'workflowName', 'status', 'createdAt', 'updatedAt', 'snapshot'],
)
export const workflowRunPage = having({ runs: listOf(workflowRunInfo), total: count }, ['runs', 'total'])

/** Of a route that rejects every request. */
export const neverAnswered: JSONSchema = { not: {} }

/** Of a webhook: what its source answers. */
export const webhookAnswer = record
export const alive = having({ status: { const: 'ok' } }, ['status'])
export const me = having(
  { id: text, resources: { anyOf: [{ const: '*' }, listOf(text)] }, operator: flag, scopes: listOf(text), version: text },
  ['id', 'resources', 'operator', 'scopes', 'version'],
)
const processFields = having(
  {
    owner: text, pid: count, host: text, version: text, startedAt: text, seenAt: text, expiresAt: text,
    end: { enum: ['closed', 'expired'] }, endedAt: text, threads: count,
  },
  ['owner', 'seenAt', 'expiresAt', 'threads'],
)
export const processes = having({ processes: listOf(processFields) }, ['processes'])
export const ready = having({ status: { const: 'ready' } }, ['status'])
export const ticked = having(
  { threads: count, notifications: count, schedules: count, watches: count, pruned: count },
  ['threads', 'notifications', 'schedules', 'watches', 'pruned'],
)
export const openApiDocument = having(
  { openapi: text, info: record, servers: listOf(record), paths: record, components: record }, ['openapi', 'info', 'paths'],
)
