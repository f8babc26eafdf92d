import type { CallDecided, SuspendedRun } from '../agent/approvals.ts'
import type { ScheduleInput, ScheduleRecord } from '../agent/schedules.ts'
import { HeedError, isHeedError } from '../base/errors.ts'
import type { JSONValue } from '../base/json.ts'
import type { NotificationInput } from '../inbox/input.ts'
import type { NotificationDeliveryDecision } from '../inbox/policy.ts'
import type { Chunk } from '../message/chunk.ts'
import type { AgentInput } from '../message/read/input.ts'
import type { ExplainedPrompt } from '../prompt/explain.ts'
import type { MessageInput, Signal, SignalInput } from '../signals/signal.ts'
import type { StateInput } from '../signals/state.ts'
import type { MarkedStatus, NotificationPriority, NotificationRecord, NotificationStatus } from '../store/contract/notifications.ts'
import type { ScheduleStatus } from '../store/contract/schedules.ts'
import type { LaneRow, ThreadRow } from '../store/contract/threads.ts'
import type { ExplainedSignal } from '../thread/control/inspect.ts'
import type { Lane, LaneHistory } from '../thread/control/lanes.ts'
import type { QueuedSignal } from '../thread/send/queue.ts'
import type { SignalOutcome } from '../thread/send/receipt.ts'
import type { SendOptions } from '../thread/send/options.ts'
import { randomKey, readEvents, retryPolicy, type Connection, type OverWire, type ThreadScope } from './connection.ts'
import { MemoryClient } from './memory.ts'
import { ThreadSubscription, type SubscribeParams } from './thread-subscription.ts'

/** The target of a send. */
export type SendTarget = Pick<SendOptions, 'runId' | 'resourceId' | 'threadId' | 'ifActive'> & {
  ifIdle?: { behavior?: 'wake' | 'persist' | 'discard'; attributes?: Record<string, JSONValue>; streamOptions?: Record<string, unknown> }
  /** Resolve when the outcome is known. Otherwise: when the signal is stored. */
  wait?: 'outcome'
}

export interface SendAnswer {
  accepted: true
  runId: string
  signal: OverWire<Signal>
  /** The thread already had a signal with this id, which this describes. */
  duplicate?: true
  outcome?: SignalOutcome
}

export type QueuedOverWire = OverWire<QueuedSignal>

/** The call that a decision is about: its request, with the digest of that, or the call itself if it has asked once only. */
export interface DecidedCall {
  toolCallId?: string
  approvalId?: string
  digest?: string
}

/** The result of a decision. */
export interface DecisionAnswer {
  accepted: true
  runId: string
  toolCallId: string
  /** What was decided, by which principal, and when. Older servers don't send it. */
  decided?: OverWire<CallDecided['decided']>
}

/** The description of an agent by its server. */
export interface AgentDetails {
  id: string
  name: string
  description: string
  /** As the agent is configured. Older servers don't send it. */
  metadata?: Record<string, unknown>
  /** By name. */
  tools: Record<string, ToolDetails>
  provider: string
  modelId: string
}

/** The description of a tool. `inputSchema` is JSON. */
export interface ToolDetails {
  id: string
  description?: string
  inputSchema?: string
  /** Always, or for some inputs. Older servers don't send it. */
  requireApproval?: boolean
}

/** A run whose attempts ended after repeated failures. */
export interface ParkedRun extends Required<ThreadScope> {
  runId: string
  agentId: string
  status: 'parked'
  step: number
  attempts: number
  startedAt: string
  endedAt?: string
  error?: Record<string, unknown>
}

/** An agent of the server. Each send has an idempotency key, so that a send whose response was lost is repeated as the same signal. */
export class AgentClient {
  readonly id: string
  readonly notifications: NotificationsClient
  readonly schedules: SchedulesClient
  readonly #connection: Connection
  readonly #path: string

  /** @internal */
  constructor(connection: Connection, id: string) {
    this.id = id
    this.#connection = connection
    this.#path = `/agents/${encodeURIComponent(id)}`
    this.notifications = new NotificationsClient(connection, this.#path)
    this.schedules = new SchedulesClient(connection, this.#path)
  }

  details(): Promise<AgentDetails> {
    return this.#connection.json(this.#path)
  }

  getTool(toolId: string): Promise<ToolDetails> {
    return this.#connection.json(`${this.#path}/tools/${encodeURIComponent(toolId)}`)
  }

  /** Its memory: threads, messages, working memory. */
  memory(scope: { resourceId?: string } = {}): MemoryClient {
    return new MemoryClient(this.#connection, { agentId: this.id, ...scope })
  }

  /** @internal The server and the headers of this client. */
  get identity(): string {
    return this.#connection.identity
  }

  // Sending

  /** Older servers have no route for messages and accept them as signals. */
  async sendMessage({ message, ...target }: { message: MessageInput } & SendTarget): Promise<SendAnswer> {
    try {
      return await this.#send('send-message', { message }, target, idOf(message))
    } catch (error) {
      if (!isMissingRoute(error)) throw error
      const input = isMessageObject(message) ? message : { contents: message }
      return this.#send('signals', { signal: { type: 'user-message', ...input } }, target, idOf(message))
    }
  }

  /** Rejected by older servers, which have no queue: as a signal, the message would enter the active run. */
  async queueMessage({ message, ...target }: { message: MessageInput } & SendTarget): Promise<SendAnswer> {
    try {
      return await this.#send('queue-message', { message }, target, idOf(message))
    } catch (error) {
      if (!isMissingRoute(error)) throw error
      const why = 'This server has no queue for messages. Use sendMessage(), which enters the active run, or update the server.'
      throw new HeedError('unsupported_option', why, { cause: error, details: { route: 'queue-message' } })
    }
  }

  sendSignal({ signal, ...target }: { signal: SignalInput } & SendTarget): Promise<SendAnswer> {
    return this.#send('signals', { signal }, target, signal.id)
  }

  sendStateSignal(
    { state, ...target }: { state: StateInput } & Omit<SendTarget, 'wait'>,
  ): Promise<(SendAnswer & { skipped: false }) | { accepted: true; skipped: true; reason: 'unchanged' }> {
    return this.#connection.json(`${this.#path}/state-signals`, { body: { state, ...target }, ...retryPolicy(state.signalId) })
  }

  // Subscribing

  subscribeToThread(params: SubscribeParams): Promise<ThreadSubscription> {
    return ThreadSubscription.open(this.#connection, `${this.#path}/threads`, params)
  }

  /** The same without a request: it connects when its chunks are read, and reconnects when the connection is lost. */
  watchThread(params: SubscribeParams): ThreadSubscription {
    return new ThreadSubscription(this.#connection, `${this.#path}/threads`, params)
  }

  async abortThread(options: ThreadScope & { expectedRunId?: string; clearPendingSignals?: boolean }): Promise<boolean> {
    return (await this.#connection.json<{ aborted: boolean }>(`${this.#path}/threads/abort`, { body: options })).aborted
  }

  async activeRun(
    { threadId, resourceId }: ThreadScope,
  ): Promise<{ runId: string; agentId: string; status: 'running' | 'suspended' } | null> {
    const { run } = await this.#connection.json<{ run: { runId: string; agentId: string; status: 'running' | 'suspended' } | null }>(
      this.#threadPath(threadId, 'active-run'),
      { query: { resourceId } },
    )
    return run
  }

  /** Threads with an active or suspended run. */
  async listActiveThreads(query: { resourceId?: string; limit?: number } = {}): Promise<Array<OverWire<ThreadRow>>> {
    return (await this.#connection.json<{ threads: Array<OverWire<ThreadRow>> }>(`${this.#path}/active-threads`, { query })).threads
  }

  /** The chunks of one run from its start, or from an offset, until its end. */
  observe(run: { runId: string; offset?: number }): Promise<AsyncIterable<Chunk>> {
    return this.#streamChunks('observe', run)
  }

  /** Continues an abandoned or parked run; resolves with its chunks. */
  recover(run: { runId: string }): Promise<AsyncIterable<Chunk>> {
    return this.#streamChunks('recover', run)
  }

  listParkedRuns(query: Partial<ThreadScope> & { page?: number; perPage?: number } = {}): Promise<{ runs: ParkedRun[]; total: number }> {
    return this.#connection.json(`${this.#path}/parked-runs`, { query })
  }

  /** Continues a parked run, by default the newest one, from its last finished step. */
  retryParked({ threadId, ...body }: ThreadScope & { runId?: string }): Promise<{ accepted: true; runId: string }> {
    return this.#connection.json(this.#threadPath(threadId, 'retry'), { body })
  }

  // Reading lanes

  async listLanes({ threadId, ...query }: ThreadScope & { after?: string; limit?: number }): Promise<LaneRow[]> {
    return (await this.#connection.json<{ lanes: LaneRow[] }>(this.#threadPath(threadId, 'lanes'), { query })).lanes
  }

  getLane({ threadId, id, resourceId }: ThreadScope & { id: string }): Promise<OverWire<Lane>> {
    return this.#connection.json(this.#threadPath(threadId, `lanes/${encodeURIComponent(id)}`), { query: { resourceId } })
  }

  /** Newest first; `before` is the version below which the page begins. */
  listLaneHistory(
    { threadId, id, ...query }: ThreadScope & { id: string; before?: number; limit?: number },
  ): Promise<OverWire<LaneHistory>> {
    return this.#connection.json(this.#threadPath(threadId, `lanes/${encodeURIComponent(id)}/history`), { query })
  }

  // Running without a send

  generate(messages: AgentInput, options: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    return this.#connection.json(`${this.#path}/generate`, { body: { messages, ...options } })
  }

  /** Runs the agent; resolves with the chunks of the run. */
  async stream(messages: AgentInput, options: Record<string, unknown> = {}): Promise<AsyncIterable<Chunk>> {
    return this.#streamChunks('stream', { messages, ...options })
  }

  /** The prompt that the model would get, part by part. */
  explainPrompt(messages: AgentInput, options: Record<string, unknown> = {}): Promise<OverWire<ExplainedPrompt>> {
    return this.#connection.json(`${this.#path}/explain-prompt`, { body: { messages, ...options }, repeatable: true })
  }

  // Deciding about tool calls

  sendToolApproval(approval: {
    threadId: string
    resourceId?: string
    approved: boolean
    resumeData?: JSONValue
    declineContext?: { reason?: string; message?: string }
  } & DecidedCall): Promise<DecisionAnswer> {
    return this.#connection.json(`${this.#path}/send-tool-approval`, { body: approval, idempotent: true })
  }

  sendStreamResume(resume: {
    threadId: string
    resourceId?: string
    runId?: string
    resumeData: JSONValue
  } & DecidedCall): Promise<DecisionAnswer> {
    return this.#connection.json(`${this.#path}/send-stream-resume`, { body: resume, idempotent: true })
  }

  approveToolCall(decision: { runId: string } & DecidedCall): Promise<AsyncIterable<Chunk>> {
    return this.#streamChunks('approve-tool-call', decision)
  }

  resumeStream(resumeData: JSONValue, run: { runId: string } & DecidedCall): Promise<AsyncIterable<Chunk>> {
    return this.#streamChunks('resume-stream', { ...run, resumeData })
  }

  declineToolCall(decision: { runId: string; reason?: string } & DecidedCall): Promise<AsyncIterable<Chunk>> {
    return this.#streamChunks('decline-tool-call', decision)
  }

  /** The same; resolves when the run has ended. */
  approveToolCallGenerate(decision: { runId: string } & DecidedCall): Promise<Record<string, unknown>> {
    return this.#connection.json(`${this.#path}/approve-tool-call-generate`, { body: decision })
  }

  declineToolCallGenerate(decision: { runId: string; reason?: string } & DecidedCall): Promise<Record<string, unknown>> {
    return this.#connection.json(`${this.#path}/decline-tool-call-generate`, { body: decision })
  }

  listSuspendedRuns(
    filter: { threadId?: string; resourceId?: string; fromDate?: Date; toDate?: Date; page?: number; perPage?: number } = {},
  ): Promise<{ runs: Array<OverWire<SuspendedRun>>; total?: number }> {
    return this.#connection.json(`${this.#path}/suspended-runs`, { query: filter })
  }

  // Pending signals

  async listQueued({ threadId, resourceId }: ThreadScope): Promise<QueuedOverWire[]> {
    return (await this.#connection.json<{ queued: QueuedOverWire[] }>(this.#threadPath(threadId, 'queue'), { query: { resourceId } }))
      .queued
  }

  async cancelQueued({ threadId, ...body }: ThreadScope & { signalIds: string[] }): Promise<string[]> {
    return (await this.#connection.json<{ cancelledSignalIds: string[] }>(this.#threadPath(threadId, 'queue/cancel'), { body }))
      .cancelledSignalIds
  }

  async reorderQueued({ threadId, ...body }: ThreadScope & { signalIds: string[] }): Promise<string[]> {
    return (await this.#connection.json<{ signalIds: string[] }>(this.#threadPath(threadId, 'queue/reorder'), { body })).signalIds
  }

  explain({ threadId, resourceId, signalId }: ThreadScope & { signalId: string }): Promise<OverWire<ExplainedSignal>> {
    return this.#connection.json(this.#threadPath(threadId, `signals/${encodeURIComponent(signalId)}`), { query: { resourceId } })
  }

  #send(path: string, body: Record<string, unknown>, { wait, ...target }: SendTarget, id: string | undefined): Promise<SendAnswer> {
    return this.#connection.json(`${this.#path}/${path}`, { body: { ...body, ...target }, query: { wait }, ...retryPolicy(id) })
  }

  async #streamChunks(path: string, body: unknown): Promise<AsyncIterable<Chunk>> {
    const response = await this.#connection.events(`${this.#path}/${path}`, { body })
    return readEvents(response, this.#connection.maxSilenceMs(response)) as AsyncGenerator<Chunk>
  }

  #threadPath(threadId: string, rest: string): string {
    return `${this.#path}/threads/${encodeURIComponent(threadId)}/${rest}`
  }
}

function isMessageObject(message: MessageInput): message is Exclude<MessageInput, string | readonly unknown[]> {
  return typeof message === 'object' && !Array.isArray(message)
}

function idOf(message: MessageInput): string | undefined {
  return isMessageObject(message) ? message.id : undefined
}

/** Codes with which a server that has the route responds 404. */
const notFoundCodes: ReadonlySet<string> = new Set(['unknown_agent', 'thread_not_found', 'message_not_found'])

/** A server without the route responds with one of these statuses and any code; a server with the route names what is missing. */
function isMissingRoute(error: unknown): boolean {
  if (!isHeedError(error) || notFoundCodes.has(error.code)) return false
  const status = error.details?.status
  return status === 404 || status === 405 || status === 501
}

/** The result of sending a notification. */
export interface NotificationAnswer {
  accepted: true
  record: OverWire<NotificationRecord>
  decision: OverWire<NotificationDeliveryDecision>
  /** Of a notification that was delivered at once. */
  runId?: string
  signal?: OverWire<Signal>
  /** The inbox already had it, with the same id or key. */
  duplicate?: true
}

export interface NotificationFilter extends ThreadScope {
  status?: NotificationStatus[]
  priority?: NotificationPriority[]
  source?: string
  kind?: string
  /** Searches summaries, sources and kinds. */
  search?: string
  limit?: number
  /** The id of the last record of the previous page. */
  after?: string
}

/** The inbox of an agent. */
export class NotificationsClient {
  readonly #connection: Connection
  readonly #path: string

  /** @internal */
  constructor(connection: Connection, path: string) {
    this.#connection = connection
    this.#path = path
  }

  send(
    send: { notification: NotificationInput; ifIdle?: { streamOptions?: Record<string, unknown> } } & ThreadScope,
  ): Promise<NotificationAnswer> {
    return this.#connection.json(`${this.#path}/notifications`, { body: send, ...retryPolicy(send.notification.id) })
  }

  /** Sends several, which are stored in one transaction. */
  async sendAll(
    send: { notifications: readonly NotificationInput[]; ifIdle?: { streamOptions?: Record<string, unknown> } } & ThreadScope,
  ): Promise<NotificationAnswer[]> {
    const hasIds = send.notifications.some(({ id }) => id !== undefined)
    const notifications = hasIds ? send.notifications.map((one) => ({ ...one, id: one.id ?? randomKey() })) : send.notifications
    const { results } = await this.#connection.json<{ results: NotificationAnswer[] }>(`${this.#path}/notifications`, {
      body: { ...send, notifications },
      ...(hasIds ? { repeatable: true } : { idempotent: true }),
    })
    return results
  }

  /** Newest first. */
  list({ threadId, status, priority, ...query }: NotificationFilter): Promise<{
    notifications: Array<OverWire<NotificationRecord>>
    more: boolean
    counts: Partial<Record<NotificationStatus, number>>
  }> {
    return this.#connection.json(this.#threadPath(threadId), {
      query: { ...query, status: status?.join(','), priority: priority?.join(',') },
    })
  }

  get({ threadId, resourceId, id }: ThreadScope & { id: string }): Promise<OverWire<NotificationRecord>> {
    return this.#connection.json(this.#threadPath(threadId, encodeURIComponent(id)), { query: { resourceId } })
  }

  /** Resolves with those that changed. */
  async mark({ threadId, ...body }: ThreadScope & { ids: string[]; status: MarkedStatus }): Promise<Array<OverWire<NotificationRecord>>> {
    return (
      await this.#connection.json<{ notifications: Array<OverWire<NotificationRecord>> }>(this.#threadPath(threadId, 'mark'), { body })
    ).notifications
  }

  /** Retries those that could not be delivered. Resolves with their number. */
  async retry({ threadId, ...body }: ThreadScope & { ids: string[] }): Promise<number> {
    return (await this.#connection.json<{ retried: number }>(this.#threadPath(threadId, 'retry'), { body })).retried
  }

  #threadPath(threadId: string, rest?: string): string {
    return `${this.#path}/threads/${encodeURIComponent(threadId)}/notifications${rest === undefined ? '' : `/${rest}`}`
  }
}

/** `resourceId` is optional if the principal has one resource only. */
export type NewSchedule = Omit<ScheduleInput, 'resourceId'> & { resourceId?: string }

interface Named {
  id: string
  resourceId?: string
}

/** The schedules of an agent. */
export class SchedulesClient {
  readonly #connection: Connection
  readonly #path: string

  /** @internal */
  constructor(connection: Connection, path: string) {
    this.#connection = connection
    this.#path = `${path}/schedules`
  }

  /** Replaces a schedule with the same id. */
  create(schedule: NewSchedule): Promise<OverWire<ScheduleRecord>> {
    return this.#connection.json(this.#path, { body: schedule, ...retryPolicy(schedule.id) })
  }

  list(
    query: { threadId?: string; resourceId?: string; status?: ScheduleStatus; limit?: number; after?: string } = {},
  ): Promise<{ schedules: Array<OverWire<ScheduleRecord>>; more: boolean }> {
    return this.#connection.json(this.#path, { query })
  }

  get({ id, resourceId }: Named): Promise<OverWire<ScheduleRecord>> {
    return this.#connection.json(this.#schedulePath(id), { query: { resourceId } })
  }

  pause({ id, ...body }: Named): Promise<OverWire<ScheduleRecord>> {
    return this.#connection.json(this.#schedulePath(id, '/pause'), { body })
  }

  /** Continues with the next occurrence from now. */
  resume({ id, ...body }: Named): Promise<OverWire<ScheduleRecord>> {
    return this.#connection.json(this.#schedulePath(id, '/resume'), { body })
  }

  async remove({ id, resourceId }: Named): Promise<boolean> {
    return (await this.#connection.json<{ removed: boolean }>(this.#schedulePath(id), { method: 'DELETE', query: { resourceId } })).removed
  }

  #schedulePath(id: string, rest = ''): string {
    return `${this.#path}/${encodeURIComponent(id)}${rest}`
  }
}
