import { HeedError } from '../base/errors.ts'
import { editableOf } from '../editor/applied.ts'
import type { Editable } from '../editor/contract.ts'
import type { Heed } from '../heed/heed.ts'
import { Site } from '../heed/site.ts'
import type { JSONObject, JSONValue } from '../base/json.ts'
import { untilAborted } from '../base/promises.ts'
import { Memory, type MemoryBinding } from '../memory/memory.ts'
import { storageIn } from '../memory/processors.ts'
import type { AgentInput } from '../message/read/input.ts'
import type { ExplainedPrompt } from '../prompt/explain.ts'
import { systemMessages } from '../prompt/system.ts'
import type { AgentExecutionOptions, MemoryOptions, MemoryTarget } from '../run/options.ts'
import type { RequestContext } from '../run/request-context.ts'
import type { ToolsInput } from '../run/tools/tool-set.ts'
import type { Schema } from '../schema/schema.ts'
import type { AgentScorers } from '../scorers/contract.ts'
import type { MessageInput, SignalInput } from '../signals/signal.ts'
import type { StateInput } from '../signals/state.ts'
import type { LaneRow, Scope, Send, ThreadRow, Window } from '../store/contract/threads.ts'
import { activeRun, listActiveThreads, type ActiveRun } from '../thread/control/inspect.ts'
import { readLane, readLaneHistory, readLanes, type Lane, type LaneHistory } from '../thread/control/lanes.ts'
import { retryParked } from '../thread/control/resume.ts'
import { cancelQueued, listQueued, reorderQueued, type QueuedSignal } from '../thread/send/queue.ts'
import type { SendReceipt, StateReceipt } from '../thread/send/receipt.ts'
import type { PreparedRun, RunEnvironment, Runnable, RunRequest, Titler } from '../thread/runtime/runnable.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import type { SendOptions } from '../thread/send/options.ts'
import { subscribe, type AgentThreadSubscription, type SubscribeOptions } from '../thread/stream/subscription.ts'
import { abortRun, abortThread, type AbortOptions } from '../thread/control/abort.ts'
import type { AbortAnswer } from '../thread/cluster/peers.ts'
import type { InboxSubscribeOptions, InboxSubscription } from '../inbox/subscription.ts'
import type { GenerateResult, StreamResult } from './stream.ts'
import {
  approveCall, checkResumeData, decideCall, listSuspendedRuns, type CallDecided, type CallResume, type SuspendedRuns,
  type SuspendedRunsFilter, type SuspendedTarget, type ToolApproval,
} from './approvals.ts'
import { runCall, continueSuspended, type RunDecision } from './call.ts'
import { checkInput, type CheckInputOptions } from './check-input.ts'
import { canRejectInput, checkConfig, resolve, resolveScorers, withPlainProcessors, type AgentConfig } from './config.ts'
import {
  checkOptions, requestContextIn, targetIn, validateArguments, type ExplainOptions, type LegacyOptions, type ForRequest,
} from './options.ts'
import { describeAgent, explain, explainAgentPrompt, type AgentDescription, type Explained, type SignalName } from './inspect.ts'
import {
  contextOf, declaredKeys, dependsOnRequest, historyOptionsOfCall, memoryPlace, resolveMemory, staticProcessors, windowOfAgent,
} from './memory/request-memory.ts'
import {
  hasCallerId, messageToSignal, sendNotifications, sendState, toSignal, AgentSends, type NotificationDeliveryPolicyConfig,
  type NotificationInput, type NotificationResult, type NotificationTarget,
} from './sends.ts'
import { describeThread, legacyOptions, prepareRun, resolveOptions } from './prepare.ts'
import { agentSchedules, type AgentSchedules, type ScheduleInput, type ScheduleRecord } from './schedules.ts'
import { registered, StorageBinding } from './storage-binding.ts'
import { AgentVoice } from './voice/agent-voice.ts'
import {
  awaitSignal, cancelWatch, getWatch, listWatches, watchingOf, type AgentWatchQuery, type AgentWatchScope, type WatchDetails,
  type WatchInput, type WatchPage, type WatchRecord, type WatchTarget, type WatchToExplain,
} from './watches.ts'
import { listWorkflows, type WorkflowLike } from './workflows.ts'
import { titlerOfMarkedThread } from './memory/titler.ts'

/** A model with instructions and tools. It runs single calls, or on threads. */
export class Agent<TAgentId extends string = string, TTools extends ToolsInput = ToolsInput> {
  readonly description: string | undefined
  /** Speaks and listens, also on threads. Where `voice` is a function, that of an empty request. */
  readonly voice: AgentVoice = new AgentVoice(this, () => this.#config)
  /** @internal */ readonly signalTags: readonly string[]
  /** @internal */ readonly deliveryPolicy: NotificationDeliveryPolicyConfig | undefined
  /** @internal */ readonly watching: ReturnType<typeof watchingOf>
  /** @internal */ readonly canRejectInput: boolean
  /** @internal */ readonly remote: AgentConfig['remote']
  /** @internal */ readonly scorers: Runnable['scorers']
  /** @internal */ readonly editable: Editable
  readonly #config: AgentConfig
  #binding: StorageBinding
  /** The last resolution of the binding. It holds until its storage is closed or the binding changes. */
  #resolved: Site | undefined
  /** The window of the configuration, without options of a call. */ #window: Window | undefined
  readonly #historyDependsOnRequest: boolean
  #id: string | undefined
  #memory: Memory | undefined
  /** The request context of a copy that `forRequest` made. */ #context: RequestContext | undefined
  /** Copies of this agent at sites that requests chose. */ readonly #copies = new WeakMap<Site, this>()
  readonly #sends = new AgentSends()

  constructor(config: AgentConfig<TAgentId, TTools>) {
    this.#config = withPlainProcessors(config)
    checkConfig(this.#config)
    this.#id = config.id ?? config.name
    this.description = config.description
    this.signalTags = config.signalTags ?? []
    this.deliveryPolicy = config.notifications?.deliveryPolicy
    this.watching = watchingOf(this.#config)
    this.canRejectInput = canRejectInput(this.#config)
    this.remote = config.remote
    this.editable = editableOf(config.editor)
    this.scorers = config.scorers && (({ requestContext }) => resolveScorers(config, contextOf(this.#config, requestContext), this.id))
    const memory = config.memory instanceof Memory ? config.memory.storage : undefined
    const storage = storageIn(config.id ?? config.name ?? 'without a name', memory, staticProcessors(this.#config))
    this.#binding = new StorageBinding(storage, config.heed)
    this.#historyDependsOnRequest = dependsOnRequest(config)
    config.heed?.admit(this)
    this.#bindMemory()
  }

  get id(): TAgentId {
    if (this.#id !== undefined) return this.#id as TAgentId
    const why = 'This agent has no id. Give it one, or a name, or register it: new Heed({ agents: { support: agent } }).'
    throw new HeedError('invalid_agent', why)
  }

  get name(): string {
    return this.#config.name ?? this.id
  }

  /** Runs the agent and resolves with the whole result. Rejects when the run failed or was aborted; a tripwire is part of the result. */
  async generate<S extends Schema = never>(
    messages: AgentInput, options: AgentExecutionOptions<S> = {},
  ): Promise<GenerateResult<TTools, S>> {
    checkOptions(options, 'generate()')
    this.#binding.heed?.use()
    const result = await (await runCall(this, messages, options, false)).result
    if (result.finishReason === 'aborted')
      throw new HeedError('aborted', `The run ${result.runId} was aborted.`, { cause: options.abortSignal?.reason })
    return result as GenerateResult<TTools, S>
  }

  /** Runs the agent and resolves as soon as the run begins. */
  async stream<S extends Schema = never>(messages: AgentInput, options: AgentExecutionOptions<S> = {}): Promise<StreamResult<TTools, S>> {
    checkOptions(options, 'stream()')
    this.#binding.heed?.use()
    return (await runCall(this, messages, options, true)) as StreamResult<TTools, S>
  }

  /** An older name of `generate`, with `defaultGenerateOptionsLegacy`. */
  async generateLegacy(messages: AgentInput, options: LegacyOptions = {}): Promise<GenerateResult<TTools, never>> {
    return this.generate(messages, await legacyOptions(this.#config, 'defaultGenerateOptionsLegacy', options))
  }

  /** An older name of `stream`, with `defaultStreamOptionsLegacy`. */
  async streamLegacy(messages: AgentInput, options: LegacyOptions = {}): Promise<StreamResult<TTools, never>> {
    return this.stream(messages, await legacyOptions(this.#config, 'defaultStreamOptionsLegacy', options))
  }

  /** The prompt of a call with these options, part by part, with the origin and cost of each. Calls no model, processor or callback. */
  async explainPrompt(messages: AgentInput, options: ExplainOptions = {}): Promise<ExplainedPrompt> {
    this.#binding.heed?.use()
    return explainAgentPrompt(this, this.#config, messages, options)
  }

  /** Texts as its input processors leave them, for a program that stores texts of others itself. Rejects with `tripwire`. */
  async checkInput(texts: readonly string[], options: CheckInputOptions = {}): Promise<readonly string[]> {
    this.#binding.heed?.use()
    return checkInput(this, this.#config, texts, options)
  }

  /** Sends a user's message into the active run or, on an idle thread, as the start of a run. */
  sendMessage(message: MessageInput, options: SendOptions): SendReceipt {
    const site = this.site()
    return this.#sends.send(this, site, 'now', messageToSignal(site, this.signalTags, message), options, hasCallerId(message))
  }

  /** Queues a user's message: it starts a run of its own after the active one. */
  queueMessage(message: MessageInput, options: SendOptions): SendReceipt {
    const site = this.site()
    return this.#sends.send(this, site, 'queue', messageToSignal(site, this.signalTags, message), options, hasCallerId(message))
  }

  /** Sends context that a system produced. */
  sendSignal(signal: SignalInput, options: SendOptions): SendReceipt {
    const site = this.site()
    return this.#sends.send(this, site, 'now', toSignal(site, this.signalTags, signal), options, hasCallerId(signal))
  }

  /** Sends the state of a lane. Skipped when the lane has this state already. */
  async sendStateSignal(state: StateInput, options: SendOptions): Promise<StateReceipt> {
    return sendState(this, state, options)
  }

  /** Stores a notification in the inbox. The delivery policy delivers it now, later, in a summary or not at all. */
  sendNotificationSignal(notification: NotificationInput, options: NotificationTarget): Promise<NotificationResult>
  sendNotificationSignal(notifications: readonly NotificationInput[], options: NotificationTarget): Promise<NotificationResult[]>
  async sendNotificationSignal(
    notifications: NotificationInput | readonly NotificationInput[], options: NotificationTarget,
  ): Promise<NotificationResult | NotificationResult[]> {
    return sendNotifications(this, notifications, options)
  }

  /** Subscribes to changes of the inbox of a resource, or of one thread. */
  async subscribeToInbox(options: InboxSubscribeOptions): Promise<InboxSubscription> {
    return (await this.#site()).inbox.subscribe(options)
  }

  /** Stores a send for given times. Each occurrence is sent once, by any of the processes on the storage. */
  schedule(input: ScheduleInput): Promise<ScheduleRecord> {
    return this.schedules.create(input)
  }

  /** The schedules of this agent. */
  get schedules(): AgentSchedules {
    return agentSchedules(this)
  }

  /** Waits for a message of a channel. The thread receives a signal for each match and for the end of the watch. */
  awaitSignal(input: WatchInput, target: WatchTarget): Promise<WatchRecord> {
    return awaitSignal(this, input, target)
  }

  /** The watches of this agent, by id, up to `limit`; 100 by default. */
  listWatches(query?: AgentWatchQuery): Promise<WatchPage> {
    return listWatches(this, query)
  }

  /** A watch with the messages that were considered; null when it doesn't exist. */
  getWatch(scope: AgentWatchScope): Promise<WatchDetails | null> {
    return getWatch(this, scope)
  }

  /** Ends a watch. The thread receives a signal of the end. */
  cancelWatch(scope: AgentWatchScope): Promise<WatchRecord> {
    return cancelWatch(this, scope)
  }

  /** The current state of a lane; null when it has none. */
  async getLane(lane: Scope & { id: string }): Promise<Lane | null> {
    const { id, ...scope } = validateArguments('getLane', lane)
    return readLane((await this.#open()).threads.store, scope, id)
  }

  /** The lanes of a thread, by id. */
  async listLanes(query: Scope & { after?: string; limit?: number }): Promise<LaneRow[]> {
    const { after, limit, ...scope } = validateArguments('listLanes', query)
    return readLanes((await this.#open()).threads.store, scope, { after, limit })
  }

  /** The states that a lane received, newest first; `before` is the version to continue below. */
  async listLaneHistory(query: Scope & { id: string; before?: number; limit?: number }): Promise<LaneHistory> {
    const { id, before, limit, ...scope } = validateArguments('listLaneHistory', query)
    return readLaneHistory((await this.#open()).threads.store, scope, id, { before, limit })
  }

  /** Subscribes to a thread: its chunks, its active run, and a way to abort it. */
  async subscribeToThread(options: SubscribeOptions): Promise<AgentThreadSubscription> {
    return subscribe(await this.#threads(), validateArguments('subscribeToThread', options))
  }

  /** Aborts the active or suspended run of a thread, in any process. `aborted` when the runner of the thread took the abort. */
  async abortRun(run: Scope & AbortOptions): Promise<AbortAnswer> {
    const { threadId, resourceId, ...options } = validateArguments('abortRun', run)
    const here = this.#threads()
    // No await where the storage is known: the abort must not hit a signal that is sent next.
    return abortRun(here instanceof Promise ? await here : here, { threadId, ...(resourceId === undefined ? {} : { resourceId }) }, options)
  }

  /** Aborts the active run of a thread. False when this process knows of none; `abortRun` also checks the store and other processes. */
  abortThreadStream(run: Scope & AbortOptions): boolean {
    const { threadId, resourceId, ...options } = validateArguments('abortThreadStream', run)
    const here = this.resolveStorage()
    if (here instanceof Promise) {
      const failed = (error: unknown) => this.threads().logger.error('a run could not be aborted', { threadId, error: String(error) })
      here.then((placed) => placed.abortThreadStream(run)).catch(failed)
      return false
    }
    return abortThread(here.threads(), { threadId, ...(resourceId === undefined ? {} : { resourceId }) }, options)
  }

  /** The run that is active or suspended on a thread, or null. */
  async activeRun(scope: Scope): Promise<ActiveRun | null> {
    return activeRun(await this.#threads(), validateArguments('activeRun', scope))
  }

  /** Threads with an active or suspended run, of any agent. Up to `limit`; 100 by default. */
  async listActiveThreads(query: { resourceId?: string; limit?: number } = {}): Promise<ThreadRow[]> {
    return listActiveThreads(await this.#threads(), validateArguments('listActiveThreads', query))
  }

  async listQueued(scope: Scope): Promise<QueuedSignal[]> {
    return listQueued(await this.#threads(), validateArguments('listQueued', scope))
  }

  /** Removes signals from the queue. Returns the ids that were still in it. */
  async cancelQueued(queued: Scope & { signalIds: string[] }): Promise<string[]> {
    const { signalIds, ...scope } = validateArguments('cancelQueued', queued)
    return cancelQueued(await this.#threads(), scope, signalIds)
  }

  /** Puts queued messages in this order. Returns the resulting order. */
  async reorderQueued(queued: Scope & { signalIds: string[] }): Promise<string[]> {
    const { signalIds, ...scope } = validateArguments('reorderQueued', queued)
    return reorderQueued(await this.#threads(), scope, signalIds)
  }

  /** What happened to a signal, from its acceptance to its answer; or which messages a watch considered, and why each matched or not. */
  async explain<Asked extends SignalName | WatchToExplain>(asked: Asked): Promise<Explained<Asked> | null> {
    return explain(this, asked)
  }

  /** Continues a parked run from its last finished step; the newest one of the thread unless `runId` names another. */
  async retryParked(run: Scope & { runId?: string }): Promise<{ accepted: true; runId: string }> {
    const { runId, ...scope } = validateArguments('retryParked', run)
    return { accepted: true, runId: await retryParked(await this.#threads(), this, scope, runId) }
  }

  /** Approves or declines a suspended call. Subscribers of the thread receive what follows. */
  async sendToolApproval(approval: ToolApproval): Promise<CallDecided> {
    return approveCall(await this.resolveStorage(), this.#config, validateArguments('sendToolApproval', approval))
  }

  /** Resumes a call that suspended itself. Subscribers of the thread receive what follows. */
  async sendStreamResume(resume: CallResume): Promise<CallDecided> {
    return decideCall(await this.resolveStorage(), this.#config, validateArguments('sendStreamResume', resume))
  }

  /** Approves a call and returns the stream of what follows. */
  async approveToolCall(call: SuspendedTarget): Promise<StreamResult<TTools, never>> {
    return this.#continue({ ...validateArguments('approveToolCall', call), approved: true })
  }

  /** Declines a call, with a reason that the model reads, and returns the stream of what follows. */
  async declineToolCall(call: SuspendedTarget & { reason?: string }): Promise<StreamResult<TTools, never>> {
    return this.#continue({ ...validateArguments('declineToolCall', call), approved: false })
  }

  /** Resumes a call that suspended itself and returns the stream of what follows. */
  async resumeStream(resumeData: JSONValue, call: SuspendedTarget): Promise<StreamResult<TTools, never>> {
    return this.#continue({ ...validateArguments('resumeStream', call), resumeData })
  }

  async listSuspendedRuns(filter: SuspendedRunsFilter = {}): Promise<SuspendedRuns> {
    return listSuspendedRuns(await this.#threads(), this.id, validateArguments('listSuspendedRuns', filter))
  }

  /** Its memory. An agent without one has its history all the same. */
  async getMemory(request: ForRequest = this.#context ?? {}): Promise<Memory> {
    const memory = (await resolveMemory(this.#config, requestContextIn('getMemory()', request), this.id)) ?? (this.#memory ??= new Memory())
    const here = this.storageDependsOnRequest ? this.#boundTo(memory, this.site()) : this
    return memory.at(here.#memoryPlace(), here.#storageOwner)
  }

  /** Bound to the storage of a request, for a `memory` function that chooses one. Runs have the request context of their own options. */
  async forRequest(request: ForRequest): Promise<this> {
    const requestContext = requestContextIn('forRequest()', request)
    if (!this.storageDependsOnRequest) return this
    const here = await this.resolveStorage(requestContext)
    const copy = here.#copyAt(here.#binding.fixed)
    copy.#context = requestContext
    return copy
  }

  /** @internal */ contextKeys(): Promise<readonly string[]> {
    return declaredKeys(this.#config)
  }

  /** Its model and its tools, for lists of agents. */
  async describe(request: ForRequest = this.#context ?? {}): Promise<AgentDescription> {
    return describeAgent(this.#config, this.id, this.site(), requestContextIn('describe()', request))
  }

  /** The workflows that it offers to the model, by their keys. */
  async listWorkflows(request: ForRequest = this.#context ?? {}): Promise<Record<string, WorkflowLike>> {
    return listWorkflows(this.#config.workflows, requestContextIn('listWorkflows()', request), this.id)
  }

  /** Its scorers for a request, by their keys. */
  async listScorers(request: ForRequest = this.#context ?? {}): Promise<AgentScorers> {
    return { ...(await resolveScorers(this.#config, requestContextIn('listScorers()', request), this.id)) }
  }

  /** Its voice for a request. */
  getVoice(request: ForRequest | undefined = this.#context): AgentVoice {
    return new AgentVoice(this, () => this.#config, request && requestContextIn('getVoice()', request))
  }

  async getMetadata(request: ForRequest = this.#context ?? {}): Promise<Record<string, unknown>> {
    return resolve(this.#config.metadata ?? {}, { requestContext: requestContextIn('getMetadata()', request) })
  }

  /** Its instructions for a request, as texts. */
  async getInstructions(request: ForRequest = this.#context ?? {}): Promise<string[]> {
    const requestContext = requestContextIn('getInstructions()', request)
    return systemMessages(await resolve(this.#config.instructions ?? '', { requestContext })).map(({ content }) => content)
  }

  /** @internal The site of its threads. */
  site(): Site {
    if (!this.#resolved || this.#resolved.threads.closing) this.#resolved = this.#binding.site()
    return this.#resolved
  }

  /** @internal */
  threads(): ThreadRuntime {
    return this.site().threads
  }

  /** @internal */
  get storageDependsOnRequest(): boolean {
    return typeof this.#config.memory === 'function'
  }

  /** @internal This agent, bound to the storage of a request: the `memory` function is called. Rejects where that throws. */
  resolveStorage(requestContext?: RequestContext): this | Promise<this> {
    if (!this.storageDependsOnRequest || (this.#binding.isFixed && !requestContext)) return this
    const otherwise = this.site()
    try {
      const found = resolveMemory(this.#config, contextOf(this.#config, requestContext), this.id)
      if (!(found instanceof Promise)) return this.#boundTo(found, otherwise)
      return this.#untilClosed(found).then((memory) => this.#boundTo(memory, otherwise))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Waits for a function of the configuration, which may never settle, but not beyond the close of its Heed. */
  #untilClosed<T>(found: Promise<T>): Promise<T> {
    return untilAborted(found, this.threads().stopping)
  }

  /** This agent at the storage of a memory; where the memory has none, at `otherwise`. */
  #boundTo(memory: Memory | undefined, otherwise: Site): this {
    const storage = storageIn(this.id, memory?.storage, staticProcessors(this.#config))
    const site = storage ? this.#binding.siteOf(storage) : otherwise
    const copy = this.#copies.get(site) ?? this.#copyAt(site)
    this.#copies.set(site, copy)
    return copy
  }

  #copyAt(site: Site | undefined): this {
    const copy = new Agent({ ...this.#config, id: this.id, heed: undefined }) as this
    copy.#binding = this.#binding.fixedAt(site)
    copy.#resolved = undefined
    return copy
  }

  /** @internal An agent without a storage and a Heed of its own uses the site of the agent that called it last. */
  inheritStorage(site: Site): void {
    this.#binding.inherit(site)
    this.#resolved = undefined
  }

  /** The owner of its storage, other than its memory: the storage of a processor, or its Heed. */
  get #storageOwner(): object | undefined {
    const [{ memory }, { heed, storage }] = [this.#config, this.#binding]
    return memory instanceof Memory && memory.storage ? heed : (storage ?? heed)
  }

  /** @internal */
  join(heed: Heed, key: string): void {
    this.#binding.join(heed, key)
    this.#resolved = undefined
    this.#id ??= key
    this.#bindMemory()
  }

  /** Binds its memory to its threads, once it has a storage or a Heed. */
  #bindMemory(): void {
    const [{ memory }, owner] = [this.#config, this.#storageOwner]
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
    return site.threads.open().then(() => site)
  }

  /** @internal */
  async prepare(options: AgentExecutionOptions, request: RunRequest, environment: RunEnvironment): Promise<PreparedRun> {
    const site = environment instanceof Site ? environment : this.site()
    return prepareRun(this.#config, this, options, request, { environment, site })
  }

  /** @internal */
  memoryOf(options: AgentExecutionOptions): MemoryTarget | undefined | Promise<MemoryTarget | undefined> {
    const { defaultOptions } = this.#config
    if (!defaultOptions || (typeof defaultOptions === 'object' && !defaultOptions.memory)) return options.memory
    return this.#untilClosed(resolveOptions(this.#config, options).then(targetIn))
  }

  /** @internal */
  describeThread(thread: { title?: string; metadata?: JSONObject }, options: AgentExecutionOptions): Promise<NonNullable<Send['thread']>> {
    return this.#untilClosed(describeThread(this.#config, thread, options, this.id))
  }

  /** @internal */
  async titler(): Promise<Titler> {
    return titlerOfMarkedThread(this.#config, await resolveOptions(this.#config, {}), this.id, this.site())
  }

  /** @internal */
  window({ memory }: AgentExecutionOptions): Window {
    return memory?.options ? windowOfAgent(this.#config, memory.options) : (this.#window ??= windowOfAgent(this.#config))
  }

  /** @internal */
  memoryOptions(options: AgentExecutionOptions): Promise<MemoryOptions> | undefined {
    if (!this.#historyDependsOnRequest && !options.inputProcessors && !options.outputProcessors) return undefined
    return this.#untilClosed(historyOptionsOfCall(this.id, this.#config, options))
  }

  async #continue(decision: RunDecision): Promise<StreamResult<TTools, never>> {
    const here = await this.resolveStorage()
    await checkResumeData(here, this.#config, decision)
    return (await continueSuspended(here, decision)) as StreamResult<TTools, never>
  }
}
