import { HeedError } from '../base/errors.ts'
import type { Heed } from '../heed.ts'
import type { JSONValue } from '../base/json.ts'
import { Memory } from '../memory/memory.ts'
import type { MemoryPlace } from '../memory/place.ts'
import type { AgentInput } from '../message/read/input.ts'
import type { ExplainedPrompt } from '../prompt/explain.ts'
import type { AgentExecutionOptions } from '../run/options.ts'
import type { ToolsInput } from '../run/tools/tool-set.ts'
import type { Schema } from '../schema/schema.ts'
import type { MessageInput, Signal, SignalInput } from '../signals/signal.ts'
import { stateSignal, type StateInput } from '../signals/state.ts'
import type { LaneRow, Scope, ThreadRow } from '../store/contract/threads.ts'
import { activeRun, listActiveThreads, type ActiveRun } from '../thread/control/active.ts'
import { explainSignal, type ExplainedSignal } from '../thread/control/explain.ts'
import { readLane, readLaneHistory, readLanes, type Lane, type LaneHistory } from '../thread/control/lanes.ts'
import { cancelQueued, listQueued, reorderQueued, type QueuedSignal } from '../thread/send/queue.ts'
import type { SendReceipt, StateReceipt } from '../thread/send/receipt.ts'
import { retryParked } from '../thread/control/retry.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import { checkSendOptions, sendSignal, sendState, type SendOptions } from '../thread/send/send.ts'
import type { AgentThreadSubscription } from '../thread/watch/subscription.ts'
import { abortRun, type AbortOptions } from '../thread/control/abort.ts'
import type { AbortAnswer } from '../thread/cluster/peers.ts'
import type { InboxSubscribeOptions, InboxSubscription } from '../inbox/subscription.ts'
import { abortThread, subscribe, type SubscribeOptions } from '../thread/watch/watching.ts'
import type { GenerateResult, StreamResult } from './answers.ts'
import { approveCall, decideCall, type CallDecided, type CallResume, type SuspendedTarget, type ToolApproval } from './approval.ts'
import { answer, answerSuspended, type RunDecision } from './call.ts'
import { checkOptions } from './check-options.ts'
import { checkSend } from './check-send.ts'
import { fromLegacyOptions, type AgentConfig, type LegacyOptions } from './config.ts'
import { explainAgentPrompt } from './explain.ts'
import { describeAgent, type AgentDescription } from './describe.ts'
import { contextGiven, given, type ForRequest } from './given.ts'
import { HeedMember } from './member.ts'
import { memoryFor } from './memory-place.ts'
import { PlacingSends } from './placing-send.ts'
import { resolve } from './resolve.ts'
import { checkResumeData } from './resume.ts'
import { sendNotifications, type NotificationInput, type NotificationResult, type NotificationTarget } from './notifications.ts'
import { inboxOf, placeOfRuntime, storageOf } from './runtimes.ts'
import { isNamed, sentMessage, sentSignal } from './sent-signals.ts'
import { agentSchedules, type AgentSchedules, type ScheduleInput, type ScheduleRecord } from './schedules.ts'
import { listSuspendedRuns, type SuspendedRuns, type SuspendedRunsFilter } from './suspended.ts'

/** A model with instructions and tools, that can be asked once or live on threads. */
export class Agent<TAgentId extends string = string, TTools extends ToolsInput = ToolsInput> extends HeedMember<TAgentId> {
  #memory: Memory | undefined
  readonly #placing = new PlacingSends()

  constructor(config: AgentConfig<TAgentId, TTools>) {
    super(config)
    config.heed?.admit(this)
    this.#bindMemory()
  }

  /** @internal */
  override join(heed: Heed, key: string): void {
    super.join(heed, key)
    this.#bindMemory()
  }

  // Asking

  /** Asks once and waits for the whole answer. Rejects when the run failed or was aborted; a tripwire is part of the result. */
  async generate<S extends Schema = never>(messages: AgentInput, options: AgentExecutionOptions<S> = {}): Promise<GenerateResult<TTools, S>> {
    checkOptions(options, 'generate()')
    const result = await (await answer(this, messages, options, false)).result
    if (result.finishReason === 'aborted') throw new HeedError('aborted', `The run ${result.runId} was aborted.`, { cause: options.abortSignal?.reason })
    return result as GenerateResult<TTools, S>
  }

  /** Asks once and answers as soon as the run begins. */
  async stream<S extends Schema = never>(messages: AgentInput, options: AgentExecutionOptions<S> = {}): Promise<StreamResult<TTools, S>> {
    checkOptions(options, 'stream()')
    return (await answer(this, messages, options, true)) as StreamResult<TTools, S>
  }

  /** An older name of `generate`. */
  generateLegacy(messages: AgentInput, options: LegacyOptions = {}): Promise<GenerateResult<TTools, never>> {
    return this.generate(messages, fromLegacyOptions(options) as AgentExecutionOptions<never>)
  }

  /** An older name of `stream`. */
  streamLegacy(messages: AgentInput, options: LegacyOptions = {}): Promise<StreamResult<TTools, never>> {
    return this.stream(messages, fromLegacyOptions(options) as AgentExecutionOptions<never>)
  }

  /** What the model would be sent for these messages, part by part: where each came from and what it costs. Processors are not asked. */
  async explainPrompt(messages: AgentInput, options: AgentExecutionOptions = {}): Promise<ExplainedPrompt> {
    checkOptions(options, 'explainPrompt()')
    return explainAgentPrompt(this, this.config, messages, options)
  }

  // Sending to a thread

  /** A user's words, into the running loop or, on an idle thread, as the start of a run. */
  sendMessage(message: MessageInput, options: SendOptions): SendReceipt {
    return this.#send('now', sentMessage(this, message), options, isNamed(message))
  }

  /** A user's words as a turn of their own, after what is active. */
  queueMessage(message: MessageInput, options: SendOptions): SendReceipt {
    return this.#send('queue', sentMessage(this, message), options, isNamed(message))
  }

  /** Context that a system produced. */
  sendSignal(signal: SignalInput, options: SendOptions): SendReceipt {
    return this.#send('now', sentSignal(this, signal), options, isNamed(signal))
  }

  /** The state of a lane. Skipped when the lane has it already. */
  async sendStateSignal(state: StateInput, options: SendOptions): Promise<StateReceipt> {
    const { input, lane } = stateSignal(state, options?.threadId)
    const { requestContext } = checkSend(options)?.ifIdle?.streamOptions ?? {}
    const here = await this.place(requestContext)
    return sendState(here.threads(), here, sentSignal(this, input), options, lane, { named: isNamed(input) })
  }

  /** Something that happened elsewhere: a record in the inbox, which the delivery policy sends on now, later, summarised or not at all. */
  sendNotificationSignal(notification: NotificationInput, options: NotificationTarget): Promise<NotificationResult>
  sendNotificationSignal(notifications: readonly NotificationInput[], options: NotificationTarget): Promise<NotificationResult[]>
  async sendNotificationSignal(given: NotificationInput | readonly NotificationInput[], options: NotificationTarget): Promise<NotificationResult | NotificationResult[]> {
    return sendNotifications(await this.place(checkSend(options)?.ifIdle?.streamOptions?.requestContext), given, options)
  }

  /** Watches the inbox of a resource, or of one thread: its records, as they change. */
  async subscribeToInbox(options: InboxSubscribeOptions): Promise<InboxSubscription> {
    return inboxOf(await this.#threads()).subscribe(options)
  }

  /** Sends something at certain times: kept in the store, sent once by whichever process is there. */
  schedule(input: ScheduleInput): Promise<ScheduleRecord> {
    return this.schedules.create(input)
  }

  /** What is scheduled for this agent. */
  get schedules(): AgentSchedules {
    return agentSchedules(this, { message: (input) => sentMessage(this, input), signal: (input) => sentSignal(this, input) })
  }

  // Reading the lanes of a thread

  /** What a lane says now; null when nothing was said of it. */
  async getLane(lane: Scope & { id: string }): Promise<Lane | null> {
    const { id, ...scope } = given('getLane', lane)
    return readLane((await this.#open()).store, scope, id)
  }

  /** The lanes of a thread, by id. */
  async listLanes(query: Scope & { after?: string; limit?: number }): Promise<LaneRow[]> {
    const { after, limit, ...scope } = given('listLanes', query)
    return readLanes((await this.#open()).store, scope, { after, limit })
  }

  /** Everything that a lane was told, newest first; `before` is the version to go on below. */
  async listLaneHistory(query: Scope & { id: string; before?: number; limit?: number }): Promise<LaneHistory> {
    const { id, before, limit, ...scope } = given('listLaneHistory', query)
    return readLaneHistory((await this.#open()).store, scope, id, { before, limit })
  }

  // Watching and steering a thread

  /** Watches a thread: its chunks, its active run, and a way to stop it. */
  async subscribeToThread(options: SubscribeOptions): Promise<AgentThreadSubscription> {
    return subscribe(await this.#threads(), given('subscribeToThread', options))
  }

  /**
   * Aborts what is active on a thread, in whatever process it runs, suspended runs included, and answers whether there was anything to
   * abort: `aborted` when its runner took the abort.
   */
  async abortRun(run: Scope & AbortOptions): Promise<AbortAnswer> {
    const { threadId, resourceId, ...options } = given('abortRun', run)
    const here = this.#threads()
    // Without a turn in between where the place is known: what is sent next must not be what is aborted.
    return abortRun(here instanceof Promise ? await here : here, { threadId, ...(resourceId === undefined ? {} : { resourceId }) }, options)
  }

  /** Aborts what is active on a thread. False when nothing is known here to be; `abortRun` asks the store, and other processes. */
  abortThreadStream(run: Scope & AbortOptions): boolean {
    const { threadId, resourceId, ...options } = given('abortThreadStream', run)
    const here = this.place()
    if (here instanceof Promise) {
      here.then((placed) => placed.abortThreadStream(run)).catch((error: unknown) => this.threads().logger.error('a run could not be aborted', { threadId, error: String(error) }))
      return false
    }
    return abortThread(here.threads(), { threadId, ...(resourceId === undefined ? {} : { resourceId }) }, options)
  }

  /** The run that is active or suspended on a thread, or null. */
  async activeRun(scope: Scope): Promise<ActiveRun | null> {
    return activeRun(await this.#threads(), given('activeRun', scope))
  }

  /** Threads on which something is active or suspended, of any agent. Up to 100 unless told. */
  async listActiveThreads(query: { resourceId?: string; limit?: number } = {}): Promise<ThreadRow[]> {
    return listActiveThreads(await this.#threads(), given('listActiveThreads', query))
  }

  async listQueued(scope: Scope): Promise<QueuedSignal[]> {
    return listQueued(await this.#threads(), given('listQueued', scope))
  }

  /** Takes signals out of the queue. Answers the ids that were still in it. */
  async cancelQueued(queued: Scope & { signalIds: string[] }): Promise<string[]> {
    const { signalIds, ...scope } = given('cancelQueued', queued)
    return cancelQueued(await this.#threads(), scope, signalIds)
  }

  /** Puts queued messages in this order. Answers the order that came of it. */
  async reorderQueued(queued: Scope & { signalIds: string[] }): Promise<string[]> {
    const { signalIds, ...scope } = given('reorderQueued', queued)
    return reorderQueued(await this.#threads(), scope, signalIds)
  }

  /** What happened to a signal: accepted, waiting, drained at which step, answered by which run. */
  async explain(signal: Scope & { signalId: string }): Promise<ExplainedSignal | null> {
    const { signalId, ...scope } = given('explain', signal)
    return explainSignal((await this.#open()).store, scope, signalId)
  }

  /** Takes up a parked run, the newest one of the thread unless it is named, from its last finished step. */
  async retryParked(run: Scope & { runId?: string }): Promise<{ accepted: true; runId: string }> {
    const { runId, ...scope } = given('retryParked', run)
    return { accepted: true, runId: await retryParked(await this.#threads(), this, scope, runId) }
  }

  // Deciding about tool calls

  /** Approves or declines a call that waits. What follows arrives at those who watch the thread. */
  async sendToolApproval(approval: ToolApproval): Promise<CallDecided> {
    return approveCall(await this.place(), this.config, given('sendToolApproval', approval))
  }

  /** Resumes a call that suspended itself. What follows arrives at those who watch the thread. */
  async sendStreamResume(resume: CallResume): Promise<CallDecided> {
    return decideCall(await this.place(), this.config, given('sendStreamResume', resume))
  }

  /** Approves a call and answers with the stream of what follows. */
  async approveToolCall(call: SuspendedTarget): Promise<StreamResult<TTools, never>> {
    return this.#continue({ ...given('approveToolCall', call), approved: true })
  }

  /** Declines a call, with a reason that the model reads, and answers with the stream of what follows. */
  async declineToolCall(call: SuspendedTarget & { reason?: string }): Promise<StreamResult<TTools, never>> {
    return this.#continue({ ...given('declineToolCall', call), approved: false })
  }

  /** Resumes a call that suspended itself and answers with the stream of what follows. */
  async resumeStream(resumeData: JSONValue, call: SuspendedTarget): Promise<StreamResult<TTools, never>> {
    return this.#continue({ ...given('resumeStream', call), resumeData })
  }

  async listSuspendedRuns(filter: SuspendedRunsFilter = {}): Promise<SuspendedRuns> {
    return listSuspendedRuns(await this.#threads(), this.id, given('listSuspendedRuns', filter))
  }

  // What it is made of

  /** Its memory. An agent without one has its history all the same. */
  async getMemory(request: ForRequest = this.request): Promise<Memory> {
    const memory = (await memoryFor(this.config, contextGiven('getMemory()', request), this.id)) ?? (this.#memory ??= new Memory())
    const here = this.placedByRequest ? this.placedAt(memory, this.threads()) : this
    return memory.at(here.#place(), here.home)
  }

  /**
   * The same agent where the threads of this request are: needed where `memory` is a function that brings a storage of its own. Its runs take
   * their request context from their own options, as ever.
   */
  async forRequest(request: ForRequest): Promise<this> {
    return this.placedFor(contextGiven('forRequest()', request))
  }

  /** Its model and its tools, for those who list agents. */
  async describe(request: ForRequest = this.request): Promise<AgentDescription> {
    return describeAgent(this.config, this.id, this.threads(), contextGiven('describe()', request))
  }

  async getMetadata(request: ForRequest = this.request): Promise<Record<string, unknown>> {
    const requestContext = contextGiven('getMetadata()', request)
    return this.config.metadata === undefined ? {} : resolve(this.config.metadata, { requestContext })
  }

  /** @internal */
  protected override made(config: AgentConfig): this {
    return new Agent(config) as this
  }

  /** What a program asks its memory goes to the same threads, from when it is a Heed's. */
  #bindMemory(): void {
    const { memory } = this.config
    if (memory instanceof Memory && this.home) memory.bind(this.#place(), this.home)
  }

  #place(): MemoryPlace {
    return {
      store: async () => (await this.#open()).store,
      key: () => placeOfRuntime(this.threads()),
      now: () => this.threads().clock.now(),
      closed: () => this.owner?.closed ?? false,
      storage: async () => storageOf(await this.#open()),
      transferred: (threadId, resourceId) => this.threads().neighbours.transferred(threadId, resourceId),
    }
  }

  #threads(): ThreadRuntime | Promise<ThreadRuntime> {
    const here = this.place()
    return here instanceof Promise ? here.then(registered) : registered(here)
  }

  async #open(): Promise<ThreadRuntime> {
    const runtime = await this.#threads()
    await runtime.open()
    return runtime
  }

  #send(mode: 'now' | 'queue', signal: Signal, given: SendOptions, named: boolean): SendReceipt {
    const options = checkSend(given)
    if (!this.placedByRequest) return sendSignal(this.threads(), this, mode, signal, options, { named })
    checkSendOptions(options)
    const here = this.place(options.ifIdle?.streamOptions?.requestContext)
    if (!(here instanceof Promise) && !this.#placing.has(options)) return sendSignal(here.threads(), here, mode, signal, options, { named })
    // It may fail while sends before this one are still on their way, and is told by the receipt.
    if (here instanceof Promise) here.catch(() => {})
    return this.#placing.receipt(this.threads(), signal, options, async (runId) => {
      const placed = await here
      return sendSignal(placed.threads(), placed, mode, signal, options, { runId, named })
    })
  }

  async #continue(decision: RunDecision): Promise<StreamResult<TTools, never>> {
    const here = await this.place()
    await checkResumeData(here, this.config, decision)
    return (await answerSuspended(here, decision)) as StreamResult<TTools, never>
  }
}

function registered(agent: Agent): ThreadRuntime {
  const runtime = agent.threads()
  runtime.register(agent)
  return runtime
}
