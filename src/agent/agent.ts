import { HeedError } from '../errors.ts'
import type { Heed } from '../heed.ts'
import type { JSONObject, JSONValue } from '../json.ts'
import { Memory } from '../memory/memory.ts'
import { historyIn, storageIn } from '../memory/named-processors.ts'
import { historyOption, windowOf } from '../memory/window.ts'
import type { AgentInput } from '../message/input.ts'
import type { ExplainedPrompt } from '../prompt/explain.ts'
import type { AgentExecutionOptions, MemoryOptions, MemoryTarget } from '../run/options.ts'
import type { RunSetup } from '../run/run-setup.ts'
import type { Titler } from '../run/titler.ts'
import type { ToolsInput } from '../run/tool-set.ts'
import type { Schema } from '../schema/schema.ts'
import type { MessageInput, Signal, SignalInput } from '../signals/signal.ts'
import { stateSignal, type StateInput } from '../signals/state.ts'
import type { LaneRow, Scope, Send, ThreadRow, Window } from '../store/contract.ts'
import type { Storage } from '../store/storage.ts'
import { activeRun, listActiveThreads, type ActiveRun } from '../thread/active.ts'
import { explainSignal, type ExplainedSignal } from '../thread/explaining.ts'
import { readLane, readLaneHistory, readLanes, type Lane, type LaneHistory } from '../thread/lanes.ts'
import { cancelQueued, listQueued, reorderQueued, type QueuedSignal } from '../thread/queue.ts'
import type { SendReceipt, StateReceipt } from '../thread/receipt.ts'
import { retryParked } from '../thread/retrying.ts'
import type { RunEnvironment, RunRequest } from '../thread/runnable.ts'
import { ThreadRuntime } from '../thread/runtime.ts'
import { sendSignal, sendState, type SendOptions } from '../thread/sending.ts'
import type { AgentThreadSubscription } from '../thread/subscription.ts'
import { abortRun, type AbortOptions } from '../thread/aborting.ts'
import type { AbortAnswer } from '../thread/neighbours.ts'
import type { InboxSubscribeOptions, InboxSubscription } from '../inbox/subscription.ts'
import { abortThread, subscribe, type SubscribeOptions } from '../thread/watching.ts'
import type { GenerateResult, StreamResult } from './answers.ts'
import { approveCall, decideCall, type CallDecided, type CallResume, type SuspendedTarget, type ToolApproval } from './approval.ts'
import { answer, answerSuspended, type RunDecision } from './call.ts'
import { checkConfig } from './check-config.ts'
import { checkOptions } from './check-options.ts'
import { checkSend } from './check-send.ts'
import { contextKeys } from './context-keys.ts'
import { fromLegacyOptions, type AgentConfig, type LegacyOptions } from './config.ts'
import { explainAgentPrompt } from './explain.ts'
import { describeThread } from './describe-thread.ts'
import { contextGiven, given, type ForRequest } from './given.ts'
import { fixedProcessors, historyForCall } from './history.ts'
import { prepareRun, resolveOptions } from './prepare.ts'
import { resolve } from './resolve.ts'
import { checkResumeData } from './resume.ts'
import { sendNotifications, type NotificationDeliveryPolicyConfig, type NotificationInput, type NotificationResult, type NotificationTarget } from './notifications.ts'
import { implicitRuntimes, inboxOf, storageOf } from './runtimes.ts'
import { sentMessage, sentSignal } from './sent-signals.ts'
import { agentSchedules, type AgentSchedules, type ScheduleInput, type ScheduleRecord } from './schedules.ts'
import { listSuspendedRuns, type SuspendedRuns, type SuspendedRunsFilter } from './suspended.ts'
import { anyTitler } from './titler.ts'

/** A model with instructions and tools, that can be asked once or live on threads. */
export class Agent<TAgentId extends string = string, TTools extends ToolsInput = ToolsInput> {
  readonly description: string | undefined
  readonly #config: AgentConfig
  readonly #storage: Storage | undefined
  #id: string | undefined
  #heed: Heed | undefined
  #memory: Memory | undefined
  #adopted: ThreadRuntime | undefined

  constructor(config: AgentConfig<TAgentId, TTools>) {
    this.#config = config
    checkConfig(this.#config)
    this.#id = config.id ?? config.name
    this.#heed = config.heed
    this.description = config.description
    this.#storage = storageIn(config.id ?? config.name ?? 'without a name', config.memory instanceof Memory ? config.memory.storage : undefined, fixedProcessors(config))
    config.heed?.admit(this)
  }

  get id(): TAgentId {
    if (this.#id === undefined) throw new HeedError('invalid_agent', 'This agent has no id. Give it one, or a name, or register it: new Heed({ agents: { support: agent } }).')
    return this.#id as TAgentId
  }

  get name(): string {
    return this.#config.name ?? this.id
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
    return explainAgentPrompt(this, this.#config, messages, options)
  }

  // Sending to a thread

  /** A user's words, into the running loop or, on an idle thread, as the start of a run. */
  sendMessage(message: MessageInput, options: SendOptions): SendReceipt {
    return this.#send('now', sentMessage(this, message), options)
  }

  /** A user's words as a turn of their own, after what is active. */
  queueMessage(message: MessageInput, options: SendOptions): SendReceipt {
    return this.#send('queue', sentMessage(this, message), options)
  }

  /** Context that a system produced. */
  sendSignal(signal: SignalInput, options: SendOptions): SendReceipt {
    return this.#send('now', sentSignal(this, signal), options)
  }

  /** The state of a lane. Skipped when the lane has it already. */
  async sendStateSignal(state: StateInput, options: SendOptions): Promise<StateReceipt> {
    const { input, lane } = stateSignal(state, options?.threadId)
    return sendState(this.threads(), this, sentSignal(this, input), checkSend(options), lane)
  }

  /** Something that happened elsewhere: a record in the inbox, which the delivery policy sends on now, later, summarised or not at all. */
  sendNotificationSignal(notification: NotificationInput, options: NotificationTarget): Promise<NotificationResult>
  sendNotificationSignal(notifications: readonly NotificationInput[], options: NotificationTarget): Promise<NotificationResult[]>
  sendNotificationSignal(given: NotificationInput | readonly NotificationInput[], options: NotificationTarget): Promise<NotificationResult | NotificationResult[]> {
    return sendNotifications(this, given, options)
  }

  /** Watches the inbox of a resource, or of one thread: its records, as they change. */
  async subscribeToInbox(options: InboxSubscribeOptions): Promise<InboxSubscription> {
    return inboxOf(this.threads()).subscribe(options)
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
    return subscribe(this.#registered(), given('subscribeToThread', options))
  }

  /**
   * Aborts what is active on a thread, in whatever process it runs, suspended runs included, and answers whether there was anything to
   * abort: `aborted` when its runner took the abort.
   */
  async abortRun(run: Scope & AbortOptions): Promise<AbortAnswer> {
    const { threadId, resourceId, ...options } = given('abortRun', run)
    return abortRun(this.threads(), { threadId, ...(resourceId === undefined ? {} : { resourceId }) }, options)
  }

  /** Aborts what is active on a thread. False when nothing is known here to be; `abortRun` asks the store, and other processes. */
  abortThreadStream(run: Scope & AbortOptions): boolean {
    const { threadId, resourceId, ...options } = given('abortThreadStream', run)
    return abortThread(this.threads(), { threadId, ...(resourceId === undefined ? {} : { resourceId }) }, options)
  }

  /** The run that is active or suspended on a thread, or null. */
  async activeRun(scope: Scope): Promise<ActiveRun | null> {
    return activeRun(this.#registered(), given('activeRun', scope))
  }

  /** Threads on which something is active or suspended, of any agent. Up to 100 unless told. */
  async listActiveThreads(query: { resourceId?: string; limit?: number } = {}): Promise<ThreadRow[]> {
    return listActiveThreads(this.#registered(), given('listActiveThreads', query))
  }

  async listQueued(scope: Scope): Promise<QueuedSignal[]> {
    return listQueued(this.threads(), given('listQueued', scope))
  }

  /** Takes signals out of the queue. Answers the ids that were still in it. */
  async cancelQueued(queued: Scope & { signalIds: string[] }): Promise<string[]> {
    const { signalIds, ...scope } = given('cancelQueued', queued)
    return cancelQueued(this.threads(), scope, signalIds)
  }

  /** Puts queued messages in this order. Answers the order that came of it. */
  async reorderQueued(queued: Scope & { signalIds: string[] }): Promise<string[]> {
    const { signalIds, ...scope } = given('reorderQueued', queued)
    return reorderQueued(this.threads(), scope, signalIds)
  }

  /** What happened to a signal: accepted, waiting, drained at which step, answered by which run. */
  async explain(signal: Scope & { signalId: string }): Promise<ExplainedSignal | null> {
    const { signalId, ...scope } = given('explain', signal)
    return explainSignal((await this.#open()).store, scope, signalId)
  }

  /** Takes up a parked run, the newest one of the thread unless it is named, from its last finished step. */
  async retryParked(run: Scope & { runId?: string }): Promise<{ accepted: true; runId: string }> {
    const { runId, ...scope } = given('retryParked', run)
    return { accepted: true, runId: await retryParked(this.threads(), this, scope, runId) }
  }

  // Deciding about tool calls

  /** Approves or declines a call that waits. What follows arrives at those who watch the thread. */
  async sendToolApproval(approval: ToolApproval): Promise<CallDecided> {
    return approveCall(this, this.#config, given('sendToolApproval', approval))
  }

  /** Resumes a call that suspended itself. What follows arrives at those who watch the thread. */
  async sendStreamResume(resume: CallResume): Promise<CallDecided> {
    return decideCall(this, this.#config, given('sendStreamResume', resume))
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
    return listSuspendedRuns(this.threads(), this.id, given('listSuspendedRuns', filter))
  }

  // What it is made of

  /** Its memory. An agent without one has its history all the same. */
  async getMemory(request?: ForRequest): Promise<Memory> {
    const requestContext = contextGiven('getMemory()', request)
    const memory = this.#config.memory === undefined ? (this.#memory ??= new Memory()) : await resolve(this.#config.memory, { requestContext })
    memory.bind({
      store: async () => (await this.#open()).store,
      storage: async () => storageOf(await this.#open()),
      transferred: (threadId, resourceId) => this.threads().neighbours.transferred(threadId, resourceId),
    })
    return memory
  }

  async getMetadata(request?: ForRequest): Promise<Record<string, unknown>> {
    const requestContext = contextGiven('getMetadata()', request)
    return this.#config.metadata === undefined ? {} : resolve(this.#config.metadata, { requestContext })
  }

  // For Heed itself

  /** @internal */
  get signalTags(): readonly string[] {
    return this.#config.signalTags ?? []
  }

  /** @internal */
  get deliveryPolicy(): NotificationDeliveryPolicyConfig | undefined {
    return this.#config.notifications?.deliveryPolicy
  }

  /** @internal */
  get canRefuse(): boolean {
    const { inputProcessors, outputProcessors } = this.#config
    return inputProcessors !== undefined || outputProcessors !== undefined
  }

  /** @internal */
  threads(): ThreadRuntime {
    if (!this.#heed && !this.#storage && this.#adopted) return this.#adopted
    return (this.#heed?.runtimes ?? implicitRuntimes).of(this.#storage)
  }

  /** @internal An agent without a place of its own keeps its threads where the agent that called it last does. */
  adopt(runtime: ThreadRuntime): void {
    this.#adopted = runtime
  }

  /** @internal */
  join(heed: Heed, key: string): void {
    if (this.#heed && !this.#heed.closed) {
      throw new HeedError('invalid_agent', `The agent '${key}' belongs to another Heed, which is open. Make an agent for each, or close the other first.`, { details: { key } })
    }
    this.#heed = heed
    this.#id ??= key
  }

  /** @internal */
  async prepare(options: AgentExecutionOptions, request: RunRequest, environment: RunEnvironment): Promise<RunSetup> {
    const runtime = environment instanceof ThreadRuntime ? environment : this.threads()
    return prepareRun(this.#config, { id: this.id, name: this.name }, await resolveOptions(this.#config, options), request, { environment, runtime })
  }

  /** @internal */
  async defaultMemory(options: AgentExecutionOptions): Promise<MemoryTarget | undefined> {
    const { defaultOptions, defaultGenerateOptionsLegacy, defaultStreamOptionsLegacy } = this.#config
    if (!defaultOptions && !defaultGenerateOptionsLegacy && !defaultStreamOptionsLegacy) return undefined
    return (await resolveOptions(this.#config, options)).memory
  }

  /** @internal */
  describeThread(thread: { title?: string; metadata?: JSONObject }, options: AgentExecutionOptions): Promise<NonNullable<Send['thread']>> {
    return describeThread(this.#config, thread, options, this.id)
  }

  /** @internal */
  async titler(): Promise<Titler> {
    return anyTitler(this.#config, await resolveOptions(this.#config, {}), this.id, this.threads())
  }

  /** @internal */
  window(options: AgentExecutionOptions): Window {
    const { memory } = this.#config
    return windowOf(historyOption(memory instanceof Memory ? memory.options : undefined, historyIn(fixedProcessors(this.#config)), options.memory?.options))
  }

  /** @internal */
  contextKeys(): Promise<readonly string[]> | undefined {
    return contextKeys(this.#config)
  }

  /** @internal */
  memoryOptions(options: AgentExecutionOptions): Promise<MemoryOptions> | undefined {
    return historyForCall(this.id, this.#config, options)
  }

  #registered(): ThreadRuntime {
    const runtime = this.threads()
    runtime.register(this)
    return runtime
  }

  async #open(): Promise<ThreadRuntime> {
    const runtime = this.#registered()
    await runtime.open()
    return runtime
  }

  #send(mode: 'now' | 'queue', signal: Signal, options: SendOptions): SendReceipt {
    return sendSignal(this.threads(), this, mode, signal, checkSend(options))
  }

  async #continue(decision: RunDecision): Promise<StreamResult<TTools, never>> {
    await checkResumeData(this, this.#config, decision)
    return (await answerSuspended(this, decision)) as StreamResult<TTools, never>
  }
}
