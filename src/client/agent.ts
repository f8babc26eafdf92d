import { isHeedError } from '../base/errors.ts'
import type { SuspendedRun } from '../agent/approvals.ts'
import type { JSONValue } from '../base/json.ts'
import type { AgentInput } from '../message/read/input.ts'
import type { ExplainedPrompt } from '../prompt/explain.ts'
import type { Chunk } from '../run/chunk.ts'
import type { MessageInput, Signal, SignalInput } from '../signals/signal.ts'
import type { StateInput } from '../signals/state.ts'
import type { LaneRow, ThreadRow } from '../store/contract/threads.ts'
import type { ExplainedSignal } from '../thread/control/explain.ts'
import type { Lane, LaneHistory } from '../thread/control/lanes.ts'
import type { QueuedSignal } from '../thread/send/queue.ts'
import type { SignalOutcome } from '../thread/send/receipt.ts'
import type { SendOptions } from '../thread/send/send-options.ts'
import { onceBy, type Connection } from './connection.ts'
import { MemoryClient } from './memory.ts'
import { NotificationsClient } from './notifications.ts'
import { readEvents } from './read-events.ts'
import { SchedulesClient } from './schedules.ts'
import { ThreadSubscription, type SubscribeParams } from './thread-subscription.ts'
import type { OverWire } from './wire.ts'

/** Where a send goes. */
export type SendTarget = Pick<SendOptions, 'runId' | 'resourceId' | 'threadId' | 'ifActive'> & {
  ifIdle?: { behavior?: 'wake' | 'persist' | 'discard'; attributes?: Record<string, JSONValue>; streamOptions?: Record<string, unknown> }
  /** Answer when it is known what became of it. Otherwise: when it is stored. */
  wait?: 'outcome'
}

export interface SendAnswer {
  accepted: true
  runId: string
  signal: OverWire<Signal>
  /** The thread had a signal of this id already: this describes that one. */
  duplicate?: true
  outcome?: SignalOutcome
}

/** Something that waits for its turn. */
export type QueuedOverWire = OverWire<QueuedSignal>

export interface ThreadScope {
  threadId: string
  resourceId?: string
}

/** What an agent is, as far as a server tells. */
export interface AgentDetails {
  id: string
  name: string
  description: string
  /** By their names; `inputSchema` is JSON. */
  tools: Record<string, { id: string; description?: string; inputSchema?: string }>
  provider: string
  modelId: string
}

/** A run that was given up after repeated failures. */
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

/** An agent of the server. Every send carries a key of its own, so that one whose answer was lost is still one signal. */
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

  /** Its memory: threads, messages, working memory. */
  memory(scope: { resourceId?: string } = {}): MemoryClient {
    return new MemoryClient(this.#connection, { agentId: this.id, ...scope })
  }

  /** @internal Which server is asked, and as whom. */
  get place(): string {
    return this.#connection.place
  }

  // Sending

  sendMessage({ message, ...target }: { message: MessageInput } & SendTarget): Promise<SendAnswer> {
    return this.#sendOrSignal('send-message', message, target)
  }

  queueMessage({ message, ...target }: { message: MessageInput } & SendTarget): Promise<SendAnswer> {
    return this.#sendOrSignal('queue-message', message, target)
  }

  sendSignal({ signal, ...target }: { signal: SignalInput } & SendTarget): Promise<SendAnswer> {
    return this.#send('signals', { signal }, target, signal.id)
  }

  sendStateSignal({ state, ...target }: { state: StateInput } & Omit<SendTarget, 'wait'>): Promise<(SendAnswer & { skipped: false }) | { accepted: true; skipped: true; reason: 'unchanged' }> {
    return this.#connection.json(`${this.#path}/state-signals`, { body: { state, ...target }, ...onceBy(state.signalId) })
  }

  // Watching

  subscribeToThread(params: SubscribeParams): Promise<ThreadSubscription> {
    return ThreadSubscription.open(this.#connection, `${this.#path}/threads`, params)
  }

  /** The same without asking first: it connects when its chunks are read, and again whenever it has to. */
  watchThread(params: SubscribeParams): ThreadSubscription {
    return new ThreadSubscription(this.#connection, `${this.#path}/threads`, params)
  }

  async abortThread(options: ThreadScope & { expectedRunId?: string; clearPendingSignals?: boolean }): Promise<boolean> {
    return (await this.#connection.json<{ aborted: boolean }>(`${this.#path}/threads/abort`, { body: options })).aborted
  }

  async activeRun({ threadId, resourceId }: ThreadScope): Promise<{ runId: string; agentId: string; status: 'running' | 'suspended' } | null> {
    const { run } = await this.#connection.json<{ run: { runId: string; agentId: string; status: 'running' | 'suspended' } | null }>(this.#thread(threadId, 'active-run'), { query: { resourceId } })
    return run
  }

  /** Threads on which something runs or waits for somebody. */
  async listActiveThreads(query: { resourceId?: string; limit?: number } = {}): Promise<Array<OverWire<ThreadRow>>> {
    return (await this.#connection.json<{ threads: Array<OverWire<ThreadRow>> }>(`${this.#path}/active-threads`, { query })).threads
  }

  /** One run from its start, or from a chunk on, until it is over. */
  observe(run: { runId: string; offset?: number }): Promise<AsyncIterable<Chunk>> {
    return this.#chunks('observe', run)
  }

  /** Takes up a run that was left or parked, and watches it. */
  recover(run: { runId: string }): Promise<AsyncIterable<Chunk>> {
    return this.#chunks('recover', run)
  }

  listParkedRuns(query: Partial<ThreadScope> & { page?: number; perPage?: number } = {}): Promise<{ runs: ParkedRun[]; total: number }> {
    return this.#connection.json(`${this.#path}/parked-runs`, { query })
  }

  /** Takes up a parked run, the newest one unless it is named, from its last finished step. */
  retryParked({ threadId, ...body }: ThreadScope & { runId?: string }): Promise<{ accepted: true; runId: string }> {
    return this.#connection.json(this.#thread(threadId, 'retry'), { body })
  }

  // Reading lanes

  async listLanes({ threadId, ...query }: ThreadScope & { after?: string; limit?: number }): Promise<LaneRow[]> {
    return (await this.#connection.json<{ lanes: LaneRow[] }>(this.#thread(threadId, 'lanes'), { query })).lanes
  }

  getLane({ threadId, id, resourceId }: ThreadScope & { id: string }): Promise<OverWire<Lane>> {
    return this.#connection.json(this.#thread(threadId, `lanes/${encodeURIComponent(id)}`), { query: { resourceId } })
  }

  /** Newest first; `before` is the version to go on below. */
  listLaneHistory({ threadId, id, ...query }: ThreadScope & { id: string; before?: number; limit?: number }): Promise<OverWire<LaneHistory>> {
    return this.#connection.json(this.#thread(threadId, `lanes/${encodeURIComponent(id)}/history`), { query })
  }

  // Asking

  generate(messages: AgentInput, options: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    return this.#connection.json(`${this.#path}/generate`, { body: { messages, ...options } })
  }

  /** Asks once; what follows is read chunk by chunk. */
  async stream(messages: AgentInput, options: Record<string, unknown> = {}): Promise<AsyncIterable<Chunk>> {
    return this.#chunks('stream', { messages, ...options })
  }

  /** What the model would be sent, part by part. */
  explainPrompt(messages: AgentInput, options: Record<string, unknown> = {}): Promise<OverWire<ExplainedPrompt>> {
    return this.#connection.json(`${this.#path}/explain-prompt`, { body: { messages, ...options }, repeatable: true })
  }

  // Deciding about tool calls

  sendToolApproval(approval: { threadId: string; resourceId?: string; toolCallId?: string; approved: boolean; resumeData?: JSONValue; declineContext?: { reason?: string; message?: string } }): Promise<{ accepted: true; runId: string; toolCallId: string }> {
    return this.#connection.json(`${this.#path}/send-tool-approval`, { body: approval, idempotent: true })
  }

  sendStreamResume(resume: { threadId: string; resourceId?: string; runId?: string; toolCallId?: string; resumeData: JSONValue }): Promise<{ accepted: true; runId: string; toolCallId: string }> {
    return this.#connection.json(`${this.#path}/send-stream-resume`, { body: resume, idempotent: true })
  }

  approveToolCall(decision: { runId: string; toolCallId?: string }): Promise<AsyncIterable<Chunk>> {
    return this.#chunks('approve-tool-call', decision)
  }

  resumeStream(resumeData: JSONValue, run: { runId: string; toolCallId?: string }): Promise<AsyncIterable<Chunk>> {
    return this.#chunks('resume-stream', { ...run, resumeData })
  }

  declineToolCall(decision: { runId: string; toolCallId?: string; reason?: string }): Promise<AsyncIterable<Chunk>> {
    return this.#chunks('decline-tool-call', decision)
  }

  /** The same, answered when the run is over. */
  approveToolCallGenerate(decision: { runId: string; toolCallId?: string }): Promise<Record<string, unknown>> {
    return this.#connection.json(`${this.#path}/approve-tool-call-generate`, { body: decision })
  }

  declineToolCallGenerate(decision: { runId: string; toolCallId?: string; reason?: string }): Promise<Record<string, unknown>> {
    return this.#connection.json(`${this.#path}/decline-tool-call-generate`, { body: decision })
  }

  listSuspendedRuns(filter: { threadId?: string; resourceId?: string; fromDate?: Date; toDate?: Date; page?: number; perPage?: number } = {}): Promise<{ runs: Array<OverWire<SuspendedRun>>; total?: number }> {
    return this.#connection.json(`${this.#path}/suspended-runs`, { query: filter })
  }

  // What waits, and what became of it

  async listQueued({ threadId, resourceId }: ThreadScope): Promise<QueuedOverWire[]> {
    return (await this.#connection.json<{ queued: QueuedOverWire[] }>(this.#thread(threadId, 'queue'), { query: { resourceId } })).queued
  }

  async cancelQueued({ threadId, ...body }: ThreadScope & { signalIds: string[] }): Promise<string[]> {
    return (await this.#connection.json<{ cancelledSignalIds: string[] }>(this.#thread(threadId, 'queue/cancel'), { body })).cancelledSignalIds
  }

  async reorderQueued({ threadId, ...body }: ThreadScope & { signalIds: string[] }): Promise<string[]> {
    return (await this.#connection.json<{ signalIds: string[] }>(this.#thread(threadId, 'queue/reorder'), { body })).signalIds
  }

  explain({ threadId, resourceId, signalId }: ThreadScope & { signalId: string }): Promise<OverWire<ExplainedSignal>> {
    return this.#connection.json(this.#thread(threadId, `signals/${encodeURIComponent(signalId)}`), { query: { resourceId } })
  }

  /** Servers from before these routes take a message as a signal. */
  async #sendOrSignal(path: string, message: MessageInput, target: SendTarget): Promise<SendAnswer> {
    const isWhole = typeof message === 'object' && !Array.isArray(message)
    const id = isWhole ? message.id : undefined
    try {
      return await this.#send(path, { message }, target, id)
    } catch (error) {
      if (!isMissingRoute(error)) throw error
      const input = isWhole ? message : { contents: message }
      return this.#send('signals', { signal: { type: 'user-message', ...input } }, target, id)
    }
  }

  #send(path: string, body: Record<string, unknown>, { wait, ...target }: SendTarget, id: string | undefined): Promise<SendAnswer> {
    return this.#connection.json(`${this.#path}/${path}`, { body: { ...body, ...target }, query: { wait }, ...onceBy(id) })
  }

  async #chunks(path: string, body: unknown): Promise<AsyncIterable<Chunk>> {
    const response = await this.#connection.events(`${this.#path}/${path}`, { body })
    return readEvents(response, this.#connection.silenceOf(response)) as AsyncGenerator<Chunk>
  }

  #thread(threadId: string, rest: string): string {
    return `${this.#path}/threads/${encodeURIComponent(threadId)}/${rest}`
  }
}

/** What a server that has the route refuses under these statuses. */
const refusals: ReadonlySet<string> = new Set(['unknown_agent', 'thread_not_found', 'message_not_found'])

/** A server that doesn't know the route says so by its status, whatever it calls that; one that does names what is missing. */
function isMissingRoute(error: unknown): boolean {
  if (!isHeedError(error) || refusals.has(error.code)) return false
  const status = error.details?.status
  return status === 404 || status === 405 || status === 501
}
