import type { UserPrincipal } from '../../policy/request.ts'
import { isPlainObject } from '../../base/json.ts'
import { workflowThreadId } from '../../store/contract/thread-row.ts'
import type { Route } from '../route.ts'
import { isOperator, type Principal } from './principal.ts'

type Action = 'read_thread' | 'send_signal' | 'approve_tool'

/**
 * What policies are asked about a request, as far as the request itself says. Without `resourceId`, the owner has to be looked up: the
 * thread may be of any resource, as the principal may access all. Without a thread, a run and messages, the request is about all threads of
 * the resource. `toolCallId` and `approvalId` name the call that `approve_tool` is about; without them, any call of the run or thread is.
 */
export interface PolicyQuestion {
  principal: UserPrincipal
  action: Action
  agentId?: string
  threadId?: string
  /** Further threads. Their owner is `resourceId` of the question unless they have one. */
  threads?: Array<{ threadId: string; resourceId?: string }>
  /** Messages whose threads the request does not name. */
  messageIds?: string[]
  runId?: string
  toolCallId?: string
  approvalId?: string
  resourceId?: string
  /** The request reads other threads of the resource too. */
  allThreads?: true
  /** Another resource that gets the thread. */
  givenTo?: string
}

export interface PolicyCall {
  principal: Principal
  params: Readonly<Record<string, string>>
  query: Readonly<Record<string, unknown>>
  body: Readonly<Record<string, unknown>>
}

/** Routes that concern no thread. They are open to every principal, or to operators. */
const withoutThread = new Set([
  '/agents', '/agents/:agentId', '/agents/:agentId/tools/:toolId', '/memory/status', '/memory/config', '/memory/observational-memory',
  '/tick', '/metrics', '/processes', '/me', '/workflows', '/workflows/:workflowId', '/scores/scorers', '/scores/scorers/:scorerId',
  '/agents/:agentId/editor', '/agents/:agentId/versions', '/agents/:agentId/versions/compare', '/agents/:agentId/versions/:version',
  '/agents/:agentId/versions/preview', '/agents/:agentId/releases', '/agents/:agentId/releases/rollback', '/editor/agents',
  '/prompt-blocks', '/prompt-blocks/:blockId',
  ...['clone', 'versions', 'versions/compare', 'versions/:version', 'releases', 'releases/rollback']
    .map((path) => `/prompt-blocks/:blockId/${path}`),
  ...['', '/:agentId', '/:agentId/versions', '/:agentId/versions/compare', '/:agentId/versions/:version',
    '/:agentId/versions/:version/activate', '/:agentId/versions/:version/restore'].map((path) => `/stored/agents${path}`),
  '/agents/:agentId/voice/speakers', '/agents/:agentId/voice/listener', '/agents/:agentId/speakers',
])

export function isWithoutThread(path: string): boolean {
  return withoutThread.has(path)
}

const approvals = /^\/agents\/:agentId\/(send-stream-resume|approve-tool-call|resume-stream)/

/** What reads all threads of a resource, also where it begins at one. */
const searches = new Set(['/memory/search', '/memory/search/explanation'])
/** Routes that only read, by a request with a body. */
const readsByPost = new Set(['/agents/:agentId/threads/subscribe'])

/** Routes that write, and answer with what was stored before. */
const alsoReads = new Set([
  '/memory/threads/:threadId/clone', '/agents/:agentId/recover', '/agents/:agentId/threads/:threadId/voice',
  '/agents/:agentId/threads/:threadId/voice/ticket',
  ...['start-async', 'resume-async', 'resume-stream', 'restart-async', 'time-travel-async', 'time-travel-stream'].map(
    (name) => `/workflows/:workflowId/${name}`,
  ),
])

/** What a request asks of the policies: pure. Undefined where they have nothing to decide. */
export function policyQuestion(
  { path, read, anonymous }: Pick<Route, 'path' | 'read' | 'anonymous'>, { principal, params, query, body }: PolicyCall,
): PolicyQuestion | undefined {
  if (anonymous || isWithoutThread(path)) return undefined
  const memory = isPlainObject(body.memory) ? body.memory : {}
  const thread = isPlainObject(memory.thread) ? memory.thread.id : memory.thread
  // The chat protocol of the AI SDK names the thread `id`.
  const chatId = path === '/agents/:agentId/chat' ? body.id : undefined
  const { resources } = principal
  const onlyResource = resources !== '*' && resources.length === 1 ? resources[0] : undefined
  const isTransfer = path === '/memory/threads/:threadId/transfer'
  const messages = path.startsWith('/memory/') ? objectsIn(body.messages) : []
  // A score has what it is about within. A request about scores that names no thread is about all threads.
  const isOfScores = path.startsWith('/scores')
  const scored = isOfScores && isPlainObject(body.score) ? body.score : body
  const owner = isTransfer ? undefined : scored.resourceId ?? memory.resource ?? messages[0]?.resourceId
  return {
    principal: userPrincipal(principal),
    action: actionOf(path, read, body),
    ...texts({
      agentId: params.agentId ?? query.agentId,
      threadId: params.threadId ?? workflowThread(params, query) ?? query.threadId ?? scored.threadId ?? thread ?? chatId,
      runId: isOfScores ? undefined : body.runId,
      toolCallId: body.toolCallId,
      approvalId: body.approvalId,
      resourceId: query.resourceId ?? owner ?? onlyResource,
      givenTo: isTransfer ? body.resourceId : undefined,
    }),
    ...(searches.has(path) && query.threadId !== undefined && !isOfThread(query) ? { allThreads: true } : {}),
    ...lists({
      threads: [...messages, ...objectsIn(query.include)].flatMap(({ threadId, resourceId }) =>
        typeof threadId === 'string' ? { threadId, ...texts({ resourceId }) } : []),
      messageIds: messageIdsOf(path, body, messages),
    }),
  }
}

/** The thread that is the run of a workflow which the request names. */
function workflowThread({ workflowId, runId }: PolicyCall['params'], query: PolicyCall['query']): string | undefined {
  const named = runId ?? query.runId
  return workflowId === undefined || typeof named !== 'string' ? undefined : workflowThreadId(workflowId, named)
}

/** The actions that a question is about: that of its route, and reading where the response shows what was stored before. */
export function actionsOf({ path }: Pick<Route, 'path'>, { action }: PolicyQuestion): readonly Action[] {
  return alsoReads.has(path) ? ['read_thread', action] : [action]
}

/** A principal of the server as policies see it. */
export function userPrincipal(principal: Principal): UserPrincipal {
  const { id, resources, scopes = [] } = principal
  return { type: 'user', id, resources, operator: isOperator(principal), scopes }
}

/** To decline is to send: no tool runs by it. */
export function actionOf(path: string, read: boolean | undefined, body: PolicyCall['body']): Action {
  if (approvals.test(path)) return 'approve_tool'
  if (path === '/agents/:agentId/send-tool-approval') {
    return body.messages === undefined && body.approved !== false ? 'approve_tool' : 'send_signal'
  }
  return read || readsByPost.has(path) ? 'read_thread' : 'send_signal'
}

/** Whether a search asks for the messages of its thread alone. By default it reads all threads of the resource. */
function isOfThread({ memoryConfig, threadId, messageThreadId = threadId }: PolicyCall['query']): boolean {
  const { semanticRecall } = isPlainObject(memoryConfig) ? memoryConfig : {}
  return isPlainObject(semanticRecall) && semanticRecall.scope === 'thread' && messageThreadId === threadId
}

function messageIdsOf(
  path: string, { messageIds, threadId }: PolicyCall['body'], messages: ReadonlyArray<Record<string, unknown>>,
): string[] {
  if (path === '/memory/messages/delete' && threadId === undefined) {
    return [messageIds].flat().map((item) => (isPlainObject(item) ? item.id : item)).filter(isText)
  }
  if (path !== '/memory/messages/update') return []
  return messages.filter((message) => message.threadId === undefined).map((message) => message.id).filter(isText)
}

function objectsIn(value: unknown): Array<Record<string, unknown>> {
  return Array.isArray(value) ? value.filter(isPlainObject) : []
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function texts<Name extends string>(fields: Record<Name, unknown>): Partial<Record<Name, string>> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => isText(value))) as Partial<Record<Name, string>>
}

function lists<Lists extends Record<string, readonly unknown[]>>(fields: Lists): Partial<Lists> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value.length > 0)) as Partial<Lists>
}
