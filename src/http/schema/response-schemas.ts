import type { JSONSchema } from '../route.ts'
import { anything, flag, object, record, text } from './schemas.ts'

/** The fields of responses that existing clients read. A response may have more. */

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
    incomplete: { const: true },
  },
  ['results', 'count', 'query', 'searchScope', 'searchType'],
)

export const memoryStatus = object({ result: flag }, ['result'])
export const memoryConfig = object({ config: record }, ['config'])
