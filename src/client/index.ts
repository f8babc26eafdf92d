import { checkNames, refused } from '../base/arguments.ts'
import type { NotificationRecord, RequestedNotifications } from '../store/contract/notifications.ts'
import type { ReplyQuery, ReplyRecord, ReplyScope } from '../store/contract/replies.ts'
import { AgentClient, type AgentDetails } from './agent.ts'
import { Connection, type ClientOptions, type OverWire } from './connection.ts'
import type { RemoteEditedAgent } from './editor.ts'
import { listed } from './fields.ts'
import { MemoryClient, type MemoryScope } from './memory.ts'
import { PromptBlocksClient } from './prompt-blocks.ts'
import { ThreadListSubscription } from './thread-list.ts'
import type { GivenScore, ScoreQuery, ScoreRow } from '../store/contract/scores.ts'
import { WorkflowClient, type AnyWorkflow, type WorkflowDetails, type WorkflowTypes } from './workflows.ts'

/** The principal of a client. */
export interface Me {
  id: string
  resources: string[] | '*'
  operator: boolean
  /** What it may do. */
  scopes: string[]
  version: string
}

/** A process on the storage of a server. */
export interface ServerProcess {
  owner: string
  pid?: number
  host?: string
  version?: string
  startedAt?: string
  /** The time of its last heartbeat, and when that expires. */
  seenAt: string
  expiresAt: string
  /** `closed`: it released its threads. `expired`: its heartbeats ended. */
  end?: 'closed' | 'expired'
  endedAt?: string
  /** The number of threads that it runs. */
  threads: number
}

/** A score of a run, or the work to make it. */
export type ListedScore = Omit<ScoreRow, 'createdAt' | 'settledAt'> & { createdAt: string; settledAt?: string }

/** What a client says about a run. Who says it is the principal of the client. */
export type RemoteScore = Omit<GivenScore, 'by' | 'version' | 'source'> & Partial<Pick<GivenScore, 'version' | 'source'>> & {
  /** The agent of the run, where its threads are in a storage of its own. */
  agentId?: string
}

/** Which failed scores are made again: those that meet all conditions. `workflowId`: of steps of this workflow. */
export type RemoteScoreRetry = Partial<Omit<ScoreQuery, 'state' | 'before' | 'offset'>> & { workflowId?: string }

/** A scorer of a server, with who uses it. */
export interface RemoteScorer {
  scorer: { config: Record<'id' | 'name' | 'description' | 'type' | 'version', string> & { better: 'higher' | 'lower' } }
  /** Of the first agent that has one. */
  sampling?: { type: 'ratio'; rate: number } | { type: 'none' }
  agentIds: string[]
  agentNames: string[]
  workflowIds: string[]
  /** Whether it is one of the Heed. */
  isRegistered: boolean
  source: 'code'
}

/** A client of a Heed server, for any platform with `fetch`: Node, browsers, workers. */
export class HeedClient {
  readonly #connection: Connection
  readonly #options: ClientOptions

  constructor(options: ClientOptions) {
    checkClientOptions(options)
    this.#options = options
    this.#connection = new Connection(options)
  }

  /** The same client, whose requests and streams end when the signal is aborted. */
  withSignal(signal: AbortSignal): HeedClient {
    const { signal: outer } = this.#options
    return new HeedClient({ ...this.#options, signal: outer ? AbortSignal.any([outer, signal]) : signal })
  }

  getAgent(id: string): AgentClient {
    return new AgentClient(this.#connection, id)
  }

  /** A workflow by its id or its key. `getWorkflow<typeof workflow>()` has its types. */
  getWorkflow<W extends WorkflowTypes = AnyWorkflow>(id: string): WorkflowClient<W> {
    return new WorkflowClient<W>(this.#connection, id)
  }

  listWorkflows(): Promise<Record<string, WorkflowDetails>> {
    return this.#connection.json('/workflows')
  }

  /** Scores of runs, newest first. `before`: the `next` of the page before. */
  async listScores(
    query: Partial<Omit<ScoreQuery, 'stepId' | 'source' | 'offset'>> = {},
  ): Promise<{ scores: ListedScore[]; next?: number }> {
    checkNames('listScores()', query, ['threadId', 'resourceId', 'runId', 'agentId', 'scorerId', 'state', 'before', 'limit'])
    return this.#connection.json('/scores', { query: { ...query } })
  }

  /** The scorers of the server, its agents and the steps of its workflows, by their ids. */
  listScorers(): Promise<Record<string, RemoteScorer>> {
    return this.#connection.json('/scores/scorers')
  }

  /** Stores what the principal thinks of a run, in place of what it thought before. */
  async saveScore(score: RemoteScore): Promise<ListedScore> {
    const names = ['agentId', 'threadId', 'resourceId', 'runId', 'scorerId', 'version', 'score', 'reason', 'metadata', 'source']
    checkNames('saveScore()', score, names)
    const { agentId: entityId, source = 'live', ...given } = score
    const body = { score: { ...given, source, ...(entityId === undefined ? {} : { entityId }) } }
    return (await this.#connection.json<{ score: ListedScore }>('/scores', { method: 'POST', body, repeatable: true })).score
  }

  /** Has failed scores made again, and returns how many. For operators. */
  async retryScores(query: RemoteScoreRetry = {}): Promise<number> {
    const names = ['threadId', 'resourceId', 'runId', 'agentId', 'workflowId', 'scorerId', 'stepId', 'source', 'limit']
    checkNames('retryScores()', query, names)
    return (await this.#connection.json<{ retried: number }>('/scores/retry', { method: 'POST', body: { ...query } })).retried
  }

  /** The memory of an agent: threads, messages, working memory. */
  memory(scope: MemoryScope = {}): MemoryClient {
    checkNames('memory()', scope, ['agentId', 'resourceId'])
    return new MemoryClient(this.#connection, scope)
  }

  /** The agents that may be edited, and what their runs get. Needs the scope `edit`. */
  async listEditedAgents(): Promise<RemoteEditedAgent[]> {
    return (await this.#connection.json<{ agents: RemoteEditedAgent[] }>('/editor/agents')).agents
  }

  /** The prompt blocks of the server; with `agentId`, of an agent with a storage of its own. */
  prompts(scope: { agentId?: string } = {}): PromptBlocksClient {
    checkNames('prompts()', scope, ['agentId'])
    return new PromptBlocksClient(this.#connection, scope)
  }

  listAgents(): Promise<Record<string, AgentDetails>> {
    return this.#connection.json('/agents')
  }

  /** The replies of channels in mode `message`, in the order of their messages. */
  async listReplies(query: Partial<ReplyQuery> = {}): Promise<{ replies: Array<OverWire<ReplyRecord>>; more: boolean }> {
    checkNames('listReplies()', query, ['resourceId', 'channelId', 'threadId', 'state', 'limit', 'after'])
    return this.#connection.json('/replies', { query: { ...query } })
  }

  /** Sends a dead reply again. Another is returned as it is. */
  async retryReply(reply: ReplyScope): Promise<OverWire<ReplyRecord>> {
    checkNames('retryReply()', reply, ['id', 'resourceId'])
    const query = { resourceId: reply.resourceId }
    return this.#connection.json(`/replies/${encodeURIComponent(reply.id)}/retry`, { method: 'POST', query, repeatable: true })
  }

  /** The principal of this client, what it may do, and the version of the server. */
  me(): Promise<Me> {
    return this.#connection.json('/me')
  }

  /** The processes on the storage of an agent, by default of the first, and those that ended within a week. For operators. */
  async listProcesses(query: { agentId?: string } = {}): Promise<{ processes: ServerProcess[] }> {
    checkNames('listProcesses()', query, ['agentId'])
    return this.#connection.json('/processes', { query: { ...query } })
  }

  /** Subscribes to the list of threads of a resource: to its changes, of all processes. */
  async subscribeToThreads(query: MemoryScope = {}): Promise<ThreadListSubscription> {
    checkNames('subscribeToThreads()', query, ['agentId', 'resourceId'])
    return ThreadListSubscription.open(this.#connection, query)
  }

  /** The notifications of all threads of a resource, newest first. `after`: the `next` of the page before. */
  async listNotifications(
    query: RequestedNotifications & MemoryScope & { threadId?: string } = {},
  ): Promise<{ notifications: Array<OverWire<NotificationRecord>>; more: boolean; next?: string }> {
    const filters = ['status', 'priority', 'source', 'kind', 'search', 'limit', 'after']
    checkNames('listNotifications()', query, ['agentId', 'resourceId', 'threadId', ...filters])
    const lists = { status: listed('status', query.status), priority: listed('priority', query.priority) }
    return this.#connection.json('/notifications', { query: { ...query, ...lists } })
  }

  /** Resolves if the server is alive. */
  health(): Promise<{ status: 'ok' }> {
    return this.#connection.json('/health')
  }

  /** Resolves if the server's storage responds, and rejects otherwise. */
  ready(): Promise<{ status: 'ready' }> {
    return this.#connection.json('/ready')
  }

  /** Counters, in the text format of Prometheus. For operators. */
  metrics(): Promise<string> {
    return this.#connection.text('/metrics')
  }

  /** Does the work that is due. For operators of servers that do not keep running. Older servers count no `watches`. */
  async tick(
    options: { limit?: number; timeoutMs?: number } = {},
  ): Promise<{ threads: number; notifications: number; schedules: number; watches?: number; pruned: number }> {
    checkNames('tick()', options, ['limit', 'timeoutMs'])
    return this.#connection.json('/tick', { body: options })
  }
}

function checkClientOptions(options: ClientOptions): void {
  checkNames('HeedClient', options, ['baseUrl', 'headers', 'apiPrefix', 'retries', 'timeoutMs', 'silenceMs', 'fetch', 'signal'])
  const { baseUrl, headers, apiPrefix, retries, timeoutMs, silenceMs, signal } = options as { [Name in keyof ClientOptions]: unknown }
  if (typeof baseUrl !== 'string') throw refused('baseUrl', "the URL of the server, such as 'http://localhost:4111'")
  if (headers !== undefined && typeof headers !== 'function' && (typeof headers !== 'object' || headers === null)) {
    throw refused('headers', 'an object, or a function that returns one')
  }
  if (apiPrefix !== undefined && apiPrefix !== '' && !(typeof apiPrefix === 'string' && /^\/.*[^/]$/.test(apiPrefix)))
    throw refused('apiPrefix', "a path that begins with '/' and does not end with it")
  if (retries !== undefined && !(typeof retries === 'number' && retries >= 0)) throw refused('retries', 'a number of at least 0')
  for (const [name, value] of Object.entries({ timeoutMs, silenceMs })) {
    if (value !== undefined && !(typeof value === 'number' && value > 0)) throw refused(name, 'a number above 0')
  }
  if (options.fetch !== undefined && typeof options.fetch !== 'function') throw refused('fetch', 'a function')
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw refused('signal', 'an AbortSignal')
}

export type { AgentClient, AgentDetails, ParkedRun, SendAnswer, SendTarget, ThreadRun, ToolDetails, WatchName } from './agent.ts'
export type { ClientOptions } from './connection.ts'
export type { FoundMessage, MemoryClient, MemoryScope } from './memory.ts'
export type { ExplainedRecall, RecallExplanation } from '../memory/semantic/explain.ts'
export type { NotificationAnswer, NotificationFilter, NotificationsClient } from './notifications.ts'
export type { EditorClient, EditPage, RemoteEditableAgent, RemoteEditedAgent, Sent } from './editor.ts'
export type { PromptBlocksClient, RemotePromptBlock } from './prompt-blocks.ts'
export type { ContextRules, InstructionBlock, ToolVariant } from '../editor/contract.ts'
export type { RemoteVoiceEvent, VoiceConnectionEvent } from './voice/received-events.ts'
export type { RemoteSessionOptions, RemoteVoiceSession } from './voice/remote-session.ts'
export type { RemoteAudio, RemoteListenOptions, RemoteSpeakOptions, VoiceClient } from './voice/voice-client.ts'
export type { NewSchedule, SchedulesClient } from './schedules.ts'
export type { Reconnect } from './reconnecting.ts'
export type { ProcessOptions, SubscribeParams, ThreadSubscription } from './thread-subscription.ts'
export type { ThreadListSubscription } from './thread-list.ts'
export type { ThreadChange } from '../thread/stream/thread-changes.ts'
export type { OverWire, ThreadScope } from './connection.ts'
export type { WatchEvent } from '../message/chunk.ts'
export type { AnyWorkflow, RemoteStart, WorkflowClient, WorkflowDetails, WorkflowRunClient, WorkflowTypes } from './workflows.ts'
export { HeedError, isHeedError } from '../base/errors.ts'
