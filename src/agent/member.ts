import { HeedError } from '../base/errors.ts'
import type { Heed } from '../heed.ts'
import type { JSONObject } from '../base/json.ts'
import { Memory } from '../memory/memory.ts'
import { historyIn, storageIn } from '../memory/named-processors.ts'
import { historyOption, windowOf } from '../memory/window.ts'
import type { AgentExecutionOptions, MemoryOptions, MemoryTarget } from '../run/options.ts'
import type { RequestContext } from '../run/request-context.ts'
import type { RunSetup } from '../run/loop/run-setup.ts'
import type { Titler } from '../run/titler.ts'
import type { Send, Window } from '../store/contract/threads.ts'
import type { Storage } from '../store/contract/storage.ts'
import type { RunEnvironment, RunRequest } from '../thread/runtime/runnable.ts'
import { ThreadRuntime } from '../thread/runtime/runtime.ts'
import { checkConfig } from './check-config.ts'
import type { AgentConfig } from './config.ts'
import { contextKeys } from './context-keys.ts'
import { describeThread } from './describe-thread.ts'
import type { ForRequest } from './given.ts'
import { fixedProcessors, historyForCall } from './history.ts'
import { contextOf, memoryFor } from './memory-place.ts'
import type { NotificationDeliveryPolicyConfig } from './notifications.ts'
import { prepareRun, resolveOptions } from './prepare.ts'
import { implicitRuntimes } from './runtimes.ts'
import { anyTitler } from './titler.ts'

/** What a Heed knows of an agent: who it is, where its threads are, and how a run of it is prepared. */
export abstract class HeedMember<TAgentId extends string = string> {
  readonly description: string | undefined
  readonly #config: AgentConfig
  readonly #storage: Storage | undefined
  #id: string | undefined
  #heed: Heed | undefined
  #adopted: ThreadRuntime | undefined
  /** Of one that was placed: where. */
  #fixed: ThreadRuntime | undefined
  /** The request that it was placed for. */
  #context: RequestContext | undefined
  readonly #placed = new WeakMap<ThreadRuntime, this>()

  constructor(config: AgentConfig) {
    this.#config = config
    checkConfig(this.#config)
    this.#id = config.id ?? config.name
    this.#heed = config.heed
    this.description = config.description
    this.#storage = storageIn(config.id ?? config.name ?? 'without a name', config.memory instanceof Memory ? config.memory.storage : undefined, fixedProcessors(config))
  }

  get id(): TAgentId {
    if (this.#id === undefined) throw new HeedError('invalid_agent', 'This agent has no id. Give it one, or a name, or register it: new Heed({ agents: { support: agent } }).')
    return this.#id as TAgentId
  }

  get name(): string {
    return this.#config.name ?? this.id
  }

  /** @internal */
  protected get config(): AgentConfig {
    return this.#config
  }

  /** @internal Another of the same kind. */
  protected abstract made(config: AgentConfig): this

  // Where its threads are

  /** @internal */
  threads(): ThreadRuntime {
    if (this.#fixed) return this.#fixed
    if (!this.#heed && !this.#storage && this.#adopted) return this.#adopted
    return (this.#heed?.runtimes ?? implicitRuntimes).of(this.#storage)
  }

  /** @internal Whether that depends on the request. */
  get placedByRequest(): boolean {
    return typeof this.#config.memory === 'function'
  }

  /** @internal The function that finds the memory is asked; without a context, with an empty one. One that throws is one that rejects. */
  place(requestContext?: RequestContext): this | Promise<this> {
    if (!this.placedByRequest || (this.#fixed && !requestContext)) return this
    const otherwise = this.threads()
    try {
      const found = memoryFor(this.#config, contextOf(this.#config, requestContext), this.id)
      return found instanceof Promise ? found.then((memory) => this.placedAt(memory, otherwise)) : this.placedAt(found, otherwise)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** @internal Where the threads of a memory are; with a memory that brings no storage, where they are otherwise. */
  placedAt(memory: Memory | undefined, otherwise: ThreadRuntime): this {
    const storage = storageIn(this.id, memory?.storage, fixedProcessors(this.#config))
    const runtime = storage ? (this.#heed?.runtimes ?? implicitRuntimes).of(storage) : otherwise
    const placed = this.#placed.get(runtime) ?? this.#copy(runtime)
    this.#placed.set(runtime, placed)
    return placed
  }

  /** @internal */
  protected async placedFor(requestContext: RequestContext): Promise<this> {
    if (!this.placedByRequest) return this
    const placed = (await this.place(requestContext)).#copy()
    placed.#context = requestContext
    return placed
  }

  /** @internal The request that is meant where none is given. */
  protected get request(): ForRequest {
    return this.#context ?? {}
  }

  #copy(runtime = this.#fixed): this {
    const copy = this.made({ ...this.#config, id: this.id, heed: undefined })
    copy.#heed = this.#heed
    copy.#fixed = runtime
    return copy
  }

  /** @internal An agent without a place of its own keeps its threads where the agent that called it last does. */
  adopt(runtime: ThreadRuntime): void {
    this.#adopted = runtime
  }

  /** @internal The Heed it belongs to. */
  protected get owner(): Heed | undefined {
    return this.#heed
  }

  /** @internal What its threads are kept by, other than by its memory: a storage that a processor named, or its Heed. */
  protected get home(): object | undefined {
    const { memory } = this.#config
    return memory instanceof Memory && memory.storage ? this.#heed : (this.#storage ?? this.#heed)
  }

  /** @internal */
  join(heed: Heed, key: string): void {
    if (this.#heed && !this.#heed.closed) {
      throw new HeedError('invalid_agent', `The agent '${key}' belongs to another Heed, which is open. Make an agent for each, or close the other first.`, { details: { key } })
    }
    this.#heed = heed
    this.#id ??= key
  }

  // What a run of it is made of

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
  async prepare(options: AgentExecutionOptions, request: RunRequest, environment: RunEnvironment): Promise<RunSetup> {
    const runtime = environment instanceof ThreadRuntime ? environment : this.threads()
    return prepareRun(this.#config, { id: this.id, name: this.name }, options, request, { environment, runtime })
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
}
