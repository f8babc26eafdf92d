import { checkName, checkNames, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import type { JSONObject } from '../base/json.ts'
import { systemClock } from '../base/clock.ts'
import { consoleLogger } from '../base/logger.ts'
import type { Message } from '../message/message.ts'
import type { TextEmbedder } from '../recall/embedder.ts'
import type { EmbedderInput } from '../run/model/model-router.ts'
import type { MemoryOptions } from '../run/options.ts'
import type { RecallProgress, RecallStatus } from '../store/contract/recall.ts'
import { checkStorage, threadDependentsOf, threadStoreOf, type Storage } from '../store/contract/storage.ts'
import type { ThreadDependents } from '../store/contract/thread-row.ts'
import type { ThreadRow, ThreadStore } from '../store/contract/threads.ts'
import { callerQuota } from '../store/contract/usage.ts'
import { defaultStorage } from '../store/default.ts'
import { checkReindex, parseScope } from './arguments.ts'
import {
  cloneHistory, cloneMetadataOf, clonesOf, cloneThread, sourceOf, type ClonedThread, type CloneMetadata, type CloneThreadArgs,
  type UnreadClone,
} from './clones.ts'
import { checkMemoryOptions, checkOptionNames, defaultLastMessages } from './options.ts'
import { recall, type RecallArgs, type RecalledMessages } from './recall.ts'
import { seekMessages, type SeekArgs, type SoughtMessages } from './seek.ts'
import { ResourceMemory } from './resource-memory.ts'
import { explainRecall, type ExplainedRecall, type ExplainRecallArgs } from './semantic/explain.ts'
import {
  checkVectorOption, checkVectorPlace, embedderWith, isPlaced, isSearch, openIndex, searchMessages, type VectorOption,
} from './semantic/search.ts'
import {
  childThreadIds, createThread, deleteThread, listThreads, updateThread, type ListThreadsArgs, type NewThreadArgs, type ThreadList,
  type ThreadUpdate,
} from './threads.ts'
import {
  listVersions, readWorkingMemory, undoWorkingMemory, updateWorkingMemory, type WorkingMemoryTarget, type WorkingMemoryUpdate,
  type WorkingMemoryVersion,
} from './working-memory/access.ts'
import { parseWorkingMemory, requireWorkingMemory, type WorkingMemorySetting } from './working-memory/setting.ts'
import {
  deleteMessages, saveMessages, updateMessages, type DeleteMessagesArgs, type SaveMessagesArgs, type UpdateMessagesArgs,
} from './writing.ts'

/** The options of a `Memory`. */
export interface MemoryConfig extends MemoryOptions {
  /** The storage of this memory's threads. Defaults to the storage of the agent's Heed, and without an agent to the file `./heed.db`. */
  storage?: Storage
  /**
   * Makes vectors of messages, so that recall finds them by meaning too: `'provider/model'`, a model of the AI SDK, or `localEmbedder()`.
   */
  embedder?: EmbedderInput
  /** The previous embedder. Its vectors serve until `embedder` has made all of its own: set it when you change the embedder. */
  formerEmbedder?: EmbedderInput
  /**
   * The store of the vectors: any object with the methods of a `VectorStore`. Defaults to the index beside the messages, which a
   * `LibSQLVector` stands for. `false`: no vectors, and no `embedder`.
   */
  vector?: VectorOption
  /** The same options, nested. */
  options?: MemoryOptions
}

/** The conversations of an agent: how much of them the model sees, and the methods by which programs read and change them. */
export class Memory {
  readonly storage: Storage | undefined
  readonly options: MemoryOptions
  readonly #models: Pick<MemoryConfig, 'embedder' | 'formerEmbedder'>
  readonly #embedder: TextEmbedder | undefined
  readonly #vector: VectorOption | undefined
  readonly #bindings = new MemoryBindings()
  #default: Promise<Storage> | undefined

  constructor(config: MemoryConfig = {}) {
    if (typeof config !== 'object' || config === null || Array.isArray(config)) throw refused('The options of a memory', 'an object')
    const { storage, options, embedder, formerEmbedder, vector, ...own } = config
    checkOptionNames(own, ['storage', 'options', 'embedder', 'formerEmbedder', 'vector'])
    checkOptionNames(options ?? {})
    for (const key of Object.keys(own) as Array<keyof MemoryOptions>) {
      if (options?.[key] !== undefined && options[key] !== own[key]) {
        throw new HeedError('invalid_argument', `Memory has two different values for '${key}'. Set it once, directly or in options.`, {
          details: { option: key },
        })
      }
    }
    if (storage !== undefined) checkStorage(storage)
    checkVectorOption(vector)
    if (vector && storage) checkVectorPlace(vector, storage)
    this.#vector = vector
    this.storage = storage
    if (formerEmbedder !== undefined && embedder === undefined) {
      throw new HeedError('invalid_argument', 'formerEmbedder serves until embedder has made its vectors. Set embedder too.', {
        details: { option: 'formerEmbedder' },
      })
    }
    this.options = { ...own, ...options }
    checkMemoryOptions(this.options, { placed: this.placed })
    this.#models = { ...(embedder !== undefined && { embedder }), ...(formerEmbedder !== undefined && { formerEmbedder }) }
    this.#embedder = embedderWith(vector, this.#models, this.options.semanticRecall)
    if (this.options.save === false) {
      const why = 'save: false is an option of a call: agent.generate(…, { memory: { thread, resource, options: { save: false } } }).'
      throw new HeedError('unsupported_option', why, { details: { option: 'save' } })
    }
  }

  /** @internal */
  get embedder(): TextEmbedder | undefined {
    return this.#embedder
  }

  /** @internal Whether its vectors are in a vector store. */
  get placed(): boolean {
    return isPlaced(this.#vector)
  }

  /** @internal Rejects what the store of its threads cannot honor. */
  checkStore(store: ThreadStore): void {
    checkVectorPlace(this.#vector, store)
  }

  /** @internal Calls go to the storage of the agent from now on. */
  bind(binding: MemoryBinding, owner: object | undefined): void {
    this.#bindings.add(binding, owner)
  }

  /** @internal The memory of one agent: itself, or another object when its agents use different storages. */
  at(binding: MemoryBinding, owner: object | undefined): Memory {
    this.bind(binding, owner)
    if (this.#bindings.isOnlyStorage(binding)) return this
    const handle = new Memory({ ...this.options, ...this.#models, ...(this.storage && { storage: this.storage }), vector: this.#vector })
    handle.bind(binding, handle)
    return handle
  }

  // Threads

  /** Creates a thread. Returns an existing one unchanged. */
  async createThread(thread: NewThreadArgs): Promise<ThreadRow> {
    return createThread(await this.#open(), thread, this.#now(), parseWorkingMemory(this.options))
  }

  async getThreadById(thread: { threadId: string; resourceId?: string }): Promise<ThreadRow | null> {
    checkNames('getThreadById()', thread, ['threadId', 'resourceId'])
    const { threadId, resourceId } = thread
    return (await this.#open()).getThread(parseScope(threadId, resourceId))
  }

  /** Threads by page, the newest first by default. */
  async listThreads(args: ListThreadsArgs = {}): Promise<ThreadList> {
    return listThreads(await this.#open(), args)
  }

  /** Sets the title, and merges metadata key by key (null removes a key): concurrent updates of different keys are all kept. */
  async updateThread(update: ThreadUpdate): Promise<ThreadRow> {
    return updateThread(await this.#open(), update, parseWorkingMemory(this.options))
  }

  /** Deletes a thread with everything that belongs to it, and its child threads. False when it does not exist. */
  async deleteThread(thread: string | { threadId: string; resourceId?: string }): Promise<boolean> {
    if (typeof thread !== 'string') checkNames('deleteThread()', thread, ['threadId', 'resourceId'])
    const { threadId, resourceId } = typeof thread === 'string' ? { threadId: thread } : thread
    return deleteThread(await this.#open(), parseScope(threadId, resourceId), () => this.#belongings())
  }

  /**
   * Transfers a thread to another resource, with its notifications, its schedules and its child threads. With `from`, the call is rejected
   * when the thread belongs to another resource. Subscribers of the former resource are stopped with `thread_forbidden`.
   */
  async transferThread(transfer: { threadId: string; resourceId: string; from?: string }): Promise<ThreadRow> {
    checkNames('transferThread()', transfer, ['threadId', 'resourceId', 'from'])
    const { threadId, resourceId, from } = transfer
    checkName('resourceId', resourceId)
    const binding = this.#bindings.current()
    const store = await this.#open()
    const scope = parseScope(threadId, from)
    const ids = [...(await childThreadIds(store, scope)), threadId]
    const thread = await store.transferThread(scope, resourceId, callerQuota().quota)
    for (const belonging of await this.#belongings()) for (const id of ids) await belonging.giveThread(id, resourceId)
    for (const id of ids) binding?.transferred(id, resourceId)
    return thread
  }

  // Messages

  /** A page of a thread around, before or after a message, or from a place on, with the number of messages before it. */
  async seekMessages(args: SeekArgs): Promise<SoughtMessages> {
    return seekMessages(await this.#open(), args)
  }

  /**
   * The newest messages in chronological order; by page, by date, or by id with neighbors; all of them with `perPage: false`. With
   * `vectorSearchString`, those that fit it best. A thread that does not exist has none.
   */
  async recall(args: RecallArgs): Promise<RecalledMessages> {
    const { lastMessages = this.options.lastMessages } = args?.threadConfig ?? {}
    const store = await this.#open()
    return isSearch(args)
      ? searchMessages(store, args, this.options, this.embedder)
      : recall(store, args, lastMessages || defaultLastMessages)
  }

  /** Why `recall()` finds these messages for a `vectorSearchString`, or why it does not find one of them. */
  async explainRecall(args: ExplainRecallArgs): Promise<ExplainedRecall> {
    return explainRecall(await this.#open(), args, this.options, this.embedder)
  }

  /** The progress of indexing for recall, and the failures that delay it. */
  async recallStatus(): Promise<RecallStatus> {
    return (await openIndex(await this.#open(), this.embedder)).status()
  }

  /** Indexes all messages of the storage again. Searches use the present index meanwhile. */
  async reindex(options: { onProgress?: (progress: RecallProgress) => void } = {}): Promise<void> {
    checkReindex(options)
    return (await openIndex(await this.#open(), this.embedder)).reindex(options)
  }

  /** The same as `recall`. */
  listMessages(args: RecallArgs): Promise<RecalledMessages> {
    return this.recall(args)
  }

  /** Appends messages to their threads, or replaces those with the same ids. All or none. */
  async saveMessages(args: SaveMessagesArgs): Promise<{ messages: Message[] }> {
    return { messages: await saveMessages(await this.#open(), args, this.#now()) }
  }

  /** Updates messages: `content` field by field, its `metadata` key by key (null removes a key). All or none. */
  async updateMessages(args: UpdateMessagesArgs): Promise<Message[]> {
    return updateMessages(await this.#open(), args)
  }

  /** Deletes messages by id, by a list of ids, or all of a thread: `{ threadId }`. Returns the number of deleted messages. */
  async deleteMessages(args: DeleteMessagesArgs): Promise<number> {
    return deleteMessages(await this.#open(), args)
  }

  // Clones

  /** Copies a thread in its present state, with all or some of its messages. */
  cloneThread(args: UnreadClone): Promise<Pick<ClonedThread, 'thread'>>
  cloneThread(args: CloneThreadArgs): Promise<ClonedThread>
  async cloneThread(args: CloneThreadArgs): Promise<Pick<ClonedThread, 'thread'>> {
    return cloneThread(await this.#open(), args, this.#now())
  }

  isClone(thread: Pick<ThreadRow, 'metadata'> | null): boolean {
    return cloneMetadataOf(thread) !== null
  }

  getCloneMetadata(thread: Pick<ThreadRow, 'metadata'> | null): CloneMetadata | null {
    return cloneMetadataOf(thread)
  }

  /** The thread that this one is a clone of. Null when it is not a clone, or its source was deleted. */
  async getSourceThread(threadId: string): Promise<ThreadRow | null> {
    return sourceOf(await this.#open(), threadId)
  }

  /** The clones of a thread, the oldest first. */
  async listClones(sourceThreadId: string, resourceId?: string): Promise<ThreadRow[]> {
    return clonesOf(await this.#open(), sourceThreadId, resourceId)
  }

  /** From the first source to this thread, each a clone of the previous one. */
  async getCloneHistory(threadId: string): Promise<ThreadRow[]> {
    return cloneHistory(await this.#open(), threadId)
  }

  /** A memory restricted to one resource: its calls cannot reach what belongs to another. */
  forResource(resourceId: string): ResourceMemory {
    checkName('resourceId', resourceId)
    const access = { store: () => this.#open(), belongings: () => this.#belongings(), now: () => this.#now() }
    return new ResourceMemory(resourceId, access, this.options, this.embedder)
  }

  /** Working memory: the text, or the object when there is a schema. Null when it was never set. */
  async getWorkingMemory<T = string | JSONObject>(target: WorkingMemoryTarget): Promise<T | null> {
    const found = await readWorkingMemory(await this.#open(), this.#setting(), target)
    return (found?.workingMemory ?? null) as T | null
  }

  /** Replaces the text; with a schema, merges the fields in one transaction: concurrent changes of other fields are kept. */
  async updateWorkingMemory(update: WorkingMemoryUpdate): Promise<WorkingMemoryVersion> {
    return updateWorkingMemory(await this.#open(), this.#setting(), update)
  }

  /** The versions of working memory, newest first. The last hundred are kept. */
  async listWorkingMemoryVersions(target: WorkingMemoryTarget & { limit?: number; before?: number }): Promise<WorkingMemoryVersion[]> {
    return listVersions(await this.#open(), this.#setting(), target)
  }

  /** Restores a version, by default the one before the present. */
  async undoWorkingMemory(target: WorkingMemoryTarget & { version?: number; expectedVersion?: number }): Promise<WorkingMemoryVersion> {
    return undoWorkingMemory(await this.#open(), this.#setting(), target)
  }

  #setting(): WorkingMemorySetting {
    return requireWorkingMemory(this.options)
  }

  #now(): number {
    return this.#bindings.current()?.now() ?? systemClock.now()
  }

  async #belongings(): Promise<ThreadDependents[]> {
    return threadDependentsOf(await (this.#bindings.current()?.storage() ?? this.#storage()))
  }

  /** The storage of a memory without an agent. */
  #storage(): Promise<Storage> {
    return this.storage ? Promise.resolve(this.storage) : (this.#default ??= defaultStorage(consoleLogger.warn))
  }

  async #open(): Promise<ThreadStore> {
    const binding = this.#bindings.current()
    const store = binding ? await binding.store() : await threadStoreOf(await this.#storage())
    this.checkStore(store)
    if (!binding) await store.open()
    return store
  }
}

/** Binds a memory to the storage that one of its agents uses. */
export interface MemoryBinding {
  store(): Promise<ThreadStore>
  /** Equal for bindings to the same storage. */
  key(): unknown
  /** The time of the Heed's clock. */
  now(): number
  /** Whether the Heed is closed. */
  closed(): boolean
  /** The storage with all its stores. */
  storage(): Promise<Storage>
  /** Called after a thread was transferred: subscribers of its former resource are stopped. */
  transferred(threadId: string, resourceId: string): void
}

/** The bindings of a memory that several agents may share. Calls on the memory itself need all of them to be of one storage. */
class MemoryBindings {
  /** The last binding of each Heed or storage. */
  readonly #byOwner = new Map<object, MemoryBinding>()
  /** The binding of an agent without a Heed, used when there is no other. */
  #unowned: MemoryBinding | undefined

  /** `owner` is undefined for an agent without a Heed. */
  add(binding: MemoryBinding, owner: object | undefined): void {
    if (owner === undefined) {
      this.#unowned = binding
      return
    }
    for (const [key, one] of this.#byOwner) if (key === owner || one.closed()) this.#byOwner.delete(key)
    this.#byOwner.set(owner, binding)
  }

  isOnlyStorage(binding: MemoryBinding): boolean {
    const key = binding.key()
    return this.#open().every((one) => one.key() === key)
  }

  /** The binding to the storage that all agents share; undefined when no agent has this memory. */
  current(): MemoryBinding | undefined {
    const last = this.#open().at(-1)
    if (!last || this.isOnlyStorage(last)) return last
    const why = 'The agents of this memory keep their threads in different storages. Call the memory of one agent: await agent.getMemory().'
    throw new HeedError('invalid_argument', why, { details: { field: 'memory' } })
  }

  #open(): MemoryBinding[] {
    const all = [...this.#byOwner.values()]
    const open = all.filter((binding) => !binding.closed())
    if (open.length > 0) return open
    return [all.at(-1) ?? this.#unowned ?? []].flat()
  }
}
