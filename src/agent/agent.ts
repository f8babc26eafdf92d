import { HeedError } from '../base/errors.ts'
import type { Heed } from '../heed/heed.ts'
import { Site } from '../heed/site.ts'
import type { JSONObject, JSONValue } from '../base/json.ts'
import { Memory } from '../memory/memory.ts'
import { historyIn, storageIn } from '../memory/named-processors.ts'
import type { MemoryBinding } from '../memory/bindings.ts'
import { historyOption, windowOf } from '../memory/window.ts'
import type { AgentInput } from '../message/read/input.ts'
import type { ExplainedPrompt } from '../prompt/explain.ts'
import type { AgentExecutionOptions, MemoryOptions, MemoryTarget } from '../run/options.ts'
import type { RequestContext } from '../run/request-context.ts'
import type { ToolsInput } from '../run/tools/tool-set.ts'
import type { Schema } from '../schema/schema.ts'
import type { MessageInput, Signal, SignalInput } from '../signals/signal.ts'
import { stateSignal, type StateInput } from '../signals/state.ts'
import type { LaneRow, Scope, Send, ThreadRow, Window } from '../store/contract/threads.ts'
import { activeRun, listActiveThreads, type ActiveRun } from '../thread/control/active.ts'
import { explainSignal, type ExplainedSignal } from '../thread/control/explain.ts'
import { readLane, readLaneHistory, readLanes, type Lane, type LaneHistory } from '../thread/control/lanes.ts'
import { cancelQueued, listQueued, reorderQueued, type QueuedSignal } from '../thread/send/queue.ts'
import type { SendReceipt, StateReceipt } from '../thread/send/receipt.ts'
import { retryParked } from '../thread/control/retry.ts'
import type { PreparedRun, RunEnvironment, RunRequest, Titler } from '../thread/runtime/runnable.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import type { SendOptions } from '../thread/send/send-options.ts'
import type { AgentThreadSubscription } from '../thread/watch/subscription.ts'
import { abortRun, type AbortOptions } from '../thread/control/abort.ts'
import type { AbortAnswer } from '../thread/cluster/peers.ts'
import type { InboxSubscribeOptions, InboxSubscription } from '../inbox/subscription.ts'
import { abortThread, subscribe, type SubscribeOptions } from '../thread/watch/watching.ts'
import type { GenerateResult, StreamResult } from './answers.ts'
import { approveCall, decideCall, type CallDecided, type CallResume, type SuspendedTarget, type ToolApproval } from './approval.ts'
import { answer, answerSuspended, type RunDecision } from './call.ts'
import { checkConfig } from './check-config.ts'
import { checkOptions } from './check-options.ts'
import { checkSend } from './check-send.ts'
import { fromLegacyOptions, type AgentConfig, type LegacyOptions } from './config.ts'
import { contextKeys } from './context-keys.ts'
import { explainAgentPrompt } from './explain.ts'
import { describeAgent, type AgentDescription } from './describe.ts'
import { describeThread } from './describe-thread.ts'
import { contextGiven, given, type ForRequest } from './given.ts'
import { fixedProcessors, historyForCall } from './history.ts'
import { contextOf, memoryFor, memoryPlace } from './memory-place.ts'
import { PlacingSends } from './placing-send.ts'
import { prepareRun, resolveOptions } from './prepare.ts'
import { resolve } from './resolve.ts'
import { checkResumeData } from './resume.ts'
import { sendNotifications, type NotificationDeliveryPolicyConfig, type NotificationInput, type NotificationResult, type NotificationTarget } from './notifications.ts'
import { isNamed, sentMessage, sentSignal } from './sent-signals.ts'
import { agentSchedules, type AgentSchedules, type ScheduleInput, type ScheduleRecord } from './schedules.ts'
import { StorageBinding } from './storage-binding.ts'
import { listSuspendedRuns, type SuspendedRuns, type SuspendedRunsFilter } from './suspended.ts'
import { anyTitler } from './titler.ts'

/** A model with instructions and tools, that can be asked once or live on threads. */
export class Agent<TAgentId extends string = string, TTools extends ToolsInput = ToolsInput> {
  readonly description: string | undefined
  readonly #config: AgentConfig
  #binding: StorageBinding
  #id: string | undefined
  #memory: Memory | undefined
  /** The request that a copy was made for. */
  #context: RequestContext | undefined
  /** Copies of this agent at sites that requests chose. */
  readonly #copies = new WeakMap<Site, this>()
  readonly #placing = new PlacingSends()

  constructor(config: AgentConfig<TAgentId, TTools>) {
    this.#config = config
    checkConfig(this.#config)
    this.#id = config.id ?? config.name
    this.description = config.description
    const memory = config.memory instanceof Memory ? config.memory.storage : undefined
    this.#binding = new StorageBinding(storageIn(config.id ?? config.name ?? 'without a name', memory, fixedProcessors(config)), config.heed)
    config.heed?.admit(this)
    this.#bindMemory()
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
    const site = this.site()
    return this.#send(site, 'now', sentMessage(site, this.signalTags, message), options, isNamed(message))
  }

  /** A user's words as a turn of their own, after what is active. */
  queueMessage(message: MessageInput, options: SendOptions): SendReceipt {
    const site = this.site()
    return this.#send(site, 'queue', sentMessage(site, this.signalTags, message), options, isNamed(message))
  }

  /** Context that a system produced. */
  sendSignal(signal: SignalInput, options: SendOptions): SendReceipt {
    const site = this.site()
    return this.#send(site, 'now', sentSignal(site, this.signalTags, signal), options, isNamed(signal))
  }

  /** The state of a lane. Skipped when the lane has it already. */
  async sendStateSignal(state: StateInput, options: SendOptions): Promise<StateReceipt> {
    const { input, lane } = stateSignal(state, options?.threadId)
    const checked = checkSend(options)
    const here = await this.resolveStorage(options.ifIdle?.streamOptions?.requestContext)
    const site = here.site()
    return site.threads.sends.sendState(here, sentSignal(site, this.signalTags, input), checked, { lane, named: isNamed(input) })
  }

  /** Something that happened elsewhere: a record in the inbox, which the delivery policy sends on now, later, summarised or not at all. */
  sendNotificationSignal(notification: NotificationInput, options: NotificationTarget): Promise<NotificationResult>
  sendNotificationSignal(notifications: readonly NotificationInput[], options: NotificationTarget): Promise<NotificationResult[]>
  async sendNotificationSignal(given: NotificationInput | readonly NotificationInput[], options: NotificationTarget): Promise<NotificationResult | NotificationResult[]> {
    return sendNotifications(this, given, options)
  }

  /** Watches the inbox of a resource, or of one thread: its records, as they change. */
  async subscribeToInbox(options: InboxSubscribeOptions): Promise<InboxSubscription> {
    return (await this.#site()).inbox.subscribe(options)
  }

  /** Sends something at certain times: kept in the store, sent once by whichever process is there. */
  schedule(input: ScheduleInput): Promise<ScheduleRecord> {
    return this.schedules.create(input)
  }

  /** What is scheduled for this agent. */
  get schedules(): AgentSchedules {
    return agentSchedules(this)
  }

  // Reading the lanes of a thread

  /** What a lane says now; null when nothing was said of it. */
  async getLane(lane: Scope & { id: string }): Promise<Lane | null> {
    const { id, ...scope } = given('getLane', lane)
    return readLane((await this.#open()).threads.store, scope, id)
  }

  /** The lanes of a thread, by id. */
  async listLanes(query: Scope & { after?: string; limit?: number }): Promise<LaneRow[]> {
    const { after, limit, ...scope } = given('listLanes', query)
    return readLanes((await this.#open()).threads.store, scope, { after, limit })
  }

  /** Everything that a lane was told, newest first; `before` is the version to go on below. */
  async listLaneHistory(query: Scope & { id: string; before?: number; limit?: number }): Promise<LaneHistory> {
    const { id, before, limit, ...scope } = given('listLaneHistory', query)
    return readLaneHistory((await this.#open()).threads.store, scope, id, { before, limit })
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
    const here = this.resolveStorage()
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
    return explainSignal((await this.#open()).threads.store, scope, signalId)
  }

  /** Takes up a parked run, the newest one of the thread unless it is named, from its last finished step. */
  async retryParked(run: Scope & { runId?: string }): Promise<{ accepted: true; runId: string }> {
    const { runId, ...scope } = given('retryParked', run)
    return { accepted: true, runId: await retryParked(await this.#threads(), this, scope, runId) }
  }

  // Deciding about tool calls

  /** Approves or declines a call that waits. What follows arrives at those who watch the thread. */
  async sendToolApproval(approval: ToolApproval): Promise<CallDecided> {
    return approveCall(await this.resolveStorage(), this.#config, given('sendToolApproval', approval))
  }

  /** Resumes a call that suspended itself. What follows arrives at those who watch the thread. */
  async sendStreamResume(resume: CallResume): Promise<CallDecided> {
    return decideCall(await this.resolveStorage(), this.#config, given('sendStreamResume', resume))
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
  async getMemory(request: ForRequest = this.#context ?? {}): Promise<Memory> {
    const memory = (await memoryFor(this.#config, contextGiven('getMemory()', request), this.id)) ?? (this.#memory ??= new Memory())
    const here = this.storageDependsOnRequest ? this.#boundTo(memory, this.site()) : this
    return memory.at(here.#memoryPlace(), here.#storageOwner)
  }

  /**
   * The same agent where the threads of this request are: needed where `memory` is a function that brings a storage of its own. Its runs take
   * their request context from their own options, as ever.
   */
  async forRequest(request: ForRequest): Promise<this> {
    const requestContext = contextGiven('forRequest()', request)
    if (!this.storageDependsOnRequest) return this
    const here = await this.resolveStorage(requestContext)
    const copy = here.#copyAt(here.#binding.fixed)
    copy.#context = requestContext
    return copy
  }

  /** Its model and its tools, for those who list agents. */
  async describe(request: ForRequest = this.#context ?? {}): Promise<AgentDescription> {
    return describeAgent(this.#config, this.id, this.site(), contextGiven('describe()', request))
  }

  async getMetadata(request: ForRequest = this.#context ?? {}): Promise<Record<string, unknown>> {
    const requestContext = contextGiven('getMetadata()', request)
    return this.#config.metadata === undefined ? {} : resolve(this.#config.metadata, { requestContext })
  }

  // Its storage

  /** @internal The site of its threads. */
  site(): Site {
    return this.#binding.site()
  }

  /** @internal */
  threads(): ThreadRuntime {
    return this.#binding.site().threads
  }

  /** @internal */
  get storageDependsOnRequest(): boolean {
    return typeof this.#config.memory === 'function'
  }

  /** @internal This agent, bound to the storage of a request: the function that finds the memory is called. Where that throws, the result rejects. */
  resolveStorage(requestContext?: RequestContext): this | Promise<this> {
    if (!this.storageDependsOnRequest || (this.#binding.isFixed && !requestContext)) return this
    const otherwise = this.site()
    try {
      const found = memoryFor(this.#config, contextOf(this.#config, requestContext), this.id)
      return found instanceof Promise ? found.then((memory) => this.#boundTo(memory, otherwise)) : this.#boundTo(found, otherwise)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** This agent at the storage of a memory; where the memory has none, at `otherwise`. */
  #boundTo(memory: Memory | undefined, otherwise: Site): this {
    const storage = storageIn(this.id, memory?.storage, fixedProcessors(this.#config))
    const site = storage ? this.#binding.siteOf(storage) : otherwise
    const copy = this.#copies.get(site) ?? this.#copyAt(site)
    this.#copies.set(site, copy)
    return copy
  }

  #copyAt(site: Site | undefined): this {
    const copy = new Agent({ ...this.#config, id: this.id, heed: undefined }) as this
    copy.#binding = this.#binding.fixedAt(site)
    return copy
  }

  /** @internal An agent without a storage and a Heed of its own uses the site of the agent that called it last. */
  inheritStorage(site: Site): void {
    this.#binding.inherit(site)
  }

  /** What its threads are kept by, other than by its memory: a storage that a processor named, or its Heed. */
  get #storageOwner(): object | undefined {
    const { memory } = this.#config
    const { heed, storage } = this.#binding
    return memory instanceof Memory && memory.storage ? heed : (storage ?? heed)
  }

  /** @internal */
  join(heed: Heed, key: string): void {
    this.#binding.join(heed, key)
    this.#id ??= key
    this.#bindMemory()
  }

  /** Reads through its memory go to the same threads, from when it belongs to a Heed. */
  #bindMemory(): void {
    const { memory } = this.#config
    const owner = this.#storageOwner
    if (memory instanceof Memory && owner) memory.bind(this.#memoryPlace(), owner)
  }

  #memoryPlace(): MemoryBinding {
    return memoryPlace({ site: () => this.site(), open: () => this.#open(), closed: () => this.#binding.heed?.closed ?? false })
  }

  /** Its site, with this agent registered there. */
  #site(): Site | Promise<Site> {
    const here = this.resolveStorage()
    return here instanceof Promise ? here.then(registered) : registered(here)
  }

  #threads(): ThreadRuntime | Promise<ThreadRuntime> {
    const site = this.#site()
    return site instanceof Promise ? site.then(({ threads }) => threads) : site.threads
  }

  async #open(): Promise<Site> {
    const site = await this.#site()
    await site.threads.open()
    return site
  }

  // Its runs

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
  async prepare(options: AgentExecutionOptions, request: RunRequest, environment: RunEnvironment): Promise<PreparedRun> {
    const site = environment instanceof Site ? environment : this.site()
    return prepareRun(this.#config, { id: this.id, name: this.name }, options, request, { environment, site })
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
    return anyTitler(this.#config, await resolveOptions(this.#config, {}), this.id, this.site())
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

  #send(site: Site, mode: 'now' | 'queue', signal: Signal, given: SendOptions, named: boolean): SendReceipt {
    const checked = checkSend(given)
    if (!this.storageDependsOnRequest) return site.threads.sends.send(this, mode, signal, checked, { named })
    const here = this.resolveStorage(given.ifIdle?.streamOptions?.requestContext)
    if (!(here instanceof Promise) && !this.#placing.has(given)) return here.threads().sends.send(here, mode, signal, checked, { named })
    // It may reject while earlier sends are on their way; the receipt reports it.
    if (here instanceof Promise) here.catch(() => {})
    return this.#placing.receipt(site.threads, signal, given, async (runId) => {
      const placed = await here
      return placed.threads().sends.send(placed, mode, signal, checked, { runId, named })
    })
  }

  async #continue(decision: RunDecision): Promise<StreamResult<TTools, never>> {
    const here = await this.resolveStorage()
    await checkResumeData(here, this.#config, decision)
    return (await answerSuspended(here, decision)) as StreamResult<TTools, never>
  }
}

function registered(agent: Agent): Site {
  const site = agent.site()
  site.threads.register(agent)
  return site
}
