import type { CallDecided, SuspendedRun } from '../agent/approvals.ts'
import type { AgentWatchQuery, ExplainedWatch, WatchDetails, WatchInput, WatchRecord, WatchToExplain } from '../agent/watches.ts'
import { checkNames } from '../base/arguments.ts'
import { HeedError, isHeedError } from '../base/errors.ts'
import type { JSONValue } from '../base/json.ts'
import type { Chunk } from '../message/chunk.ts'
import type { AgentInput } from '../message/read/input.ts'
import type { ExplainedPrompt } from '../prompt/explain.ts'
import type { MessageInput, Signal, SignalInput } from '../signals/signal.ts'
import type { StateInput } from '../signals/state.ts'
import type { SignalState } from '../machine.ts'
import type { LaneRow, RunDecision, RunDetails, StepRow, Takeover, ThreadRow } from '../store/contract/threads.ts'
import type { ExplainedSignal, ListedSignal } from '../thread/control/inspect.ts'
import type { Lane, LaneHistory } from '../thread/control/lanes.ts'
import type { StepPrompt } from '../thread/control/step-prompt.ts'
import type { QueuedSignal } from '../thread/send/queue.ts'
import type { SignalOutcome } from '../thread/send/receipt.ts'
import type { SendOptions } from '../thread/send/options.ts'
import { randomKey, readEvents, retryPolicy, type Connection, type OverWire, type ThreadScope } from './connection.ts'
import { checkPromptOptions, checkRunOptions, checkSend, decisionFields, listed, scopeFields } from './fields.ts'
import { MemoryClient } from './memory.ts'
import { NotificationsClient } from './notifications.ts'
import { EditorClient } from './editor.ts'
import { SchedulesClient } from './schedules.ts'
import { VoiceClient } from './voice/voice-client.ts'
import { subscribeFields, ThreadSubscription, type SubscribeParams } from './thread-subscription.ts'

/** The target of a send. */
export type SendTarget = Pick<SendOptions, 'runId' | 'resourceId' | 'threadId' | 'ifActive'> & {
  ifIdle?: { behavior?: 'wake' | 'persist' | 'discard'; attributes?: Record<string, JSONValue>; streamOptions?: Record<string, unknown> }
  /** Resolve when the outcome is known. Otherwise: when the signal is stored. */
  wait?: 'outcome'
}

/** The server's answer to a send: the signal is stored. */
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

/** A run of a thread with what was done in it. Times are ISO strings. */
export interface ThreadRun extends Required<ThreadScope>, Pick<
  RunDetails, 'runId' | 'agentId' | 'status' | 'epoch' | 'step' | 'attempts' | 'usage' | 'error' | 'lost' | 'edit'
> {
  startedAt: string
  endedAt?: string
  suspendedAt?: string
  /** `altered`: a processor changed the messages of this call alone. */
  steps: Array<Timed<Omit<StepRow, 'specification' | 'window' | 'rows' | 'hash' | 'altered'>> & { altered?: true }>
  takeovers: Array<Timed<Takeover>>
  decisions: Array<Timed<RunDecision>>
}

type Timed<Record> = { [Name in keyof Record]: Name extends 'at' | `${string}At` ? string : Record[Name] }

/** `resourceId` is optional if the principal has one resource only. */
export interface WatchName {
  id: string
  resourceId?: string
}

/** An agent of the server. Each send has an idempotency key, so that a send whose response was lost is repeated as the same signal. */
export class AgentClient {
  readonly id: string
  readonly notifications: NotificationsClient
  readonly schedules: SchedulesClient
  readonly editor: EditorClient
  readonly voice: VoiceClient
  readonly #connection: Connection
  readonly #path: string

  /** @internal */
  constructor(connection: Connection, id: string) {
    this.id = id
    this.#connection = connection
    this.#path = `/agents/${encodeURIComponent(id)}`
    this.notifications = new NotificationsClient(connection, this.#path)
    this.schedules = new SchedulesClient(connection, this.#path)
    this.editor = new EditorClient(connection, this.#path)
    this.voice = new VoiceClient(connection, this.#path)
  }

  details(): Promise<AgentDetails> {
    return this.#connection.json(this.#path)
  }

  getTool(toolId: string): Promise<ToolDetails> {
    return this.#connection.json(`${this.#path}/tools/${encodeURIComponent(toolId)}`)
  }

  // Watches

  /** Waits for a message of a channel. Each match and the end of the watch are sent to the thread. */
  async awaitSignal(wait: ThreadScope & { id?: string; watch: WatchInput }): Promise<OverWire<WatchRecord>> {
    checkNames('awaitSignal()', wait, [...scopeFields, 'id', 'watch'])
    // A watch is registered once under its id, so that a request whose response was lost is repeated with the same one.
    return this.#connection.json(`${this.#path}/watches`, { body: { ...wait, id: wait.id ?? randomKey() }, repeatable: true })
  }

  /** By id. */
  async listWatches(query: AgentWatchQuery = {}): Promise<{ watches: Array<OverWire<WatchRecord>>; more: boolean }> {
    checkNames('listWatches()', query, [...scopeFields, 'state', 'limit', 'after'])
    return this.#connection.json(`${this.#path}/watches`, { query: { ...query } })
  }

  /** With the messages that were considered. */
  async getWatch(watch: WatchName): Promise<OverWire<WatchDetails>> {
    checkNames('getWatch()', watch, ['id', 'resourceId'])
    return this.#connection.json(`${this.#path}/watches/${encodeURIComponent(watch.id)}`, { query: { resourceId: watch.resourceId } })
  }

  /** Ends it. An ended one is returned as it is. */
  async cancelWatch(watch: WatchName): Promise<OverWire<WatchRecord>> {
    checkNames('cancelWatch()', watch, ['id', 'resourceId'])
    const query = { resourceId: watch.resourceId }
    return this.#connection.json(`${this.#path}/watches/${encodeURIComponent(watch.id)}`, { method: 'DELETE', query })
  }

  /** Its memory: threads, messages, working memory. */
  memory(scope: { resourceId?: string } = {}): MemoryClient {
    checkNames('memory()', scope, ['resourceId'])
    return new MemoryClient(this.#connection, { agentId: this.id, ...scope })
  }

  /** @internal The server and the headers of this client. */
  get identity(): string {
    return this.#connection.identity
  }

  // Sending

  /** Older servers have no route for messages and accept them as signals. */
  async sendMessage(send: { message: MessageInput } & SendTarget): Promise<SendAnswer> {
    checkSend('sendMessage()', send, 'message')
    const { message, ...target } = send
    try {
      return await this.#send('send-message', { message }, target, idOf(message))
    } catch (error) {
      if (!isMissingRoute(error)) throw error
      const input = isMessageObject(message) ? message : { contents: message }
      return this.#send('signals', { signal: { type: 'user-message', ...input } }, target, idOf(message))
    }
  }

  /** Rejected by older servers, which have no queue: as a signal, the message would enter the active run. */
  async queueMessage(send: { message: MessageInput } & SendTarget): Promise<SendAnswer> {
    checkSend('queueMessage()', send, 'message')
    const { message, ...target } = send
    try {
      return await this.#send('queue-message', { message }, target, idOf(message))
    } catch (error) {
      if (!isMissingRoute(error)) throw error
      const why = 'This server has no queue for messages. Use sendMessage(), which enters the active run, or update the server.'
      throw new HeedError('unsupported_option', why, { cause: error, details: { route: 'queue-message' } })
    }
  }

  async sendSignal(send: { signal: SignalInput } & SendTarget): Promise<SendAnswer> {
    checkSend('sendSignal()', send, 'signal')
    const { signal, ...target } = send
    return this.#send('signals', { signal }, target, signal.id)
  }

  async sendStateSignal(
    send: { state: StateInput } & Omit<SendTarget, 'wait'>,
  ): Promise<(SendAnswer & { skipped: false }) | { accepted: true; skipped: true; reason: 'unchanged' }> {
    checkSend('sendStateSignal()', send, 'state')
    const { state, ...target } = send
    return this.#connection.json(`${this.#path}/state-signals`, { body: { state, ...target }, ...retryPolicy(state.signalId) })
  }

  // Subscribing

  async subscribeToThread(params: SubscribeParams): Promise<ThreadSubscription> {
    checkNames('subscribeToThread()', params, subscribeFields)
    return ThreadSubscription.open(this.#connection, `${this.#path}/threads`, params)
  }

  /** The same without a request: it connects when its chunks are read, and reconnects when the connection is lost. */
  watchThread(params: SubscribeParams): ThreadSubscription {
    checkNames('watchThread()', params, subscribeFields)
    return new ThreadSubscription(this.#connection, `${this.#path}/threads`, params)
  }

  /**
   * A ticket that opens the stream of a thread within a minute, and the URL to open: for `EventSource`, which sends no headers. Ask for a
   * new one before you connect again.
   */
  async streamTicket(scope: ThreadScope): Promise<{ ticket: string; expiresAt: string; url: string }> {
    checkNames('streamTicket()', scope, scopeFields)
    const { threadId, resourceId } = scope
    const path = `${this.#path}/threads/${encodeURIComponent(threadId)}`
    const body = resourceId === undefined ? {} : { resourceId }
    const issued = await this.#connection.json<{ ticket: string; expiresAt: string }>(`${path}/ticket`, { body })
    return { ...issued, url: this.#connection.url(`${path}/subscribe`, { ticket: issued.ticket }) }
  }

  async abortThread(options: ThreadScope & { expectedRunId?: string; clearPendingSignals?: boolean }): Promise<boolean> {
    checkNames('abortThread()', options, [...scopeFields, 'expectedRunId', 'clearPendingSignals'])
    return (await this.#connection.json<{ aborted: boolean }>(`${this.#path}/threads/abort`, { body: options })).aborted
  }

  async activeRun(scope: ThreadScope): Promise<{ runId: string; agentId: string; status: 'running' | 'suspended' } | null> {
    checkNames('activeRun()', scope, scopeFields)
    const { threadId, resourceId } = scope
    const { run } = await this.#connection.json<{ run: { runId: string; agentId: string; status: 'running' | 'suspended' } | null }>(
      this.#threadPath(threadId, 'active-run'),
      { query: { resourceId } },
    )
    return run
  }

  /** Threads with an active or suspended run. */
  async listActiveThreads(query: { resourceId?: string; limit?: number } = {}): Promise<Array<OverWire<ThreadRow>>> {
    checkNames('listActiveThreads()', query, ['resourceId', 'limit'])
    return (await this.#connection.json<{ threads: Array<OverWire<ThreadRow>> }>(`${this.#path}/active-threads`, { query })).threads
  }

  /** The chunks of one run from its start, or from an offset, until its end. */
  async observe(run: { runId: string; offset?: number }): Promise<AsyncIterable<Chunk>> {
    checkNames('observe()', run, ['runId', 'offset'])
    return this.#streamChunks('observe', run)
  }

  /** Continues an abandoned or parked run; resolves with its chunks. */
  async recover(run: { runId: string }): Promise<AsyncIterable<Chunk>> {
    checkNames('recover()', run, ['runId'])
    return this.#streamChunks('recover', run)
  }

  async listParkedRuns(
    query: Partial<ThreadScope> & { page?: number; perPage?: number } = {},
  ): Promise<{ runs: ParkedRun[]; total: number }> {
    checkNames('listParkedRuns()', query, [...scopeFields, 'page', 'perPage'])
    return this.#connection.json(`${this.#path}/parked-runs`, { query })
  }

  /** The runs of a thread, newest first, each with its steps, takeovers and decisions. */
  async listRuns(query: ThreadScope & { page?: number; perPage?: number }): Promise<{ runs: ThreadRun[]; total: number }> {
    checkNames('listRuns()', query, [...scopeFields, 'page', 'perPage'])
    const { threadId, ...rest } = query
    return this.#connection.json(this.#threadPath(threadId, 'runs'), { query: rest })
  }

  /** The prompt of a step of a run, as the model received it, part by part. For operators. */
  async getStepPrompt(of: ThreadScope & { runId: string; step: number }): Promise<OverWire<StepPrompt>> {
    checkNames('getStepPrompt()', of, [...scopeFields, 'runId', 'step'])
    const { threadId, resourceId, runId, step } = of
    const path = this.#threadPath(threadId, `runs/${encodeURIComponent(runId)}/steps/${step}/prompt`)
    return this.#connection.json(path, { query: { resourceId } })
  }

  /** The signals of a thread, newest first, with what became of each. `before`: the `ord` of the last one of the page before. */
  async listSignals(
    query: ThreadScope & { state?: SignalState[]; limit?: number; before?: number },
  ): Promise<{ signals: Array<OverWire<ListedSignal>>; more: boolean }> {
    checkNames('listSignals()', query, [...scopeFields, 'state', 'limit', 'before'])
    const { threadId, state, ...rest } = query
    return this.#connection.json(this.#threadPath(threadId, 'signals'), { query: { ...rest, state: listed('state', state) } })
  }

  /** Continues a parked run, by default the newest one, from its last finished step. */
  async retryParked(run: ThreadScope & { runId?: string }): Promise<{ accepted: true; runId: string }> {
    checkNames('retryParked()', run, [...scopeFields, 'runId'])
    const { threadId, ...body } = run
    return this.#connection.json(this.#threadPath(threadId, 'retry'), { body })
  }

  // Reading lanes

  async listLanes(lanes: ThreadScope & { after?: string; limit?: number }): Promise<LaneRow[]> {
    checkNames('listLanes()', lanes, [...scopeFields, 'after', 'limit'])
    const { threadId, ...query } = lanes
    return (await this.#connection.json<{ lanes: LaneRow[] }>(this.#threadPath(threadId, 'lanes'), { query })).lanes
  }

  async getLane(lane: ThreadScope & { id: string }): Promise<OverWire<Lane>> {
    checkNames('getLane()', lane, [...scopeFields, 'id'])
    const { threadId, id, resourceId } = lane
    return this.#connection.json(this.#threadPath(threadId, `lanes/${encodeURIComponent(id)}`), { query: { resourceId } })
  }

  /** Newest first; `before` is the version below which the page begins. */
  async listLaneHistory(lane: ThreadScope & { id: string; before?: number; limit?: number }): Promise<OverWire<LaneHistory>> {
    checkNames('listLaneHistory()', lane, [...scopeFields, 'id', 'before', 'limit'])
    const { threadId, id, ...query } = lane
    return this.#connection.json(this.#threadPath(threadId, `lanes/${encodeURIComponent(id)}/history`), { query })
  }

  // Running without a send

  async generate(messages: AgentInput, options: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    checkRunOptions('generate()', options)
    return this.#connection.json(`${this.#path}/generate`, { body: { messages, ...options } })
  }

  /** Runs the agent; resolves with the chunks of the run. */
  async stream(messages: AgentInput, options: Record<string, unknown> = {}): Promise<AsyncIterable<Chunk>> {
    checkRunOptions('stream()', options)
    return this.#streamChunks('stream', { messages, ...options })
  }

  /** The prompt that the model would get, part by part. */
  async explainPrompt(messages: AgentInput, options: Record<string, unknown> = {}): Promise<OverWire<ExplainedPrompt>> {
    checkPromptOptions(options)
    return this.#connection.json(`${this.#path}/explain-prompt`, { body: { messages, ...options }, repeatable: true })
  }

  // Deciding about tool calls

  async sendToolApproval(approval: {
    threadId: string
    resourceId?: string
    approved: boolean
    resumeData?: JSONValue
    declineContext?: { reason?: string; message?: string }
  } & DecidedCall): Promise<DecisionAnswer> {
    checkNames('sendToolApproval()', approval, [...scopeFields, 'approved', 'resumeData', 'declineContext', ...decisionFields])
    if (approval.declineContext !== undefined) checkNames('declineContext', approval.declineContext, ['reason', 'message'])
    return this.#connection.json(`${this.#path}/send-tool-approval`, { body: approval, idempotent: true })
  }

  async sendStreamResume(resume: {
    threadId: string
    resourceId?: string
    runId?: string
    resumeData: JSONValue
  } & DecidedCall): Promise<DecisionAnswer> {
    checkNames('sendStreamResume()', resume, [...scopeFields, 'runId', 'resumeData', ...decisionFields])
    return this.#connection.json(`${this.#path}/send-stream-resume`, { body: resume, idempotent: true })
  }

  async approveToolCall(decision: { runId: string } & DecidedCall): Promise<AsyncIterable<Chunk>> {
    checkNames('approveToolCall()', decision, ['runId', ...decisionFields])
    return this.#streamChunks('approve-tool-call', decision)
  }

  async resumeStream(resumeData: JSONValue, run: { runId: string } & DecidedCall): Promise<AsyncIterable<Chunk>> {
    checkNames('resumeStream()', run, ['runId', ...decisionFields])
    return this.#streamChunks('resume-stream', { ...run, resumeData })
  }

  async declineToolCall(decision: { runId: string; reason?: string } & DecidedCall): Promise<AsyncIterable<Chunk>> {
    checkNames('declineToolCall()', decision, ['runId', 'reason', ...decisionFields])
    return this.#streamChunks('decline-tool-call', decision)
  }

  /** The same; resolves when the run has ended. */
  async approveToolCallGenerate(decision: { runId: string } & DecidedCall): Promise<Record<string, unknown>> {
    checkNames('approveToolCallGenerate()', decision, ['runId', ...decisionFields])
    return this.#connection.json(`${this.#path}/approve-tool-call-generate`, { body: decision })
  }

  async declineToolCallGenerate(decision: { runId: string; reason?: string } & DecidedCall): Promise<Record<string, unknown>> {
    checkNames('declineToolCallGenerate()', decision, ['runId', 'reason', ...decisionFields])
    return this.#connection.json(`${this.#path}/decline-tool-call-generate`, { body: decision })
  }

  async listSuspendedRuns(
    filter: { threadId?: string; resourceId?: string; fromDate?: Date; toDate?: Date; page?: number; perPage?: number } = {},
  ): Promise<{ runs: Array<OverWire<SuspendedRun>>; total?: number }> {
    checkNames('listSuspendedRuns()', filter, [...scopeFields, 'fromDate', 'toDate', 'page', 'perPage'])
    return this.#connection.json(`${this.#path}/suspended-runs`, { query: filter })
  }

  // Pending signals

  async listQueued(scope: ThreadScope): Promise<QueuedOverWire[]> {
    checkNames('listQueued()', scope, scopeFields)
    const { threadId, resourceId } = scope
    return (await this.#connection.json<{ queued: QueuedOverWire[] }>(this.#threadPath(threadId, 'queue'), { query: { resourceId } }))
      .queued
  }

  async cancelQueued(signals: ThreadScope & { signalIds: string[] }): Promise<string[]> {
    checkNames('cancelQueued()', signals, [...scopeFields, 'signalIds'])
    const { threadId, ...body } = signals
    return (await this.#connection.json<{ cancelledSignalIds: string[] }>(this.#threadPath(threadId, 'queue/cancel'), { body }))
      .cancelledSignalIds
  }

  async reorderQueued(signals: ThreadScope & { signalIds: string[] }): Promise<string[]> {
    checkNames('reorderQueued()', signals, [...scopeFields, 'signalIds'])
    const { threadId, ...body } = signals
    return (await this.#connection.json<{ signalIds: string[] }>(this.#threadPath(threadId, 'queue/reorder'), { body })).signalIds
  }

  /** What happened to a signal; or which messages a watch considered, and why each matched or not. */
  async explain(signal: ThreadScope & { signalId: string }): Promise<OverWire<ExplainedSignal>>
  async explain(watch: Omit<WatchToExplain, 'threadId'>): Promise<OverWire<ExplainedWatch>>
  async explain(asked: (ThreadScope & { signalId: string }) | Omit<WatchToExplain, 'threadId'>): Promise<unknown> {
    if (typeof asked === 'object' && asked !== null && 'watchId' in asked) {
      checkNames('explain()', asked, ['watchId', 'resourceId', 'limit', 'after'])
      const { watchId, ...query } = asked
      return this.#connection.json(`${this.#path}/watches/${encodeURIComponent(watchId)}/explanation`, { query })
    }
    checkNames('explain()', asked, [...scopeFields, 'signalId'])
    const { threadId, resourceId, signalId } = asked
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
