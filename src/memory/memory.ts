import { systemClock } from '../base/clock.ts'
import { HeedError } from '../base/errors.ts'
import type { JSONObject } from '../base/json.ts'
import type { Message } from '../message/message.ts'
import type { TextEmbedder } from '../recall/embedder.ts'
import type { EmbedderInput } from '../run/model/embedding-model.ts'
import type { MemoryOptions } from '../run/options.ts'
import { belongingsOf, type Belongings } from '../store/contract/thread-dependents.ts'
import type { ThreadRow, ThreadStore } from '../store/contract/threads.ts'
import { defaultStorage } from '../store/default.ts'
import type { RecallProgress, RecallStatus } from '../store/contract/recall.ts'
import { checkStorage, threadStoreOf, type Storage } from '../store/contract/storage.ts'
import { checkNames, checkName, checkReindex, refused, scopeOf } from './arguments.ts'
import { cloneHistory, cloneMetadataOf, clonesOf, cloneThread, sourceOf, type CloneMetadata, type ClonedThread, type CloneThreadArgs, type UnreadClone } from './clones.ts'
import { checkMemoryOptions, checkOptionNames } from './options.ts'
import { Homes } from './homes.ts'
import type { MemoryPlace } from './place.ts'
import { recall, type RecallArgs, type RecalledMessages } from './recall.ts'
import { ResourceMemory } from './scoped.ts'
import { textEmbedderAfter } from './semantic/embedder.ts'
import { checkVectors, indexOf, isSearch, searchMessages, type BuiltInVectors } from './semantic/search.ts'
import { createThread, deleteThread, idsBelow, listThreads, updateThread, type ListThreadsArgs, type NewThreadArgs, type ThreadList, type ThreadUpdate } from './threads.ts'
import { defaultLastMessages } from './window.ts'
import { listVersions, readWorkingMemory, undoWorkingMemory, updateWorkingMemory } from './working-memory/access.ts'
import type { WorkingMemoryTarget, WorkingMemoryUpdate, WorkingMemoryVersion } from './working-memory/access.ts'
import { workingMemoryIn, workingMemoryOf, type WorkingMemorySetting } from './working-memory/setting.ts'
import { deleteMessages, saveMessages, updateMessages, type DeleteMessagesArgs, type SaveMessagesArgs, type UpdateMessagesArgs } from './writing.ts'

export interface MemoryConfig extends MemoryOptions {
  /** Where this memory's threads are kept. Defaults to the storage of the agent's Heed, and without an agent to the file `./heed.db`. */
  storage?: Storage
  /** Makes vectors of messages, so that they are recalled by their meaning too: `'provider/model'`, a model of the AI SDK, or `localEmbedder()`. */
  embedder?: EmbedderInput
  /** The embedder before `embedder`. Until all vectors are made anew, those that it made serve: leave it in when you change to another. */
  formerEmbedder?: EmbedderInput
  /** Where vectors are kept: beside the messages, as `LibSQLVector` stands for. `false`: there are none. */
  vector?: BuiltInVectors | false
  /** The same options, one level down. */
  options?: MemoryOptions
}

/** The conversations of an agent: how much of them the model sees, and how programs read them. */
export class Memory {
  readonly storage: Storage | undefined
  readonly options: MemoryOptions
  #embedder: TextEmbedder | undefined
  readonly #homes = new Homes()
  #implicit: Promise<Storage> | undefined

  constructor(config: MemoryConfig = {}) {
    if (typeof config !== 'object' || config === null || Array.isArray(config)) throw refused('The options of a memory', 'an object')
    const { storage, options, embedder, formerEmbedder, vector, ...own } = config
    checkOptionNames(own, ['storage', 'options', 'embedder', 'formerEmbedder', 'vector'])
    checkOptionNames(options ?? {})
    for (const key of Object.keys(own) as Array<keyof MemoryOptions>) {
      if (options?.[key] !== undefined && options[key] !== own[key]) {
        throw new HeedError('invalid_argument', `Memory was given '${key}' twice, with different values. Write it once.`, { details: { option: key } })
      }
    }
    if (storage !== undefined) checkStorage(storage)
    checkVectors(vector)
    this.storage = storage
    if (formerEmbedder !== undefined && embedder === undefined) {
      throw new HeedError('invalid_argument', 'formerEmbedder serves until the vectors of embedder are made. Give embedder too.', { details: { option: 'formerEmbedder' } })
    }
    this.#embedder = embedder === undefined || vector === false ? undefined : textEmbedderAfter(embedder, formerEmbedder)
    this.options = { ...own, ...options }
    checkMemoryOptions(this.options)
    if (this.options.save === false) {
      throw new HeedError('unsupported_option', 'save: false is an option of a call: agent.generate(…, { memory: { thread, resource, options: { save: false } } }).', { details: { option: 'save' } })
    }
  }

  /** @internal */
  get embedder(): TextEmbedder | undefined {
    return this.#embedder
  }

  /** @internal What it is asked goes to where the threads of its agent are. */
  bind(place: MemoryPlace, owner: object | undefined): void {
    this.#homes.add(place, owner)
  }

  /** @internal The memory of one agent: itself, or a handle where its agents are in different places. */
  at(place: MemoryPlace, owner: object | undefined): Memory {
    this.bind(place, owner)
    if (this.#homes.agree(place)) return this
    const handle = new Memory({ ...this.options, ...(this.storage && { storage: this.storage }) })
    handle.#embedder = this.#embedder
    handle.bind(place, handle)
    return handle
  }

  // Threads

  /** Creates a thread. One that is there already is answered as it is. */
  async createThread(thread: NewThreadArgs): Promise<ThreadRow> {
    return createThread(await this.#open(), thread, this.#now(), workingMemoryIn(this.options))
  }

  async getThreadById(thread: { threadId: string; resourceId?: string }): Promise<ThreadRow | null> {
    checkNames('getThreadById()', thread, ['threadId', 'resourceId'])
    const { threadId, resourceId } = thread
    return (await this.#open()).getThread(scopeOf(threadId, resourceId))
  }

  /** Threads by page, the newest first unless told otherwise. */
  async listThreads(args: ListThreadsArgs = {}): Promise<ThreadList> {
    return listThreads(await this.#open(), args)
  }

  /** Sets the title, and merges metadata key by key (null removes a key): writers at one time lose nothing of each other. */
  async updateThread(update: ThreadUpdate): Promise<ThreadRow> {
    return updateThread(await this.#open(), update, workingMemoryIn(this.options))
  }

  /** Removes a thread with everything that belongs to it, threads below it included. False when there is none. */
  async deleteThread(thread: string | { threadId: string; resourceId?: string }): Promise<boolean> {
    if (typeof thread !== 'string') checkNames('deleteThread()', thread, ['threadId', 'resourceId'])
    const { threadId, resourceId } = typeof thread === 'string' ? { threadId: thread } : thread
    return deleteThread(await this.#open(), scopeOf(threadId, resourceId), () => this.#belongings())
  }

  /**
   * Gives a thread to another resource, with its notifications, its schedules and the threads below it. `from` refuses it when it isn't that resource's. Those who
   * watch it for the old one are stopped with `thread_forbidden`.
   */
  async transferThread(transfer: { threadId: string; resourceId: string; from?: string }): Promise<ThreadRow> {
    checkNames('transferThread()', transfer, ['threadId', 'resourceId', 'from'])
    const { threadId, resourceId, from } = transfer
    checkName('resourceId', resourceId)
    const place = this.#homes.one()
    const store = await this.#open()
    const scope = scopeOf(threadId, from)
    const going = [...(await idsBelow(store, scope)), threadId]
    const thread = await store.transferThread(scope, resourceId)
    for (const belonging of await this.#belongings()) for (const id of going) await belonging.giveThread(id, resourceId)
    for (const id of going) place?.transferred(id, resourceId)
    return thread
  }

  // Messages

  /**
   * The newest messages in chronological order; by page, by date, or by id with neighbours; all of them with `perPage: false`. With
   * `vectorSearchString`, those that fit it best. A thread that isn't there has none.
   */
  async recall(args: RecallArgs): Promise<RecalledMessages> {
    const { lastMessages = this.options.lastMessages } = args?.threadConfig ?? {}
    const store = await this.#open()
    return isSearch(args) ? searchMessages(store, args, this.options, this.embedder) : recall(store, args, lastMessages || defaultLastMessages)
  }

  /** How far messages are indexed for recall, and what holds it up. */
  async recallStatus(): Promise<RecallStatus> {
    return (await indexOf(await this.#open(), this.embedder)).status()
  }

  /** Indexes all messages of the storage again, while what is there serves. */
  async reindex(options: { onProgress?: (progress: RecallProgress) => void } = {}): Promise<void> {
    checkReindex(options)
    return (await indexOf(await this.#open(), this.embedder)).reindex(options)
  }

  /** The same as `recall`. */
  listMessages(args: RecallArgs): Promise<RecalledMessages> {
    return this.recall(args)
  }

  /** Appends messages to their threads, or puts them in place of those that have their ids. All or none. */
  async saveMessages(args: SaveMessagesArgs): Promise<{ messages: Message[] }> {
    return { messages: await saveMessages(await this.#open(), args, this.#now()) }
  }

  /** Changes messages: `content` field by field, its `metadata` key by key (null removes a key). All or none. */
  async updateMessages(args: UpdateMessagesArgs): Promise<Message[]> {
    return updateMessages(await this.#open(), args)
  }

  /** Removes messages by id, by a list of ids, or all of a thread: `{ threadId }`. Answers how many went. */
  async deleteMessages(args: DeleteMessagesArgs): Promise<number> {
    return deleteMessages(await this.#open(), args)
  }

  // Clones

  /** Copies a thread as it is now, all of it or some of its messages. */
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

  /** The thread that this one is a copy of. Null when it is none, or its source is gone. */
  async getSourceThread(threadId: string): Promise<ThreadRow | null> {
    return sourceOf(await this.#open(), threadId)
  }

  /** Copies of a thread, the oldest first. */
  async listClones(sourceThreadId: string, resourceId?: string): Promise<ThreadRow[]> {
    return clonesOf(await this.#open(), sourceThreadId, resourceId)
  }

  /** From the first source to this thread, each a copy of the one before. */
  async getCloneHistory(threadId: string): Promise<ThreadRow[]> {
    return cloneHistory(await this.#open(), threadId)
  }

  /** The same for one resource alone: whatever it is asked, it can't reach what belongs to another. */
  forResource(resourceId: string): ResourceMemory {
    checkName('resourceId', resourceId)
    return new ResourceMemory(resourceId, { store: () => this.#open(), belongings: () => this.#belongings(), now: () => this.#now() }, this.options, this.embedder)
  }

  /** What is kept in mind: the text, or the object when there is a schema. Null when nothing ever was. */
  async getWorkingMemory<T = string | JSONObject>(target: WorkingMemoryTarget): Promise<T | null> {
    const found = await readWorkingMemory(await this.#open(), this.#setting(), target)
    return (found?.workingMemory ?? null) as T | null
  }

  /** Replaces the text; with a schema, merges the fields, all at once: changes of others are kept. */
  async updateWorkingMemory(update: WorkingMemoryUpdate): Promise<WorkingMemoryVersion> {
    return updateWorkingMemory(await this.#open(), this.#setting(), update)
  }

  /** Its versions, newest first. The last hundred are kept. */
  async listWorkingMemoryVersions(target: WorkingMemoryTarget & { limit?: number; before?: number }): Promise<WorkingMemoryVersion[]> {
    return listVersions(await this.#open(), this.#setting(), target)
  }

  /** Goes back to a version, or to the one before the present. */
  async undoWorkingMemory(target: WorkingMemoryTarget & { version?: number; expectedVersion?: number }): Promise<WorkingMemoryVersion> {
    return undoWorkingMemory(await this.#open(), this.#setting(), target)
  }

  #setting(): WorkingMemorySetting {
    return workingMemoryOf(this.options)
  }

  #now(): number {
    return this.#homes.one()?.now() ?? systemClock.now()
  }

  async #belongings(): Promise<Belongings[]> {
    return belongingsOf(await (this.#homes.one()?.storage() ?? this.#storage()))
  }

  /** Of a memory that no agent has. */
  #storage(): Promise<Storage> {
    return this.storage ? Promise.resolve(this.storage) : (this.#implicit ??= defaultStorage())
  }

  async #open(): Promise<ThreadStore> {
    const place = this.#homes.one()
    if (place) return place.store()
    const store = await threadStoreOf(await this.#storage())
    await store.open()
    return store
  }
}
